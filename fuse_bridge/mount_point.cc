#include "fuse_bridge/mount_point.h"

#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

namespace pmfs::bridge {

std::string resolve_mount_point(const std::string& dir) {
  const auto canonical = [](const std::string& path) {
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    return resolved ? std::string(resolved.get()) : std::string();
  };
  // A symbolic link to the mount point is followed; a dead mount is no link, and its parent can be resolved.
  if (std::string whole = canonical(dir); !whole.empty()) return whole;
  if (errno != ENOTCONN && errno != ECONNABORTED && errno != EIO) return {};
  std::string path = dir;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.rfind('/');
  const std::string parent = canonical(slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash));
  if (parent.empty()) return {};
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return parent == "/" ? parent + name : parent + "/" + name;
}

int detach(const std::string& dir, bool lazy) {
  if (geteuid() == 0) return ::umount2(dir.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0 ? 0 : errno;
  std::string program = "fusermount3", flag = lazy ? "-uz" : "-u", end_of_options = "--", target = dir;
  char* const argv[] = {program.data(), flag.data(), end_of_options.data(), target.data(), nullptr};
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, program.c_str(), nullptr, nullptr, argv, environ); error != 0)
    return error;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EBUSY;
}

}  // namespace pmfs::bridge
