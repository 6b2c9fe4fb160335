// server: the life of the process that serves one mount: open the pool, mount, answer requests, unmount, close.
//
// It owns the pool and the session. Neither outlives serve(); nothing is left mounted when it returns.
// Threads: serve() starts as many as libfuse's loop needs and ends them. It is called once in a process.
#pragma once

#include <functional>
#include <string>

#include "fuse_bridge/mount.h"

namespace pmfs::bridge {

/// What the server tells whoever started it: exactly one of the two, once.
struct Announcer {
  /// The mount is served. `line` says what is mounted where and how durable it is. From here on nobody reads stdio.
  /// @return  false if nobody waits for the mount any more; the server then ends.
  std::function<bool(const std::string& line)> success;
  std::function<void(const std::string& reason)> failure;
};

/// REQUIRES: options.dir is absolute and without symbolic links.
/// @return  an exit code.
int serve(const MountOptions& options, const Announcer& announcer);

}  // namespace pmfs::bridge
