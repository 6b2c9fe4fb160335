#include "fuse_bridge/mount.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "fuse_bridge/mount_point.h"
#include "fuse_bridge/server.h"
#include "mounted/mount_table.h"

namespace pmfs::bridge {

namespace {

int fail(int exit_code, const std::string& text) {
  std::fflush(stdout);
  std::fprintf(stderr, "pmfs: %s\n", text.c_str());
  return exit_code;
}

/// Whether an errno says that nobody serves the mount: its server was killed.
bool is_dead(int error) { return error == ENOTCONN || error == ECONNABORTED || error == ECONNREFUSED; }

/// Sees that the mount point is a directory, and clears away what a killed server has left on it.
/// @return  empty, or what is wrong.
std::string prepare_mount_point(const std::string& dir) {
  constexpr int kMostLayers = 64;
  for (int layer = 0; layer < kMostLayers; ++layer) {
    // Opening asks the server, if there is one; attributes may still be cached from a dead one.
    const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int error = errno;
    if (fd >= 0) {
      ::close(fd);
      return {};
    }
    if (error == ENOENT || error == ENOTDIR) return dir + ": " + std::strerror(error);
    if (!is_dead(error)) return {};  // mounting may succeed all the same, and gives the better reason if not
    const std::optional<mounted::MountEntry> mount = mounted::mount_at(dir);
    if (!mount || mount->type != mounted::kMountType)
      return dir + ": a dead mount" + (mount ? " of type " + mount->type : "") + " is in the way; unmount it first";
    if (const int failed = detach(dir, true); failed != 0)
      return dir + ": a dead mount of " + mount->source + " could not be cleared: " + std::strerror(failed);
    std::fprintf(stderr, "pmfs: %s: a mount of %s without a server was cleared\n", dir.c_str(), mount->source.c_str());
  }
  return dir + ": too many dead mounts on top of each other";
}

/// For the table of mounts. What does not exist stays as it is, for the library to complain about.
std::string absolute(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  return resolved ? std::string(resolved.get()) : path;
}

void write_all(int fd, const std::string& text, bool& ok) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      ok = false;
      return;
    }
    done += static_cast<std::size_t>(count);
  }
}

/// Lets go of the terminal, the working directory and stdio of whoever started the server.
void detach_from_starter() {
  ::setsid();
  [[maybe_unused]] const int moved = ::chdir("/");
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  std::fflush(nullptr);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  if (null > STDERR_FILENO) ::close(null);
}

/// The server's half of the pipe: one byte (an exit code) and one line.
[[noreturn]] void run_server(const MountOptions& options, int pipe_fd) {
  // What else was inherited stays with the starter: a lock or a pipe end of a script would be held for ever.
  constexpr int kPipe = 3;
  if (pipe_fd != kPipe && ::dup3(pipe_fd, kPipe, O_CLOEXEC) < 0) ::_exit(kExitMount);
  ::close_range(kPipe + 1, ~0u, 0);

  const auto tell = [](int exit_code, const std::string& line) {
    bool ok = true;
    write_all(kPipe, std::string(1, static_cast<char>(exit_code)) + line, ok);
    ::close(kPipe);
    return ok;
  };
  Announcer announcer;
  announcer.success = [&](const std::string& line) {
    detach_from_starter();
    return tell(kExitOk, line);
  };
  announcer.failure = [&](const std::string& reason) { (void)tell(kExitMount, reason); };
  ::_exit(serve(options, announcer));
}

/// The starter's half: waits for the outcome, prints it.
int await_server(pid_t server, int pipe_fd) {
  std::string message;
  char buffer[1024];
  for (;;) {
    const ssize_t count = ::read(pipe_fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    message.append(buffer, static_cast<std::size_t>(count));
  }
  if (!message.empty() && message[0] == kExitOk) {
    std::printf("pmfs: %s\n", message.c_str() + 1);
    std::fflush(stdout);
    return kExitOk;
  }
  // It has failed: when it has ended, the pool is closed.
  int status = 0;
  while (::waitpid(server, &status, 0) < 0 && errno == EINTR) {
  }
  if (!message.empty()) return fail(message[0], message.substr(1));
  if (WIFSIGNALED(status))
    return fail(kExitMount,
                "the server was killed before the mount was ready: " + std::string(strsignal(WTERMSIG(status))));
  return fail(kExitMount, "the server ended before the mount was ready");
}

int mount_in_foreground(const MountOptions& options) {
  Announcer announcer;
  announcer.success = [](const std::string& line) {
    std::printf("pmfs: %s\n", line.c_str());
    std::fflush(stdout);
    return true;
  };
  announcer.failure = [](const std::string& reason) { (void)fail(kExitMount, reason); };
  return serve(options, announcer);
}

int mount_in_background(const MountOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(kExitMount, std::string("pipe: ") + std::strerror(errno));
  std::fflush(nullptr);
  const pid_t server = ::fork();
  if (server < 0) return fail(kExitMount, std::string("fork: ") + std::strerror(errno));
  if (server == 0) run_server(options, ends[1]);
  ::close(ends[1]);
  const int exit_code = await_server(server, ends[0]);
  ::close(ends[0]);
  return exit_code;
}

}  // namespace

int mount_pool(const MountOptions& given) {
  MountOptions options = given;
  if (::geteuid() != 0 && (options.suid || options.dev))
    return fail(kExitUsage, "only root may ask for the mount options 'suid' and 'dev'");
  if (::geteuid() == 0) options.allow_other = true;
  options.pool = absolute(given.pool);
  options.dir = resolve_mount_point(given.dir);
  if (options.dir.empty()) return fail(kExitMount, given.dir + ": " + std::strerror(errno));
  if (const std::string wrong = prepare_mount_point(options.dir); !wrong.empty()) return fail(kExitMount, wrong);
  if (options.fake) return kExitOk;
  return options.foreground ? mount_in_foreground(options) : mount_in_background(options);
}

}  // namespace pmfs::bridge
