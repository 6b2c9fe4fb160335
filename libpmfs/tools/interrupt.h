// SIGINT and SIGTERM as a wish to stop, for commands that take long, and can go on later where they stopped.
#pragma once

#include <csignal>

namespace pmfs::tools {

/// While one lives, the first SIGINT or SIGTERM is only remembered; after it, each has its ordinary effect again. A
/// signal that the process was started to ignore stays ignored. One at a time in a process.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// The signal that came, or 0. Also to be asked where none lives.
  static int signal();

 private:
  struct sigaction before_int_ {};
  struct sigaction before_term_ {};
};

}  // namespace pmfs::tools
