// Many paths at once through a mount, with ordinary host paths.
//
// A path walk through FUSE asks the server once for every component that the kernel does not know: two context
// switches each. A Client hands whole paths to the server in one ioctl, as many as fit 16 KiB. What the server cannot
// answer as the kernel would (a path that leaves the mount, an absolute symbolic link, another mount on the way, a
// caller it cannot see) and what lies on other file systems is answered by the ordinary system call instead: results
// never differ.
// Source: Lookupplus (its batched look-up needs a patched kernel; this one runs on a stock one).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmfs/pmfs.hpp"

#pragma GCC visibility push(default)

namespace pmfs::mounted {

/// What one path leads to.
struct Row {
  int error = 0;          ///< errno; 0: `attributes` are filled
  bool batched = false;   ///< answered by the mount's server; else by a system call of its own
  Attributes attributes;  ///< `generation` is 0 when the kernel answered: it does not tell it
};

/// Keeps what it knows of the mounts between calls. Movable.
/// Concurrency: one thread at a time per client. In a forked child: make a new one.
class Client {
 public:
  Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  /// The attributes of what each path names, as stat(2) or lstat(2) would give them at some instant within the call.
  /// @param paths   absolute or relative to the working directory; any bytes but NUL.
  /// @param rows    as many as paths; all are filled, in the order of the paths.
  /// @param follow  whether a symbolic link as the last component is followed.
  /// Durability: stores nothing.
  void resolve(std::span<const std::string> paths, std::span<Row> rows, Follow follow = Follow::kYes);

  /// Creates an empty regular file at each path, as open(2) with O_CREAT | O_EXCL would, with this process's umask.
  /// @param mode  permission bits.
  /// @param rows  error kExists as EEXIST, and so on. The attributes are those of the new file.
  /// Durability: of each file on return, as the mount's mode promises.
  void create(std::span<const std::string> paths, u32 mode, std::span<Row> rows);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What a mount has counted since it began.
struct Statistics {
  std::vector<std::pair<std::string, u64>> counts;  ///< "group.name" and value, grouped; new names may appear
  std::vector<PivotInfo> pivots;                    ///< the hottest that serve now
};

/// Asks the mount at `dir`. Who may open the directory may ask.
/// @error  kNotFound, kAccess; kNotSupported: not a pmfs mount, or one that an older server serves.
Result<Statistics> statistics(const std::string& dir);

}  // namespace pmfs::mounted

#pragma GCC visibility pop
