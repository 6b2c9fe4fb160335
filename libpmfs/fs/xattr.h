// Extended attributes: names, limits, who may, and what Linux answers.
//
// Names begin with "user.", "trusted." or "security."; those are stored as a number. Attributes of an inode lie in one
// area (area.h), sorted by name space and name, and are replaced as a whole. "system.posix_acl_access" and
// "system.posix_acl_default" are another view of the ACLs (acl.h).
// Thread rules: functions that take an InodeRef lock it themselves.
// Source: Linux xattr(7), getxattr(2), setxattr(2), listxattr(2), removexattr(2).
#pragma once

#include "fs/area.h"

namespace pmfs {

inline constexpr std::size_t kXattrNameMax = 255;  ///< bytes, name space included
inline constexpr std::size_t kXattrValueMax = 65536;
inline constexpr std::size_t kXattrListMax = 65536;

/// Filesystem::get_xattr and so on, for an inode. @error see there.
Result<std::size_t> get_xattr(Volume& volume, const InodeRef& ref, std::string_view name, std::span<std::byte> value,
                              const Credentials& who);
Result<std::size_t> list_xattrs(Volume& volume, const InodeRef& ref, std::span<char> names, const Credentials& who);
Result<void> set_xattr(Volume& volume, const InodeRef& ref, std::string_view name, std::span<const std::byte> value,
                       int flags, const Credentials& who);
Result<void> remove_xattr(Volume& volume, const InodeRef& ref, std::string_view name, const Credentials& who);

/// One attribute, as it is stored.
struct Xattr {
  u8 space = 0;
  std::string_view name;  ///< without the name space
  std::string_view value;

  std::string full_name() const;
};

/// The attributes in the bytes of an area; they point into it. @return what is wrong, null: nothing.
const char* decode_xattrs(std::string_view bytes, std::vector<Xattr>& out);

/// What is wrong with the stored bytes of an inode's attributes; null: nothing. For check.
const char* xattr_problem(std::string_view bytes, const media::Inode& inode);

inline bool has_capability(const media::Inode& inode) {
  return (media::low_half(inode.mode_links.get()) & media::kModeHasCapability) != 0;
}

/// Adds to a commit that changes contents or owner: security.capability goes, if there is one. The caller sets the mode
/// word, without kModeHasCapability. REQUIRES: as plan_areas(). @error kNoSpace, kCorrupt.
Result<void> plan_without_capability(Volume& volume, Commit& commit, const InodeRef& ref, BlockHold& hold,
                                     Freed& freed);

}  // namespace pmfs
