// The client of batch requests: which mount a path lies on, requests of up to 16 KiB, and the ordinary system call for
// what the server leaves to the kernel.
//
//   C1  A path goes to the server only if the kernel would reach that mount by the same text. So the text must begin
//   with
//       a mount point as the table shows it, and one statx() per mount and call, made by the kernel with this process's
//       rights, must find the mount's root there.
//   C2  A row is the server's answer or the kernel's, never a guess: kAskKernel, a stale start and a failed ioctl all
//       lead to the system call.
#include "pmfs/mounted.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "mounted/fd.h"
#include "mounted/mount_table.h"
#include "mounted/wire.h"

namespace pmfs::mounted {

namespace {

struct Mount {
  std::string dir;
  dev_t device = 0;
  bool ours = false;
  Fd root;  ///< opened when first needed
};

dev_t device_of(const std::string& text) {
  unsigned major = 0, minor = 0;
  const char* const end = text.data() + text.size();
  const auto [colon, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc() || colon == end) return 0;
  std::from_chars(colon + 1, end, minor);
  return makedev(major, minor);
}

// --- The kernel's answer ---------------------------------------------------------------------------------------------

i64 to_ns(const struct statx_timestamp& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

void ask_kernel(const std::string& path, Follow follow, Row& row) {
  struct statx found {};
  const int flags = follow == Follow::kYes ? 0 : AT_SYMLINK_NOFOLLOW;
  row = Row{};
  if (::statx(AT_FDCWD, path.c_str(), flags, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) {
    row.error = errno;
    return;
  }
  Attributes& a = row.attributes;
  a.ino = InodeNo{found.stx_ino};
  a.mode = found.stx_mode;
  a.links = found.stx_nlink;
  a.uid = found.stx_uid;
  a.gid = found.stx_gid;
  a.size_bytes = found.stx_size;
  a.blocks_512 = found.stx_blocks;
  a.rdev = makedev(found.stx_rdev_major, found.stx_rdev_minor);
  a.atime_ns = to_ns(found.stx_atime);
  a.mtime_ns = to_ns(found.stx_mtime);
  a.ctime_ns = to_ns(found.stx_ctime);
  a.birth_ns = to_ns(found.stx_btime);
}

void create_by_kernel(const std::string& path, u32 mode, Row& row) {
  if (::mknod(path.c_str(), S_IFREG | (mode & 07777u), 0) == 0) {
    ask_kernel(path, Follow::kNo, row);
  } else {
    row = Row{};
    row.error = errno;
  }
}

/// umask(2) would have to change it for a moment, under other threads.
std::optional<u32> own_umask() {
  constexpr std::string_view kKey = "\nUmask:\t";
  std::array<char, 4096> text;
  const Fd status(::open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC));
  const ssize_t length = status.is_open() ? ::read(status.get(), text.data(), text.size()) : -1;
  if (length <= 0) return {};
  const std::string_view all(text.data(), static_cast<std::size_t>(length));
  const std::size_t key = all.find(kKey);
  if (key == std::string_view::npos) return {};
  u32 umask = 0;
  const char* const first = all.data() + key + kKey.size();
  if (std::from_chars(first, all.data() + all.size(), umask, 8).ec != std::errc()) return {};
  return umask;
}

// --- The server's ----------------------------------------------------------------------------------------------------

void take_row(const ReplyRow& from, Row& row) {
  row = Row{};
  row.error = from.error;
  row.batched = true;
  Attributes& a = row.attributes;
  a.ino = InodeNo{from.ino};
  a.generation = from.generation;
  a.mode = from.mode;
  a.links = from.links;
  a.uid = from.uid;
  a.gid = from.gid;
  a.size_bytes = from.size_bytes;
  a.blocks_512 = from.blocks_512;
  a.rdev = from.rdev;
  a.atime_ns = from.atime_ns;
  a.mtime_ns = from.mtime_ns;
  a.ctime_ns = from.ctime_ns;
  a.birth_ns = from.birth_ns;
}

/// One request being filled, and which rows its answers belong to.
class Request {
 public:
  Request(BatchOp op, u32 umask) {
    header_.op = op;
    header_.umask = umask;
  }
  bool empty() const { return rows_.empty(); }
  bool has_room(std::size_t path_bytes) const {
    return used_ + request_bytes(path_bytes) <= kBatchBytesMax && rows_.size() < kBatchPathsMax;
  }
  void add(std::string_view path, u16 flags, u32 mode, std::size_t row) {
    const PathHeader header{.length = static_cast<u16>(path.size()), .flags = flags, .mode = mode};
    std::memcpy(&buffer_[used_], &header, sizeof header);
    std::memset(&buffer_[used_ + request_bytes(path.size()) - 8], 0, 8);  // the padding; the path comes over it
    std::memcpy(&buffer_[used_ + sizeof header], path.data(), path.size());
    used_ += request_bytes(path.size());
    rows_.push_back(row);
  }
  /// Sends it and begins anew. Rows that the server left to the kernel are appended to `left`.
  void send(int dir, std::span<Row> rows, std::vector<std::size_t>& left) {
    if (empty()) return;
    header_.count = static_cast<u32>(rows_.size());
    header_.bytes = static_cast<u32>(used_);
    std::memcpy(buffer_.data(), &header_, sizeof header_);
    const std::size_t reply_bytes = sizeof(ReplyHeader) + rows_.size() * sizeof(ReplyRow);
    ReplyHeader reply;
    const bool answered = ::ioctl(dir, batch_ioctl(std::max(padded(used_), reply_bytes)), buffer_.data()) == 0;
    if (answered) std::memcpy(&reply, buffer_.data(), sizeof reply);
    if (answered && reply.version == kBatchVersion && reply.count == rows_.size()) {
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        ReplyRow row;
        std::memcpy(&row, &buffer_[sizeof reply + i * sizeof row], sizeof row);
        if (row.error == kAskKernel || row.error == ESTALE) {
          left.push_back(rows_[i]);
        } else {
          take_row(row, rows[rows_[i]]);
        }
      }
    } else {
      left.insert(left.end(), rows_.begin(), rows_.end());
    }
    used_ = sizeof header_;
    rows_.clear();
  }

 private:
  BatchHeader header_;
  alignas(8) std::array<char, kBatchBytesMax> buffer_;
  std::size_t used_ = sizeof header_;
  std::vector<std::size_t> rows_;
};

}  // namespace

// --- Mounts and paths ------------------------------------------------------------------------------------------------

struct Client::State {
  Fd changes{::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)};  // polls as readable-urgent when a mount changes
  std::vector<Mount> mounts;
  bool known = false;

  void refresh() {
    pollfd changed{.fd = changes.get(), .events = POLLPRI, .revents = 0};
    if (changes.is_open() && ::poll(&changed, 1, 0) == 0 && known) return;
    mounts.clear();
    for (const MountEntry& entry : read_mount_table()) {
      std::erase_if(mounts, [&](const Mount& older) { return older.dir == entry.dir; });  // it covers them
      mounts.push_back(
          {.dir = entry.dir, .device = device_of(entry.device), .ours = entry.type == kMountType, .root = {}});
    }
    known = true;
  }

  /// Whether `dir` is a mount point that `path` goes through by its text.
  static bool leads_through(std::string_view path, std::string_view dir) {
    if (dir == "/") return true;
    return path.starts_with(dir) && (path.size() == dir.size() || path[dir.size()] == '/');
  }

  /// The innermost mount that an absolute path goes through, if it is ours.
  Mount* mount_of(std::string_view path) {
    Mount* innermost = nullptr;
    for (Mount& mount : mounts)
      if (leads_through(path, mount.dir) && (innermost == nullptr || mount.dir.size() > innermost->dir.size()))
        innermost = &mount;
    return innermost != nullptr && innermost->ours ? innermost : nullptr;
  }

  /// C1. @return a descriptor of the mount's root, or -1: ask the kernel.
  static int root_of(Mount& mount) {
    if (!mount.root.is_open()) mount.root = Fd(::open(mount.dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct statx found {};
    if (!mount.root.is_open() || ::statx(AT_FDCWD, mount.dir.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &found) != 0)
      return -1;
    const bool is_root = (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    return is_root && makedev(found.stx_dev_major, found.stx_dev_minor) == mount.device ? mount.root.get() : -1;
  }

  /// The working directory, if it lies in a mount of ours; not open otherwise.
  Fd working_directory() const {
    struct statx found {};
    if (::statx(AT_FDCWD, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &found) != 0) return {};
    const dev_t device = makedev(found.stx_dev_major, found.stx_dev_minor);
    for (const Mount& mount : mounts)
      if (mount.ours && mount.device == device) return Fd(::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return {};
  }

  /// Where a request begins, for each mount (its index) and for the working directory (behind the last).
  struct Start {
    bool tried = false;
    int dir = -1;
    std::vector<std::size_t> rows;
  };

  /// Hands paths to servers. @return the rows that the kernel has to answer.
  std::vector<std::size_t> batch(BatchOp op, std::span<const std::string> paths, std::span<Row> rows, u16 flags,
                                 u32 mode, u32 umask) {
    refresh();
    std::vector<std::size_t> left;
    std::vector<Start> starts(mounts.size() + 1);
    Fd working;
    const auto rest_of = [&](std::size_t row, std::size_t start) {
      std::string_view rest = paths[row];
      if (start < mounts.size()) rest.remove_prefix(mounts[start].dir.size());
      while (rest.starts_with('/')) rest.remove_prefix(1);
      return rest.empty() ? std::string_view(".") : rest;
    };
    for (std::size_t row = 0; row < paths.size(); ++row) {
      const std::string& path = paths[row];
      std::size_t start = mounts.size();
      if (path.starts_with('/')) {
        Mount* const mount = mount_of(path);
        start = mount == nullptr ? starts.size() : static_cast<std::size_t>(mount - mounts.data());
      }
      // Nothing, too much, and a file that has to be a directory: the kernel has its own words for those.
      const bool odd = path.empty() || path.size() > kPathMax || (op == BatchOp::kCreate && path.back() == '/');
      if (start == starts.size() || odd) {
        left.push_back(row);
        continue;
      }
      Start& at = starts[start];
      if (!at.tried) {
        at.tried = true;
        if (start < mounts.size()) {
          at.dir = root_of(mounts[start]);
        } else {
          working = working_directory();
          at.dir = working.get();
        }
      }
      (at.dir < 0 ? left : at.rows).push_back(row);
    }
    Request request(op, umask);
    for (std::size_t start = 0; start < starts.size(); ++start) {
      const Start& at = starts[start];
      for (const std::size_t row : at.rows) {
        const std::string_view rest = rest_of(row, start);
        if (!request.has_room(rest.size())) request.send(at.dir, rows, left);
        request.add(rest, flags, mode, row);
      }
      request.send(at.dir, rows, left);
    }
    return left;
  }
};

Client::Client() : state_(std::make_unique<State>()) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

void Client::resolve(std::span<const std::string> paths, std::span<Row> rows, Follow follow) {
  const u16 flags = follow == Follow::kYes ? kFollowLast : u16{0};
  for (const std::size_t row : state_->batch(BatchOp::kResolve, paths, rows, flags, 0, 0))
    ask_kernel(paths[row], follow, rows[row]);
}

void Client::create(std::span<const std::string> paths, u32 mode, std::span<Row> rows) {
  const std::optional<u32> umask = own_umask();
  std::vector<std::size_t> left;
  if (umask) {
    left = state_->batch(BatchOp::kCreate, paths, rows, 0, mode & 07777u, *umask);
  } else {
    for (std::size_t row = 0; row < paths.size(); ++row) left.push_back(row);
  }
  for (const std::size_t row : left) create_by_kernel(paths[row], mode, rows[row]);
}

}  // namespace pmfs::mounted
