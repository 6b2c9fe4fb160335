#include "fs/enlarge.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "fs/error_detail.h"
#include "fs/fd.h"

namespace pmfs {

namespace {

/// The text of a poolset with the size of its last part replaced. Only that word changes.
std::string with_last_size(std::string_view text, u64 size_bytes) {
  std::size_t word = std::string_view::npos;  // where the last part's line has its size
  for (std::size_t at = 0; at < text.size();) {
    std::size_t newline = text.find('\n', at);
    if (newline == std::string_view::npos) newline = text.size();
    const std::string_view line = text.substr(at, newline - at);
    const std::size_t from = line.find_first_not_of(" \t");
    if (at != 0 && from != std::string_view::npos && line[from] >= '0' && line[from] <= '9') word = at + from;
    at = newline + 1;
  }
  if (word == std::string_view::npos) return std::string(text);
  const std::size_t end = text.find_first_of(" \t", word);
  return std::string(text.substr(0, word)) + std::to_string(size_bytes) + std::string(text.substr(end));
}

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(path, "cannot write it", errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

/// Replaces a file's contents in one step: a crash shows the old text or the new one.
Result<void> replace_text(const std::string& path, std::string_view text) {
  char* const real = ::realpath(path.c_str(), nullptr);  // a symbolic link stays one
  if (real == nullptr) return system_error(path, "cannot find the file", errno);
  const std::string target = real;
  std::free(real);
  struct stat st;
  if (::stat(target.c_str(), &st) != 0) return system_error(path, "cannot look at it", errno);
  const std::string fresh = target + ".new";
  PoolPart part;
  part.path = target;
  {
    const Fd fd{::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, st.st_mode & 07777)};
    if (!fd.is_open()) return system_error(fresh, "cannot make it", errno);
    auto written = write_all(fd.get(), text, fresh);
    if (written.ok() && (::fchmod(fd.get(), st.st_mode & 07777) != 0 || ::fsync(fd.get()) != 0))
      written = system_error(fresh, "cannot write it out", errno);
    if (written.ok() && ::rename(fresh.c_str(), target.c_str()) != 0)
      written = system_error(path, "cannot replace it", errno);
    if (!written.ok()) {
      ::unlink(fresh.c_str());
      return written;
    }
  }
  return sync_file_and_name(part);
}

Result<std::string> read_text(const std::string& path, u64 bytes) {
  const Fd fd{open_quietly(path, O_RDONLY)};
  if (!fd.is_open()) return system_error(path, "cannot open it", errno);
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::read(fd.get(), text.data() + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(path, "cannot read it", errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  text.resize(done);
  return text;
}

}  // namespace

u64 total_bytes(const PoolSource& source) {
  u64 sum = 0;
  for (const PoolPart& part : source.parts) sum += part.size_bytes;
  return sum;
}

Result<void> settle_poolset(const PoolSource& source) {
  if (source.kind != PoolSource::Kind::kPoolset) return {};
  const PoolPart& last = source.parts.back();
  struct stat st;
  if (::stat(source.path.c_str(), &st) != 0) return system_error(source.path, "cannot look at it", errno);
  PMFS_ASSIGN(const std::string text, read_text(source.path, static_cast<u64>(st.st_size)));
  const std::string right = with_last_size(text, last.size_bytes);
  if (right == text) return {};
  const Fd fd{open_quietly(last.path, O_RDWR)};
  if (!fd.is_open()) return system_error(last.path, "cannot open it", errno);
  PMFS_TRY(lock_or_busy(fd.get(), last.path));
  return replace_text(source.path, right);
}

Result<void> enlarge_last_part(PoolSource& source, u64 more_bytes) {
  PoolPart& last = source.parts.back();
  {
    const Fd fd{open_quietly(last.path, O_RDWR)};
    if (!fd.is_open()) return system_error(last.path, "cannot open it", errno);
    PMFS_TRY(lock_or_busy(fd.get(), last.path));
    const auto before = static_cast<off_t>(last.size_bytes);
    if (const int err = ::posix_fallocate(fd.get(), before, static_cast<off_t>(more_bytes)); err != 0) {
      // What was allocated on the way goes back. If that fails too, the file is longer than the pool: harmless.
      [[maybe_unused]] const int cut = ::ftruncate(fd.get(), before);
      return system_error(last.path, "cannot make it larger", err);
    }
  }
  // The length is durable before anything in the pool relies on it.
  PMFS_TRY(sync_file_and_name(last));
  last.size_bytes += more_bytes;
  return settle_poolset(source);
}

}  // namespace pmfs
