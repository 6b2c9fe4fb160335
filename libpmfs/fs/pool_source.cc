#include "fs/pool_source.h"

#include <fcntl.h>
#include <immintrin.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "fs/error_detail.h"
#include "fs/fd.h"

namespace pmfs {
namespace {

// 1,020 parts are the most that libpmemobj opens; with paths of 1 KiB each, that is this.
constexpr u64 kPoolsetMaxBytes = 1u << 20;
constexpr std::string_view kPoolsetSignature = "PMEMPOOLSET";

// libpmemobj's header, major version 6: pool_hdr in the first 4 KiB, then the descriptor of 2 KiB and a line.
constexpr u64 kHeaderBytes = 8192;
constexpr u64 kWipeBytes = 4096;
constexpr std::string_view kPoolSignature{"PMEMOBJ\0", 8};
constexpr std::size_t kLayoutAt = 4096;
constexpr std::size_t kLayoutBytes = 1024;
constexpr std::size_t kLanesOffAt = kLayoutAt + kLayoutBytes;
constexpr std::size_t kLanesAt = kLanesOffAt + 8;
constexpr std::size_t kHeapOffAt = kLanesOffAt + 16;
constexpr std::size_t kRootOffAt = kLayoutAt + 2048;
constexpr std::size_t kRootBytesAt = kRootOffAt + 16;
constexpr std::size_t kHeapBytesAt = kRootOffAt + 32;

// A lane: two redo logs and an undo log, each a header of 64 bytes and then entries.
constexpr u64 kLaneBytes = 3072;
constexpr u64 kLanesMax = 4096;  // libpmemobj makes 1,024; more than this is no pool of anybody's
struct LaneLog {
  std::size_t at;      // in the lane
  u64 capacity_bytes;  // of its entries
};
constexpr std::size_t kLaneLogHeaderBytes = 64;
constexpr LaneLog kLaneLogs[] = {{0, 192}, {256, 640}, {960, 2048}};

/// Reads up to `bytes` from byte `off` of a file. Returns the count, or -1 with errno.
ssize_t read_at(int fd, u64 off, char* to, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(fd, to + done, bytes - done, static_cast<off_t>(off + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

std::string sys_name(dev_t device, const char* leaf) {
  return "/sys/dev/char/" + std::to_string(major(device)) + ":" + std::to_string(minor(device)) + "/" + leaf;
}

bool is_device_dax(dev_t device) {
  // "subsystem" is a link to .../bus/dax or .../class/dax; no other driver has that name.
  char target[PATH_MAX];
  const ssize_t n = ::readlink(sys_name(device, "subsystem").c_str(), target, sizeof target);
  if (n <= 0) return false;
  const std::string_view link{target, static_cast<std::size_t>(n)};
  return link.substr(link.rfind('/') + 1) == "dax";
}

/// A decimal number in a file of /sys; 0 if there is none.
u64 sys_number(dev_t device, const char* leaf) {
  const Fd fd{open_quietly(sys_name(device, leaf), O_RDONLY)};
  if (!fd.is_open()) return 0;
  char text[32] = {};
  if (read_at(fd.get(), 0, text, sizeof text - 1) <= 0) return 0;
  return std::strtoull(text, nullptr, 10);
}

u64 device_align_bytes(dev_t device) {
  const u64 align =
      sys_number(device, "device/align") != 0 ? sys_number(device, "device/align") : sys_number(device, "align");
  return align != 0 ? align : u64{2} << 20;
}

/// Fills in what stat() knows. Leaves `exists` false when nothing is there.
Result<void> look_at_part(PoolPart& part, bool as_part_of_a_set) {
  struct stat st;
  if (::stat(part.path.c_str(), &st) != 0) {
    if (errno == ENOENT) {
      // The name itself may be missing, which is no error here, or a directory on the way to it.
      if (::stat(parent_of(part.path).c_str(), &st) == 0) return {};
      return system_error(part.path, "its directory", errno);
    }
    return system_error(part.path, "cannot look at it", errno);
  }
  part.exists = true;
  part.dev = st.st_dev;
  part.inode = st.st_ino;
  if (S_ISREG(st.st_mode)) {
    part.size_bytes = static_cast<u64>(st.st_size);
    return {};
  }
  if (S_ISCHR(st.st_mode) && is_device_dax(st.st_rdev)) {
    part.is_device = true;
    part.size_bytes = sys_number(st.st_rdev, "size");
    return {};
  }
  if (S_ISDIR(st.st_mode)) {
    if (as_part_of_a_set) {
      set_error_detail(part.path, "the poolset lists this directory");
      return Error{Errc::kDirectorySet, "a poolset of directories"};
    }
    set_error_detail(part.path, "is a directory");
    return Error{Errc::kIsDirectory, "a directory, not a pool"};
  }
  set_error_detail(part.path, S_ISBLK(st.st_mode)
                                  ? "is a block device; use a file on it (mounted with -o dax), or a /dev/dax device"
                                  : "is neither a regular file nor a device DAX");
  return Error{Errc::kNotAPool, "no pool can be here"};
}

/// The next token of `line`, blanks and tabs removed; empty at its end.
std::string_view next_token(std::string_view& line) {
  const std::size_t from = line.find_first_not_of(" \t");
  if (from == std::string_view::npos) {
    line = {};
    return {};
  }
  std::size_t to = line.find_first_of(" \t", from);
  if (to == std::string_view::npos) to = line.size();
  const std::string_view token = line.substr(from, to - from);
  line.remove_prefix(to);
  return token;
}

bool is_size_word(std::string_view word) {
  if (word == "AUTO") return true;
  const std::size_t digits = word.find_first_not_of("0123456789");
  if (digits == 0) return false;
  if (digits == std::string_view::npos) return word.size() < 21;
  return digits < 21 && word.find_first_not_of("KMGTPkiB", digits) == std::string_view::npos &&
         word.size() - digits <= 3;
}

Error garbled(const std::string& path, u64 line, const char* words) {
  set_error_detail(path, "the poolset cannot be read: line ", std::to_string(line), words);
  return Error{Errc::kNotAPool, "a garbled poolset"};
}

/// Fills in the parts listed in a poolset's text. The same grammar as libpmemobj's, which will read it again.
Result<void> parse_poolset(std::string_view text, PoolSource& source) {
  const std::string& path = source.path;
  source.later_header_bytes = kBlockBytes;
  u64 number = 0;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    ++number;
    if (number == 1) {
      if (line != kPoolsetSignature || newline == std::string_view::npos)
        return garbled(path, number, " is not exactly PMEMPOOLSET");
      continue;
    }
    if (line.find('\0') != std::string_view::npos) return garbled(path, number, " has a NUL byte");
    if (const std::size_t comment = line.find('#'); comment != std::string_view::npos) {
      if (comment == 0) continue;
      line = line.substr(0, comment);
    }
    if (line.empty()) continue;
    if (line.starts_with("REPLICA")) {
      set_error_detail(path, "the poolset has a REPLICA section in line ", std::to_string(number));
      return Error{Errc::kReplicaSet, "a poolset with replicas"};
    }
    if (line.starts_with("OPTION")) {  // libpmemobj knows which there are, and refuses others
      if (line.find("SINGLEHDR") != std::string_view::npos) source.later_header_bytes = 0;
      continue;
    }
    const std::string_view size = next_token(line);
    const std::string_view part_path = next_token(line);
    if (part_path.empty() || !next_token(line).empty()) return garbled(path, number, " is not SIZE PATH");
    if (!is_size_word(size)) return garbled(path, number, " begins with no size");
    if (part_path[0] != '/') return garbled(path, number, " has a path that does not begin with /");
    if (part_path.size() > kPathMax) return garbled(path, number, " has too long a path");
    PoolPart part;
    part.path = part_path;
    source.parts.push_back(std::move(part));
  }
  if (source.parts.empty()) return garbled(path, number, " is the last and no part was listed");
  return {};
}

/// What libpmemobj would find only after create() has cleared the parts, or report as something else.
Result<void> check_together(const PoolSource& source) {
  for (const PoolPart& part : source.parts) {
    if (part.is_device != source.parts[0].is_device) {
      set_error_detail(source.path, "the poolset mixes devices and files: ", part.path);
      return Error{Errc::kRefused, "a poolset of devices and files"};
    }
    const auto same = [&part](const PoolPart& other) {
      return part.path == other.path ||
             (part.exists && other.exists && part.dev == other.dev && part.inode == other.inode);
    };
    if (std::count_if(source.parts.begin(), source.parts.end(), same) > 1) {
      set_error_detail(source.path, "the poolset lists a part twice: ", part.path);
      return Error{Errc::kNotAPool, "a garbled poolset"};
    }
  }
  return {};
}

/// Reads `path` whole if it begins like a poolset; an empty string if it does not.
Result<std::string> read_poolset(const PoolPart& file) {
  const Fd fd{open_quietly(file.path, O_RDONLY)};
  if (!fd.is_open()) return system_error(file.path, "cannot open it", errno);
  char start[kPoolsetSignature.size()] = {};
  const ssize_t got = read_at(fd.get(), 0, start, sizeof start);
  if (got < 0) return system_error(file.path, "cannot read it", errno);
  if (std::string_view(start, static_cast<std::size_t>(got)) != kPoolsetSignature) return std::string{};
  if (file.size_bytes > kPoolsetMaxBytes) {
    set_error_detail(file.path, "a poolset of more than 1 MiB");
    return Error{Errc::kNotAPool, "a garbled poolset"};
  }
  std::string text(file.size_bytes, '\0');
  const ssize_t all = read_at(fd.get(), 0, text.data(), text.size());
  if (all < 0) return system_error(file.path, "cannot read it", errno);
  text.resize(static_cast<std::size_t>(all));
  return text;
}

bool can_map_synchronously(int fd, u64 size_bytes) {
  if (size_bytes == 0) return false;
  void* const at = ::mmap(nullptr, kBlockBytes, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
  if (at == MAP_FAILED) return false;
  ::munmap(at, kBlockBytes);
  return true;
}

u64 word_at(const char* header, std::size_t at) {
  u64 word;
  std::memcpy(&word, header + at, sizeof word);  // little-endian, as this CPU
  return word;
}

PoolHeader parse_header(const char* header, std::size_t bytes) {
  PoolHeader facts;
  const std::string_view text{header, bytes};
  facts.all_zero = text.substr(0, kWipeBytes).find_first_not_of('\0') == std::string_view::npos;
  facts.is_pool = text.starts_with(kPoolSignature);
  facts.cut = bytes < kHeaderBytes;
  if (!facts.is_pool || facts.cut) return facts;
  const std::string_view layout = text.substr(kLayoutAt, kLayoutBytes);
  facts.layout = layout.substr(0, layout.find('\0'));
  facts.lanes_off = word_at(header, kLanesOffAt);
  facts.lanes = word_at(header, kLanesAt);
  facts.heap_off = word_at(header, kHeapOffAt);
  facts.heap_bytes = word_at(header, kHeapBytesAt);
  facts.root_off = word_at(header, kRootOffAt);
  facts.root_bytes = word_at(header, kRootBytesAt);
  constexpr u64 kBig = u64{1} << 61;  // so that no sum below overflows
  facts.plausible = facts.lanes_off >= kHeaderBytes && facts.lanes_off < kBig && facts.lanes > 0 &&
                    facts.lanes <= kLanesMax && facts.heap_off >= facts.lanes_off + facts.lanes * kLaneBytes &&
                    facts.heap_off < kBig && facts.heap_bytes < kBig;
  return facts;
}

/// The first bytes of a device, mapped: at least as many as asked. Null with errno set if that fails.
class DeviceStart {
 public:
  DeviceStart(int fd, u64 bytes, int protection) {
    struct stat st;
    if (::fstat(fd, &st) != 0) return;
    const u64 align = device_align_bytes(st.st_rdev);
    bytes_ = (bytes + align - 1) / align * align;
    void* const at = ::mmap(nullptr, bytes_, protection, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) at_ = static_cast<char*>(at);
  }
  DeviceStart(const DeviceStart&) = delete;
  DeviceStart& operator=(const DeviceStart&) = delete;
  ~DeviceStart() {
    if (at_ != nullptr) ::munmap(at_, bytes_);
  }
  char* get() const { return at_; }

 private:
  char* at_ = nullptr;
  std::size_t bytes_ = 0;
};

/// What lies in a part from `off` on: `bytes`, or fewer if it ends before.
Result<std::string> read_part(const PoolPart& part, u64 off, u64 bytes) {
  const Fd fd{open_quietly(part.path, part.is_device ? O_RDWR : O_RDONLY)};
  if (!fd.is_open()) return system_error(part.path, "cannot open it", errno);
  if (off >= part.size_bytes) return std::string{};
  std::string text(std::min(bytes, part.size_bytes - off), '\0');
  if (part.is_device) {  // no read() there
    const DeviceStart start{fd.get(), off + text.size(), PROT_READ};
    if (start.get() == nullptr) return system_error(part.path, "cannot map the device", errno);
    std::memcpy(text.data(), start.get() + off, text.size());
    return text;
  }
  const ssize_t got = read_at(fd.get(), off, text.data(), text.size());
  if (got < 0) return system_error(part.path, "cannot read it", errno);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

bool is_volatile_file_system(int fd, bool& known) {
  struct statfs fs;
  known = ::fstatfs(fd, &fs) == 0;
  if (!known) return false;
  const auto type = static_cast<u32>(fs.f_type);
  return type == TMPFS_MAGIC || type == RAMFS_MAGIC;
}

bool is_forced() {
  const char* const force = std::getenv("PMEM_IS_PMEM_FORCE");
  return force != nullptr && std::strtol(force, nullptr, 10) == 1;
}

}  // namespace

std::string errno_words(int err) {
  char buffer[128] = {};
  const char* const words = ::strerror_r(err, buffer, sizeof buffer);  // the GNU form
  return words;
}

Error system_error(const std::string& path, const char* words, int err) {
  set_error_detail(path, words, ": ", errno_words(err));
  switch (err) {
    case ENOENT:
    case ENOTDIR: return Error{Errc::kPoolMissing, "no such file, or a directory of the path is missing"};
    case EACCES:
    case EPERM:
    case EROFS: return Error{Errc::kPoolDenied, "the operating system denies access"};
    case EEXIST: return Error{Errc::kPoolExists, "something is there already"};
    case EAGAIN: return Error{Errc::kPoolBusy, "open elsewhere"};
    case ENOSPC:
    case EDQUOT: return Error{Errc::kNoSpace, "no room for the pool's file"};
    case ENOMEM: return Error{Errc::kNoMemory, "out of memory"};
    case EFBIG: return Error{Errc::kFileTooBig, "larger than a file may be here"};
    case EIO: return Error{Errc::kIo, "the medium failed"};
    case ENAMETOOLONG: return Error{Errc::kNameTooLong, "the pool's path is too long"};
    case ELOOP: return Error{Errc::kLoop, "too many symbolic links in the pool's path"};
    default: return Error{Errc::kRefused, "the system refused"};
  }
}

Result<PoolSource> look_at(const std::string& path) {
  PoolSource source;
  source.path = path;
  if (path.find('\0') != std::string::npos) {
    set_error_detail({}, "a path with a NUL byte");
    return Error{Errc::kInvalid, "a path with a NUL byte"};
  }
  if (path.empty()) {
    set_error_detail({}, "the empty path");
    return Error{Errc::kPoolMissing, "the path is empty"};
  }
  PoolPart part;
  part.path = path;
  PMFS_TRY(look_at_part(part, false));
  if (!part.exists) {
    source.parts.push_back(std::move(part));
    return source;
  }
  if (part.is_device) {
    source.kind = PoolSource::Kind::kDevice;
    source.parts.push_back(std::move(part));
    return source;
  }
  PMFS_ASSIGN(const std::string text, read_poolset(part));
  if (text.empty()) {
    source.kind = PoolSource::Kind::kFile;
    source.parts.push_back(std::move(part));
    return source;
  }
  source.kind = PoolSource::Kind::kPoolset;
  PMFS_TRY(parse_poolset(text, source));
  for (PoolPart& each : source.parts) PMFS_TRY(look_at_part(each, true));
  PMFS_TRY(check_together(source));
  return source;
}

Result<PoolHeader> read_header(const PoolPart& part) {
  PMFS_ASSIGN(const std::string header, read_part(part, 0, kHeaderBytes));
  return parse_header(header.data(), header.size());
}

Result<std::string> read_pool(const PoolSource& source, u64 off, u64 bytes) {
  std::string found;
  for (const PoolPart& part : source.parts) {
    // `off` is here a place in this part: where to go on, or behind its end.
    const u64 part_bytes = part.size_bytes / kBlockBytes * kBlockBytes;
    if (off < part_bytes) {
      PMFS_ASSIGN(const std::string piece, read_part(part, off, std::min(bytes - found.size(), part_bytes - off)));
      found += piece;
      off = part_bytes;
    }
    if (found.size() == bytes) break;
    off = off - part_bytes + source.later_header_bytes;
  }
  return found;
}

Result<bool> has_unfinished_work(const PoolSource& source, const PoolHeader& header) {
  PMFS_ASSIGN(const std::string lanes, read_pool(source, header.lanes_off, header.lanes * kLaneBytes));
  // A header is {checksum, next, capacity, ...}. `next` leads to an extension, which libpmemobj would follow wherever
  // it points. It reads entries until the first that is zero, or none if the capacity is zero, as it is once a redo log
  // has been used and is finished; whatever else it reads there could lead it anywhere.
  for (u64 lane = 0; lane + kLaneBytes <= lanes.size(); lane += kLaneBytes) {
    for (const LaneLog& log : kLaneLogs) {
      const char* const at = lanes.data() + lane + log.at;
      const u64 capacity_bytes = word_at(at, 16);
      if (word_at(at, 0) != 0 || word_at(at, 8) != 0) return true;
      if (capacity_bytes == 0) continue;
      if (capacity_bytes != log.capacity_bytes || word_at(at, kLaneLogHeaderBytes) != 0) return true;
    }
  }
  return false;
}

bool is_locked(const PoolPart& part) {
  const Fd fd{open_quietly(part.path, O_RDONLY)};
  if (!fd.is_open()) return false;
  return ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

Result<Durability> durability_of(const PoolSource& source) {
  Durability weakest = Durability::kPersistent;
  for (const PoolPart& part : source.parts) {
    if (part.is_device) continue;
    const Fd fd{open_quietly(part.path, O_RDONLY)};
    if (!fd.is_open()) return system_error(part.path, "cannot open it", errno);
    bool known = false;
    const bool is_volatile = is_volatile_file_system(fd.get(), known);
    if (!known) return system_error(part.path, "cannot look at its file system", errno);
    if (is_volatile || is_forced()) return Durability::kVolatile;
    if (!can_map_synchronously(fd.get(), part.size_bytes)) weakest = Durability::kFileBacked;
  }
  return weakest;
}

Durability durability_of_new(const PoolPart& part) {
  if (is_forced()) return Durability::kVolatile;
  const Fd fd{::open(parent_of(part.path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
  if (!fd.is_open()) return Durability::kFileBacked;
  bool known = false;
  if (is_volatile_file_system(fd.get(), known)) return Durability::kVolatile;
  const bool persistent = ::ftruncate(fd.get(), kBlockBytes) == 0 && can_map_synchronously(fd.get(), kBlockBytes);
  return persistent ? Durability::kPersistent : Durability::kFileBacked;
}

Result<void> lock_or_busy(int fd, const std::string& path) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) {
      set_error_detail(path, "is open elsewhere");
      return Error{Errc::kPoolBusy, "open elsewhere"};
    }
    return system_error(path, "cannot lock it", errno);
  }
  return {};
}

Result<void> wipe_device(const PoolPart& part) {
  const Fd fd{open_quietly(part.path, O_RDWR)};
  if (!fd.is_open()) return system_error(part.path, "cannot open it", errno);
  PMFS_TRY(lock_or_busy(fd.get(), part.path));
  const DeviceStart start{fd.get(), kWipeBytes, PROT_READ | PROT_WRITE};
  if (start.get() == nullptr) return system_error(part.path, "cannot map the device", errno);
  std::memset(start.get(), 0, kWipeBytes);
  // Not through the persist seam, which belongs to an open pool. CLFLUSH exists on every x86-64 CPU.
  for (u64 at = 0; at < kWipeBytes; at += 64) _mm_clflush(start.get() + at);
  _mm_sfence();
  return {};
}

Result<void> remove_file(const PoolPart& part) {
  const Fd fd{open_quietly(part.path, O_RDONLY)};
  if (fd.is_open()) {
    PMFS_TRY(lock_or_busy(fd.get(), part.path));
  } else if (errno != EACCES) {  // a file that cannot be read can still be removed, if its directory allows it
    return system_error(part.path, "cannot open it", errno);
  }
  // A symbolic link stays and its target goes, so that the new pool lies where the old one did.
  char* const real = ::realpath(part.path.c_str(), nullptr);
  if (real == nullptr) return system_error(part.path, "cannot find the file", errno);
  const int rc = ::unlink(real);
  const int err = errno;
  std::free(real);
  if (rc != 0) return system_error(part.path, "cannot remove the old file", err);
  return {};
}

Result<void> sync_file_and_name(const PoolPart& part) {
  const Fd file{open_quietly(part.path, O_RDONLY)};
  if (!file.is_open()) return system_error(part.path, "cannot open it", errno);
  if (::fsync(file.get()) != 0) return system_error(part.path, "cannot write the file out", errno);
  const std::string parent = parent_of(part.path);
  const Fd dir{open_quietly(parent, O_RDONLY | O_DIRECTORY)};
  // A directory that may not be read cannot be synced; its file system then decides when the name is durable.
  if (dir.is_open() && ::fsync(dir.get()) != 0 && errno != EINVAL)
    return system_error(parent, "cannot write the directory out", errno);
  return {};
}

}  // namespace pmfs
