// The cache behind a file system: what it may write, how much memory it may take, what it keeps, what a change touches.
#include <fcntl.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "test/support/memory_fs.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

using Resolver = OpenOptions::Resolver;
const Credentials kRoot = Credentials::root();
constexpr dcache::Searcher kAnybody{false, 1000, 1000, {}};

OpenOptions with(Resolver resolver) {
  OpenOptions options;
  options.resolver = resolver;
  options.pivot_period_ms = 60'000;  // periods end when a test says so
  options.pivots_adaptive = false;
  return options;
}

std::string file_name(u64 i) { return "/dir" + std::to_string(i % 10) + "/file" + std::to_string(i); }

void make_files(Filesystem& fs, u64 files) {
  for (u64 i = 0; i < 10; ++i) must(fs.mkdir("/dir" + std::to_string(i), 0755, kRoot));
  for (u64 i = 0; i < files; ++i) must(fs.mknod(file_name(i), 0644, 0, kRoot));
}

// In a child: two threads look up warm paths while the arena is read-only. Returns 0, or dies by SIGSEGV.
int look_up_read_only(OpenOptions options) {
  MemoryFs memory(u64{16} << 20, options);
  make_files(memory.fs(), 100);
  dcache::PathCache& paths = volume_of(memory.fs()).paths;
  const auto look_at_all = [&] {
    u64 found = 0;
    for (u64 i = 0; i < 120; ++i)  // 20 of them do not exist
      found += paths.resolve(kRootIno, file_name(i), kAnybody, true).ok() ? 1 : 0;
    for (u64 i = 0; i < 100; ++i) found += paths.resolve_parent(kRootIno, file_name(i), kAnybody).ok() ? 1 : 0;
    return found;
  };
  for (int i = 0; i < 3; ++i) look_at_all();
  paths.maintain_now();
  std::atomic<int> wrong{0};
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      if (look_at_all() != 200) ++wrong;
      ++ready;
      while (!go) std::this_thread::yield();
      for (int i = 0; i < 50; ++i)
        if (look_at_all() != 200) ++wrong;
    });
  while (ready < 2) std::this_thread::yield();
  const u64 misses = paths.statistics().misses;
  {
    std::lock_guard lock(paths.cache()->mutex());
    if (!paths.cache()->arena().protect(true)) return 3;
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  {
    std::lock_guard lock(paths.cache()->mutex());
    if (!paths.cache()->arena().protect(false)) return 3;
  }
  if (paths.statistics().misses != misses) return 2;
  return wrong == 0 ? 0 : 1;
}

}  // namespace

TEST_CASE("cache: warm look-ups write nothing in it, whatever the resolver", "[dcache]") {
  for (const Resolver resolver : {Resolver::kWalk, Resolver::kStage, Resolver::kFullpath}) {
    INFO("resolver " << static_cast<int>(resolver));
    CHECK(in_child([&] { return look_up_read_only(with(resolver)); }) == 0);
  }
  OpenOptions list = with(Resolver::kStage);
  list.pivots_hashed = false;
  list.pivots = 16;
  CHECK(in_child([&] { return look_up_read_only(list); }) == 0);
}

TEST_CASE("cache: heat counted inline does write there, which shows that the test above can see it", "[dcache]") {
  OpenOptions options = with(Resolver::kStage);
  options.heat_inline = true;
  CHECK(in_child([&] { return look_up_read_only(options); }) == 128 + SIGSEGV);
}

TEST_CASE("cache: its memory stays within the bound, and what is hot stays in it", "[dcache]") {
  for (const Resolver resolver : {Resolver::kWalk, Resolver::kStage, Resolver::kFullpath}) {
    INFO("resolver " << static_cast<int>(resolver));
    OpenOptions options = with(resolver);
    options.dcache_bytes = u64{1} << 20;
    MemoryFs memory(u64{64} << 20, options);
    make_files(memory.fs(), 200);
    u64 hot_misses = 0;
    const u64 names = std::getenv("PMFS_LONG") != nullptr ? 10'000'000 : 60'000;
    for (u64 i = 0; i < names; ++i) {
      // Most names are absent: each leaves a negative dentry, some of them with long names.
      const std::string absent =
          "/dir" + std::to_string(i % 10) + "/absent" + std::to_string(i) + std::string(i % 7 == 0 ? 150 : 0, 'x');
      REQUIRE(memory->stat(absent, kRoot).error().code == Errc::kNotFound);
      if (i % 20 == 0) {
        const u64 before = memory->lookup_statistics().misses;
        for (u64 hot = 0; hot < 20; ++hot) must(memory->stat(file_name(hot), kRoot));
        if (i > 1000) hot_misses += memory->lookup_statistics().misses - before;
      }
      if (i % 64 == 0) {
        const LookupStatistics s = memory->lookup_statistics();
        REQUIRE(s.bytes <= s.bytes_limit);
        REQUIRE(s.bytes_limit <= options.dcache_bytes);
      }
    }
    const LookupStatistics s = memory->lookup_statistics();
    CHECK(s.evictions > 1000);
    CHECK(s.entries + s.negative_entries > 1000);
    CHECK(hot_misses < (names - 1000) * 2 / 100);  // as many look-ups of what is hot: below 2 %
    memory.require_clean();
  }
}

TEST_CASE("cache: one directory of more names than it holds, the root too, leaves it room for what is asked for now",
          "[dcache]") {
  for (const Resolver resolver : {Resolver::kWalk, Resolver::kStage, Resolver::kFullpath}) {
    for (const std::string dir : {"/", "/d/"}) {
      INFO("resolver " << static_cast<int>(resolver) << " in " << dir);
      OpenOptions options = with(resolver);
      options.dcache_bytes = u64{1} << 20;
      MemoryFs memory(u64{64} << 20, options);
      if (dir == "/d/") must(memory->mkdir("/d", 0755, kRoot));
      constexpr u64 kNames = 20'000;
      for (u64 i = 0; i < kNames; ++i) must(memory->mknod(dir + std::to_string(i), 0644, 0, kRoot));
      for (u64 i = 0; i < kNames; ++i) must(memory->stat(dir + std::to_string(i), kRoot));
      // Names that are looked up again and again are in the cache soon: at once, but for those that came while a grace
      // period was waited for.
      u64 misses = 100;
      for (int round = 0; round < 20 && misses != 0; ++round) {
        volume_of(memory.fs()).paths.cache()->defer().barrier();
        const u64 before = memory->lookup_statistics().misses;
        for (u64 i = 0; i < 100; ++i) (void)memory->stat(dir + "0" + std::to_string(i), kRoot);
        misses = memory->lookup_statistics().misses - before;
      }
      CHECK(misses == 0);
      const LookupStatistics after = memory->lookup_statistics();
      CHECK(after.bytes <= after.bytes_limit);
    }
  }
}

TEST_CASE(
    "stage: renaming temporary files all the time neither invalidates pivots nor keeps pools from changing places",
    "[dcache]") {
  MemoryFs memory(u64{32} << 20, with(Resolver::kStage));
  make_files(memory.fs(), 100);
  dcache::PathCache& paths = volume_of(memory.fs()).paths;
  // Known before: while somebody changes the directory, what is looked up need not be remembered.
  for (u64 period = 0; period < 20; ++period) must(memory->stat(file_name(period), kRoot));
  std::atomic<bool> stop{false};
  std::atomic<u64> renames{0};
  std::thread program([&] {
    while (!stop) {
      must(memory->mknod("/dir0/temporary", 0644, 0, kRoot));
      must(memory->rename("/dir0/temporary", "/dir0/settled", 0, kRoot));
      ++renames;
    }
  });
  u64 wanted = 0;
  for (u64 period = 0; period < 20; ++period) {
    const u64 before = renames;
    while (renames < before + 2) std::this_thread::yield();
    // Another file is popular in each period. A look-up beside a change may leave no trace: so it is until it counts.
    wanted += 1;
    for (int tries = 0; tries < 50 && memory->lookup_statistics().swaps < wanted; ++tries) {
      for (int i = 0; i < 50; ++i) must(memory->stat(file_name(period), kRoot));
      paths.maintain_now();
    }
  }
  stop = true;
  program.join();
  const LookupStatistics s = memory->lookup_statistics();
  CHECK(s.swaps == wanted);
  CHECK(s.skipped_swaps == 0);
  CHECK(s.invalidations == 0);
}

TEST_CASE("stage: a change that concerns a pivot's component invalidates it, in every way it can come", "[dcache]") {
  MemoryFs memory(u64{32} << 20, with(Resolver::kStage));
  dcache::PathCache& paths = volume_of(memory.fs()).paths;
  Credentials user;
  user.uid = user.gid = 1000;
  SetAttributes shut, open, owner;
  shut.mode = 0700;
  open.mode = 0755;
  owner.uid = 1;
  const std::vector<std::function<void()>> changes = {
      [&] { must(memory->rename("/a", "/elsewhere", 0, kRoot)); },
      [&] { must(memory->rename("/a/b", "/b", 0, kRoot)); },
      [&] { must(memory->rename("/other", "/a/b/c/file", 0, kRoot)); },
      [&] { must(memory->rename("/a/b", "/exchanged", 1 << 1, kRoot)); },
      [&] { must(memory->unlink("/a/b/c/file", kRoot)); },
      [&] { must(memory->set_attributes("/a", shut, kRoot)); },
      [&] {
        must(memory->set_attributes("/", shut, kRoot));
        must(memory->set_attributes("/", open, kRoot));
      },
      [&] { must(memory->set_attributes("/a/b", owner, kRoot)); },
      [&] {
        must(memory->unlink("/a/b/c/file", kRoot));
        must(memory->rmdir("/a/b/c", kRoot));
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    for (const char* dir : {"/a", "/a/b", "/a/b/c", "/exchanged"}) must(memory->mkdir(dir, 0755, kRoot));
    for (const char* file : {"/a/b/c/file", "/other"}) must(memory->mknod(file, 0644, 0, kRoot));
    for (int k = 0; k < 5; ++k) must(memory->stat("/a/b/c/file", user));
    paths.maintain_now();
    REQUIRE(memory->pivots().size() >= 1);
    const u64 hits = memory->lookup_statistics().pivot_hits;
    must(memory->stat("/a/b/c/file", user));
    REQUIRE(memory->lookup_statistics().pivot_hits == hits + 1);
    const u64 before = memory->lookup_statistics().invalidated_pivots;
    changes[i]();
    CHECK(memory->lookup_statistics().invalidated_pivots > before);
    // And the tree is emptied for the next one.
    for (int round = 0; round < 6; ++round)
      for (const char* path :
           {"/a/b/c/file", "/a/b/c", "/a/b", "/a", "/other", "/exchanged/c/file", "/exchanged/c", "/exchanged",
            "/elsewhere/b/c/file", "/elsewhere/b/c", "/elsewhere/b", "/elsewhere", "/b/c/file", "/b/c", "/b"}) {
        (void)memory->unlink(path, kRoot);
        (void)memory->rmdir(path, kRoot);
      }
    REQUIRE(must(memory->stat("/", kRoot)).links == 2);
  }
  memory.require_clean();
}

TEST_CASE("cache: a file system without one resolves the same", "[dcache]") {
  OpenOptions options;
  options.dcache_bytes = 0;
  MemoryFs memory(u64{16} << 20, options);
  make_files(memory.fs(), 20);
  for (u64 i = 0; i < 20; ++i) must(memory->stat(file_name(i), kRoot));
  CHECK(memory->lookup_statistics().lookups == 0);
  CHECK(memory->lookup_statistics().bytes == 0);
}
