// mount_table: what this process sees mounted, from /proc/self/mountinfo.
// It owns nothing and asks no mounted file system anything, so it works when a server is dead or stuck.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pmfs::mounted {

/// The type that the kernel shows for our mounts.
inline constexpr const char* kMountType = "fuse.pmfs";

struct MountEntry {
  int id = 0;
  int parent = 0;      ///< id of the mount that it is mounted on
  std::string device;  ///< major:minor of the file system, as text
  std::string root;    ///< what of the file system is mounted: "/" for all of it
  std::string dir;     ///< the mount point
  std::string type;    ///< as "fuse.pmfs"
  std::string source;  ///< for ours: the pool
};

/// All mounts, in the order in which they were made.
std::vector<MountEntry> read_mount_table();

/// The mount that covers `dir`, an absolute path without symbolic links: the last of those made there.
std::optional<MountEntry> mount_at(const std::string& dir);

}  // namespace pmfs::mounted
