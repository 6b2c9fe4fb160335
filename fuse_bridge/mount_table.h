// mount_table: what this process sees mounted, from /proc/self/mountinfo; and detaching a mount.
// It owns nothing and asks no mounted file system anything, so it works when a server is dead or stuck.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pmfs::bridge {

/// The type that the kernel shows for our mounts.
inline constexpr const char* kMountType = "fuse.pmfs";

struct MountEntry {
  std::string device;  ///< major:minor of the file system, as text
  std::string dir;     ///< the mount point
  std::string type;    ///< as "fuse.pmfs"
  std::string source;  ///< for ours: the pool
};

/// All mounts, in the order in which they were made.
std::vector<MountEntry> read_mount_table();

/// The mount that covers `dir`, an absolute path without symbolic links: the last of those made there.
std::optional<MountEntry> mount_at(const std::string& dir);

/// An absolute path without symbolic links. The last component is not asked anything, so a dead mount has one too.
/// @return  empty, with errno set, if a parent directory cannot be reached.
std::string resolve_mount_point(const std::string& dir);

/// Unmounts what is mounted at `dir`: as root itself, else by fusermount3, which may print the reason.
/// @param lazy  also when busy.
/// @return      0 or an errno.
int detach(const std::string& dir, bool lazy);

}  // namespace pmfs::bridge
