// mount_point: the name of a place to mount on, and detaching what is mounted there.
// It asks no mounted file system anything, so it works when a server is dead or stuck.
#pragma once

#include <string>

namespace pmfs::bridge {

/// An absolute path without symbolic links. The last component is not asked anything, so a dead mount has one too.
/// @return  empty, with errno set, if a parent directory cannot be reached.
std::string resolve_mount_point(const std::string& dir);

/// Unmounts what is mounted at `dir`: as root itself, else by fusermount3, which may print the reason.
/// @param lazy  also when busy.
/// @return      0 or an errno.
int detach(const std::string& dir, bool lazy);

}  // namespace pmfs::bridge
