// From paths to inodes, through the path cache (dcache/); and permission checks.
//
//   N1  A walk holds no lock when it returns. What it found is told by number and generation, and kept from being used
//       again before anybody acts on it.
//   N2  What is returned was reached at some moment within the call. Whoever acts on it locks it and looks again.
// Thread rules: all functions from any thread, without locks held.
// Source: POSIX.1-2017 4.13 Pathname Resolution; path_resolution(7).
#pragma once

#include <string>
#include <string_view>

#include "fs/volume.h"

namespace pmfs {

inline constexpr unsigned kMayExecute = 1, kMayWrite = 2, kMayRead = 4;

/// Whether `who` may do all of `wanted` (a sum of the above) to an inode, by its mode and its access ACL.
/// REQUIRES: its lock, at least shared. @error kAccess. kCorrupt: its ACL is damaged.
Result<void> check_access(const Volume& volume, const InodeRef& ref, unsigned wanted, const Credentials& who);

/// Whether ownership and permissions do not bind `who`, as root.
bool is_privileged(const Credentials& who);
/// Whether a group is his own or one of his supplementary ones.
bool is_member(u32 gid, const Credentials& who);

/// Whether the inode answers at all. REQUIRES: its lock, at least shared; or `reads`, which gives up for one without
/// names: whether that is held is known under the lock. @error kStale.
Result<void> check_alive(const Volume& volume, const InodeRef& ref, ReadSet* reads = nullptr);

/// The same, and that it is the inode of that generation; 0: whichever it has. @error kStale.
Result<void> check_same(const Volume& volume, const InodeRef& ref, u64 generation, ReadSet* reads = nullptr);

inline u32 mode_of(const media::Inode& inode) { return media::low_half(inode.mode_links.get()) & 0xffff; }
inline FileType type_of(const media::Inode& inode) { return type_of_mode(mode_of(inode)); }
inline u32 links_of(const media::Inode& inode) { return media::high_half(inode.mode_links.get()); }
inline u32 uid_of(const media::Inode& inode) { return media::low_half(inode.uid_gid.get()); }
inline u32 gid_of(const media::Inode& inode) { return media::high_half(inode.uid_gid.get()); }

/// What an inode's locks are kept under. REQUIRES: it is held, or its lock.
inline LockedFile locked_file(const InodeRef& ref) { return {ref.ino(), generation_of(ref.media())}; }

/// Whether a path may be asked for at all. @error kNotFound: empty. kNameTooLong, kInvalid. kStale: no such start.
Result<void> check_path(Volume& volume, const At& at);
/// What the path cache needs to know of who asks.
dcache::Searcher searcher(const Credentials& who, bool beneath, bool no_links = false);

/// What `at` leads to, by number; it may be gone when this returns. @error as resolve().
Result<dcache::Found> look_up(Volume& volume, const At& at, const Credentials& who, Follow follow);

/// The inode that `at` names. @error kNotFound, kNotDirectory, kAccess, kLoop, kNameTooLong, kStale.
Result<InodeRef> resolve(Volume& volume, const At& at, const Credentials& who, Follow follow);

/// How often a path is resolved again because what it led to was gone.
inline constexpr int kFoundTries = 16;

/// Does `call(inode)` with the inode that `at` names. A path leads to something at every instant if its name is only
/// ever replaced: so when what was found is gone (kStale) before `call` has its lock, what has the name now is found.
template <class Call>
auto with_found(Volume& volume, const At& at, const Credentials& who, Follow follow, Call&& call)
    -> decltype(call(std::declval<const InodeRef&>())) {
  for (int tries = 0; tries < kFoundTries; ++tries) {
    PMFS_ASSIGN(const InodeRef inode, resolve(volume, at, who, follow));
    auto done = call(inode);
    if (done.ok() || done.error().code != Errc::kStale || at.self) return done;
  }
  return Error{Errc::kNotFound, "it was removed", 0};
}

/// The directory in which the last component of a path stands, and that component.
struct Parent {
  InodeRef dir;
  std::string name;                ///< "." and ".." as given; empty: the path is the root itself
  bool must_be_directory = false;  ///< a slash follows the name
};
/// @error as resolve(); kNotFound: the path is empty.
Result<Parent> resolve_parent(Volume& volume, const At& at, const Credentials& who);

/// If `at` names a symbolic link that leads nowhere, makes `at` the place where its target would be created, for open()
/// with O_CREAT; `storage` keeps the new path. @error as resolve().
Result<void> through_links(Volume& volume, At& at, std::string& storage, const Credentials& who);

/// A symbolic link's target. REQUIRES: the shared lock. @error kInvalid: no link. kCorrupt.
Result<std::string> read_target(const Volume& volume, const InodeRef& link);

}  // namespace pmfs
