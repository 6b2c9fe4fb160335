// Unmounting: ask who serves the mount, detach it, wait until that process has ended. The order matters: a process can
// be asked only while it serves, and a pidfd taken then cannot come to mean another process later.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "fuse_bridge/control.h"
#include "fuse_bridge/mount.h"
#include "fuse_bridge/mount_point.h"
#include "mounted/fd.h"
#include "mounted/mount_table.h"

namespace pmfs::bridge {

namespace {

constexpr auto kLongestWait = std::chrono::seconds(60);

int fail(int exit_code, const std::string& text) {
  std::fprintf(stderr, "pmfs: %s\n", text.c_str());
  return exit_code;
}

struct Server {
  mounted::Fd process;  ///< a pidfd; not open when the server cannot be seen from here
  u32 pid = 0;          ///< 0 when nobody answered
};

/// Asks the mount at `dir` who serves it.
Server ask_for_server(const std::string& dir) {
  Server server;
  const mounted::Fd root(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ServerReply reply;
  if (!root.is_open() || ::ioctl(root.get(), kServerIoctl, &reply) != 0) return server;
  server.pid = reply.pid;
  struct stat here {};
  if (::stat("/proc/self/ns/pid", &here) != 0 || here.st_ino != reply.pid_namespace) return server;
  mounted::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, reply.pid, 0)));
  // It still answers, so the number belonged to it when the descriptor was taken.
  if (process.is_open() && ::ioctl(root.get(), kServerIoctl, &reply) == 0 && reply.pid == server.pid)
    server.process = std::move(process);
  return server;
}

/// @return  whether the process has ended in time.
bool wait_for_end(const mounted::Fd& process) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + kLongestWait;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{process.get(), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left)) > 0) return true;
  }
}

std::string reason_of(int error) {
  if (error == EBUSY)
    return "busy: a file is open there, or something is mounted below, or it is somebody's working directory"
           " (fuser -vm shows whose); -l detaches it now";
  return std::strerror(error);
}

}  // namespace

int unmount(const std::string& given, bool lazy) {
  const std::string dir = resolve_mount_point(given);
  if (dir.empty()) return fail(kExitMount, given + ": " + std::strerror(errno));
  const std::optional<mounted::MountEntry> mount = mounted::mount_at(dir);
  if (!mount) return fail(kExitMount, dir + ": nothing is mounted there");
  if (mount->type != mounted::kMountType)
    return fail(kExitMount, dir + ": not a pmfs mount but one of type " + mount->type);

  const Server server = lazy ? Server{} : ask_for_server(dir);
  if (const int error = detach(dir, lazy); error != 0) return fail(kExitMount, dir + ": " + reason_of(error));
  if (lazy || server.pid == 0) return kExitOk;  // no server: it is dead, and its locks are gone

  for (const mounted::MountEntry& other : mounted::read_mount_table()) {
    if (other.device != mount->device) continue;
    std::fprintf(stderr, "pmfs: %s: unmounted, but the pool stays open: it is mounted on %s too\n", dir.c_str(),
                 other.dir.c_str());
    return kExitOk;
  }
  if (!server.process.is_open()) {
    std::fprintf(stderr, "pmfs: %s: unmounted; its server cannot be seen from here, so its end is not waited for\n",
                 dir.c_str());
    return kExitOk;
  }
  if (!wait_for_end(server.process))
    return fail(kExitMount, dir + ": unmounted, but after a minute its server (process " + std::to_string(server.pid) +
                                ") still has the pool " + mount->source + " open");
  return kExitOk;
}

}  // namespace pmfs::bridge
