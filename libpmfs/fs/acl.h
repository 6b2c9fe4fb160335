// ACLs of inodes: what is stored, what they permit, what new inodes inherit.
//
//   L1  An access ACL that says no more than a mode is stored as the mode alone. Any other has a mask, and the mode's
//       owner, group and other bits are its owner, mask and other entries: they are not stored twice, so chmod changes
//       them, and the two cannot disagree.
//   L2  kModeHasAcl in the mode word says that there is an access ACL; it changes in the same commit.
// Thread rules: the caller holds the inode's lock, shared to look; or, to look, asks its version. Functions that change
// take it themselves.
// Source: POSIX.1e draft 17, acl(5); where they leave it open, Linux.
#pragma once

#include "fs/area.h"
#include "pmfs/acl.h"

namespace pmfs {

/// Whom a permission is asked for.
struct Subject {
  u32 uid = 0;
  u32 gid = 0;
  std::span<const u32> groups = {};
  bool* depends = nullptr;  ///< set if other groups or privileges could lead to another answer
};

/// Whether mode and ACL give a subject without privileges all of `wanted` (a sum of kMayRead, kMayWrite, kMayExecute).
/// @error kCorrupt: the ACL is damaged; nobody without privileges gets anything then.
Result<bool> permits(const Volume& volume, const InodeRef& ref, unsigned wanted, const Subject& who);

/// A list of an inode, complete. Without an access ACL: what the mode says, three entries. Without a default one:
/// empty.
/// @error kCorrupt.
Result<Acl> acl_of(const Volume& volume, const InodeRef& ref, AclKind kind);

inline bool has_access_acl(const media::Inode& inode) {
  return (media::low_half(inode.mode_links.get()) & media::kModeHasAcl) != 0;
}

/// Filesystem::set_acl. @param acl  empty: the list is removed.
/// @error kPermission: neither owner nor privileged. kInvalid: no valid list. kAccess: a default one for no directory.
///        kNotSupported: a symbolic link, or a pool made without attributes. kNoSpace, kCorrupt.
Result<void> set_acl(Volume& volume, const InodeRef& ref, AclKind kind, const Acl& acl, const Credentials& who);

/// What a new inode begins with.
struct InheritedAcl {
  u32 mode = 0;          ///< permission bits, and kModeHasAcl
  std::string acl = {};  ///< the bytes of its area
};
/// @param mode   what was asked for, with S_IFMT. @param umask  counts only where the directory has no default ACL.
/// @error kCorrupt. REQUIRES: the directory's lock.
Result<InheritedAcl> inherit_acl(const Volume& volume, const InodeRef& dir, u32 mode, u32 umask);

// An ACL as Linux's attributes system.posix_acl_access and system.posix_acl_default have it: version 2, little-endian.
std::string acl_to_linux(const Acl& acl);
/// @error kInvalid: it is none. kNotSupported: another version.
Result<Acl> acl_from_linux(std::span<const std::byte> bytes);

/// What is wrong with the stored bytes of an inode's ACLs; null: nothing. For check.
const char* acl_problem(std::string_view bytes, const media::Inode& inode);

}  // namespace pmfs
