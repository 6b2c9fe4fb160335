// Whole trees between the host and a pool: what `import` and `export` share.
//   - Both walk by descriptor and by inode, never by path, and never follow a symbolic link on the way. So nothing that
//     stands or appears in the destination can lead a copy outside of it.
//   - A failure of one object is said, counted, and the rest goes on; a failure of the pool or a full medium ends it.
#pragma once

#include <string>

#include "host_fd.h"
#include "pmfs/pmfs.hpp"
#include "progress.h"

namespace pmfs::tools {

/// What was done, counted in objects.
struct TreeCounts {
  u64 files = 0;
  u64 directories = 0;
  u64 symlinks = 0;
  u64 specials = 0;     ///< FIFOs, devices, sockets
  u64 hard_links = 0;   ///< further names of an object counted before
  u64 bytes = 0;        ///< of file contents, holes included
  u64 skipped = 0;      ///< left out on purpose, each said
  u64 failed = 0;       ///< each said
  u64 with_xattrs = 0;  ///< copied, but not all of their extended attributes or ACLs

  u64 objects() const { return files + directories + symlinks + specials + hard_links; }
};

/// "12 files, 3 directories, ... 1.2 MiB"
std::string summary(const TreeCounts& counts);

/// What becomes of the destination's own attributes when the tree is in it: a directory that held something before,
/// perhaps /tmp, gets the times alone.
enum class TopAttributes : bool { kTimes, kAll };

/// Copies the tree under the open host directory into the directory `pool_dir`.
/// @param host_name, pool  for messages; `pool` is also left out, should it lie in the tree.
TreeCounts import_tree(Filesystem& fs, HostFd host_dir, const std::string& host_name, InodeNo pool_dir,
                       const std::string& pool, TopAttributes top, Progress& progress);

/// Copies the tree under `pool_dir` into the open host directory.
TreeCounts export_tree(Filesystem& fs, InodeNo pool_dir, const std::string& pool, HostFd host_dir,
                       const std::string& host_name, TopAttributes top, Progress& progress);

}  // namespace pmfs::tools
