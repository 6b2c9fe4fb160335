// The media as text: stable, one structure a line, so that two dumps can be compared by diff.
#include <array>
#include <cstdarg>
#include <cstdio>

#include "fs/acl.h"
#include "fs/directory.h"
#include "fs/filesystem_impl.h"
#include "fs/resolve.h"
#include "fs/xattr.h"

namespace pmfs {

namespace {

class Dumper {
 public:
  Dumper(Volume& volume, const std::function<void(std::string_view)>& line) : volume_(volume), line_(line) {}

  void run() {
    superblock();
    lanes();
    print("inode file:");
    map(volume_.superblock.inode_map_root.get());
    for (u64 slot = 0; slot < volume_.inodes.slots(); ++slot) inode(slot);
  }

 private:
  __attribute__((format(printf, 2, 3))) void print(const char* format, ...) {
    std::array<char, 1024> text;
    va_list arguments;
    va_start(arguments, format);
    const int n = std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    line_(std::string_view(text.data(),
                           std::min<std::size_t>(static_cast<std::size_t>(std::max(n, 0)), text.size() - 1)));
  }

  // Names and targets may hold any byte.
  static std::string quoted(std::string_view bytes) {
    std::string text = "\"";
    for (const char c : bytes) {
      std::array<char, 5> escape;
      if (c == '"' || c == '\\') {
        text += '\\';
        text += c;
      } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
        std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned char>(c));
        text += escape.data();
      } else {
        text += c;
      }
    }
    return text + '"';
  }

  static unsigned long long ull(u64 value) { return value; }

  void superblock() {
    const media::Superblock& sb = volume_.superblock;
    print("superblock at %llu: version %u, uuid %s, label %s, epoch %llu",
          ull(to_u64(volume_.persist.memory().off_of(&sb))), sb.format_version.get(), uuid_text(sb).c_str(),
          quoted(reinterpret_cast<const char*>(sb.label)).c_str(), ull(sb.epoch.get()));
    print("features: compat %llx, ro_compat %llx, incompat %llx", ull(sb.compat.get()), ull(sb.ro_compat.get()),
          ull(sb.incompat.get()));
    for (const Region& region : volume_.regions.list())
      print("region at %llu: %llu bytes", ull(region.off), ull(region.length_bytes));
    print("saved map at %llu: %llu bytes, epoch %llu", ull(sb.saved_map_off.get()), ull(sb.saved_map_bytes.get()),
          ull(sb.saved_map_epoch.get()));
    print("inodes: %llu slots", ull(sb.inode_slots.get()));
  }

  void lanes() {
    print("lanes at %llu: %u", ull(volume_.superblock.lane_area_off.get()), volume_.superblock.lane_count.get());
    for (u32 lane = 0; lane < volume_.lanes.count(); ++lane)
      if (const u64 sequence = volume_.lanes.header(lane).sequence.get(); sequence != 1)
        print("lane %u: sequence %llu", lane, ull(sequence));
  }

  void map(u64 root) {
    const auto nodes = volume_.maps.each_node(root, [&](u64 block, u32 level) -> Result<void> {
      print("  map node in block %llu, level %u", ull(block), level);
      return {};
    });
    const auto extents = volume_.maps.each(root, 0, kMapEnd, [&](const Extent& e) -> Result<void> {
      print("  extent %llu+%llu in block %llu%s", ull(e.logical), ull(e.count), ull(e.block),
            e.unwritten ? ", unwritten" : "");
      return {};
    });
    for (const auto* result : {&nodes, &extents})
      if (!result->ok()) print("  DAMAGED: %s, at %llu", result->error().what, ull(result->error().media_off));
  }

  void inode(u64 slot) {
    const media::Inode& inode = volume_.inodes.slot(slot);
    const u32 state = media::low_half(inode.state_gen.get());
    if (state == media::kSlotFree) return;
    print("inode %llu: state %u, generation %llu, mode %o, links %u, uid %u, gid %u, size %llu, blocks %llu",
          ull(slot + 1), state,
          ull(media::join(media::high_half(inode.state_gen.get()), media::low_half(inode.gen_high.get()))),
          mode_of(inode), links_of(inode), uid_of(inode), gid_of(inode), ull(inode.size_bytes.get()),
          ull(inode.blocks.get()));
    print("  times: access %lld, change of contents %lld, change %lld, birth %lld",
          static_cast<long long>(inode.atime_ns.get()), static_cast<long long>(inode.mtime_ns.get()),
          static_cast<long long>(inode.ctime_ns.get()), static_cast<long long>(inode.birth_ns.get()));
    auto ref = volume_.inodes.get(InodeNo{slot + 1});
    if (!ref.ok()) return;
    switch (type_of(inode)) {
      case FileType::kDirectory: {
        print("  parent %llu, entries %llu", ull(inode.parent.get()), ull(inode.entry_count.get()));
        const auto entries = each_entry(volume_, *ref, [&](const htree::Entry& e, u64 block, u64) -> Result<void> {
          print("  entry in block %llu slot %u: inode %llu, type %u, key %llx, name %s", ull(block), e.slot,
                ull(to_u64(e.ino)), e.type, ull(e.key), quoted(e.name).c_str());
          return {};
        });
        if (!entries.ok()) print("  DAMAGED: %s, at %llu", entries.error().what, ull(entries.error().media_off));
        break;
      }
      case FileType::kSymlink:
        if (auto target = read_target(volume_, *ref); target.ok()) print("  target %s", quoted(*target).c_str());
        break;
      case FileType::kCharDevice:
      case FileType::kBlockDevice: print("  device %llx", ull(inode.rdev_index.get())); break;
      default: break;
    }
    map(inode.map_root.get());
    areas(*ref);
  }

  void areas(const InodeRef& ref) {
    const media::Inode& inode = ref.media();
    for (const u64 reference : {inode.xattr_ref.get(), inode.acl_ref.get()}) {
      if (reference == 0) continue;
      print("  %s%s", reference == inode.acl_ref.get() ? "ACLs" : "attributes",
            area_map(reference) == 0 ? ", in the inode" : "");
      map(area_map(reference));
    }
    const auto held = read_areas(volume_, ref.ino(), inode);
    if (!held.ok()) return print("  DAMAGED: %s, at %llu", held.error().what, ull(held.error().media_off));
    std::vector<Xattr> attributes;
    if (const char* wrong = decode_xattrs(held->xattrs, attributes); wrong != nullptr) print("  DAMAGED: %s", wrong);
    for (const Xattr& a : attributes)
      print("  attribute %s, %zu bytes: %s", quoted(a.full_name()).c_str(), a.value.size(),
            quoted(a.value.substr(0, 64)).c_str());
    for (const AclKind kind : {AclKind::kAccess, AclKind::kDefault}) {
      if (inode.acl_ref.get() == 0 || (kind == AclKind::kAccess && !has_access_acl(inode))) continue;
      const auto acl = acl_of(volume_, ref, kind);
      if (!acl.ok()) return print("  DAMAGED: %s, at %llu", acl.error().what, ull(acl.error().media_off));
      for (const AclEntry& e : *acl)
        print("  %s entry: tag %u, id %u, permissions %u", kind == AclKind::kAccess ? "access" : "default",
              static_cast<unsigned>(e.tag), e.id, e.permissions);
    }
  }

  Volume& volume_;
  const std::function<void(std::string_view)>& line_;
};

}  // namespace

Result<void> dump(Filesystem& fs, const std::function<void(std::string_view)>& line) {
  if (!fs.is_open()) return Error{Errc::kBadHandle, "the file system is closed", 0};
  try {
    PMFS_TRY(fs.impl_->usable());
    Dumper(fs.impl_->volume(), line).run();
    return {};
  } catch (const std::bad_alloc&) {
    return Error{Errc::kNoMemory, "out of memory", 0};
  }
}

}  // namespace pmfs
