#include "fs/resolve.h"

#include <algorithm>

#include "fs/acl.h"
#include "fs/directory.h"
#include "fs/read_unlocked.h"

namespace pmfs {

namespace {

constexpr int kMaxLinks = 40;
constexpr u64 kMaxTarget = kPathMax;

// The inode that a look-up found, kept from being used again from here on. @error kStale: it was gone already.
Result<InodeRef> keep_found(Volume& volume, InodeNo ino, u64 generation) {
  PMFS_ASSIGN(InodeRef ref, volume.inodes.get(ino));
  // Referred to before it is found to be there: so its slot is not used again afterwards (I5).
  PMFS_TRY(read_unlocked(volume, ref, ref->version,
                         [&](ReadSet* reads) { return check_same(volume, ref, generation, reads); }));
  return ref;
}

Result<std::string> target_of(Volume& volume, const InodeRef& link) {
  std::shared_lock lock(link->lock);
  if (!check_alive(volume, link).ok()) return Error{Errc::kNotFound, "no such file or directory", 0};
  return read_target(volume, link);
}

}  // namespace

Result<void> check_path(Volume& volume, const At& at) {
  if (at.path.empty()) return Error{Errc::kNotFound, "the path is empty", 0};
  if (at.path.size() > kPathMax) return Error{Errc::kNameTooLong, "the path is longer than 4095 bytes", 0};
  if (at.path.find('\0') != std::string_view::npos) return Error{Errc::kInvalid, "the path contains a zero byte", 0};
  if (at.path[0] != '/' && (at.dir == kNoInode || to_u64(at.dir) > volume.inodes.slots()))
    return Error{Errc::kStale, "no such inode", 0};
  // After a failure of the medium memory may show what never became durable, or the cache what no longer is.
  if (volume.persist.failed()) volume.paths.bypass();
  return {};
}

using Privilege = Credentials::Privilege;

bool is_member(u32 gid, const Credentials& who) {
  return gid == who.gid || std::find(who.groups.begin(), who.groups.end(), gid) != who.groups.end();
}

bool is_privileged(const Credentials& who) {
  return who.privilege == Privilege::kAll || (who.privilege == Privilege::kByUid && who.uid == 0);
}

dcache::Searcher searcher(const Credentials& who, bool beneath, bool no_links) {
  const bool all = who.checked_elsewhere || who.privilege == Privilege::kSearch || is_privileged(who);
  return {all, who.uid, who.gid, who.groups, who.depends, beneath, no_links};
}

Result<void> check_access(const Volume& volume, const InodeRef& ref, unsigned wanted, const Credentials& who) {
  if (who.checked_elsewhere || wanted == 0) return {};
  const u32 mode = mode_of(ref.media());
  const bool directory = type_of_mode(mode) == FileType::kDirectory;
  if (is_privileged(who)) {  // root may all, but execute only what somebody may
    if ((wanted & kMayExecute) == 0 || (mode & 0111) != 0 || directory) return {};
  } else if (who.privilege == Privilege::kSearch && (wanted == kMayRead || (directory && (wanted & kMayWrite) == 0))) {
    return {};
  } else {
    PMFS_ASSIGN(const bool permitted, permits(volume, ref, wanted, {who.uid, who.gid, who.groups, nullptr}));
    if (permitted) return {};
  }
  return Error{Errc::kAccess, "permission denied", 0};
}

Result<void> check_alive(const Volume& volume, const InodeRef& ref, ReadSet* reads) {
  const bool live = media::low_half(ref.media().state_gen.get()) == media::kSlotLive;
  if (reads != nullptr) {
    if (live) return {};
    reads->give_up();
  } else if (!ref->dead && (live || volume.inodes.held(*ref))) {
    return {};
  }
  return Error{Errc::kStale, "the inode is gone", 0};
}

Result<void> check_same(const Volume& volume, const InodeRef& ref, u64 generation, ReadSet* reads) {
  PMFS_TRY(check_alive(volume, ref, reads));
  if (generation != 0 && generation != generation_of(ref.media())) return Error{Errc::kStale, "the inode is gone", 0};
  return {};
}

Result<std::string> read_target(const Volume& volume, const InodeRef& link) {
  const media::Inode& inode = link.media();
  if (type_of(inode) != FileType::kSymlink) return Error{Errc::kInvalid, "not a symbolic link", 0};
  const u64 size = inode.size_bytes.get();
  const u64 where = to_u64(volume.persist.memory().off_of(&inode));
  if (size == 0 || size > kMaxTarget) return Error{Errc::kCorrupt, "a symbolic link has an impossible length", where};
  if (size <= sizeof(inode.inline_data)) return std::string(reinterpret_cast<const char*>(inode.inline_data), size);
  PMFS_ASSIGN(const Extent e, volume.maps.find(inode.map_root.get(), 0));
  if (e.hole() || e.unwritten) return Error{Errc::kCorrupt, "a symbolic link has no target", where};
  return std::string(reinterpret_cast<const char*>(volume.persist.memory().at(block_off(e.block))), size);
}

Result<Parent> resolve_parent(Volume& volume, const At& at, const Credentials& who) {
  PMFS_TRY(check_path(volume, at));
  const dcache::Searcher searching = searcher(who, at.beneath, at.no_links);
  for (int tries = 0;; ++tries) {
    PMFS_ASSIGN(dcache::FoundParent found, volume.paths.resolve_parent(at.dir, at.path, searching));
    auto dir = keep_found(volume, found.ino, found.generation);
    if (dir.ok()) return Parent{std::move(*dir), std::move(found.name), found.must_be_directory};
    if (dir.error().code != Errc::kStale) return dir.error();
    if (tries == kFoundTries || found.generation == 0)
      return Error{Errc::kNotFound, "a directory of the path is gone", 0};
  }
}

Result<dcache::Found> look_up(Volume& volume, const At& at, const Credentials& who, Follow follow) {
  if (at.self) {
    if (at.dir == kNoInode || to_u64(at.dir) > volume.inodes.slots()) return Error{Errc::kStale, "no such inode", 0};
    return dcache::Found{at.dir, at.generation, 0};
  }
  PMFS_TRY(check_path(volume, at));
  return volume.paths.resolve(at.dir, at.path, searcher(who, at.beneath, at.no_links), follow == Follow::kYes);
}

Result<InodeRef> resolve(Volume& volume, const At& at, const Credentials& who, Follow follow) {
  if (at.self) {
    PMFS_ASSIGN(InodeRef ref, volume.inodes.get(at.dir));
    PMFS_TRY(read_unlocked(volume, ref, ref->shape,
                           [&](ReadSet* reads) { return check_same(volume, ref, at.generation, reads); }));
    return ref;
  }
  for (int tries = 0;; ++tries) {
    PMFS_ASSIGN(const dcache::Found found, look_up(volume, at, who, follow));
    auto ref = keep_found(volume, found.ino, found.generation);
    if (ref.ok() || ref.error().code != Errc::kStale) return ref;
    // Removed since it was found: look again what has the name now.
    if (tries == kFoundTries) return Error{Errc::kNotFound, "it was removed", 0};
  }
}

Result<void> through_links(Volume& volume, At& at, std::string& storage, const Credentials& who) {
  for (int links = 0; links <= kMaxLinks; ++links) {
    auto link = resolve(volume, at, who, Follow::kNo);
    if (!link.ok()) return link.error().code == Errc::kNotFound ? Result<void>() : link.error();
    {
      std::shared_lock lock((*link)->lock);
      if (type_of((*link).media()) != FileType::kSymlink) return {};
    }
    PMFS_ASSIGN(std::string target, target_of(volume, *link));
    PMFS_ASSIGN(const Parent parent, resolve_parent(volume, at, who));
    storage = std::move(target);
    at = At(parent.dir.ino(), storage);
  }
  return Error{Errc::kLoop, "too many symbolic links", 0};
}

}  // namespace pmfs
