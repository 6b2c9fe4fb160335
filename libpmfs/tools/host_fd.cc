#include "host_fd.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace pmfs::tools {

HostFd::~HostFd() {
  if (fd_ >= 0) close(fd_);
}

int HostFd::close_now() {
  const int fd = std::exchange(fd_, -1);
  return fd >= 0 && close(fd) != 0 ? errno : 0;
}

int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

int read_full(int fd, std::span<std::byte> out, std::size_t& count) {
  count = 0;
  while (count < out.size()) {
    const ssize_t got = read(fd, out.data() + count, out.size() - count);
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (got == 0) break;
    count += static_cast<std::size_t>(got);
  }
  return 0;
}

void allow_deep_trees() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace pmfs::tools
