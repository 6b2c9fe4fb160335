#include "fs/pool.h"

#include <fcntl.h>
#include <libpmemobj.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "pmfs/result.h"
#include "test/support/catch.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

constexpr u64 kMiB = u64{1} << 20;

/// The code of a failure, or a number that is none if the call succeeded.
template <class T>
Errc code_of(const Result<T>& result) {
  return result.ok() ? Errc{} : result.error().code;
}

bool detail_names(std::string_view word) {
  return std::string_view(error_detail()).find(word) != std::string_view::npos;
}

/// Makes a pool and closes it.
std::string made(const Scratch& scratch, u64 size_bytes = 8 * kMiB, const char* name = "pool") {
  const std::string path = scratch.file(name);
  auto pool = Pool::create(path, size_bytes, false, 0600);
  REQUIRE(pool.ok());
  REQUIRE(pool->close().ok());
  return path;
}

u64 sum(std::span<const Region> regions) {
  u64 bytes = 0;
  for (const Region& region : regions) bytes += region.length_bytes;
  return bytes;
}

void check_regions(const Pool& pool) {
  const u64 locator = to_u64(pool.locator_off());
  u64 end = 0;
  for (const Region& region : pool.regions()) {
    CHECK(region.off % kBlockBytes == 0);
    CHECK(region.length_bytes % kBlockBytes == 0);
    CHECK(region.length_bytes > 0);
    CHECK(region.length_bytes <= u64{16} << 30);
    CHECK(region.off >= end);
    CHECK(pool.memory().contains(region.off, region.length_bytes));
    CHECK((locator + kLocatorBytes <= region.off || locator >= region.off + region.length_bytes));
    end = region.off + region.length_bytes;
  }
}

/// Sets an environment variable while it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* const old = std::getenv(name)) {
      had_ = true;
      old_ = old;
    }
    ::setenv(name, value, 1);
  }
  ~Environment() {
    if (had_) {
      ::setenv(name_, old_.c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  bool had_ = false;
  std::string old_;
};

}  // namespace

// --- create ---------------------------------------------------------------------------------------------------------

TEST_CASE("pool: create gives one region that holds all but 4 MiB", "[fs]") {
  for (const u64 mib : std::initializer_list<u64>{8, 9, 16, 64, 256}) {
    const Scratch scratch;
    INFO(mib);
    const u64 size_bytes = mib * kMiB + (mib == 9 ? 12345 : 0);  // also a size that is no multiple of anything
    auto pool = Pool::create(scratch.file("pool"), size_bytes, false, 0600);
    REQUIRE(pool.ok());
    CHECK(pool->memory().size_bytes == size_bytes / kBlockBytes * kBlockBytes);
    CHECK(pool->regions().size() == 1);
    CHECK(sum(pool->regions()) + 4 * kMiB + 512 * 1024 > size_bytes);  // libpmemobj's own, and its chunks of 256 KiB
    check_regions(*pool);
  }
}

TEST_CASE("pool: the locator is one zeroed cache line", "[fs]") {
  const Scratch scratch;
  auto pool = Pool::create(scratch.file("pool"), 8 * kMiB, false, 0600);
  REQUIRE(pool.ok());
  const u64 off = to_u64(pool->locator_off());
  CHECK(off % 64 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(pool->memory().at(pool->locator_off())) % 64 == 0);
  for (u64 i = 0; i < kLocatorBytes; ++i) CHECK(pool->memory().base[off + i] == std::byte{0});
}

TEST_CASE("pool: what is stored in regions and locator is there at the next open", "[fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("pool");
  u64 locator = 0;
  Region region;
  {
    auto pool = Pool::create(path, 8 * kMiB, false, 0600);
    REQUIRE(pool.ok());
    locator = to_u64(pool->locator_off());
    region = pool->regions()[0];
    std::memcpy(pool->memory().base + locator, "locator", 8);
    std::memset(pool->memory().base + region.off, 0x5a, region.length_bytes);
  }
  auto pool = Pool::open(path, false);
  REQUIRE(pool.ok());
  CHECK(to_u64(pool->locator_off()) == locator);
  CHECK(pool->memory().size_bytes == 8 * kMiB);
  CHECK(pool->regions().empty());
  CHECK(std::memcmp(pool->memory().base + locator, "locator", 8) == 0);
  CHECK(pool->memory().base[region.off] == std::byte{0x5a});
  CHECK(pool->memory().base[region.off + region.length_bytes - 1] == std::byte{0x5a});
}

TEST_CASE("pool: create gives the file exactly the mode asked for", "[fs]") {
  const Scratch scratch;
  const mode_t umask_before = ::umask(077);
  auto pool = Pool::create(scratch.file("pool"), 8 * kMiB, false, 0664);
  ::umask(umask_before);
  REQUIRE(pool.ok());
  struct stat st;
  REQUIRE(::stat(scratch.file("pool").c_str(), &st) == 0);
  CHECK((st.st_mode & 07777u) == 0664);
}

TEST_CASE("pool: create allocates every block of the file", "[fs]") {
  const Scratch scratch;
  made(scratch, 16 * kMiB);
  struct stat st;
  REQUIRE(::stat(scratch.file("pool").c_str(), &st) == 0);
  CHECK(static_cast<u64>(st.st_blocks) * 512 >= 16 * kMiB);
}

TEST_CASE("pool: a size below 8 MiB is refused and leaves nothing", "[fs]") {
  const Scratch scratch;
  CHECK(code_of(Pool::create(scratch.file("pool"), 8 * kMiB - 1, false, 0600)) == Errc::kPoolTooSmall);
  CHECK(code_of(Pool::create(scratch.file("pool"), 1, false, 0600)) == Errc::kPoolTooSmall);
  CHECK(detail_names(scratch.file("pool")));
  CHECK(code_of(Pool::create(scratch.file("pool"), 0, false, 0600)) == Errc::kInvalid);
  CHECK(::access(scratch.file("pool").c_str(), F_OK) != 0);
}

TEST_CASE("pool: a file system without room says so and keeps no half a file", "[fs]") {
  const Scratch scratch;
  const Errc code = code_of(Pool::create(scratch.file("pool"), u64{1} << 46, false, 0600));
  CHECK((code == Errc::kNoSpace || code == Errc::kFileTooBig));
  CHECK(::access(scratch.file("pool").c_str(), F_OK) != 0);
}

TEST_CASE("pool: create overwrites nothing without force", "[fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("precious");
  write_file(path, "data");
  CHECK(code_of(Pool::create(path, 8 * kMiB, false, 0600)) == Errc::kPoolExists);
  CHECK(detail_names(path));
  CHECK(read_file(path) == "data");
  write_file(path, "");
  CHECK(code_of(Pool::create(path, 8 * kMiB, false, 0600)) == Errc::kPoolExists);
}

TEST_CASE("pool: force replaces a file, whatever it was", "[fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("pool");
  for (const std::string& before : {std::string("text"), std::string(), std::string(9 * kMiB, 'x')}) {
    write_file(path, before);
    auto pool = Pool::create(path, 10 * kMiB, true, 0600);
    REQUIRE(pool.ok());
    CHECK(pool->memory().size_bytes == 10 * kMiB);
  }
  auto again = Pool::create(path, 0, true, 0600);  // a pool now; its size is kept
  REQUIRE(again.ok());
  CHECK(again->memory().size_bytes == 10 * kMiB);
  for (u64 i = 0; i < kLocatorBytes; ++i) CHECK(again->memory().at(again->locator_off())[i] == std::byte{0});
}

TEST_CASE("pool: force follows a symbolic link", "[fs]") {
  const Scratch scratch;
  write_file(scratch.file("target"), "old");
  REQUIRE(::symlink("target", scratch.file("link").c_str()) == 0);
  REQUIRE(Pool::create(scratch.file("link"), 8 * kMiB, true, 0600).ok());
  struct stat st;
  REQUIRE(::lstat(scratch.file("link").c_str(), &st) == 0);
  CHECK(S_ISLNK(st.st_mode));
  CHECK(Pool::open(scratch.file("target"), false).ok());
  CHECK(Pool::open(scratch.file("link"), false).ok());
}

TEST_CASE("pool: force does not touch a pool that is open", "[fs]") {
  const Scratch scratch;
  const std::string path = made(scratch);
  auto pool = Pool::open(path, false);
  REQUIRE(pool.ok());
  CHECK(code_of(Pool::create(path, 8 * kMiB, true, 0600)) == Errc::kPoolBusy);
  CHECK(in_child([&] { return code_of(Pool::create(path, 8 * kMiB, true, 0600)) == Errc::kPoolBusy ? 0 : 1; }) == 0);
  CHECK(detail_names(path));
  REQUIRE(pool->close().ok());
  CHECK(Pool::open(path, false).ok());
}

TEST_CASE("pool: create refuses what is no file, also with force", "[fs]") {
  const Scratch scratch;
  REQUIRE(::mkdir(scratch.file("dir").c_str(), 0700) == 0);
  REQUIRE(::mkfifo(scratch.file("fifo").c_str(), 0600) == 0);
  for (const bool force : {false, true}) {
    CHECK(code_of(Pool::create(scratch.file("dir"), 8 * kMiB, force, 0600)) == Errc::kIsDirectory);
    CHECK(code_of(Pool::create(scratch.file("fifo"), 8 * kMiB, force, 0600)) == Errc::kNotAPool);
    CHECK(code_of(Pool::create("/dev/null", 8 * kMiB, force, 0600)) == Errc::kNotAPool);
    CHECK(code_of(Pool::create(scratch.file("none/pool"), 8 * kMiB, force, 0600)) == Errc::kPoolMissing);
  }
}

TEST_CASE("pool: create in a directory that may not be written is denied", "[fs]") {
  const Scratch scratch;
  REQUIRE(::chmod(scratch.dir().c_str(), 0555) == 0);
  const Unprivileged nobody;
  CHECK(code_of(Pool::create(scratch.file("pool"), 8 * kMiB, false, 0600)) == Errc::kPoolDenied);
  CHECK(detail_names(scratch.file("pool")));
}

TEST_CASE("pool: regions beyond 16 GiB are several, and reach nearly to the end", "[fs]") {
  // A sparse file: libpmemobj allocates none of it for a part that exists already, if told so.
  int off = 0, on = 1;
  REQUIRE(::pmemobj_ctl_set(nullptr, "fallocate.at_create", &off) == 0);
  for (const u64 gib : std::initializer_list<u64>{16, 17, 40, 200}) {
    const Scratch scratch;
    INFO(gib);
    write_file(scratch.file("part"), "");
    const u64 size_bytes = (gib << 30) + (gib == 17 ? 3 * kMiB : 0);
    if (::truncate(scratch.file("part").c_str(), static_cast<off_t>(size_bytes)) != 0) {
      WARN("no sparse file of " << gib << " GiB here: not tested");
      break;
    }
    write_file(scratch.file("set"), "PMEMPOOLSET\n" + std::to_string(size_bytes) + " " + scratch.file("part") + "\n");
    auto pool = Pool::create(scratch.file("set"), 0, false, 0600);
    REQUIRE(pool.ok());
    CHECK(pool->memory().size_bytes == size_bytes);
    CHECK(pool->regions().size() >= (gib + 15) / 16);
    CHECK(pool->regions().size() <= gib / 16 + 1);
    check_regions(*pool);
    CHECK(sum(pool->regions()) + 4 * kMiB + (gib / 16 + 1) * kMiB > size_bytes);
    const Region last = pool->regions().back();
    REQUIRE(pool->close().ok());
    auto again = Pool::open(scratch.file("set"), false);
    REQUIRE(again.ok());
    CHECK(again->memory().contains(last.off, last.length_bytes));
    again->memory().base[last.off + last.length_bytes - 1] = std::byte{1};
  }
  REQUIRE(::pmemobj_ctl_set(nullptr, "fallocate.at_create", &on) == 0);
}

// --- open: refusals -------------------------------------------------------------------------------------------------

TEST_CASE("pool: what is not there is missing", "[fs]") {
  const Scratch scratch;
  CHECK(code_of(Pool::open(scratch.file("pool"), false)) == Errc::kPoolMissing);
  CHECK(detail_names(scratch.file("pool")));
  CHECK(code_of(Pool::open(scratch.file("a/b/c"), false)) == Errc::kPoolMissing);
  CHECK(code_of(Pool::open("", false)) == Errc::kPoolMissing);
  REQUIRE(::symlink("nowhere", scratch.file("link").c_str()) == 0);
  CHECK(code_of(Pool::open(scratch.file("link"), false)) == Errc::kPoolMissing);
  CHECK(code_of(Pool::open(std::string("/tmp/a\0b", 8), false)) == Errc::kInvalid);
  CHECK(code_of(Pool::open("/" + std::string(300, 'x'), false)) == Errc::kNameTooLong);
}

TEST_CASE("pool: what holds no pool is named as such, and nothing hangs or dies", "[fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("file");
  for (const bool read_only : {false, true}) {
    for (const std::string& contents :
         {std::string(), std::string("x"), std::string("hello, world\n"), std::string(4096, '\0'),
          std::string(8 * kMiB, '\0'), std::string(8 * kMiB, '\xa5'),
          std::string("PMEMBLK\0", 8) + std::string(8 * kMiB, '\0')}) {
      INFO(contents.size());
      write_file(path, contents);
      CHECK(code_of(Pool::open(path, read_only)) == Errc::kNotAPool);
      CHECK(detail_names(path));
    }
  }
  REQUIRE(::mkfifo(scratch.file("fifo").c_str(), 0600) == 0);
  CHECK(code_of(Pool::open(scratch.file("fifo"), false)) == Errc::kNotAPool);
  CHECK(code_of(Pool::open(scratch.dir(), false)) == Errc::kNotAPool);
  CHECK(code_of(Pool::open("/dev/null", false)) == Errc::kNotAPool);
  CHECK(code_of(Pool::open("/dev/zero", false)) == Errc::kNotAPool);
}

TEST_CASE("pool: a pool of another program is named by its layout", "[fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("other");
  PMEMobjpool* const pop = ::pmemobj_create(path.c_str(), "somebody else's", 8 * kMiB, 0600);
  REQUIRE(pop != nullptr);
  ::pmemobj_close(pop);
  const u64 before = hash_file(path);
  CHECK(code_of(Pool::open(path, false)) == Errc::kOtherLayout);
  CHECK(detail_names("somebody else's"));
  CHECK(code_of(Pool::open(path, true)) == Errc::kOtherLayout);
  CHECK(hash_file(path) == before);
}

TEST_CASE("pool: a file cut anywhere is truncated, not opened", "[fs]") {
  const Scratch scratch;
  const std::string path = made(scratch, 10 * kMiB);
  for (const u64 size_bytes : {10 * kMiB - 1, 9 * kMiB, 8 * kMiB, 8 * kMiB - 1, 4 * kMiB, 2 * kMiB, u64{8192},
                               u64{6000}, u64{4096}, u64{100}, u64{8}}) {
    INFO(size_bytes);
    REQUIRE(::truncate(path.c_str(), static_cast<off_t>(size_bytes)) == 0);
    CHECK(code_of(Pool::open(path, true)) == Errc::kPoolTruncated);
    CHECK(code_of(Pool::open(path, false)) == Errc::kPoolTruncated);
    CHECK(detail_names(path));
  }
  REQUIRE(::truncate(path.c_str(), 0) == 0);
  CHECK(code_of(Pool::open(path, false)) == Errc::kNotAPool);
}

TEST_CASE("pool: a longer file opens, with its tail in the mapping", "[fs]") {
  const Scratch scratch;
  const std::string path = made(scratch, 8 * kMiB);
  REQUIRE(::truncate(path.c_str(), 12 * kMiB) == 0);
  auto pool = Pool::open(path, false);
  REQUIRE(pool.ok());
  CHECK(pool->memory().size_bytes == 12 * kMiB);
  pool->memory().base[12 * kMiB - 1] = std::byte{7};
  REQUIRE(pool->close().ok());
  CHECK(read_file(path).back() == '\7');
}

TEST_CASE("pool: no permission is denied, or no private open", "[fs]") {
  const Scratch scratch;
  const std::string path = made(scratch);
  REQUIRE(::chmod(path.c_str(), 0444) == 0);
  {
    const Unprivileged nobody;
    CHECK(code_of(Pool::open(path, false)) == Errc::kPoolDenied);
    CHECK(detail_names(path));
    CHECK(code_of(Pool::open(path, true)) == Errc::kNoPrivateOpen);
    CHECK(detail_names(path));
  }
  REQUIRE(::chmod(path.c_str(), 0000) == 0);
  const Unprivileged nobody;
  CHECK(code_of(Pool::open(path, false)) == Errc::kPoolDenied);
  CHECK(code_of(Pool::open(path, true)) == Errc::kPoolDenied);
}

TEST_CASE("pool: damaged headers are refused and change nothing", "[fs]") {
  const Scratch scratch;
  const std::string path = made(scratch);
  const std::string good = read_file(path);
  const auto open_damaged = [&](u64 off, std::string_view bytes) {
    write_file(path, good);
    patch_file(path, off, bytes);
    const u64 before = hash_file(path);
    const Errc code = code_of(Pool::open(path, false));
    CHECK(hash_file(path) == before);
    return code;
  };
  constexpr std::string_view kOnes{"\xff\xff\xff\xff\xff\xff\xff\x7f"};
  CHECK(open_damaged(0, "X") == Errc::kNotAPool);
  CHECK(open_damaged(24, "uuid") == Errc::kRefused);  // header checksum
  CHECK(open_damaged(4096, "pmfX") == Errc::kOtherLayout);
  CHECK(open_damaged(4096 + 1024, kOnes) == Errc::kCorrupt);       // lanes' offset
  CHECK(open_damaged(4096 + 1032, kOnes) == Errc::kCorrupt);       // lanes' number
  CHECK(open_damaged(4096 + 1040, kOnes) == Errc::kCorrupt);       // heap's offset
  CHECK(open_damaged(4096 + 2048 + 32, kOnes) == Errc::kCorrupt);  // heap's size
  CHECK(open_damaged(4096 + 2048 + 32, std::string_view("\0\0\3\0\0\0\0\0", 8)) == Errc::kCorrupt);
  CHECK(open_damaged(4096 + 2048 + 32, std::string_view("\0\0\0\0\1\0\0\0", 8)) == Errc::kPoolTruncated);
  const std::string_view zero{"\0\0\0\0\0\0\0\0", 8};
  CHECK(open_damaged(4096 + 2048, zero) == Errc::kNotFormatted);  // root's offset
  CHECK(open_damaged(4096 + 2048, kOnes) == Errc::kCorrupt);
}

TEST_CASE("pool: work left over in libpmemobj's logs is not replayed", "[fs]") {
  // In a pool that create() has finished there is none, so it was put there; replaying it could store anywhere.
  const Scratch scratch;
  const std::string path = scratch.file("pool");
  for (const bool formatted : {false, true}) {
    {
      auto pool = Pool::create(path, 8 * kMiB, true, 0600);
      REQUIRE(pool.ok());
      if (formatted) *pool->memory().at(pool->locator_off()) = std::byte{1};
    }
    const std::string good = read_file(path);
    for (const u64 off :
         std::initializer_list<u64>{0, 8, 16, 256, 256 + 8, 3072 + 256 + 64, 960 + 8, 960 + 64, 3072 * 1023}) {
      INFO(off);
      write_file(path, good);
      patch_file(path, 8192 + off, "\1");
      const Errc expected = formatted ? Errc::kCorrupt : Errc::kNotFormatted;
      CHECK(code_of(Pool::open(path, false)) == expected);
      CHECK(code_of(Pool::open(path, true)) == expected);
    }
  }
}

TEST_CASE("pool: one whose making stopped before the root object is not formatted", "[fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("pool");
  PMEMobjpool* const pop = ::pmemobj_create(path.c_str(), "pmfs", 8 * kMiB, 0600);
  REQUIRE(pop != nullptr);
  ::pmemobj_close(pop);
  CHECK(code_of(Pool::open(path, false)) == Errc::kNotFormatted);
  CHECK(detail_names(path));
  CHECK(Pool::create(path, 8 * kMiB, true, 0600).ok());
}

// --- open: the lock -------------------------------------------------------------------------------------------------

TEST_CASE("pool: open once only, in this process and others", "[fs]") {
  const Scratch scratch;
  const std::string path = made(scratch);
  for (const bool read_only : {false, true}) {
    auto pool = Pool::open(path, read_only);
    REQUIRE(pool.ok());
    for (const bool second_read_only : {false, true}) {
      CHECK(code_of(Pool::open(path, second_read_only)) == Errc::kPoolBusy);
      CHECK(detail_names(path));
      CHECK(in_child([&] { return code_of(Pool::open(path, second_read_only)) == Errc::kPoolBusy ? 0 : 1; }) == 0);
    }
    REQUIRE(pool->close().ok());
    CHECK(in_child([&] { return Pool::open(path, false).ok() ? 0 : 1; }) == 0);
  }
  CHECK(Pool::open(path, false).ok());
}

TEST_CASE("pool: a killed process leaves a pool that opens", "[fs]") {
  const Scratch scratch;
  const std::string path = made(scratch);
  CHECK(in_child([&] {
          auto pool = Pool::open(path, false);
          if (!pool.ok()) return 1;
          pool->memory().base[to_u64(pool->locator_off())] = std::byte{42};
          ::raise(SIGKILL);
          return 2;
        }) == 128 + SIGKILL);
  auto pool = Pool::open(path, false);
  REQUIRE(pool.ok());
  CHECK(*pool->memory().at(pool->locator_off()) == std::byte{42});
}

TEST_CASE("pool: many open at once in one process, from many threads", "[fs]") {
  const Scratch scratch;
  std::vector<std::thread> threads;
  std::vector<int> good(6, 0);
  for (std::size_t i = 0; i < good.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::string path = scratch.file("pool" + std::to_string(i));
      auto pool = Pool::create(path, 8 * kMiB, false, 0600);
      if (!pool.ok()) return;
      for (int round = 0; round < 5; ++round) {
        if (!pool->close().ok()) return;
        auto again = Pool::open(path, round % 2 == 1);
        if (!again.ok() || again->memory().durability == Durability::kPrivate != (round % 2 == 1)) return;
        *pool = std::move(*again);
      }
      good[i] = 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int each : good) CHECK(each == 1);
}

TEST_CASE("pool: close is once, moves leave nothing behind", "[fs]") {
  const Scratch scratch;
  const std::string path = made(scratch);
  auto opened = Pool::open(path, false);
  REQUIRE(opened.ok());
  Pool a = std::move(*opened);
  Pool b = std::move(a);
  CHECK(b.is_open());
  CHECK(b.path() == path);
  CHECK(b.close().ok());
  CHECK_FALSE(b.is_open());
  CHECK(b.memory().size_bytes == 0);
  CHECK(b.close().ok());
  auto other = Pool::open(path, false);
  REQUIRE(other.ok());
  b = std::move(*other);
  CHECK(b.is_open());
  CHECK(code_of(Pool::open(path, false)) == Errc::kPoolBusy);
}

// --- open: read-only ------------------------------------------------------------------------------------------------

TEST_CASE("pool: nothing stored through a read-only open reaches the file", "[fs]") {
  for (const auto place : {Scratch::Place::kMemory, Scratch::Place::kDisk}) {
    const Scratch scratch{place};
    const std::string path = made(scratch);
    const u64 before = hash_file(path);
    struct stat then, now;
    REQUIRE(::stat(path.c_str(), &then) == 0);
    {
      auto pool = Pool::open(path, true);
      REQUIRE(pool.ok());
      CHECK(pool->memory().durability == Durability::kPrivate);
      CHECK(pool->medium() != Durability::kPrivate);
      CHECK(hash_file(path) == before);
      std::memset(pool->memory().base + 4 * kMiB, 0x77, 4 * kMiB);
      std::memset(pool->memory().at(pool->locator_off()), 0x77, kLocatorBytes);
      CHECK(pool->memory().base[5 * kMiB] == std::byte{0x77});
      CHECK(hash_file(path) == before);
    }
    CHECK(hash_file(path) == before);
    REQUIRE(::stat(path.c_str(), &now) == 0);
    CHECK(now.st_mtim.tv_sec == then.st_mtim.tv_sec);
    CHECK(now.st_mtim.tv_nsec == then.st_mtim.tv_nsec);
    auto pool = Pool::open(path, false);
    REQUIRE(pool.ok());
    CHECK(*pool->memory().at(pool->locator_off()) == std::byte{0});
  }
}

TEST_CASE("pool: a user's copy-on-write default does not make a writable open private", "[fs]") {
  const Scratch scratch;
  const std::string path = made(scratch);
  int on = 1, off = 0, value = 0;
  REQUIRE(::pmemobj_ctl_set(nullptr, "copy_on_write.at_open", &on) == 0);
  {
    auto pool = Pool::open(path, false);
    REQUIRE(pool.ok());
    *pool->memory().at(pool->locator_off()) = std::byte{9};
  }
  REQUIRE(::pmemobj_ctl_get(nullptr, "copy_on_write.at_open", &value) == 0);
  CHECK(value == 1);  // and is left as it was
  REQUIRE(::pmemobj_ctl_set(nullptr, "copy_on_write.at_open", &off) == 0);
  auto pool = Pool::open(path, false);
  REQUIRE(pool.ok());
  CHECK(*pool->memory().at(pool->locator_off()) == std::byte{9});
}

// --- durability -----------------------------------------------------------------------------------------------------

TEST_CASE("pool: the medium is found out", "[fs]") {
  const Scratch disk{Scratch::Place::kDisk}, memory;
  const bool in_memory = memory.dir().starts_with("/dev/shm");
  {
    auto pool = Pool::create(memory.file("pool"), 8 * kMiB, false, 0600);
    REQUIRE(pool.ok());
    if (in_memory) {
      CHECK(pool->memory().durability == Durability::kVolatile);
    }
  }
  if (in_memory) {
    const Environment zero{"PMEM_IS_PMEM_FORCE", "0"};  // changes how libpmemobj flushes, not what tmpfs is
    auto pool = Pool::open(memory.file("pool"), false);
    REQUIRE(pool.ok());
    CHECK(pool->memory().durability == Durability::kVolatile);
  }
  auto created = Pool::create(disk.file("pool"), 8 * kMiB, false, 0600);
  REQUIRE(created.ok());
  CHECK((created->memory().durability == Durability::kFileBacked ||
         created->memory().durability == Durability::kPersistent));
  REQUIRE(created->close().ok());
  const Environment one{"PMEM_IS_PMEM_FORCE", "1"};
  auto forced = Pool::open(disk.file("pool"), false);
  REQUIRE(forced.ok());
  CHECK(forced->memory().durability == Durability::kVolatile);
}

// --- poolsets -------------------------------------------------------------------------------------------------------

TEST_CASE("poolset: several parts make one pool", "[fs]") {
  const Scratch scratch;
  for (const char* option : {"", "OPTION SINGLEHDR\n"}) {
    INFO(option);
    const std::string set = scratch.file("set");
    write_file(set, std::string("PMEMPOOLSET\n# three parts\n") + option + "2M " + scratch.file("a") +
                        " # first\n\n8388608\t" + scratch.file("b") + "\n4MiB " + scratch.file("c") + "\n");
    CHECK(code_of(Pool::open(set, false)) == Errc::kPoolMissing);
    CHECK(detail_names(scratch.file("a")));
    CHECK(code_of(Pool::create(set, 16 * kMiB, false, 0600)) == Errc::kInvalid);
    u64 size_bytes = 0;
    Region region;
    {
      auto pool = Pool::create(set, 0, false, 0600);
      REQUIRE(pool.ok());
      size_bytes = pool->memory().size_bytes;
      CHECK(size_bytes == 14 * kMiB - (*option != '\0' ? 0 : 2 * kBlockBytes));
      CHECK(pool->regions().size() == 1);
      check_regions(*pool);
      region = pool->regions()[0];
      std::memset(pool->memory().base + region.off, 0x33, region.length_bytes);
      CHECK(code_of(Pool::open(set, false)) == Errc::kPoolBusy);
      CHECK(code_of(Pool::create(set, 0, true, 0600)) == Errc::kPoolBusy);
    }
    {
      auto pool = Pool::open(set, true);
      REQUIRE(pool.ok());
      CHECK(pool->memory().size_bytes == size_bytes);
      CHECK(pool->memory().base[region.off + region.length_bytes - 1] == std::byte{0x33});
    }
    CHECK(code_of(Pool::create(set, 0, false, 0600)) == Errc::kPoolExists);
    REQUIRE(Pool::create(set, 0, true, 0600).ok());
    REQUIRE(::truncate(scratch.file("b").c_str(), 4 * kMiB) == 0);
    CHECK(code_of(Pool::open(set, false)) == Errc::kPoolTruncated);
    CHECK(code_of(Pool::open(set, true)) == Errc::kPoolTruncated);
    REQUIRE(::unlink(scratch.file("b").c_str()) == 0);
    CHECK(code_of(Pool::open(set, false)) == Errc::kPoolMissing);
    CHECK(detail_names(scratch.file("b")));
    for (const char* part : {"a", "b", "c"}) ::unlink(scratch.file(part).c_str());
  }
}

TEST_CASE("poolset: left-over work is found in a part behind the first", "[fs]") {
  const Scratch scratch;
  write_file(scratch.file("set"), "PMEMPOOLSET\n2M " + scratch.file("a") + "\n8M " + scratch.file("b") + "\n");
  REQUIRE(Pool::create(scratch.file("set"), 0, false, 0600).ok());
  REQUIRE(Pool::open(scratch.file("set"), false).ok());
  // The last lane begins at byte 8192 + 3072 * 1023 of the pool, which is in b, behind its header.
  patch_file(scratch.file("b"), 8192 + 3072 * 1023 - 2 * kMiB + kBlockBytes, "\1");
  CHECK(code_of(Pool::open(scratch.file("set"), false)) == Errc::kNotFormatted);
}

TEST_CASE("poolset: a failed create leaves none of its parts", "[fs]") {
  const Scratch scratch;
  write_file(scratch.file("set"), "PMEMPOOLSET\n8M " + scratch.file("a") + "\n70000G " + scratch.file("b") + "\n");
  CHECK_FALSE(Pool::create(scratch.file("set"), 0, false, 0600).ok());
  CHECK(::access(scratch.file("a").c_str(), F_OK) != 0);
  CHECK(::access(scratch.file("b").c_str(), F_OK) != 0);
  CHECK(::access(scratch.file("set").c_str(), F_OK) == 0);
}

TEST_CASE("poolset: replicas and directories are refused by name", "[fs]") {
  const Scratch scratch;
  const std::string set = scratch.file("set");
  const auto both = [&](const std::string& text) {
    write_file(set, text);
    const Errc opened = code_of(Pool::open(set, false));
    const Errc created = code_of(Pool::create(set, 0, true, 0600));
    CHECK(opened == created);
    CHECK(detail_names(set.substr(0, set.rfind('/'))));
    return opened;
  };
  const std::string part = "PMEMPOOLSET\n8M " + scratch.file("a") + "\n";
  CHECK(both(part + "REPLICA\n8M " + scratch.file("b") + "\n") == Errc::kReplicaSet);
  CHECK(both(part + "REPLICA node set\n") == Errc::kReplicaSet);
  CHECK(both("PMEMPOOLSET\nREPLICA\n") == Errc::kReplicaSet);
  REQUIRE(::mkdir(scratch.file("dir").c_str(), 0700) == 0);
  CHECK(both("PMEMPOOLSET\nOPTION SINGLEHDR\n1G " + scratch.file("dir") + "\n") == Errc::kDirectorySet);
  CHECK(::access(scratch.file("a").c_str(), F_OK) != 0);
}

TEST_CASE("poolset: garbled text is a typed error", "[fs]") {
  const Scratch scratch;
  const std::string set = scratch.file("set"), a = scratch.file("a");
  REQUIRE(::mkfifo(scratch.file("fifo").c_str(), 0600) == 0);
  const std::vector<std::string> texts = {
      "PMEMPOOLSET",
      "PMEMPOOLSET\n",
      "PMEMPOOLSET \n8M " + a + "\n",
      "PMEMPOOLSETX\n8M " + a + "\n",
      "PMEMPOOLSET\r\n8M " + a + "\r\n",
      "PMEMPOOLSET\n# nothing\n\n",
      "PMEMPOOLSET\n8M\n",
      "PMEMPOOLSET\n   \n8M " + a + "\n",
      "PMEMPOOLSET\n" + a + " 8M\n",
      "PMEMPOOLSET\n8M relative/path\n",
      "PMEMPOOLSET\n8M " + a + " more\n",
      "PMEMPOOLSET\n-8M " + a + "\n",
      "PMEMPOOLSET\n8X " + a + "\n",
      "PMEMPOOLSET\n99999999999999999999999999 " + a + "\n",
      "PMEMPOOLSET\n8M " + a + "\n8M " + a + "\n",
      "PMEMPOOLSET\n8M /dev/null\n",
      "PMEMPOOLSET\n8M " + scratch.file("fifo") + "\n",
      "PMEMPOOLSET\n8M /" + std::string(5000, 'x') + "\n",
      std::string("PMEMPOOLSET\n8M /a\0b\n", 20),
      "PMEMPOOLSET\n" + std::string(2 * kMiB, '#') + "\n",
      "PMEMPOOLSET\n" + std::string(2 * kMiB, '\n') + "8M " + a + "\n",
  };
  for (const std::string& text : texts) {
    INFO(text.substr(0, 60));
    write_file(set, text);
    CHECK(code_of(Pool::open(set, false)) == Errc::kNotAPool);
    CHECK(code_of(Pool::create(set, 0, true, 0600)) == Errc::kNotAPool);
  }
  for (const std::string& text : {"PMEMPOOLSET\nOPTION NONSENSE\n8M " + a + "\n", "PMEMPOOLSET\nOPTION\n8M " + a + "\n",
                                  "PMEMPOOLSET\nAUTO " + a + "\n", "PMEMPOOLSET\n0 " + a + "\n",
                                  "PMEMPOOLSET\n1M " + a + "\n8M " + scratch.file("b") + "\n",
                                  "PMEMPOOLSET\n8MMM " + a + "\n", "PMEMPOOLSET\n18446744073709551615 " + a + "\n"}) {
    INFO(text);
    write_file(set, text);
    CHECK_FALSE(Pool::create(set, 0, true, 0600).ok());
    CHECK(std::strlen(error_detail()) > 0);
    CHECK(::access(a.c_str(), F_OK) != 0);
  }
}
