// Whole trees between the host and a pool: what `import` and `export` share.
//   - Both walk by descriptor and by inode, never by path, and never follow a symbolic link on the way. So nothing that
//     stands or appears in the destination can lead a copy outside of it.
//   - A failure of one object is said, counted, and the rest goes on; a failure of the pool or a full medium ends it.
//   - The modification time is the last thing that an object other than a directory gets. Up to then it has the time of
//     its making, so what a kill left half copied never looks like what the source has, and can be told from what is
//     complete.
#pragma once

#include <sys/stat.h>

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
  u64 already = 0;      ///< complete from an earlier run, and left as they are
  u64 bytes = 0;        ///< of file contents, holes included
  u64 skipped = 0;      ///< left out on purpose, each said
  u64 failed = 0;       ///< each said
  u64 with_xattrs = 0;  ///< copied, but not all of their extended attributes or ACLs
  int interrupted = 0;  ///< the signal that ended it before its end
};

/// "12 files, 3 directories, ... 1.2 MiB"
std::string summary(const TreeCounts& counts);

/// What becomes of the destination's own attributes when the tree is in it: a directory that held something before,
/// perhaps /tmp, gets the times alone.
enum class TopAttributes : bool { kTimes, kAll };

struct TreeOptions {
  TopAttributes top = TopAttributes::kAll;
  /// Leave alone what has the type, size, times of modification, owner and mode of its source, or its target or device
  /// number, and is linked as it: an earlier run has copied it.
  bool resume = false;
};

/// How an import or export went: says what was done on stdout, or, if it was interrupted, on stderr. @return exit code.
int conclude(const std::string& what, const std::string& pool, const TreeCounts& counts);

/// Whether an object of the pool and one of the host are of one type and have the same in them, as far as that shows
/// without reading files: their sizes, the targets of links, the numbers of devices.
bool holds_the_same(Filesystem& fs, const Attributes& in_pool, int host_dir, const char* name,
                    const struct stat& on_host);

/// Copies the tree under the open host directory into the directory `pool_dir`.
/// @param host_name, pool  for messages; `pool` is also left out, should it lie in the tree.
/// An Interruptible's signal ends it between two objects, or within a file, which is then removed.
TreeCounts import_tree(Filesystem& fs, HostFd host_dir, const std::string& host_name, InodeNo pool_dir,
                       const std::string& pool, const TreeOptions& options, Progress& progress);

/// Copies the tree under `pool_dir` into the open host directory. Ends as import_tree().
TreeCounts export_tree(Filesystem& fs, InodeNo pool_dir, const std::string& pool, HostFd host_dir,
                       const std::string& host_name, const TreeOptions& options, Progress& progress);

}  // namespace pmfs::tools
