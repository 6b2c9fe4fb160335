// A file system in a pool that an application has opened, beside its own objects.
#include <fcntl.h>
#include <libpmemobj.h>
#include <sys/stat.h>

#include <vector>

#include "pmfs/pmfs.hpp"
#include "test/support/catch.h"
#include "test/support/memory_fs.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

// Writes a file; says what it holds now.
void put(Filesystem& fs, const std::string& path, std::size_t bytes) {
  File file = must(fs.open_file(path, O_CREAT | O_RDWR, 0644, kRoot));
  must(file.write(0, std::vector<std::byte>(bytes, std::byte{7})));
  must(file.close());
}

u64 size_of(Filesystem& fs, const std::string& path) { return must(fs.stat(path, kRoot)).size_bytes; }

std::size_t objects(PMEMobjpool* pop, u64 type) {
  std::size_t count = 0;
  for (PMEMoid at = pmemobj_first(pop); !OID_IS_NULL(at); at = pmemobj_next(at))
    if (pmemobj_type_num(at) == type) ++count;
  return count;
}

constexpr u64 kOurs = 77;  // the application's type number

void add_object(PMEMobjpool* pop, u64 bytes) {
  PMEMoid made;
  REQUIRE(pmemobj_zalloc(pop, &made, bytes, kOurs) == 0);
}

}  // namespace

TEST_CASE("attach: a pool made with a reserve has room for both, and the command line's way opens it", "[unit][fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("pool");
  FormatOptions format;
  format.size_bytes = u64{64} << 20;
  format.reserve_bytes = u64{16} << 20;
  must(Filesystem::format(path, format));

  PMEMobjpool* pop = pmemobj_open(path.c_str(), "pmfs");
  REQUIRE(pop != nullptr);
  // The application's part of the root object: all zero, and where the file system's locator is not.
  const PMEMoid root = pmemobj_root(pop, 4096);
  auto* const words = static_cast<u64*>(pmemobj_direct(root));
  for (std::size_t i = 192 / 8; i < 4096 / 8; ++i) REQUIRE(words[i] == 0);
  words[511] = 42;
  pmemobj_persist(pop, &words[511], 8);
  {
    Filesystem fs = must(Filesystem::attach(path, pop));
    put(fs, "/a", 100'000);
    for (int i = 0; i < 10; ++i) add_object(pop, u64{1} << 20);  // while the file system is open
    put(fs, "/b", 200'000);
    CHECK(must(check(fs)).clean());
    CHECK(code_of(Filesystem::open(path)) == Errc::kPoolBusy);  // the application has it
    must(fs.close());
  }
  CHECK(objects(pop, kOurs) == 10);
  pmemobj_close(pop);

  Filesystem fs = must(Filesystem::open(path));
  CHECK(fs.info().saved_map_used);
  CHECK(size_of(fs, "/a") == 100'000);
  CHECK(size_of(fs, "/b") == 200'000);
  CHECK(must(check(fs)).clean());
  must(fs.close());

  pop = pmemobj_open(path.c_str(), "pmfs");
  REQUIRE(pop != nullptr);
  CHECK(static_cast<u64*>(pmemobj_direct(pmemobj_root(pop, 4096)))[511] == 42);
  CHECK(objects(pop, kOurs) == 10);
  pmemobj_close(pop);
}

TEST_CASE("attach: several file systems in an application's own pool", "[unit][fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("pool");
  PMEMobjpool* pop = pmemobj_create(path.c_str(), "notes", u64{96} << 20, 0600);
  REQUIRE(pop != nullptr);
  const u64 first = must(Filesystem::format_in(path, pop, u64{16} << 20));
  const u64 second = must(Filesystem::format_in(path, pop, u64{20} << 20));
  CHECK(first != second);
  {
    Filesystem one = must(Filesystem::attach(path, pop, first));
    Filesystem two = must(Filesystem::attach(path, pop, second));
    CHECK(must(one.space()).blocks * 4096 >= u64{15} << 20);
    CHECK(must(two.space()).blocks * 4096 >= u64{19} << 20);
    put(one, "/only-one", 5'000'000);
    put(two, "/only-two", 7'000'000);
    CHECK(must(check(one)).clean());
    CHECK(must(check(two)).clean());
    // Neither is closed: dropping them does it.
  }
  pmemobj_close(pop);
  pop = pmemobj_open(path.c_str(), "notes");
  REQUIRE(pop != nullptr);
  Filesystem one = must(Filesystem::attach(path, pop, first));
  Filesystem two = must(Filesystem::attach(path, pop, second));
  CHECK(one.info().saved_map_used);
  CHECK(size_of(one, "/only-one") == 5'000'000);
  CHECK(size_of(two, "/only-two") == 7'000'000);
  CHECK(code_of(one.stat("/only-two", kRoot)) == Errc::kNotFound);
  must(one.close());
  must(two.close());
  pmemobj_close(pop);
}

TEST_CASE("attach: what cannot be is refused, and takes nothing", "[unit][fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("pool"), other = scratch.file("other");
  PMEMobjpool* const pop = pmemobj_create(path.c_str(), "notes", u64{32} << 20, 0600);
  REQUIRE(pop != nullptr);
  PMEMobjpool* const another = pmemobj_create(other.c_str(), "notes", u64{32} << 20, 0600);
  REQUIRE(another != nullptr);

  CHECK(code_of(Filesystem::attach(path, pop)) == Errc::kOtherLayout);  // no root object of ours
  CHECK(code_of(Filesystem::attach(path, nullptr)) == Errc::kInvalid);
  CHECK(code_of(Filesystem::attach(other, pop)) == Errc::kInvalid);  // another pool's path
  CHECK(code_of(Filesystem::attach(scratch.file("none"), pop)) == Errc::kPoolMissing);
  CHECK_FALSE(Filesystem::attach(path, pop, 64).ok());                   // libpmemobj's own header is there
  CHECK(code_of(Filesystem::attach(path, pop, 100)) == Errc::kCorrupt);  // no line begins there
  CHECK(code_of(Filesystem::attach(path, pop, u64{1} << 40)) == Errc::kCorrupt);
  CHECK(code_of(Filesystem::format_in(path, pop, u64{1} << 30)) == Errc::kNoSpace);
  CHECK(code_of(Filesystem::format_in(path, pop, 0)) == Errc::kInvalid);
  CHECK(pmemobj_first(pop).off == 0);  // what a refusal had taken is back
  const u64 locator = must(Filesystem::format_in(path, pop, u64{8} << 20));
  CHECK(code_of(Filesystem::attach(path, pop, locator, {.read_only = true})) == Errc::kNotSupported);
  Filesystem fs = must(Filesystem::attach(path, pop, locator));
  CHECK(in_child([&] { return fs.stat("/", kRoot).ok() ? 0 : 1; }) == 1);  // a forked child has no file system
  must(fs.close());
  pmemobj_close(pop);
  pmemobj_close(another);

  FormatOptions format;
  format.size_bytes = u64{16} << 20;
  format.reserve_bytes = u64{64} << 20;
  CHECK(code_of(Filesystem::format(scratch.file("small"), format)) == Errc::kPoolTooSmall);
  format.reserve_bytes = 0;
  must(Filesystem::format(scratch.file("whole"), format));
  PMEMobjpool* const whole = pmemobj_open(scratch.file("whole").c_str(), "pmfs");
  REQUIRE(whole != nullptr);
  CHECK(code_of(Filesystem::attach(scratch.file("whole"), whole)) == Errc::kOtherLayout);
  pmemobj_close(whole);
}
