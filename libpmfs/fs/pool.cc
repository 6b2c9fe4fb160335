#include "fs/pool.h"

#include <dirent.h>
#include <fcntl.h>
#include <libpmemobj.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "fs/error_detail.h"
#include "fs/pool_source.h"

namespace pmfs {
namespace {

static_assert(kMinPoolBytes == PMEMOBJ_MIN_POOL);

constexpr char kLayout[] = "pmfs";

// The root object: libpmemobj aligns it to 16 bytes, so twice the locator always holds one whole line.
constexpr u64 kRootBytes = 2 * kLocatorBytes;
constexpr u64 kLineBytes = 64;

// libpmemobj's heap: chunks of 256 KiB. An allocation of n chunks has room for n chunks less its header (64 at most).
constexpr u64 kChunkBytes = u64{256} << 10;
constexpr u64 kAllocHeaderBytes = 64;
constexpr u64 kMaxChunks = (PMEMOBJ_MAX_ALLOC_SIZE + kAllocHeaderBytes) / kChunkBytes;
constexpr u64 kRegionType = 1;  // libpmemobj's type number of regions; nothing reads it

u64 align_up(u64 n, u64 to) { return (n + to - 1) / to * to; }
u64 align_down(u64 n, u64 to) { return n / to * to; }

/// A process-wide integer of libpmemobj's, set while this lives. REQUIRES: under a ForkHold.
class CtlSetting {
 public:
  CtlSetting(const char* name, int value) : name_(name) {
    known_ = ::pmemobj_ctl_get(nullptr, name_, &before_) == 0 && ::pmemobj_ctl_set(nullptr, name_, &value) == 0;
  }
  CtlSetting(const CtlSetting&) = delete;
  CtlSetting& operator=(const CtlSetting&) = delete;
  ~CtlSetting() {
    const int err = errno;  // of the call that this was set for
    if (known_) ::pmemobj_ctl_set(nullptr, name_, &before_);
    errno = err;
  }
  bool ok() const { return known_; }

 private:
  const char* name_;
  int before_ = 0;
  bool known_ = false;
};

/// The error for a failed pmemobj_create or pmemobj_open, from its errno and its words.
Error refusal(const std::string& path, int err) {
  const std::string words = ::pmemobj_errormsg();
  const auto says = [&words](const char* what) { return words.find(what) != std::string::npos; };
  if (says("ADR failure")) {
    set_error_detail(path, words,
                     "; after a look at the memory modules, pmempool feature --disable SHUTDOWN_STATE opens it");
    return Error{Errc::kRefused, "the memory modules report a shutdown that may have lost data"};
  }
  if (says("wrong layout")) {
    set_error_detail(path, words);
    return Error{Errc::kOtherLayout, "a pool of another layout"};
  }
  if (says("file size does not match config")) {
    // "...: PATH, ACTUAL != DECLARED"
    u64 actual = 0, declared = 0;
    const std::size_t comma = words.rfind(", ");
    const bool read = comma != std::string::npos &&
                      std::sscanf(words.c_str() + comma, ", %" SCNu64 " != %" SCNu64, &actual, &declared) == 2;
    set_error_detail(path, words);
    if (read && actual < declared) return Error{Errc::kPoolTruncated, "a part is shorter than the poolset says"};
    return Error{Errc::kRefused, "a part is longer than the poolset says"};
  }
  if (says(" smaller than ")) {
    set_error_detail(path, words);
    return Error{Errc::kPoolTooSmall, "smaller than a pool can be"};
  }
  if (says("replication is not supported") || says("remote replica")) {
    set_error_detail(path, words);
    return Error{Errc::kReplicaSet, "a pool with replicas"};
  }
  if (err <= 0 || err == EINVAL) {
    set_error_detail(path, words.empty() ? "libpmemobj gives no reason" : words);
    return Error{Errc::kRefused, "libpmemobj refused"};
  }
  const Error error = system_error(path, "libpmemobj", err);
  if (!words.empty()) set_error_detail(path, words);
  return error;
}

Result<void> check_library() {
  const char* const words = ::pmemobj_check_version(PMEMOBJ_MAJOR_VERSION, PMEMOBJ_MINOR_VERSION);
  if (words == nullptr) return {};
  set_error_detail({}, "the installed libpmemobj is too old: ", words);
  return Error{Errc::kRefused, "the installed libpmemobj is too old"};
}

/// Whole contents of a file of /proc; empty if it cannot be read.
std::string read_proc(const char* path) {
  std::string text;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[16384];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(fd);
  return text;
}

/// How many bytes from `base` on are mapped from the pool's parts without a gap. libpmemobj does not tell.
/// Parts are recognised by inode number alone: on some file systems /proc shows another device number than stat.
u64 mapped_bytes(const void* base, const std::vector<PoolPart>& parts) {
  const auto start = reinterpret_cast<u64>(base);
  u64 end = start;
  const std::string maps = read_proc("/proc/self/maps");
  for (std::size_t at = 0; at < maps.size();) {
    std::size_t newline = maps.find('\n', at);
    if (newline == std::string::npos) newline = maps.size();
    u64 from = 0, to = 0, inode = 0;
    const std::string line = maps.substr(at, newline - at);
    at = newline + 1;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %*x %*x:%*x %" SCNu64, &from, &to, &inode) != 3)
      continue;
    if (from != end) {
      if (from > end) break;
      continue;
    }
    const bool ours =
        std::any_of(parts.begin(), parts.end(), [inode](const PoolPart& part) { return part.inode == inode; });
    if (!ours) break;
    end = to;
  }
  return end - start;
}

/// The most that can be mapped: what libpmemobj makes of the parts' sizes, headers of later parts not yet taken off.
u64 most_bytes(const std::vector<PoolPart>& parts) {
  u64 sum = 0;
  for (const PoolPart& part : parts) sum += align_down(part.size_bytes, kBlockBytes);
  return sum;
}

/// This process's descriptors that are open on one of the parts, ascending. None without /proc.
std::vector<int> descriptors_on(const std::vector<PoolPart>& parts) {
  std::vector<int> found;
  DIR* const dir = ::opendir("/proc/self/fd");
  if (dir == nullptr) return found;
  while (const dirent* const entry = ::readdir(dir)) {
    if (entry->d_name[0] == '.') continue;
    const int fd = static_cast<int>(std::strtol(entry->d_name, nullptr, 10));
    struct stat st;
    // By name, not fstat(fd): most of these belong to other threads, and TSan would see a race on them.
    if (::fstatat(::dirfd(dir), entry->d_name, &st, 0) != 0) continue;
    const bool ours = std::any_of(parts.begin(), parts.end(), [&st](const PoolPart& part) {
      return part.exists && part.dev == st.st_dev && part.inode == st.st_ino;
    });
    if (ours) found.push_back(fd);
  }
  ::closedir(dir);
  std::sort(found.begin(), found.end());
  return found;
}

/// Looks again at parts that may have been created meanwhile.
Result<void> refresh(std::vector<PoolPart>& parts) {
  for (PoolPart& part : parts) {
    struct stat st;
    if (::stat(part.path.c_str(), &st) != 0) return system_error(part.path, "cannot look at it", errno);
    part.exists = true;
    part.dev = st.st_dev;
    part.inode = st.st_ino;
    if (!part.is_device) part.size_bytes = static_cast<u64>(st.st_size);
  }
  return {};
}

}  // namespace

struct Pool::State {
  std::string path;
  PMEMobjpool* pop = nullptr;
  Memory memory;
  Durability medium = Durability::kVolatile;
  PoolOff locator_off{};
  std::vector<Region> regions;
  std::vector<PMEMoid> pieces;  // of the heap, that they lie in
  bool owned = true;            // opened here; else the application's
  u64 generation = fork_generation();
  ForkWatch watch;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (pop == nullptr || forked()) return;
    const ForkHold hold;
    close(hold);
  }

  bool forked() const { return generation != fork_generation(); }

  void close(const ForkHold& hold) {
    if (pop == nullptr) return;
    watch.unwatch(hold);
    if (owned) ::pmemobj_close(pop);
    pop = nullptr;
    memory = Memory{};
  }

  /// Fills in memory, locator and fork watch for the pool just opened. `before`: descriptors on the parts before that.
  Result<void> adopt(const ForkHold& hold, const PoolSource& source, const std::vector<int>& before, bool read_only) {
    std::vector<int> fds;
    for (const int fd : descriptors_on(source.parts))
      if (!std::binary_search(before.begin(), before.end(), fd)) fds.push_back(fd);
    const u64 mapped = std::min(mapped_bytes(pop, source.parts), most_bytes(source.parts));
    watch.watch(hold, pop, align_down(mapped, kBlockBytes), std::move(fds));
    if (mapped < kMinPoolBytes) {
      set_error_detail(path, "cannot find the pool's mapping in /proc/self/maps");
      return Error{Errc::kRefused, "the pool's mapping was not found"};
    }
    memory = Memory{reinterpret_cast<std::byte*>(pop), mapped, read_only ? Durability::kPrivate : medium, medium};
    return find_locator(kRootBytes);
  }

  /// @param root_bytes  of the root object, should there be none yet.
  Result<void> find_locator(u64 root_bytes) {
    const PMEMoid root = ::pmemobj_root(pop, std::max<u64>(root_bytes, ::pmemobj_root_size(pop)));
    if (OID_IS_NULL(root)) {
      const int err = errno;
      return refusal(path, err);
    }
    if (root.off == 0 || root.off % 16 != 0 || !memory.contains(root.off, kRootBytes)) {
      set_error_detail(path, "the root object lies outside the pool");
      return Error{Errc::kCorrupt, "the root object lies outside the pool", 4096 + 2048};
    }
    locator_off = PoolOff{align_up(root.off, kLineBytes)};
    return {};
  }

  /// Takes over a pool that the application has opened. It keeps lock and mapping: a forked child is refused, and
  /// nothing of the application's is taken from it.
  Result<void> share(const std::string& pool_path, PMEMobjpool* opened) {
    path = pool_path;
    PMFS_ASSIGN(const PoolSource source, look_at(path));
    if (source.kind == PoolSource::Kind::kMissing) return Error{Errc::kPoolMissing, "no such file"};
    PMFS_ASSIGN(medium, durability_of(source));
    const u64 mapped = std::min(mapped_bytes(opened, source.parts), most_bytes(source.parts));
    if (mapped < kMinPoolBytes) {
      set_error_detail(path, "is not what this pool was opened by");
      return Error{Errc::kInvalid, "the path is not that of the pool"};
    }
    owned = false;
    pop = opened;
    memory = Memory{reinterpret_cast<std::byte*>(opened), mapped, medium};
    return {};
  }

  /// What create() does once libpmemobj has made the pool. `made`: the files that were not there before.
  Result<void> finish_create(const ForkHold& hold, PoolSource& source, const std::vector<PoolPart>& made,
                             const std::vector<int>& before, u64 reserve_bytes) try {
    PMFS_TRY(refresh(source.parts));
    PMFS_ASSIGN(medium, durability_of(source));
    if (reserve_bytes != 0 && OID_IS_NULL(::pmemobj_root(pop, kSharedRootBytes))) {
      const int err = errno;
      return refusal(path, err);
    }
    PMFS_TRY(adopt(hold, source, before, false));
    if (reserve_bytes == 0) {
      PMFS_TRY(take_heap(~u64{0}));
    } else {
      std::vector<pobj_action> kept;  // room that is taken while the rest is, and then given back
      const bool enough = reserve_heap(reserve_bytes, kept);
      Result<void> taken = enough ? take_heap(~u64{0}) : Error{Errc::kPoolTooSmall, "no room is left for the reserve"};
      ::pmemobj_cancel(pop, kept.data(), kept.size());
      PMFS_TRY(taken);
    }
    if (medium == Durability::kVolatile) return {};
    for (const PoolPart& part : made) PMFS_TRY(sync_file_and_name(part));
    return {};
  } catch (const std::bad_alloc&) {
    return Error{Errc::kNoMemory, "out of memory"};
  }

  /// Reserves, without a word on the medium, pieces of the heap of `bytes` in all. @return whether there is so much.
  bool reserve_heap(u64 bytes, std::vector<pobj_action>& kept) {
    for (u64 chunks = (bytes + kChunkBytes - 1) / kChunkBytes, most = kMaxChunks; chunks > 0;) {
      most = largest_free(std::min(most, chunks));
      if (most == 0) return false;
      pobj_action action;
      if (OID_IS_NULL(::pmemobj_reserve(pop, &action, most * kChunkBytes - kAllocHeaderBytes, kRegionType)))
        return false;
      kept.push_back(action);
      chunks -= most;
    }
    return true;
  }

  /// Takes `bytes` of the heap, or all there is, largest pieces first.
  Result<void> take_heap(u64 bytes) {
    // Sizes never grow from one piece to the next, so the search starts at the last one found. A failed attempt makes
    // libpmemobj look at every zone, so later ones see all of the heap.
    u64 wanted = bytes == ~u64{0} ? kMaxChunks : 0;  // chunks, of one piece
    for (u64 most = std::min(kMaxChunks, memory.size_bytes / kChunkBytes), taken = 0; most > 0 && taken < bytes;) {
      if (bytes != ~u64{0}) wanted = (bytes - taken + kBlockBytes + kAllocHeaderBytes + kChunkBytes - 1) / kChunkBytes;
      const u64 chunks = largest_free(std::min(most, wanted));
      if (chunks == 0) break;
      most = chunks;
      PMEMoid piece;
      const u64 size_bytes = chunks * kChunkBytes - kAllocHeaderBytes;
      if (::pmemobj_alloc(pop, &piece, size_bytes, kRegionType, nullptr, nullptr) != 0) {
        const int err = errno;
        return refusal(path, err);
      }
      const u64 from = align_up(piece.off, kBlockBytes);
      const u64 to = align_down(piece.off + ::pmemobj_alloc_usable_size(piece), kBlockBytes);
      if (to <= from || !memory.contains(from, to - from)) {
        set_error_detail(path, "libpmemobj allocated outside the pool");
        return Error{Errc::kRefused, "an allocation outside the pool"};
      }
      regions.push_back(Region{from, to - from});
      pieces.push_back(piece);
      taken += to - from;
    }
    std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return a.off < b.off; });
    if (!regions.empty()) return {};
    set_error_detail(path, "libpmemobj leaves no room");
    return Error{Errc::kPoolTooSmall, "no room is left in the pool"};
  }

  /// How many chunks in a row libpmemobj can give, at most `most`.
  u64 largest_free(u64 most) {
    const auto fits = [this](u64 chunks) {
      struct pobj_action action;
      const PMEMoid piece = ::pmemobj_reserve(pop, &action, chunks * kChunkBytes - kAllocHeaderBytes, kRegionType);
      if (OID_IS_NULL(piece)) return false;
      ::pmemobj_cancel(pop, &action, 1);
      return true;
    };
    if (fits(most)) return most;
    u64 good = 0;
    for (u64 bad = most; bad - good > 1;) {
      const u64 middle = good + (bad - good) / 2;
      (fits(middle) ? good : bad) = middle;
    }
    return good;
  }
};

namespace {

/// pmemobj_create, with libpmemobj's shutdown state (SDS) on where the medium is persistent, unless the user has it
/// off. Elsewhere it is off: the hardware's counters cannot be read there, and what is recorded instead can only stop
/// an open. Where they should be readable and are not (some kernels, some users), the pool is made without.
/// REQUIRES: under a ForkHold.
PMEMobjpool* create_by_medium(const char* path, u64 size_bytes, u32 mode, Durability medium) {
  const bool wanted = medium == Durability::kPersistent;
  {
    int users = 1;
    (void)::pmemobj_ctl_get(nullptr, "sds.at_create", &users);
    const CtlSetting sds{"sds.at_create", wanted && users != 0 ? 1 : 0};
    PMEMobjpool* const pop = ::pmemobj_create(path, kLayout, size_bytes, static_cast<mode_t>(mode & 07777u));
    if (pop != nullptr || !wanted || std::strstr(::pmemobj_errormsg(), "shutdown") == nullptr) return pop;
  }
  const CtlSetting sds{"sds.at_create", 0};
  return ::pmemobj_create(path, kLayout, size_bytes, static_cast<mode_t>(mode & 07777u));
}

bool has_data(const PoolHeader& header) { return !header.all_zero; }

/// Clears the way for create(): refuses or removes what stands there. Returns the size to create.
Result<u64> clear_the_way(PoolSource& source, u64 size_bytes, bool force) {
  const std::string& path = source.path;
  switch (source.kind) {
    case PoolSource::Kind::kMissing:
      if (size_bytes == 0) {
        set_error_detail(path, "there is no such file, and no size was given to make it with");
        return Error{Errc::kInvalid, "a new pool needs a size"};
      }
      break;
    case PoolSource::Kind::kFile:
      if (!force) {
        set_error_detail(path, "exists already");
        return Error{Errc::kPoolExists, "a file is there already"};
      }
      if (size_bytes == 0) size_bytes = source.parts[0].size_bytes;
      break;
    case PoolSource::Kind::kDevice:
    case PoolSource::Kind::kPoolset:
      if (size_bytes != 0) {
        set_error_detail(path, source.kind == PoolSource::Kind::kDevice ? "a device has its size; give none"
                                                                        : "a poolset has its size; give none");
        return Error{Errc::kInvalid, "a size where none belongs"};
      }
      break;
  }
  const bool sized_here = source.kind == PoolSource::Kind::kMissing || source.kind == PoolSource::Kind::kFile;
  if (sized_here && size_bytes < kMinPoolBytes) {
    set_error_detail(path, std::to_string(size_bytes), " bytes are too few: a pool has at least 8 MiB");
    return Error{Errc::kPoolTooSmall, "smaller than a pool can be"};
  }
  if (source.kind == PoolSource::Kind::kMissing) return size_bytes;

  // First look at all parts, then change any.
  std::vector<bool> in_use(source.parts.size(), false);
  for (std::size_t i = 0; i < source.parts.size(); ++i) {
    const PoolPart& part = source.parts[i];
    if (!part.exists) continue;
    if (source.kind == PoolSource::Kind::kFile) {
      in_use[i] = true;
    } else {
      PMFS_ASSIGN(const PoolHeader header, read_header(part));
      in_use[i] = has_data(header);
    }
    if (!in_use[i]) continue;
    if (is_locked(part)) {
      set_error_detail(part.path, "is open elsewhere");
      return Error{Errc::kPoolBusy, "open elsewhere"};
    }
    if (!force) {
      set_error_detail(part.path, "holds data already");
      return Error{Errc::kPoolExists, "a part holds data already"};
    }
  }
  for (std::size_t i = 0; i < source.parts.size(); ++i) {
    if (!in_use[i]) continue;
    PoolPart& part = source.parts[i];
    if (part.is_device) {
      PMFS_TRY(wipe_device(part));
    } else {
      PMFS_TRY(remove_file(part));
      part.exists = false;
    }
  }
  return size_bytes;
}

/// Looks at a pool's header before libpmemobj does. `source` exists.
Result<void> check_header(const PoolSource& source) {
  const PoolPart& first = source.parts[0];
  PMFS_ASSIGN(const PoolHeader header, read_header(first));
  const auto fail = [&](Errc code, const char* what, std::string_view words, std::string_view more = {}) {
    // Half a header may be that of a pool that somebody is making right now.
    if (code != Errc::kOtherLayout && is_locked(first)) {
      set_error_detail(source.path, "is open elsewhere");
      return Error{Errc::kPoolBusy, "open elsewhere"};
    }
    set_error_detail(source.path, words, more);
    return Error{code, what};
  };
  if (first.size_bytes == 0) return fail(Errc::kNotAPool, "an empty file", "is empty");
  if (header.all_zero) return fail(Errc::kNotAPool, "no pool, only zeros", "begins with zeros, not with a pool");
  if (!header.is_pool) return fail(Errc::kNotAPool, "no libpmemobj pool", "does not begin like a libpmemobj pool");
  if (header.cut || (source.kind != PoolSource::Kind::kPoolset && first.size_bytes < kMinPoolBytes))
    return fail(Errc::kPoolTruncated, "the file is shorter than any pool",
                "has only " + std::to_string(first.size_bytes) + " bytes, less than any pool");
  if (header.layout != kLayout)
    return fail(Errc::kOtherLayout, "a pool of another layout", "its layout is \"", header.layout + "\"");
  if (!header.plausible) return fail(Errc::kCorrupt, "the pool's header contradicts itself", "its header is damaged");
  if (source.kind != PoolSource::Kind::kPoolset) {
    const u64 need = header.heap_off + header.heap_bytes;
    if (first.size_bytes < need)
      return fail(Errc::kPoolTruncated, "the file is shorter than the pool in it",
                  "has " + std::to_string(first.size_bytes) + " bytes, the pool in it " + std::to_string(need));
  }
  if (header.heap_bytes != 0 && header.heap_off + header.heap_bytes < kMinPoolBytes)
    return fail(Errc::kCorrupt, "the pool's header contradicts itself", "its header names too small a heap");
  if (header.root_off == 0) return fail(Errc::kNotFormatted, "mkfs did not finish", "it has no root object");
  if (header.root_bytes < kRootBytes || header.root_off < header.heap_off ||
      header.root_off - header.heap_off > header.heap_bytes ||
      header.root_bytes > header.heap_bytes - (header.root_off - header.heap_off))
    return fail(Errc::kCorrupt, "the root object lies outside the pool", "its header names no possible root object");
  if (header.root_bytes >= kSharedRootBytes) return {};  // an application's work may be unfinished: P2
  PMFS_ASSIGN(const bool unfinished, has_unfinished_work(source, header));
  if (!unfinished) return {};
  // mkfs writes the locator last. Where there is one, the logs are damaged, or somebody wants them replayed.
  PMFS_ASSIGN(const std::string locator, read_pool(source, align_up(header.root_off, kLineBytes), kLocatorBytes));
  if (locator.find_first_not_of('\0') != std::string::npos)
    return fail(Errc::kCorrupt, "libpmemobj's logs are damaged", "libpmemobj's logs hold work that no pmfs pool has");
  return fail(Errc::kNotFormatted, "mkfs did not finish", "libpmemobj has unfinished work in it");
}

/// Whether this process may write the file: libpmemobj opens for writing even when nothing will be written.
bool may_write(const PoolPart& part) { return ::faccessat(AT_FDCWD, part.path.c_str(), W_OK, AT_EACCESS) == 0; }

}  // namespace

Pool::Pool(std::unique_ptr<State> state) : state_(std::move(state)) {}

Pool::Pool(Pool&& other) noexcept = default;

Pool& Pool::operator=(Pool&& other) noexcept {
  if (this != &other) {
    (void)close();  // kForked is no news here
    state_ = std::move(other.state_);
  }
  return *this;
}

Pool::~Pool() { (void)close(); }

Result<Pool> Pool::create(const std::string& path, u64 size_bytes, bool force, u32 mode, u64 reserve_bytes) try {
  clear_error_detail();
  PMFS_TRY(check_library());
  auto state = std::make_unique<State>();
  state->path = path;
  const ForkHold hold;
  PMFS_ASSIGN(PoolSource source, look_at(path));
  if (source.kind == PoolSource::Kind::kFile) {
    // libpmemobj does not create a file through a symbolic link, so the link is followed here.
    if (char* const real = ::realpath(path.c_str(), nullptr); real != nullptr) {
      source.parts[0].path = real;
      std::free(real);
    }
  }
  PMFS_ASSIGN(size_bytes, clear_the_way(source, size_bytes, force));
  std::vector<PoolPart> made;  // files that exist only because of this call
  for (const PoolPart& part : source.parts)
    if (!part.exists) made.push_back(part);
  const std::vector<int> before = descriptors_on(source.parts);
  const std::string& target = source.kind == PoolSource::Kind::kPoolset ? path : source.parts[0].path;

  Durability expected = Durability::kPersistent;
  for (const PoolPart& part : source.parts)
    if (!part.is_device && durability_of_new(part) != Durability::kPersistent) expected = Durability::kFileBacked;
  state->pop = create_by_medium(target.c_str(), size_bytes, mode, expected);
  if (state->pop == nullptr) {
    const int err = errno;
    return refusal(path, err);
  }
  if (const Result<void> done = state->finish_create(hold, source, made, before, reserve_bytes); !done.ok()) {
    state->close(hold);
    for (const PoolPart& part : made) ::unlink(part.path.c_str());
    return done.error();
  }
  return Pool{std::move(state)};
} catch (const std::bad_alloc&) {
  return Error{Errc::kNoMemory, "out of memory"};
}

Result<Pool> Pool::open(const std::string& path, bool read_only) try {
  clear_error_detail();
  PMFS_TRY(check_library());
  auto state = std::make_unique<State>();
  state->path = path;
  const ForkHold hold;
  Result<PoolSource> looked = look_at(path);
  if (!looked.ok()) {
    const Error& error = looked.error();
    return error.code == Errc::kIsDirectory ? Error{Errc::kNotAPool, error.what} : error;
  }
  const PoolSource source = std::move(looked).value();
  for (const PoolPart& part : source.parts) {
    if (part.exists) continue;
    set_error_detail(path, source.kind == PoolSource::Kind::kPoolset ? "its part is missing: " : "no such file", {},
                     source.kind == PoolSource::Kind::kPoolset ? part.path : std::string{});
    return Error{Errc::kPoolMissing, "no such file"};
  }
  PMFS_TRY(check_header(source));
  if (read_only) {
    for (const PoolPart& part : source.parts) {
      if (!part.is_device && may_write(part)) continue;
      set_error_detail(part.path, part.is_device ? "a device has no private pages"
                                                 : "libpmemobj needs write permission even for private pages");
      return Error{Errc::kNoPrivateOpen, "a read-only open is impossible here"};
    }
  }
  PMFS_ASSIGN(state->medium, durability_of(source));
  const std::vector<int> before = descriptors_on(source.parts);
  {
    const CtlSetting cow{"copy_on_write.at_open", read_only ? 1 : 0};
    if (!cow.ok()) {
      set_error_detail(path, "libpmemobj has no copy_on_write.at_open");
      return Error{read_only ? Errc::kNoPrivateOpen : Errc::kRefused, "libpmemobj refused the setting"};
    }
    state->pop = ::pmemobj_open(path.c_str(), kLayout);
  }
  if (state->pop == nullptr) {
    const int err = errno;
    return refusal(path, err);
  }
  if (const Result<void> done = state->adopt(hold, source, before, read_only); !done.ok()) {
    state->close(hold);
    return done.error();
  }
  return Pool{std::move(state)};
} catch (const std::bad_alloc&) {
  return Error{Errc::kNoMemory, "out of memory"};
}

Result<Pool> Pool::attach(const std::string& path, pmemobjpool* pop, u64 locator_off) try {
  clear_error_detail();
  if (pop == nullptr) return Error{Errc::kInvalid, "no pool was given"};
  auto state = std::make_unique<State>();
  const ForkHold hold;
  PMFS_TRY(state->share(path, pop));
  if (locator_off != 0) {
    if (locator_off % kLineBytes != 0 || !state->memory.contains(locator_off, kLocatorBytes))
      return Error{Errc::kCorrupt, "no locator can be there", locator_off};
    state->locator_off = PoolOff{locator_off};
  } else if (::pmemobj_root_size(pop) < kSharedRootBytes) {
    set_error_detail(path, "was not made with room for an application; give the locator's place");
    return Error{Errc::kOtherLayout, "its root object has no locator"};
  } else {
    PMFS_TRY(state->find_locator(kSharedRootBytes));
  }
  return Pool{std::move(state)};
} catch (const std::bad_alloc&) {
  return Error{Errc::kNoMemory, "out of memory"};
}

Result<Pool> Pool::take(const std::string& path, pmemobjpool* pop, u64 size_bytes) try {
  clear_error_detail();
  if (pop == nullptr || size_bytes == 0) return Error{Errc::kInvalid, "no pool or no size was given"};
  auto state = std::make_unique<State>();
  const ForkHold hold;
  PMFS_TRY(state->share(path, pop));
  PMEMoid locator;
  if (::pmemobj_zalloc(pop, &locator, kRootBytes, kRegionType) != 0) return Error{Errc::kNoSpace, "the heap is full"};
  state->locator_off = PoolOff{align_up(locator.off, kLineBytes)};
  Result<void> taken = state->take_heap(size_bytes);
  u64 sum = 0;
  for (const Region& region : state->regions) sum += region.length_bytes;
  if (taken.ok() && sum < size_bytes) taken = Error{Errc::kNoSpace, "the heap has not so much room"};
  if (!taken.ok()) {
    for (PMEMoid& piece : state->pieces) ::pmemobj_free(&piece);
    ::pmemobj_free(&locator);
    return taken.error();
  }
  return Pool{std::move(state)};
} catch (const std::bad_alloc&) {
  return Error{Errc::kNoMemory, "out of memory"};
}

Memory Pool::memory() const { return state_->memory; }

Durability Pool::medium() const { return state_->medium; }

PoolOff Pool::locator_off() const { return state_->locator_off; }

std::span<const Region> Pool::regions() const { return state_->regions; }

const std::string& Pool::path() const { return state_->path; }

bool Pool::is_open() const { return state_ != nullptr && state_->pop != nullptr && !state_->forked(); }

Result<void> Pool::close() {
  if (state_ == nullptr || state_->pop == nullptr) return {};
  if (state_->forked()) return Error{Errc::kForked, "called in a forked child"};
  const ForkHold hold;
  state_->close(hold);
  return {};
}

}  // namespace pmfs
