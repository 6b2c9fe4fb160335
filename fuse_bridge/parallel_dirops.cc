#include "fuse_bridge/parallel_dirops.h"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace pmfs::bridge {

#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 17)

namespace {

std::atomic<bool> is_init_reply_next{false};

/// Sets FUSE_PARALLEL_DIROPS in a struct fuse_init_out (linux/fuse.h): four 32-bit words, of which `flags` is the last,
/// and more.
void add_bit(const iovec& init_out) {
  constexpr std::size_t kFlagsOff = 12;
  constexpr u32 kParallelDirops = 1u << 18;
  u32 flags = 0;
  if (init_out.iov_len < kFlagsOff + sizeof flags) return;
  char* const at = static_cast<char*>(init_out.iov_base) + kFlagsOff;
  std::memcpy(&flags, at, sizeof flags);
  flags |= kParallelDirops;
  std::memcpy(at, &flags, sizeof flags);
}

ssize_t write_reply(int fd, iovec* parts, int count, void*) noexcept {
  if (is_init_reply_next.load(std::memory_order_relaxed)) {
    is_init_reply_next.store(false, std::memory_order_relaxed);
    // The parts are a struct fuse_out_header {length, error, request} and the answer; an error has no answer.
    if (count == 2) add_bit(parts[1]);
  }
  return ::writev(fd, parts, count);
}

ssize_t read_request(int fd, void* buffer, std::size_t bytes, void*) { return ::read(fd, buffer, bytes); }

}  // namespace

bool watch_replies(fuse_session* session) {
  fuse_custom_io io{};
  io.writev = write_reply;
  io.read = read_request;  // where libfuse's workers wait, and are cancelled at the end: not noexcept
  return fuse_session_custom_io(session, &io, fuse_session_fd(session)) == 0;
}

void expect_init_reply(const fuse_conn_info& conn) {
  if (is_offered(conn, FUSE_CAP_PARALLEL_DIROPS)) is_init_reply_next = true;
}

#else

bool watch_replies(fuse_session*) { return true; }
void expect_init_reply(const fuse_conn_info&) {}

#endif

}  // namespace pmfs::bridge
