// The C interface: pools, made, opened, examined and closed.
#include "c_api/convert.h"

using namespace pmfs;
using namespace pmfs::c_api;

namespace {

Result<FormatOptions> options_of(const pmfs_format_options* options) {
  FormatOptions to;
  if (options == nullptr) return to;
  pmfs_format_options given;
  PMFS_TRY(take(options, given));
  if (given.unused != 0) return invalid("a format option is unknown");
  to.size_bytes = given.size_bytes;
  if (given.label != nullptr) to.label = given.label;
  to.force = given.force != 0;
  if (given.mode != 0) to.mode = given.mode;
  to.root_uid = given.root_uid;
  to.root_gid = given.root_gid;
  to.reserve_bytes = given.reserve_bytes;
  return to;
}

static_assert(static_cast<u32>(OpenOptions::Atime::kRelative) == PMFS_ATIME_RELATIVE);
static_assert(static_cast<u32>(OpenOptions::Atime::kNone) == PMFS_ATIME_NONE);
static_assert(static_cast<u32>(OpenOptions::Atime::kStrict) == PMFS_ATIME_STRICT);
static_assert(static_cast<u32>(OpenOptions::Resolver::kWalk) + 1 == PMFS_RESOLVER_WALK);
static_assert(static_cast<u32>(OpenOptions::Resolver::kStage) + 1 == PMFS_RESOLVER_STAGE);
static_assert(static_cast<u32>(OpenOptions::Resolver::kFullpath) + 1 == PMFS_RESOLVER_FULLPATH);

Result<OpenOptions> options_of(const pmfs_open_options* options) {
  constexpr u32 kFlags = PMFS_OPEN_READ_ONLY | PMFS_OPEN_RELAXED | PMFS_OPEN_NO_DIR_INDEX | PMFS_OPEN_NO_CACHE;
  OpenOptions to;
  if (options == nullptr) return to;
  pmfs_open_options given;
  PMFS_TRY(take(options, given));
  if ((given.flags & ~kFlags) != 0 || given.atime > PMFS_ATIME_STRICT || given.resolver > PMFS_RESOLVER_FULLPATH)
    return invalid("an open option is unknown");
  to.read_only = (given.flags & PMFS_OPEN_READ_ONLY) != 0;
  to.relaxed = (given.flags & PMFS_OPEN_RELAXED) != 0;
  to.dir_index = (given.flags & PMFS_OPEN_NO_DIR_INDEX) == 0;
  to.atime = static_cast<OpenOptions::Atime>(given.atime);
  to.busy_wait_ms = given.busy_wait_ms;
  to.rebuild_threads = given.rebuild_threads;
  if (given.resolver != PMFS_RESOLVER_DEFAULT) to.resolver = static_cast<OpenOptions::Resolver>(given.resolver - 1);
  if (given.cache_bytes != 0) to.dcache_bytes = given.cache_bytes;
  if ((given.flags & PMFS_OPEN_NO_CACHE) != 0) to.dcache_bytes = 0;
  return to;
}

// REQUIRES of the place for a handle that there is one; until the call has worked, there is no handle in it.
Result<void> no_handle_yet(pmfs_t** fs) {
  if (fs == nullptr) return invalid("there is no place for the handle");
  *fs = nullptr;
  return {};
}

// Opens by `open`, which gives a Result<Filesystem>. The handle is made first: what is open is not lost to a lack of
// memory.
template <class Open>
Result<void> open_into(pmfs_t** fs, Open&& open) {
  std::unique_ptr<pmfs_t> handle(new (std::nothrow) pmfs_t);
  if (handle == nullptr) return no_memory();
  PMFS_ASSIGN(handle->fs, open());
  *fs = handle.release();
  return {};
}

// A call about the pool at `path`: `check` looks at its other arguments, `run` gets the path and the options. Errors
// found before `run` are about arguments, those of `run` about a pool: only the latter have a detail.
template <class Given, class Check, class Run>
int pool_answer(const char* path, const Given* options, Check&& check, Run&& run) {
  std::string name;
  std::decay_t<decltype(*options_of(options))> how;
  const int wrong = answer([&]() -> Result<void> {
    PMFS_TRY(check());
    PMFS_ASSIGN(name, text(path));
    PMFS_ASSIGN(how, options_of(options));
    return {};
  });
  return wrong != 0 ? wrong : answer([&] { return run(name, how); }, Words::kPool);
}
Result<void> nothing_else() { return {}; }

// Copies text into a struct of fixed size, cut if it must be.
template <std::size_t kBytes>
void copy_text(const std::string& from, char (&to)[kBytes]) {
  from.copy(to, kBytes - 1);
}

}  // namespace

int pmfs_format(const char* path, const pmfs_format_options* options) {
  return pool_answer(path, options, nothing_else,
                     [](const std::string& name, const FormatOptions& how) { return Filesystem::format(name, how); });
}

int pmfs_open(const char* path, const pmfs_open_options* options, pmfs_t** fs) {
  return pool_answer(
      path, options, [&] { return no_handle_yet(fs); },
      [&](const std::string& name, const OpenOptions& how) {
        return open_into(fs, [&] { return Filesystem::open(name, how); });
      });
}

int pmfs_format_in(const char* path, pmemobjpool* pool, std::uint64_t size_bytes, const pmfs_format_options* options,
                   std::uint64_t* locator_off) {
  return pool_answer(
      path, options,
      [&]() -> Result<void> {
        if (pool == nullptr || locator_off == nullptr) return invalid("the pool or the place for the locator is NULL");
        return {};
      },
      [&](const std::string& name, const FormatOptions& how) -> Result<void> {
        PMFS_ASSIGN(*locator_off, Filesystem::format_in(name, pool, size_bytes, how));
        return {};
      });
}

int pmfs_attach(const char* path, pmemobjpool* pool, std::uint64_t locator_off, const pmfs_open_options* options,
                pmfs_t** fs) {
  return pool_answer(
      path, options,
      [&]() -> Result<void> {
        PMFS_TRY(no_handle_yet(fs));
        if (pool == nullptr) return invalid("the pool is NULL");
        return {};
      },
      [&](const std::string& name, const OpenOptions& how) {
        return open_into(fs, [&] { return Filesystem::attach(name, pool, locator_off, how); });
      });
}

int pmfs_grow(const char* path, std::uint64_t size_bytes, const pmfs_open_options* options,
              std::uint64_t* blocks_added) {
  return pool_answer(path, options, nothing_else, [&](const std::string& name, const OpenOptions& how) -> Result<void> {
    PMFS_ASSIGN(const GrowReport report, Filesystem::grow(name, size_bytes, how));
    if (blocks_added != nullptr) *blocks_added = report.blocks_added;
    return {};
  });
}

int pmfs_close(pmfs_t* fs) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    const Result<void> closed = open->close();
    if (closed.ok() || closed.error().code != Errc::kBusy) delete fs;
    return closed;
  });
}

int pmfs_sync(pmfs_t* fs) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    return open->sync();
  });
}

int pmfs_statfs(pmfs_t* fs, pmfs_space* space) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    PMFS_TRY(fillable(space));
    PMFS_ASSIGN(const SpaceInfo now, open->space());
    pmfs_space to{};
    to.block_bytes = static_cast<u32>(now.block_bytes);
    to.blocks = now.blocks;
    to.blocks_free = now.blocks_free;
    to.blocks_available = now.blocks_avail;
    to.inodes = now.inodes;
    to.inodes_free = now.inodes_free;
    put(to, space);
    return {};
  });
}

int pmfs_get_info(pmfs_t* fs, pmfs_info* info) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    PMFS_TRY(fillable(info));
    PMFS_TRY(open->space());  // info() itself has no errors
    const PoolInfo now = open->info();
    pmfs_info to{};
    to.format_version = now.format_version;
    copy_text(now.label, to.label);
    copy_text(now.uuid, to.uuid);
    to.pool_bytes = now.pool_bytes;
    to.epoch = now.epoch;
    to.files = now.files;
    to.read_only = now.read_only;
    to.recovered = now.recovered;
    to.durability = describe(now.durability);
    put(to, info);
    return {};
  });
}

std::int64_t pmfs_limit(int name) {
  return answer([&] { return Filesystem::limit(name); });
}
