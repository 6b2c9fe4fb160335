#include "fuse_bridge/server.h"

#include <fcntl.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fuse_bridge/fuse_api.h"
#include "fuse_bridge/ops.h"
#include "fuse_bridge/parallel_dirops.h"
#include "mounted/mount_table.h"

namespace pmfs::bridge {

namespace {

// --- What libfuse and the handlers log
// ------------------------------------------------------------------------------------ Until the mount is served it is
// part of the reason for a failure; afterwards it goes to stderr or to syslog.

enum class LogSink { kCollect, kStderr, kSyslog };
std::atomic<LogSink> log_sink{LogSink::kCollect};
std::mutex collected_lock;
std::string collected;  // guarded by collected_lock

__attribute__((format(printf, 2, 0))) void take_log(fuse_log_level level, const char* format, va_list arguments) {
  switch (log_sink.load(std::memory_order_relaxed)) {
    case LogSink::kCollect: {
      char line[512];
      std::vsnprintf(line, sizeof line, format, arguments);
      const std::lock_guard guard(collected_lock);
      collected += line;
      return;
    }
    case LogSink::kStderr:
      std::vfprintf(stderr, format, arguments);
      return;
    case LogSink::kSyslog:
      vsyslog(static_cast<int>(level), format, arguments);
      return;
  }
}

/// What was collected, as a part of one line.
std::string take_collected() {
  const std::lock_guard guard(collected_lock);
  std::string text = std::exchange(collected, {});
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

// --- The session
// --------------------------------------------------------------------------------------------------------------

/// The arguments that libfuse is configured by.
std::vector<std::string> session_arguments(const MountOptions& options) {
  std::string source;  // a comma would end the option, a backslash would quote
  for (const char c : options.pool) {
    if (c == ',' || c == '\\') source += '\\';
    source += c;
  }
  std::string list = "fsname=" + source + ",subtype=pmfs,default_permissions";
  list += options.read_only ? ",ro" : ",rw";
  list += options.suid ? ",suid" : ",nosuid";
  list += options.dev ? ",dev" : ",nodev";
  if (!options.exec) list += ",noexec";
  if (options.atime == OpenOptions::Atime::kNone) list += ",noatime";
  if (options.allow_other) list += ",allow_other";
  if (options.io_uring) list += ",io_uring";
  return {"pmfs", "-o", list};
}

/// libfuse's session: made, mounted, served, unmounted, destroyed.
class Session {
 public:
  Session(const MountOptions& options, Bridge& bridge) : bridge_(bridge) {
    std::vector<std::string> texts = session_arguments(options);
    std::vector<char*> argv;
    for (std::string& text : texts) argv.push_back(text.data());
    argv.push_back(nullptr);
    fuse_args args = FUSE_ARGS_INIT(static_cast<int>(argv.size()) - 1, argv.data());
    session_ = fuse_session_new(&args, &handlers(), sizeof(fuse_lowlevel_ops), &bridge);
    fuse_opt_free_args(&args);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (session_ == nullptr) return;
    if (has_handlers_) {
      // A second signal must not cut the closing of the pool short. Ignored before libfuse forgets the session.
      for (const int number : {SIGTERM, SIGINT, SIGHUP}) std::signal(number, SIG_IGN);
      fuse_remove_signal_handlers(session_);
    }
    if (mounted_) fuse_session_unmount(session_);
    fuse_session_destroy(session_);  // calls the destroy handler, if INIT was served
  }

  /// @return  false when something has failed; the reason is in the log.
  bool mount(const std::string& dir) {
    if (session_ == nullptr) return false;
    has_handlers_ = fuse_set_signal_handlers(session_) == 0;
    if (!has_handlers_) return false;
    mounted_ = fuse_session_mount(session_, dir.c_str()) == 0;
    if (!mounted_) return false;
    (void)watch_replies(session_);
    bridge_.begin_notifications(session_);
    return true;
  }

  /// Answers requests until the mount is gone, a signal comes or end() is called.
  /// @return  0, a signal's number, or a negative errno.
  int loop() {
    const std::unique_ptr<fuse_loop_config, decltype(&fuse_loop_cfg_destroy)> config(fuse_loop_cfg_create(),
                                                                                     &fuse_loop_cfg_destroy);
    if (config == nullptr) return -ENOMEM;
    // Two more than cores: a handler can wait for a lock or for the medium. Idle ones stay, starting one is dearer.
    const unsigned threads = std::max(2u, std::thread::hardware_concurrency()) + 2;
    fuse_loop_cfg_set_clone_fd(config.get(), 0);
    fuse_loop_cfg_set_max_threads(config.get(), threads);
    fuse_loop_cfg_set_idle_threads(config.get(), threads);
    const int result = fuse_session_loop_mt(session_, config.get());
    bridge_.end_notifications();
    return result;
  }

  void end() { fuse_session_exit(session_); }

 private:
  Bridge& bridge_;
  fuse_session* session_ = nullptr;
  bool has_handlers_ = false;
  bool mounted_ = false;
};

/// The kernel reads ahead 128 KiB unless told otherwise, whatever INIT negotiates. Only root may; no harm if it fails.
void raise_read_ahead(const std::string& dir) {
  constexpr char kReadAheadKib[] = "1024";
  const std::optional<mounted::MountEntry> mount = mounted::mount_at(dir);
  if (!mount || mount->type != mounted::kMountType) return;
  const std::string path = "/sys/class/bdi/" + mount->device + "/read_ahead_kb";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, kReadAheadKib, sizeof kReadAheadKib - 1);
  ::close(fd);
}

/// The library's reason for not opening the pool. REQUIRES: no call into the library since.
std::string reason_of(const std::string& pool, const Error& error) {
  const std::string detail = error_detail();
  std::string text = pool + ": " + describe(error.code);
  if (error.what[0] != '\0' && text.find(error.what) == std::string::npos) text += " (" + std::string(error.what) + ")";
  if (!detail.empty()) text += " [" + detail + "]";
  return text;
}

std::string success_line(const MountOptions& options, const PoolInfo& info, bool uses_uring) {
  std::string line = options.pool + " is mounted on " + options.dir;
  if (info.read_only) line += ", read-only";
  line += ": " + std::string(describe(info.durability));
  if (info.recovered) line += " (an unfinished operation was undone)";
  if (options.io_uring)
    line += uses_uring ? "; requests through io_uring"
                       : "; requests through /dev/fuse: the kernel offers no io_uring "
                         "(fuse's module parameter enable_uring)";
  return line;
}

void print_counts(const Bridge& bridge) {
  const CountsReply counts = bridge.counts();
  for (std::size_t i = 0; i < kRequestKinds; ++i)
    std::printf("%-12s %llu\n", kRequestNames[i], static_cast<unsigned long long>(counts.counts[i]));
  std::fflush(stdout);
}

int serve_pool(const MountOptions& options, const Announcer& announcer) {
  OpenOptions open_options;
  open_options.read_only = options.read_only;
  open_options.dir_index = options.dir_index;
  open_options.relaxed = options.relaxed;
  open_options.resolver = options.resolver;
  open_options.atime = options.atime;
  // A server that was killed a moment ago is gone from the mount table before its pool's lock is free.
  open_options.busy_wait_ms = 1000;
  Result<Filesystem> opened = Filesystem::open(options.pool, open_options);
  if (!opened.ok()) {
    announcer.failure(reason_of(options.pool, opened.error()));
    return kExitMount;
  }
  Filesystem fs = std::move(*opened);
  const PoolInfo info = fs.info();

  int result = 0;
  bool served = false;
  {
    Session* running = nullptr;
    const Bridge* asked = nullptr;
    Bridge bridge(fs, options,
                  {.served_init =
                       [&] {
                         log_sink = options.foreground ? LogSink::kStderr : LogSink::kSyslog;
                         served = true;
                         if (!announcer.success(success_line(options, info, asked->uses_uring()))) running->end();
                       },
                   .first_request = [&] { raise_read_ahead(options.dir); }});
    Session session(options, bridge);
    running = &session;
    asked = &bridge;
    if (!session.mount(options.dir)) {
      announcer.failure(options.dir + ": " + take_collected());
      return kExitMount;
    }
    result = session.loop();
    if (options.print_counts) print_counts(bridge);
  }
  if (!served) {
    announcer.failure(options.dir + ": the kernel and libfuse did not come to terms: " + take_collected());
    return kExitMount;
  }
  if (result < 0)
    fuse_log(FUSE_LOG_ERR, "pmfs: %s: the session ended: %s\n", options.dir.c_str(), std::strerror(-result));
  if (const Result<void> closed = fs.close(); !closed.ok()) {
    fuse_log(FUSE_LOG_ERR, "pmfs: %s: not closed cleanly: %s\n", options.pool.c_str(), describe(closed.error().code));
    return kExitMount;
  }
  return result < 0 ? kExitMount : kExitOk;
}

}  // namespace

int serve(const MountOptions& options, const Announcer& announcer) {
  std::signal(SIGPIPE, SIG_IGN);
  fuse_set_log_func(take_log);
  openlog("pmfs", LOG_PID, LOG_DAEMON);
  try {
    return serve_pool(options, announcer);
  } catch (const std::exception& error) {
    announcer.failure(options.pool + ": " + error.what());
    return kExitMount;
  }
}

}  // namespace pmfs::bridge
