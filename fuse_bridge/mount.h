// mount: what the command line calls to mount a pool and to unmount it.
//
// It owns the server process: fork first, then open (which recovers), mount, serve, unmount, close. Messages go to
// stdout and stderr of the process that asked.
//   M1  Nothing forks while a pool is open, but libfuse where it must start fusermount3 (mounts by a user).
//   M2  The starting process ends when INIT was served or when that has become impossible, and its exit code says
//   which. M3  unmount() returns when the server has ended, so the pool can be opened at once.
// Threads: call these from a process with one thread; they belong to a command, not to a library user.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pmfs/pmfs.hpp"

namespace pmfs::bridge {

/// Exit codes, as mount(8) has them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 1;
inline constexpr int kExitMount = 32;

/// Long enough to be "for ever" and short enough for the kernel's arithmetic.
inline constexpr double kForever_s = 1e9;

/// How long the kernel may trust what it was told, in seconds.
struct Timeouts {
  double entry_s = kForever_s;     ///< a name
  double attr_s = kForever_s;      ///< attributes
  double negative_s = kForever_s;  ///< the absence of a name; 0 keeps none
};

/// Who everything is shown as belonging to, whoever it does. Empty: the truth.
struct ShownOwner {
  std::optional<u32> uid, gid;
  bool hides() const { return uid.has_value() || gid.has_value(); }
};

struct MountOptions {
  std::string pool;
  std::string dir;
  bool read_only = false;
  bool dir_index = true;
  bool relaxed = false;  ///< -o durability=relaxed
  OpenOptions::Atime atime = OpenOptions::Atime::kRelative;
  OpenOptions::Resolver resolver = OpenOptions::Resolver::kStage;
  bool allow_other = false;  ///< set by default for root
  bool suid = false;
  bool dev = false;
  bool exec = true;
  bool io_uring = false;  ///< take requests through io_uring, if the kernel offers it
  Timeouts timeouts;
  ShownOwner owner;
  bool foreground = false;
  bool fake = false;          ///< do everything but mount: mount(8)'s -f
  bool sloppy = false;        ///< take options that are not known: mount(8)'s -s
  bool print_counts = false;  ///< with foreground: say at the end how many requests of each kind were answered
};

/// Reads one argument of -o, a list with commas, into `options`.
/// @return  empty, or what is wrong with it: one line that names the option.
std::string parse_mount_options(std::string_view list, MountOptions& options);

/// Mounts options.pool at options.dir and, unless in the foreground, returns when it is served.
/// @return  kExitOk, kExitUsage (an option that only root may give), kExitMount (everything else); the reason was
/// printed.
int mount_pool(const MountOptions& options);

/// Unmounts a pmfs and waits until its server has closed the pool.
/// @param lazy  detach now, also when busy; the server ends with the last user, and is not waited for.
/// @return      kExitOk, kExitUsage (not a pmfs mount), kExitMount; the reason was printed.
int unmount(const std::string& dir, bool lazy = false);

}  // namespace pmfs::bridge
