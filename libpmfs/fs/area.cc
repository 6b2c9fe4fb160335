#include "fs/area.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checksum.h"
#include "fs/attributes.h"
#include "fs/clock.h"
#include "fs/directory.h"
#include "fs/resolve.h"

namespace pmfs {

namespace {

constexpr u64 kHeaderBytes = sizeof(media::AreaHeader);
constexpr u64 kInlineWords = media::kInlineBytes / sizeof(u64);
// More than any kind may have: whoever gives out memory for an area knows how much that can be.
constexpr u64 kAreaBytesMax = media::kXattrBytesMax;
static_assert(2 * media::kAclEntriesMax * sizeof(media::AclEntry) <= kAreaBytesMax);

u64& reference_in(std::array<u64, 2>& references, AreaKind kind) { return references[kind == AreaKind::kAcl]; }

u64 reference_of(const media::Inode& inode, AreaKind kind) {
  return kind == AreaKind::kAcl ? inode.acl_ref.get() : inode.xattr_ref.get();
}

u64 checksum_of(const media::AreaHeader& header, std::string_view bytes, u64 seed) {
  return checksum64(bytes.data(), bytes.size(), checksum64(&header, offsetof(media::AreaHeader, checksum), seed));
}

using InlineWords = std::array<u64, kInlineWords>;

const Le64* inline_words(const media::Inode& inode) { return reinterpret_cast<const Le64*>(inode.inline_data); }
Le64* inline_words(media::Inode& inode) { return reinterpret_cast<Le64*>(inode.inline_data); }

// Words are loaded whole: a reader without the lock may be beside a commit.
Result<std::string> read_inline(const Volume& volume, const media::Inode& inode, u64 reference) {
  const u64 first = reference >> 8 & 255;
  const u64 length = reference >> 16 & 255;
  const bool target = type_of(inode) == FileType::kSymlink;
  if (length == 0 || first % sizeof(u64) != 0 || first + length > media::kInlineBytes ||
      (reference >> 24 | (reference >> 2 & 63)) != 0 || target)
    return Error{Errc::kCorrupt, "an inode's attributes cannot lie where it says",
                 to_u64(volume.persist.memory().off_of(&inode))};
  InlineWords words;
  for (u64 i = 0; i < kInlineWords; ++i) words[i] = inline_words(inode)[i].get();
  return std::string(reinterpret_cast<const char*>(words.data()) + first, length);
}

// Gathers an area from its blocks, which need not lie in one row.
Result<std::string> read_blocks(const Volume& volume, InodeNo ino, u64 root, AreaKind kind) {
  std::string bytes;
  media::AreaHeader header{};
  u64 next = 0;
  u64 where = 0;
  const auto damaged = [&] { return Error{Errc::kCorrupt, "an inode's attributes are damaged", where}; };
  PMFS_TRY(volume.maps.each(root, 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    const u64 off = to_u64(block_off(e.block));
    if (next == 0) where = off;
    if (e.logical != next || e.unwritten) return damaged();
    const std::byte* at = volume.persist.memory().at(block_off(e.block));
    u64 skip = 0;
    if (next == 0) {
      std::memcpy(&header, at, sizeof(header));
      skip = kHeaderBytes;
      const u64 length = header.length_bytes.get();
      if (header.magic.get() != media::kAreaMagic || header.kind.get() != static_cast<u16>(kind) ||
          header.owner.get() != to_u64(ino) || length == 0 || length > kAreaBytesMax)
        return damaged();
    }
    const u64 left = header.length_bytes.get() - bytes.size();
    if (left == 0) return damaged();  // blocks behind the end
    bytes.append(reinterpret_cast<const char*>(at) + skip, std::min(left, e.count * kBlockBytes - skip));
    next = e.end();
    if (next != (kHeaderBytes + bytes.size() + kBlockBytes - 1) / kBlockBytes) return damaged();
    return {};
  }));
  if (next == 0 || bytes.size() != header.length_bytes.get() ||
      checksum_of(header, bytes, volume.superblock.hash_seed.get()) != header.checksum.get())
    return damaged();
  return bytes;
}

// Writes an area into fresh blocks.
Result<MapChange> write_blocks(Volume& volume, InodeNo ino, AreaKind kind, std::string_view bytes, BlockHold& hold) {
  Persist& persist = volume.persist;
  media::AreaHeader header{};
  header.magic.set(media::kAreaMagic);
  header.kind.set(static_cast<u16>(kind));
  header.owner.set(to_u64(ino));
  header.length_bytes.set(bytes.size());
  header.checksum.set(checksum_of(header, bytes, volume.superblock.hash_seed.get()));
  const u64 blocks = (kHeaderBytes + bytes.size() + kBlockBytes - 1) / kBlockBytes;
  std::vector<Extent> extents;
  u64 done = 0;
  for (u64 logical = 0; logical < blocks;) {
    PMFS_ASSIGN(const BlockRun run, hold.take(blocks - logical, extents.empty() ? 0 : extents.back().block + 1));
    std::byte* const block = persist.memory().at(block_off(run.first));
    const u64 skip = logical == 0 ? kHeaderBytes : 0;
    const u64 here = std::min<u64>(run.count * kBlockBytes - skip, bytes.size() - done);
    if (skip != 0) persist.write(block, &header, sizeof(header));
    persist.write(block + skip, bytes.data() + done, here);
    persist.flush(block, skip + here, Order::kFreshArea);
    done += here;
    extents.push_back({logical, run.count, run.first, false});
    logical += run.count;
  }
  return volume.maps.replace(0, 0, blocks, extents, hold);
}

// Which of the two lie inline, and how the inline bytes then are.
struct InlinePlan {
  bool acl = false;
  bool xattrs = false;
  InlineWords words{};
  u64 used = 0;                     // words
  std::array<u64, 2> references{};  // of what lies inline
};

u64 rounded(u64 bytes) { return (bytes + sizeof(u64) - 1) / sizeof(u64) * sizeof(u64); }

InlinePlan plan_inline(const Areas& areas, bool symlink) {
  InlinePlan plan;
  u64 first = 0;
  const auto place = [&](const std::string& bytes, AreaKind kind) {
    if (symlink || bytes.empty() || first + bytes.size() > media::kInlineBytes) return false;
    std::memcpy(reinterpret_cast<char*>(plan.words.data()) + first, bytes.data(), bytes.size());
    reference_in(plan.references, kind) = bytes.size() << 16 | first << 8 | media::kAreaInline;
    first = rounded(first + bytes.size());
    plan.used = first / sizeof(u64);
    return true;
  };
  plan.acl = place(areas.acl, AreaKind::kAcl);
  plan.xattrs = place(areas.xattrs, AreaKind::kXattrs);
  return plan;
}

}  // namespace

Result<std::string> read_area(const Volume& volume, InodeNo ino, const media::Inode& inode, AreaKind kind) {
  const u64 reference = reference_of(inode, kind);
  if (reference == 0) return std::string();
  if ((reference & media::kMapTagMask) == media::kAreaInline) return read_inline(volume, inode, reference);
  return read_blocks(volume, ino, reference, kind);
}

Result<Areas> read_areas(const Volume& volume, InodeNo ino, const media::Inode& inode) {
  Areas areas;
  PMFS_ASSIGN(areas.xattrs, read_area(volume, ino, inode, AreaKind::kXattrs));
  PMFS_ASSIGN(areas.acl, read_area(volume, ino, inode, AreaKind::kAcl));
  return areas;
}

std::vector<BlockRun> area_blocks(const ExtentMap& maps, const media::Inode& inode) {
  std::vector<BlockRun> runs;
  for (const u64 reference : {inode.xattr_ref.get(), inode.acl_ref.get()})
    for (const BlockRun& run : maps.all_blocks(area_map(reference))) runs.push_back(run);
  return runs;
}

std::vector<BlockRun> blocks_beside_map(const Volume& volume, const InodeRef& ref) {
  std::vector<BlockRun> runs = area_blocks(volume.maps, ref.media());
  if (type_of(ref.media()) == FileType::kDirectory)
    for (const BlockRun& run : index_blocks(volume, ref)) runs.push_back(run);
  return runs;
}

u64 count_blocks(const std::vector<BlockRun>& runs) {
  u64 blocks = 0;
  for (const BlockRun& run : runs) blocks += run.count;
  return blocks;
}

Result<void> plan_areas(Volume& volume, Commit& commit, const InodeRef& ref, const Areas& before, const Areas& next,
                        BlockHold& hold, Freed& freed) {
  media::Inode& inode = ref.media();
  const InlinePlan plan = plan_inline(next, type_of(inode) == FileType::kSymlink);
  u64 blocks = commit.value(inode.blocks);
  const auto move = [&](AreaKind kind, const std::string& old_bytes, const std::string& bytes, bool is_inline,
                        Le64& word) -> Result<void> {
    const u64 old_map = area_map(word.get());
    u64 reference = is_inline ? plan.references[kind == AreaKind::kAcl] : 0;
    if (!is_inline && !bytes.empty()) {
      if (old_map != 0 && old_bytes == bytes) return {};  // it stays where it is
      PMFS_ASSIGN(const MapChange fresh, write_blocks(volume, ref.ino(), kind, bytes, hold));
      reference = fresh.root;
      blocks += fresh.added_blocks;
    }
    for (const BlockRun& run : volume.maps.all_blocks(old_map)) {
      freed.blocks.push_back(run);
      blocks -= run.count;
    }
    if (reference != word.get()) commit.set(word, reference);
    return {};
  };
  PMFS_TRY(move(AreaKind::kAcl, before.acl, next.acl, plan.acl, inode.acl_ref));
  PMFS_TRY(move(AreaKind::kXattrs, before.xattrs, next.xattrs, plan.xattrs, inode.xattr_ref));
  if (blocks != commit.value(inode.blocks)) commit.set(inode.blocks, blocks);
  for (u64 i = 0; i < plan.used; ++i)  // words behind those mean nothing
    if (Le64& word = inline_words(inode)[i]; word.get() != plan.words[i]) commit.set(word, plan.words[i]);
  return {};
}

Result<void> change_areas(Volume& volume, const InodeRef& ref, const Areas& before, const Areas& next, u32 mode_word) {
  media::Inode& inode = ref.media();
  const bool permission = before.acl != next.acl || mode_word != media::low_half(inode.mode_links.get());
  const bool shrinks = next.xattrs.size() <= before.xattrs.size() && next.acl.size() <= before.acl.size();
  // ORDER attributes: areas in blocks are fresh and ride in fence 1. Live words: reference words, blocks, inline bytes,
  // mode, ctime.
  Commit commit = volume.begin_commit();
  BlockHold hold(volume.blocks, shrinks ? Purpose::kFreeing : Purpose::kOrdinary);
  Freed freed;
  touch_inode(volume, commit, ref);
  PMFS_TRY(plan_areas(volume, commit, ref, before, next, hold, freed));
  commit.set(inode.ctime_ns, static_cast<u64>(now_ns()));
  if (mode_word != media::low_half(inode.mode_links.get()))
    commit.set(inode.mode_links, media::join(mode_word, links_of(inode)));
  PMFS_ASSIGN(const ChangeMark mark, commit.run());
  ref->times_lazy = false;  // fence 2 took the whole line along
  hold.keep();
  if (type_of(inode) == FileType::kDirectory && permission)
    if (dcache::DentryCache* const cache = volume.paths.changed(); cache != nullptr)
      cache->permission_changed(ref.ino(), permission_of(inode));
  freed.by = mark;
  volume.quarantine.add(std::move(freed));
  return {};
}

Result<void> check_areas_usable(const Volume& volume) {
  if ((volume.superblock.ro_compat.get() & media::kRoCompatAreas) != 0) return {};
  return Error{Errc::kNotSupported, "the pool was made by a version without attributes and ACLs", 0};
}

Result<void> write_fresh_areas(Volume& volume, InodeNo ino, const Areas& areas, media::Inode& fresh, BlockHold& hold) {
  const InlinePlan plan = plan_inline(areas, type_of(fresh) == FileType::kSymlink);
  const auto put = [&](AreaKind kind, const std::string& bytes, bool is_inline, Le64& word) -> Result<void> {
    if (is_inline) {
      word.set(plan.references[kind == AreaKind::kAcl]);
    } else if (!bytes.empty()) {
      PMFS_ASSIGN(const MapChange change, write_blocks(volume, ino, kind, bytes, hold));
      word.set(change.root);
      fresh.blocks.set(fresh.blocks.get() + change.added_blocks);
    }
    return {};
  };
  PMFS_TRY(put(AreaKind::kAcl, areas.acl, plan.acl, fresh.acl_ref));
  PMFS_TRY(put(AreaKind::kXattrs, areas.xattrs, plan.xattrs, fresh.xattr_ref));
  if (plan.used != 0) std::memcpy(fresh.inline_data, plan.words.data(), sizeof(fresh.inline_data));
  return {};
}

}  // namespace pmfs
