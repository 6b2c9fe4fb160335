// Extended attributes and ACLs of one object, between the host and a pool, or within one.
#pragma once

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

/// Whether an attribute is somebody's, and not a label that the system puts on everything.
bool is_worth_keeping(std::string_view name);

/// The names of an inode's attributes, ACLs among them.
Result<std::vector<std::string>> xattr_names(Filesystem& fs, InodeNo ino);
Result<std::string> xattr_value(Filesystem& fs, InodeNo ino, const std::string& name);

/// Where an object of the host is: an open descriptor, or a name in an open directory, not followed.
struct HostPlace {
  int fd = -1;
  const char* name = nullptr;  ///< in the directory `fd`; null: `fd` itself
};

/// Gives the inode the attributes that the host's object has, and no ACL that it has inherited.
/// @param complete  false when the host did not let one be read.
/// @error of the pool.
Result<void> import_xattrs(Filesystem& fs, const HostPlace& from, InodeNo ino, bool& complete);

/// Gives the host's object, open as `fd` (possibly by O_PATH), the attributes of the inode.
/// @param complete  false when the host refused one.
/// @error of the pool.
Result<void> export_xattrs(Filesystem& fs, InodeNo ino, int fd, bool& complete);

/// Gives an inode the attributes that another of the same pool has, and no ACL that it has inherited.
Result<void> copy_xattrs(Filesystem& fs, InodeNo from, InodeNo to);

}  // namespace pmfs::tools
