// Examining a whole file system, read-only: what must hold between its structures, beyond what opening already refused.
//
//   K1  Every live inode but the root is reached by exactly as many names as its link count says; a directory by one,
//   from
//       the directory that its parent word names.
//   K2  A directory's entry count, subdirectory count, leaves, keys and fingerprints agree.
//   K3  No block has two owners; each map is in order, inside the regions, and as long as its inode says.
//   K4  Attributes and ACLs are whole, in order, and what the mode's flags say.
//   K5  The allocator knows exactly the used blocks, but for those that the quarantine or a hold keeps out of reach.
// Thread rules: nobody else may use the file system meanwhile.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/checksum.h"
#include "fs/acl.h"
#include "fs/directory.h"
#include "fs/filesystem_impl.h"
#include "fs/resolve.h"
#include "fs/xattr.h"

namespace pmfs {

namespace {

class Checker {
 public:
  explicit Checker(Volume& volume) : volume_(volume), seen_(volume.regions) {}
  CheckReport run();

 private:
  struct Known {
    u64 names = 0;
    u64 subdirectories = 0;
    u64 named_by = 0;  // the directory that names it, for directories
  };

  void add(std::string code, std::string text, u64 media_off, InodeNo ino);
  void add(std::string code, const Error& error, InodeNo ino) {
    add(std::move(code), error.what, error.media_off, ino);
  }
  void own(BlockRun run, InodeNo ino, const char* what);
  void own_structures();
  void check_map(InodeNo ino, u64 root, u64& blocks, u64& end);
  void check_node(u64 block, u32 level, InodeNo ino);
  void check_inode(u64 slot);
  void check_directory(const InodeRef& dir);
  void check_index(const InodeRef& dir, u64& blocks);
  void check_areas(const InodeRef& ref, u64& blocks);
  void check_file(const InodeRef& file, u64 blocks, u64 end);
  void check_names();
  void check_space();

  u64 off_of(const void* at) const { return to_u64(volume_.persist.memory().off_of(at)); }
  static std::string number(InodeNo ino) { return std::to_string(to_u64(ino)); }

  Volume& volume_;
  BlockAlloc seen_;  // marks who was met; compared with the allocator in the end
  std::unordered_map<u64, Known> known_;
  u64 free_slots_ = 0;  // on the medium
  CheckReport report_;
};

void Checker::add(std::string code, std::string text, u64 media_off, InodeNo ino) {
  report_.findings.push_back({std::move(code), std::move(text), media_off, ino});
}

void Checker::own(BlockRun run, InodeNo ino, const char* what) {
  if (seen_.mark_used(run)) return;
  for (u64 i = 0; i < run.count; ++i) {
    if (seen_.mark_used({run.first + i, 1})) continue;
    const u64 off = to_u64(block_off(run.first + i));
    add("block-owned-twice",
        std::string(what) + " of inode " + number(ino) + " lies in block " + std::to_string(run.first + i) +
            ", which has another owner",
        off, ino);
    return;
  }
}

void Checker::own_structures() {
  const media::Superblock& sb = volume_.superblock;
  own({off_of(&sb) / kBlockBytes, 1}, kNoInode, "the superblock");
  own({sb.region_table_off.get() / kBlockBytes, 1}, kNoInode, "the region table");
  own({sb.lane_area_off.get() / kBlockBytes, (media::kLaneAreaBytes + kBlockBytes - 1) / kBlockBytes}, kNoInode,
      "the lane area");
  u64 blocks = 0;
  u64 end = 0;
  check_map(kNoInode, sb.inode_map_root.get(), blocks, end);
  if (end * media::kInodesPerBlock != sb.inode_slots.get())
    add("inode-file-length",
        "the inode file maps " + std::to_string(end) + " blocks, but has " + std::to_string(sb.inode_slots.get()) +
            " inodes",
        off_of(&sb), kNoInode);
}

void Checker::check_node(u64 block, u32 level, InodeNo ino) {
  const auto& node = *reinterpret_cast<const media::MapNode*>(volume_.persist.memory().at(block_off(block)));
  u64 before = 0;
  for (u32 i = 0; i < node.count.get(); ++i) {
    const u64 place = node.entries[i].place.get();
    const u64 from = place >> 24;
    const u64 to = level == 0 ? from + (place & kMaxExtentBlocks) : from + 1;
    if (i > 0 && from < before) {
      add("map-order", "a map node's entries are not in ascending order", to_u64(block_off(block)), ino);
      return;
    }
    before = to;
  }
}

// Owns all blocks of a map; counts them, and finds where it ends.
void Checker::check_map(InodeNo ino, u64 root, u64& blocks, u64& end) {
  const auto nodes = volume_.maps.each_node(root, [&](u64 block, u32 level) -> Result<void> {
    own({block, 1}, ino, "a map node");
    check_node(block, level, ino);
    blocks += 1;
    return {};
  });
  if (!nodes.ok()) return add("map-damaged", nodes.error(), ino);
  u64 before = 0;
  const auto extents = volume_.maps.each(root, 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    if (e.logical < before) add("map-order", "two extents overlap in their file", to_u64(block_off(e.block)), ino);
    before = e.end();
    own({e.block, e.count}, ino, "data");
    blocks += e.count;
    if (!e.unwritten) end = std::max(end, e.end());  // unwritten blocks may lie behind a file's size
    return {};
  });
  if (!extents.ok()) add("map-damaged", extents.error(), ino);
}

void Checker::check_directory(const InodeRef& dir) {
  const media::Inode& inode = dir.media();
  u64 entries = 0;
  std::set<u64> keys;
  const auto leaf_in = [&](u64 block) -> const media::Leaf& {
    return *reinterpret_cast<const media::Leaf*>(volume_.persist.memory().at(block_off(block)));
  };
  (void)volume_.maps.each(inode.map_root.get(), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    for (u64 block = e.block; block < e.block + e.count; ++block)
      if (leaf_in(block).checksum.get() != htree::header_checksum(leaf_in(block), volume_.hash_name.seed))
        add("leaf-checksum", "a leaf's header is damaged", to_u64(block_off(block)), dir.ino());
    return {};
  });
  const auto result = each_entry(volume_, dir, [&](const htree::Entry& entry, u64 block, u64) -> Result<void> {
    const u64 off = to_u64(block_off(block));
    const media::Leaf& leaf = leaf_in(block);
    entries += 1;
    report_.entries += 1;
    const htree::NameHash hash = volume_.hash_name(entry.name);
    if (htree::key_hash(entry.key) != hash.hash || leaf.fingerprint[entry.slot] != hash.fingerprint)
      add("entry-hash", "an entry's hash is not its name's", off, dir.ino());
    if (!keys.insert(entry.key).second) add("entry-key", "two entries have the same key", off, dir.ino());
    if (entry.name.find('/') != std::string_view::npos || entry.name.find('\0') != std::string_view::npos ||
        entry.name == "." || entry.name == "..")
      add("entry-name", "an entry has a name that cannot be", off, dir.ino());
    if (to_u64(entry.ino) == 0 || to_u64(entry.ino) > volume_.inodes.slots()) {
      add("entry-target", "an entry names inode " + number(entry.ino) + ", which cannot be", off, dir.ino());
      return {};
    }
    const media::Inode& target = volume_.inodes.slot(to_u64(entry.ino) - 1);
    if (media::low_half(target.state_gen.get()) != media::kSlotLive) {
      add("entry-target", "an entry names inode " + number(entry.ino) + ", which is free", off, dir.ino());
      return {};
    }
    const FileType type = type_of(target);
    if (static_cast<FileType>(entry.type) != type)
      add("entry-type", "an entry's file type is not its inode's", off, dir.ino());
    Known& known = known_[to_u64(entry.ino)];
    known.names += 1;
    if (type == FileType::kDirectory) {
      known.named_by = to_u64(dir.ino());
      known_[to_u64(dir.ino())].subdirectories += 1;
    }
    return {};
  });
  if (!result.ok()) add("directory-damaged", result.error(), dir.ino());
  if (result.ok() && entries != inode.entry_count.get())
    add("entry-count",
        "a directory has " + std::to_string(entries) + " names and counts " + std::to_string(inode.entry_count.get()),
        off_of(&inode), dir.ino());
}

// The index knows every leaf once, and each leaf's entries have keys of its range.
void Checker::check_index(const InodeRef& dir, u64& blocks) {
  const media::Inode& inode = dir.media();
  const u64 root = inode.rdev_index.get();
  if (root == 0) return;
  u64 leaves = 0;
  const auto result =
      index_of(volume_, dir)
          .verify(
              root,
              [&](u64 block) -> Result<void> {
                own({block, 1}, dir.ino(), "an index node");
                blocks += 1;
                return {};
              },
              [&](const htree::IndexedLeaf& leaf) -> Result<void> {
                leaves += 1;
                PMFS_ASSIGN(const u64 block, leaf_block(volume_, dir, leaf.logical));
                const media::Leaf& at = leaf_at(volume_, block);
                for (u64 left = at.live.get(); left != 0; left &= left - 1) {
                  PMFS_ASSIGN(const htree::Entry entry, htree::read_entry(at, static_cast<u32>(std::countr_zero(left)),
                                                                          to_u64(block_off(block))));
                  if (entry.key < leaf.key || entry.key >= leaf.next_key)
                    add("index-range", "an entry stands in a leaf that the index does not give it",
                        to_u64(block_off(block)), dir.ino());
                }
                return {};
              });
  if (!result.ok()) return add("index-damaged", result.error(), dir.ino());
  u64 mapped = 0;
  (void)volume_.maps.each(inode.map_root.get(), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    mapped += e.count;
    return {};
  });
  if (mapped != leaves || leaves < 2)
    add("index-leaves", "a directory has " + std::to_string(mapped) + " leaves and its index " + std::to_string(leaves),
        off_of(&inode), dir.ino());
}

// Owns the blocks of attributes and ACLs, and looks at what they say.
void Checker::check_areas(const InodeRef& ref, u64& blocks) {
  const media::Inode& inode = ref.media();
  const u64 off = off_of(&inode);
  if ((inode.xattr_ref.get() != 0 || inode.acl_ref.get() != 0) && !check_areas_usable(volume_).ok())
    add("inode-reserved", "an inode has attributes, and the pool says that there are none", off, ref.ino());
  u64 used[2] = {0, 0};  // first and end of what lies in the inode, of the ACLs
  for (const AreaKind kind : {AreaKind::kAcl, AreaKind::kXattrs}) {
    const u64 reference = kind == AreaKind::kAcl ? inode.acl_ref.get() : inode.xattr_ref.get();
    const char* const damaged = kind == AreaKind::kAcl ? "acl-damaged" : "xattr-damaged";
    u64 end = 0;
    check_map(ref.ino(), area_map(reference), blocks, end);
    const auto bytes = read_area(volume_, ref.ino(), inode, kind);
    if (!bytes.ok()) {
      add(damaged, bytes.error(), ref.ino());
      continue;
    }
    const char* const wrong = kind == AreaKind::kAcl ? acl_problem(*bytes, inode) : xattr_problem(*bytes, inode);
    if (wrong != nullptr) add(damaged, wrong, off, ref.ino());
    if (reference == 0 || area_map(reference) != 0) continue;
    const u64 first = reference >> 8 & 255;
    if (first < used[1] && used[0] < first + bytes->size())
      add(damaged, "attributes and ACLs lie over each other", off, ref.ino());
    used[0] = first;
    used[1] = first + bytes->size();
  }
}

void Checker::check_file(const InodeRef& file, u64 blocks, u64 end) {
  const media::Inode& inode = file.media();
  const FileType type = type_of(inode);
  const u64 size = inode.size_bytes.get();
  if (blocks != inode.blocks.get())
    add("block-count",
        "inode " + number(file.ino()) + " has " + std::to_string(blocks) + " blocks and counts " +
            std::to_string(inode.blocks.get()),
        off_of(&inode), file.ino());
  if (type == FileType::kDirectory && size != end * kBlockBytes)
    add("directory-size", "a directory's size is not that of its blocks", off_of(&inode), file.ino());
  if (type == FileType::kRegular && (size > kMaxFileBytes || end > (size + kBlockBytes - 1) / kBlockBytes))
    add("file-size", "a file has blocks behind its end", off_of(&inode), file.ino());
  if (type == FileType::kSymlink) {
    if (auto target = read_target(volume_, file); !target.ok()) add("link-target", target.error(), file.ino());
  } else if (type != FileType::kRegular && type != FileType::kDirectory && (end != 0 || size != 0)) {
    add("special-data", "a special file has data", off_of(&inode), file.ino());
  }
  if (type == FileType::kNone) add("inode-mode", "an inode is of no known type", off_of(&inode), file.ino());
}

void Checker::check_inode(u64 slot) {
  const InodeNo ino{slot + 1};
  const media::Inode& inode = volume_.inodes.slot(slot);
  switch (media::low_half(inode.state_gen.get())) {
    case media::kSlotFree: free_slots_ += 1; return;
    case media::kSlotLive: break;
    default: return add("inode-state", "an inode is in no known state", off_of(&inode), ino);
  }
  report_.inodes += 1;
  known_.try_emplace(to_u64(ino));
  auto ref = volume_.inodes.get(ino);
  if (!ref.ok()) return add("inode-state", ref.error(), ino);
  u64 blocks = 0;
  u64 end = 0;
  check_map(ino, inode.map_root.get(), blocks, end);
  if (type_of(inode) == FileType::kDirectory) check_index(*ref, blocks);
  check_areas(*ref, blocks);
  check_file(*ref, blocks, end);
  if (type_of(inode) == FileType::kDirectory) {
    report_.directories += 1;
    check_directory(*ref);
  }
}

void Checker::check_names() {
  for (const auto& [number_of, known] : known_) {
    const InodeNo ino{number_of};
    if (number_of > volume_.inodes.slots()) continue;
    const media::Inode& inode = volume_.inodes.slot(number_of - 1);
    if (media::low_half(inode.state_gen.get()) != media::kSlotLive) continue;
    const u64 off = off_of(&inode);
    if (type_of(inode) != FileType::kDirectory) {
      if (known.names == 0) add("unreachable", "inode " + number(ino) + " has no name", off, ino);
      if (known.names != 0 && known.names != links_of(inode))
        add("link-count",
            "inode " + number(ino) + " has " + std::to_string(known.names) + " names and counts " +
                std::to_string(links_of(inode)),
            off, ino);
      continue;
    }
    if (links_of(inode) != 2 + known.subdirectories)
      add("link-count",
          "directory " + number(ino) + " has " + std::to_string(known.subdirectories) + " subdirectories and counts " +
              std::to_string(links_of(inode)) + " links",
          off, ino);
    const bool root = ino == kRootIno;
    if (known.names != (root ? 0u : 1u))
      add(known.names == 0 ? "unreachable" : "directory-names",
          "directory " + number(ino) + " has " + std::to_string(known.names) + " names", off, ino);
    if (inode.parent.get() != (root ? number_of : known.named_by))
      add("parent", "directory " + number(ino) + " names another parent than it has", off, ino);
  }
  // Every directory must lead up to the root: a ring of directories has names and parents, all of them right.
  for (const auto& [number_of, known] : known_) {
    u64 at = number_of;
    u64 steps = 0;
    while (at != to_u64(kRootIno) && at != 0 && steps++ <= known_.size()) {
      const auto it = known_.find(at);
      at = it == known_.end() ? 0 : it->second.named_by;
    }
    if (at != 0 && at != to_u64(kRootIno))
      add("directory-ring", "directory " + std::to_string(number_of) + " is below itself", 0, InodeNo{number_of});
  }
}

void Checker::check_space() {
  const std::vector<u64> found = seen_.save();
  const std::vector<u64> believed = volume_.blocks.save();
  u64 leaked = 0;
  u64 missing = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    leaked += static_cast<u64>(std::popcount(believed[i] & ~found[i]));
    missing += static_cast<u64>(std::popcount(found[i] & ~believed[i]));
  }
  // What belongs to files without names that are still held is used, though nothing on the medium leads to it.
  u64 held_slots = 0;
  for (const InodeRef& ref : volume_.inodes.all()) {
    if (ref->dead || media::low_half(ref.media().state_gen.get()) == media::kSlotLive || !volume_.inodes.held(*ref))
      continue;
    held_slots += 1;
    for (const BlockRun& run : volume_.maps.all_blocks(ref.media().map_root.get()))
      leaked -= std::min(leaked, run.count);
    leaked -= std::min(leaked, count_blocks(blocks_beside_map(volume_, ref)));
  }
  leaked -= std::min(leaked, volume_.quarantine.pinned_blocks());  // kept by leases
  const u64 waiting = volume_.quarantine.blocks();
  if (missing != 0)
    add("space-used-but-free", std::to_string(missing) + " blocks are in use and counted as free", 0, kNoInode);
  // The blocks of a damaged index are out of reach until the next open, which finds them free.
  if (leaked != waiting && volume_.damaged_indexes == 0)
    add("space-leaked",
        std::to_string(leaked) + " blocks are out of reach, " + std::to_string(waiting) + " of them wait to be reused",
        0, kNoInode);
  const u64 believed_slots = volume_.inodes.free_slots() + volume_.quarantine.slots() + held_slots;
  if (free_slots_ != believed_slots)
    add("slot-count",
        std::to_string(free_slots_) + " inodes are free and " + std::to_string(believed_slots) + " are counted as free",
        0, kNoInode);
  report_.blocks_free = volume_.blocks.free_blocks() + waiting;
  report_.blocks_used = volume_.blocks.total() - report_.blocks_free;
}

CheckReport Checker::run() {
  report_.lanes_undone = volume_.lanes_undone;
  own_structures();
  for (u64 slot = 0; slot < volume_.inodes.slots(); ++slot) check_inode(slot);
  const media::Inode& root = volume_.inodes.slot(0);
  if (media::low_half(root.state_gen.get()) != media::kSlotLive || type_of(root) != FileType::kDirectory)
    add("root", "the root directory is missing", off_of(&root), kRootIno);
  check_names();
  check_space();
  return std::move(report_);
}

}  // namespace

Result<CheckReport> check(Filesystem& fs) {
  if (!fs.is_open()) return Error{Errc::kBadHandle, "the file system is closed", 0};
  try {
    PMFS_TRY(fs.impl_->usable());
    return Checker(fs.impl_->volume()).run();
  } catch (const std::bad_alloc&) {
    return Error{Errc::kNoMemory, "out of memory", 0};
  }
}

}  // namespace pmfs
