// A file descriptor of the host that closes itself, and writing all of a buffer to one.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace pmfs::tools {

class HostFd {
 public:
  HostFd() = default;
  explicit HostFd(int fd) : fd_(fd) {}
  HostFd(HostFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  HostFd& operator=(HostFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~HostFd();

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  /// Gives the descriptor away.
  int release() { return std::exchange(fd_, -1); }
  /// Closes now. @return 0 or an errno: some file systems report a failed write only here.
  int close_now();

 private:
  int fd_ = -1;
};

/// Writes all of `bytes` at the file's position, through short writes and interruptions. @return 0 or an errno.
int write_all(int fd, std::span<const std::byte> bytes);

/// Reads until `out` is full or the input ends. @return 0 or an errno; `count` bytes were read in either case.
int read_full(int fd, std::span<std::byte> out, std::size_t& count);

/// A tree of directories is walked with one descriptor a level: takes as many as the system lets this process have.
void allow_deep_trees();

}  // namespace pmfs::tools
