// Leases: pointers into the pool, for as long as a user wants.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <cstring>
#include <vector>

#include "fs/volume.h"
#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();
constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

std::vector<std::byte> bytes(std::size_t count, int value) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

std::vector<std::byte> contents(const Lease& lease) {
  std::vector<std::byte> all;
  for (const auto& piece : lease.pieces()) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

struct LeaseFs {
  MemoryFs fs{u64{8} << 20};
  File file = must(fs->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
};

}  // namespace

TEST_CASE("leases: the pieces are the file's bytes, clipped to its size", "[unit][fs]") {
  LeaseFs t;
  must(t.file.write(0, bytes(10'000, 1)));
  const File other = must(t.fs->open_file("/g", O_RDWR | O_CREAT, 0644, kRoot));
  must(other.write(0, bytes(4096, 9)));
  must(t.file.write(10'000, bytes(10'000, 2)));
  const u64 fences = thread_counters().fences;
  const Lease lease = must(t.file.direct(5000, 100'000));
  CHECK(thread_counters().fences == fences);
  CHECK(lease.bytes() == 15'000);
  std::vector<std::byte> expected(15'000);
  must(t.file.read(5000, expected));
  CHECK(contents(lease) == expected);
  CHECK(lease.writable_pieces().empty());
  CHECK(must(t.file.direct(20'000, 1)).bytes() == 0);
  CHECK(must(t.file.direct(~u64{0}, 10)).bytes() == 0);
}

TEST_CASE("leases: blocks under one are not used again, whatever happens to the file", "[unit][fs]") {
  LeaseFs t;
  Volume& volume = volume_of(t.fs.fs());
  const u64 free_before = must(t.fs->space()).blocks_free;
  must(t.file.write(0, bytes(40'960, 1)));
  Lease lease = must(t.file.direct(0, 40'960));
  must(t.file.allocate(kPunch, 0, 8192));
  must(t.file.truncate(20'000));
  must(t.file.close());
  must(t.fs->unlink("/f", kRoot));
  for (int i = 0; i < 3; ++i) volume.quarantine.drain();
  for (int n = 0;; ++n) {  // fill the pool
    const auto made = t.fs->mknod("/fill" + std::to_string(n), 0644, 0, kRoot);
    if (!made.ok()) break;
    const auto written = t.fs->write(made->ino, 0, bytes(1 << 20, 7), kRoot);
    if (!written.ok()) break;
  }
  CHECK(contents(lease) == bytes(40'960, 1));
  t.fs.require_clean();
  CHECK(code_of(t.fs->close()) == Errc::kBusy);
  must(lease.give_back());
  CHECK_FALSE(lease.is_open());
  for (int n = 0; n < 100; ++n) (void)t.fs->unlink("/fill" + std::to_string(n), kRoot);
  CHECK(must(t.fs->space()).blocks_free + 8 >= free_before);
  CHECK(volume.quarantine.pinned_blocks() == 0);
  t.fs.require_clean();
}

TEST_CASE("leases: what is stored through one and persisted survives a killed process", "[unit][fs]") {
  LeaseFs t;
  must(t.file.write(0, bytes(20'000, 1)));
  const i64 before = must(t.file.stat()).mtime_ns;
  {
    const Lease lease = must(t.file.direct(1000, 10'000, DirectUse::kWrite));
    for (const auto& piece : lease.writable_pieces()) std::memset(piece.data(), 5, piece.size());
    const u64 fences = thread_counters().fences;
    const u64 lines = thread_counters().lines;
    must(lease.persist(0, 10'000));
    CHECK(thread_counters().fences - fences == 1);
    CHECK(thread_counters().lines - lines >= 10'000 / 64);
    CHECK(must(t.file.stat()).mtime_ns > before);
    const u64 few = thread_counters().lines;
    must(lease.persist(9000, 64));
    CHECK(thread_counters().lines - few <= 3);
  }
  must(t.file.close());
  t.fs.reopen_after_kill();
  const File file = must(t.fs->open_file("/f", O_RDONLY, 0, kRoot));
  std::vector<std::byte> read(10'000);
  must(file.read(1000, read));
  CHECK(read == bytes(10'000, 5));
}

TEST_CASE("leases: a hole is refused, or filled with zeroes", "[unit][fs]") {
  LeaseFs t;
  must(t.file.write(0, bytes(5000, 1)));
  must(t.file.write(30'000, bytes(5000, 2)));
  must(t.file.allocate(0, 40'000, 8000));
  CHECK(code_of(t.file.direct(0, 20'000)) == Errc::kNoAddress);
  CHECK(code_of(t.file.direct(40'960, 10)) == Errc::kNoAddress);  // reserved, and never written
  std::vector<std::byte> expected(48'000);
  must(t.file.read(0, expected));
  const Lease lease = must(t.file.direct(0, 48'000, DirectUse::kWrite, Holes::kFill));
  CHECK(contents(lease) == expected);
  CHECK(must(t.file.stat()).size_bytes == 48'000);
  t.fs.require_clean();
}

TEST_CASE("leases: who has not opened the file for it gets none; set-id bits go first", "[unit][fs]") {
  LeaseFs t;
  must(t.file.write(0, bytes(5000, 1)));
  const File reader = must(t.fs->open_file("/f", O_RDONLY, 0, kRoot));
  const File writer = must(t.fs->open_file("/f", O_WRONLY, 0, kRoot));
  CHECK(code_of(reader.direct(0, 10, DirectUse::kWrite)) == Errc::kBadHandle);
  CHECK(code_of(writer.direct(0, 10)) == Errc::kBadHandle);
  CHECK(code_of(must(reader.direct(0, 10)).persist(0, 10)) == Errc::kBadHandle);
  must(t.fs->set_attributes("/f", {.mode = 06777, .uid = 7}, kRoot));
  must(t.fs->set_attributes("/f", {.mode = 06777}, kRoot));
  Credentials who;
  who.uid = who.gid = 9;
  const File user = must(t.fs->open_file("/f", O_RDWR, 0, who));
  const Lease reads = must(user.direct(0, 10));
  CHECK((must(user.stat()).mode & 07777) == 06777);
  const Lease writes = must(user.direct(0, 10, DirectUse::kWrite));
  CHECK((must(user.stat()).mode & 07777) == 0777);
}

TEST_CASE("leases: moved, given back twice, and overlapping", "[unit][fs]") {
  LeaseFs t;
  must(t.file.write(0, bytes(20'000, 1)));
  Lease a = must(t.file.direct(0, 20'000));
  Lease b = must(t.file.direct(4096, 4096));
  Lease c = std::move(a);
  CHECK_FALSE(a.is_open());
  CHECK(code_of(a.give_back()) == Errc::kBadHandle);
  b = std::move(c);
  must(t.file.truncate(0));
  volume_of(t.fs.fs()).quarantine.drain();
  CHECK(contents(b) == bytes(20'000, 1));
  must(b.give_back());
  CHECK(volume_of(t.fs.fs()).quarantine.pinned_blocks() == 0);
  must(t.file.close());
  must(t.fs->close());
}
