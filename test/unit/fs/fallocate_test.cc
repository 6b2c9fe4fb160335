// fallocate, SEEK_DATA and SEEK_HOLE, copies: the same calls are made on the machine's own file system, and answered
// alike, errno for errno and byte for byte.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "fs/volume.h"
#include "test/support/memory_fs.h"
#include "test/support/scratch.h"
#include "test/support/text.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

constexpr int kKeep = FALLOC_FL_KEEP_SIZE, kPunch = FALLOC_FL_PUNCH_HOLE | kKeep, kZero = FALLOC_FL_ZERO_RANGE;
constexpr int kCollapse = FALLOC_FL_COLLAPSE_RANGE, kInsert = FALLOC_FL_INSERT_RANGE;
const Credentials kRoot = Credentials::root();

template <class T>
int errno_of(const Result<T>& result) {
  return result.ok() ? 0 : to_errno(result.error().code);
}

std::vector<std::byte> bytes(std::size_t count, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> data(count);
  for (std::byte& b : data) b = static_cast<std::byte>(1 + random() % 255);
  return data;
}

// A file here, and one of the machine's.
class Twins {
 public:
  Twins() : scratch_(Scratch::Place::kDisk) {
    host_ = ::open(scratch_.file("f").c_str(), O_RDWR | O_CREAT | O_EXCL, 0644);
    REQUIRE(host_ >= 0);
    file_ = must(fs_->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
  }
  ~Twins() { ::close(host_); }
  Twins(const Twins&) = delete;
  Twins& operator=(const Twins&) = delete;

  int host() const { return host_; }
  const Scratch& scratch() const { return scratch_; }
  File& file() { return file_; }
  MemoryFs& fs() { return fs_; }
  bool host_has_all() const {  // whether the machine's file system knows all modes
    const auto knows = [this](int mode) { return ::fallocate(host_, mode, 0, 4096) != 0 && errno != EOPNOTSUPP; };
    return knows(kInsert) && knows(kCollapse);  // of an empty file: neither can be done
  }

  void write(u64 off, const std::vector<std::byte>& data) {
    REQUIRE(must(file_.write(off, data)) == data.size());
    REQUIRE(::pwrite(host_, data.data(), data.size(), static_cast<off_t>(off)) == static_cast<ssize_t>(data.size()));
  }
  void truncate(u64 size) {
    must(file_.truncate(size));
    REQUIRE(::ftruncate(host_, static_cast<off_t>(size)) == 0);
  }
  void allocate(int mode, u64 off, u64 len) {
    INFO("fallocate " << mode << " " << off << " " << len);
    const int theirs = ::fallocate(host_, mode, static_cast<off_t>(off), static_cast<off_t>(len)) == 0 ? 0 : errno;
    REQUIRE(errno_of(file_.allocate(mode, off, len)) == theirs);
  }
  void copy(u64 off, u64 to, u64 len) {
    INFO("copy " << off << " to " << to << ", " << len);
    loff_t in = static_cast<loff_t>(off), out = static_cast<loff_t>(to);
    const ssize_t theirs = ::copy_file_range(host_, &in, host_, &out, len, 0);
    const int error = theirs < 0 ? errno : 0;
    const auto ours = file_.copy_to(off, file_, to, len);
    REQUIRE(errno_of(ours) == error);
    if (ours.ok()) REQUIRE(*ours == static_cast<std::size_t>(theirs));
  }
  void same() {
    struct stat s {};
    REQUIRE(::fstat(host_, &s) == 0);
    const Attributes a = must(file_.stat());
    REQUIRE(a.size_bytes == static_cast<u64>(s.st_size));
    std::vector<std::byte> ours(a.size_bytes), theirs(a.size_bytes);
    REQUIRE(must(file_.read(0, ours)) == ours.size());
    REQUIRE(::pread(host_, theirs.data(), theirs.size(), 0) == static_cast<ssize_t>(theirs.size()));
    const auto differs = std::mismatch(ours.begin(), ours.end(), theirs.begin()).first - ours.begin();
    REQUIRE(differs == static_cast<std::ptrdiff_t>(ours.size()));
  }

 private:
  Scratch scratch_;
  MemoryFs fs_{u64{16} << 20};
  File file_;
  int host_ = -1;
};

// Whether there is nothing to compare with; says so.
bool lacks_modes(const Twins& twins) {
  if (twins.host_has_all()) return false;
  WARN("the machine's file system lacks modes of fallocate: nothing is compared");
  return true;
}

u64 blocks(MemoryFs& fs) { return must(fs->stat("/f", kRoot)).blocks_512 / 8; }

}  // namespace

TEST_CASE("fallocate: each mode answers each range as Linux does", "[unit][fs]") {
  constexpr u64 kMost = std::numeric_limits<i64>::max();
  const u64 ranges[][2] = {{0, 0},          {0, 4096},     {100, 4096},   {4096, 100},       {16384, 4096},
                           {16384, 3616},   {20480, 4096}, {20000, 4096}, {24576, 4096},     {kMost - 4095, 4096},
                           {kMost, kMost},  {1, kMost},    {8192, 8192},  {u64{1} << 63, 1}, {0, u64{1} << 63},
                           {0, kMost - 99}, {20000, 1}};
  for (const int mode : {0, kKeep, kPunch, int{FALLOC_FL_PUNCH_HOLE}, kZero, kZero | kKeep, kCollapse, kInsert,
                         kCollapse | kKeep, kInsert | kKeep, kPunch | kZero, kCollapse | kInsert, 4})
    for (const auto& [off, len] : ranges) {
      Twins twins;
      if (lacks_modes(twins)) return;
      twins.write(0, bytes(20000, 1));
      twins.allocate(mode, off, len);
      twins.same();
      twins.fs().require_clean();
    }
}

TEST_CASE("fallocate: random calls leave the contents that Linux leaves", "[unit][fs]") {
  const bool long_form = std::getenv("PMFS_LONG") != nullptr;
  for (u64 seed = 1; seed <= (long_form ? 200 : 8); ++seed) {
    INFO("seed " << seed);
    Twins twins;
    if (lacks_modes(twins)) return;
    std::mt19937_64 random(seed);
    const auto pick = [&](u64 n) { return random() % n; };
    for (int step = 0; step < 250; ++step) {
      INFO("step " << step);
      const u64 off = pick(2) == 0 ? pick(80'000) : pick(20) * 4096;
      const u64 len = 1 + (pick(2) == 0 ? pick(300) : pick(30'000));
      const u64 whole = pick(8) == 0 ? 0 : 4095;  // mostly whole blocks, where those are wanted
      switch (pick(10)) {
        case 0:
        case 1: twins.write(off, bytes(len, random())); break;
        case 2: twins.truncate(off); break;
        case 3: twins.allocate(pick(2) == 0 ? 0 : kKeep, off, len); break;
        case 4: twins.allocate(kPunch, off, len); break;
        case 5: twins.allocate(pick(2) == 0 ? kZero : kZero | kKeep, off, len); break;
        case 6: twins.allocate(kCollapse, off & ~whole, (len + 4095) & ~whole); break;
        case 7:
          if (must(twins.file().stat()).size_bytes < 300'000)
            twins.allocate(kInsert, off & ~whole, (len + 4095) & ~whole);
          break;
        default: twins.copy(off, pick(100'000), len); break;
      }
      twins.same();
      if (step % 50 == 49) twins.fs().require_clean();
    }
  }
}

TEST_CASE("fallocate: what is allocated needs no more blocks, and what is punched gives them back", "[unit][fs]") {
  MemoryFs fs(u64{16} << 20);
  File file = must(fs->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
  must(file.allocate(0, 0, 20 * 4096));
  CHECK(blocks(fs) == 20);
  CHECK(must(file.stat()).size_bytes == 20 * 4096);
  must(file.write(4096, bytes(3 * 4096, 1)));
  CHECK(blocks(fs) <= 21);  // a node for three extents
  must(file.allocate(kPunch, 0, 20 * 4096));
  CHECK(blocks(fs) == 0);
  must(file.allocate(kKeep, 0, 40 * 4096));
  CHECK(blocks(fs) == 40);
  CHECK(must(file.stat()).size_bytes == 20 * 4096);
  fs.require_clean();
  fs.reopen_after_kill();
}

TEST_CASE("fallocate: blocks behind the end survive a reopen, and go with a truncation to the size", "[unit][fs]") {
  MemoryFs fs(u64{16} << 20);
  must(fs->mknod("/f", 0644, 0, kRoot));
  const InodeNo ino = must(fs->stat("/f", kRoot)).ino;
  must(fs->write(ino, 0, bytes(5000, 1), kRoot));
  must(fs->allocate(ino, kKeep, 0, 40 * 4096, kRoot));
  fs.reopen_after_kill();
  CHECK(blocks(fs) >= 40);
  fs.require_clean();
  fs.reopen();
  CHECK(blocks(fs) >= 40);
  must(fs->set_attributes("/f", {.size_bytes = 5000}, kRoot));
  CHECK(blocks(fs) == 2);
  fs.require_clean();
}

TEST_CASE("fallocate: zeroing keeps the blocks of whole ones, and collapse and insert copy none", "[unit][fs]") {
  MemoryFs fs(u64{16} << 20);
  File file = must(fs->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
  must(file.write(0, bytes(20 * 4096, 1)));
  const auto where = [&] {
    std::vector<u64> list;
    Volume& volume = volume_of(fs.fs());
    const InodeRef ref = must(volume.inodes.get(file.ino()));
    must(volume.maps.each(ref.media().map_root.get(), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
      for (u64 i = 0; i < e.count; ++i) list.push_back(e.block + i);
      return {};
    }));
    return list;
  };
  const std::vector<u64> before = where();
  must(file.allocate(kZero, 4096, 8 * 4096));
  CHECK(where() == before);
  must(file.allocate(kInsert, 8192, 3 * 4096));
  CHECK(where() == before);
  must(file.allocate(kCollapse, 8192, 3 * 4096));
  CHECK(where() == before);
  fs.require_clean();
}

TEST_CASE("fallocate: who may not, and what has no blocks, is told as Linux tells it", "[unit][fs]") {
  MemoryFs fs(u64{16} << 20);
  must(fs->mkdir("/d", 0755, kRoot));
  const auto at = [&](const char* path) { return must(fs->stat(path, kRoot)).ino; };
  must(fs->mknod("/fifo", S_IFIFO | 0644, 0, kRoot));
  must(fs->mknod("/null", S_IFCHR | 0644, 0x103, kRoot));
  CHECK(errno_of(fs->allocate(at("/d"), 0, 0, 1, kRoot)) == EISDIR);
  CHECK(errno_of(fs->allocate(at("/fifo"), 0, 0, 1, kRoot)) == ESPIPE);
  CHECK(errno_of(fs->allocate(at("/null"), 0, 0, 1, kRoot)) == ENODEV);
  must(fs->mknod("/f", 0644, 0, kRoot));
  const File reader = must(fs->open_file("/f", O_RDONLY, 0, kRoot));
  CHECK(errno_of(reader.allocate(0, 0, 1)) == EBADF);
  // 2^52 - 1 bytes are what a map holds.
  CHECK(errno_of(fs->allocate(at("/f"), kKeep, (u64{1} << 52) - 2, 2, kRoot)) == EFBIG);
}

TEST_CASE("fallocate: set-id bits go when a user does it, in the same commit, and stay for root", "[unit][fs]") {
  MemoryFs fs(u64{16} << 20);
  must(fs->mknod("/f", 0644, 0, kRoot));
  const InodeNo ino = must(fs->stat("/f", kRoot)).ino;
  must(fs->write(ino, 0, bytes(20000, 1), kRoot));
  Credentials user;
  user.uid = user.gid = 1000;
  for (const int mode : {0, kKeep, kPunch, kZero, kCollapse, kInsert}) {
    INFO(mode);
    must(fs->set_attributes("/f", {.mode = 06755}, kRoot));
    must(fs->allocate(ino, mode, 4096, 4096, kRoot));
    CHECK((must(fs->stat("/f", kRoot)).mode & 07777) == 06755);
    const u64 fences = thread_counters().fences;
    must(fs->allocate(ino, mode, 4096, 4096, user));
    CHECK(thread_counters().fences - fences == 2);
    CHECK((must(fs->stat("/f", kRoot)).mode & 07777) == 0755);
  }
}

TEST_CASE("fallocate: a full pool refuses, unchanged; punching and collapsing still work", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  must(fs->mknod("/f", 0644, 0, kRoot));
  const InodeNo ino = must(fs->stat("/f", kRoot)).ino;
  const u64 avail = must(fs->space()).blocks_avail;
  CHECK(code_of(fs->allocate(ino, 0, 0, (avail + 100) * 4096, kRoot)) == Errc::kNoSpace);
  CHECK(blocks(fs) == 0);
  CHECK(must(fs->stat("/f", kRoot)).size_bytes == 0);
  CHECK(must(fs->space()).blocks_avail == avail);
  u64 size = 0;
  for (;;) {
    const auto n = fs->write(ino, size, bytes(65536, size), kRoot);
    if (!n.ok()) break;
    size += *n;
  }
  CHECK(code_of(fs->allocate(ino, 0, size + 4096, 1 << 20, kRoot)) == Errc::kNoSpace);
  for (u64 at = 0; at + 9000 < size; at += 40'000) must(fs->allocate(ino, kPunch, at + 1001, 7000, kRoot));
  for (int i = 0; i < 5; ++i) must(fs->allocate(ino, kCollapse, 8192, 4096, kRoot));
  fs.require_clean();
}

TEST_CASE("seek: data and holes are found, reserved blocks are holes, and the end is one", "[unit][fs]") {
  MemoryFs fs(u64{16} << 20);
  File file = must(fs->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
  CHECK(errno_of(file.seek(0, SEEK_DATA)) == ENXIO);
  CHECK(errno_of(file.seek(0, SEEK_HOLE)) == ENXIO);
  must(file.write(4096, bytes(4096, 1)));
  must(file.write(40'960, bytes(5000, 2)));
  must(file.allocate(0, 12'288, 8192));
  must(file.truncate(100'000));
  CHECK(must(file.seek(0, SEEK_HOLE)) == 0);
  CHECK(must(file.seek(0, SEEK_DATA)) == 4096);
  CHECK(must(file.seek(5000, SEEK_DATA)) == 5000);
  CHECK(must(file.seek(5000, SEEK_HOLE)) == 8192);
  CHECK(must(file.seek(8192, SEEK_DATA)) == 40'960);
  CHECK(must(file.seek(12'300, SEEK_HOLE)) == 12'300);
  CHECK(must(file.seek(40'960, SEEK_HOLE)) == 49'152);
  CHECK(errno_of(file.seek(49'152, SEEK_DATA)) == ENXIO);
  CHECK(must(file.seek(99'999, SEEK_HOLE)) == 99'999);
  CHECK(errno_of(file.seek(100'000, SEEK_HOLE)) == ENXIO);
  CHECK(errno_of(file.seek(0, SEEK_SET)) == EINVAL);
  must(file.truncate(45'000));
  CHECK(must(file.seek(41'000, SEEK_HOLE)) == 45'000);
}

TEST_CASE("copies: between files, with the errors that Linux gives", "[unit][fs]") {
  MemoryFs fs(u64{16} << 20);
  MemoryFs other(u64{8} << 20);
  const File from = must(fs->open_file("/from", O_RDWR | O_CREAT, 0644, kRoot));
  const File to = must(fs->open_file("/to", O_RDWR | O_CREAT, 0644, kRoot));
  const std::vector<std::byte> data = bytes(50'000, 3);
  must(from.write(0, data));
  CHECK(must(from.copy_to(1000, to, 77, 30'000)) == 30'000);
  std::vector<std::byte> read(40'000);
  CHECK(must(to.read(0, read)) == 30'077);
  CHECK(std::all_of(read.begin(), read.begin() + 77, [](std::byte b) { return b == std::byte{0}; }));
  CHECK(std::equal(data.begin() + 1000, data.begin() + 31'000, read.begin() + 77));
  CHECK(must(from.copy_to(49'000, to, 0, 30'000)) == 1000);
  CHECK(must(from.copy_to(50'000, to, 0, 30'000)) == 0);
  CHECK(must(from.copy_to(0, to, 0, 0)) == 0);
  CHECK(errno_of(from.copy_to(0, from, 100, 101)) == EINVAL);
  CHECK(must(from.copy_to(0, from, 100, 100)) == 100);
  const File reader = must(fs->open_file("/from", O_RDONLY, 0, kRoot));
  const File writer = must(fs->open_file("/to", O_WRONLY, 0, kRoot));
  const File appender = must(fs->open_file("/to", O_WRONLY | O_APPEND, 0, kRoot));
  const File elsewhere = must(other->open_file("/to", O_RDWR | O_CREAT, 0644, kRoot));
  CHECK(errno_of(from.copy_to(0, reader, 0, 1)) == EBADF);
  CHECK(errno_of(writer.copy_to(0, from, 0, 1)) == EBADF);
  CHECK(errno_of(from.copy_to(0, appender, 0, 1)) == EBADF);
  CHECK(errno_of(from.copy_to(0, elsewhere, 0, 1)) == EXDEV);
  CHECK(errno_of(from.copy_to(~u64{0}, to, 0, 1)) == EOVERFLOW);
  CHECK(errno_of(from.copy_to(0, to, u64{1} << 52, 1)) == EFBIG);
  CHECK(errno_of(fs->copy_range(kRootIno, 0, to.ino(), 0, 1, kRoot)) == EISDIR);
  fs.require_clean();
}

TEST_CASE("copies: one call copies as much as there is room for", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const File from = must(fs->open_file("/from", O_RDWR | O_CREAT, 0644, kRoot));
  const File to = must(fs->open_file("/to", O_RDWR | O_CREAT, 0644, kRoot));
  must(from.write(0, bytes(5 << 20, 3)));
  const std::size_t copied = must(from.copy_to(0, to, 0, 5 << 20));
  CHECK(copied > 1 << 20);
  CHECK(copied < 5 << 20);
  Errc error{};
  for (u64 at = copied; error == Errc{};) {
    const auto more = from.copy_to(at, to, at, (5 << 20) - at);
    error = code_of(more);
    if (more.ok()) at += *more;
    REQUIRE(at < 5 << 20);
  }
  CHECK(error == Errc::kNoSpace);
  fs.require_clean();
}

TEST_CASE("offsets: 16 TiB and more are written and read; what no map holds is too big", "[unit][fs]") {
  MemoryFs fs(u64{16} << 20);
  const File file = must(fs->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
  constexpr u64 kEnd = (u64{1} << 52) - 1;
  for (const u64 at : {u64{1} << 44, (u64{1} << 44) + 12'345, kEnd - 8192}) {
    must(file.write(at, bytes(5000, at)));
    std::vector<std::byte> read(5000);
    CHECK(must(file.read(at, read)) == 5000);
    CHECK(read == bytes(5000, at));
    CHECK(must(file.stat()).size_bytes == at + 5000);
    CHECK(must(file.seek(at / 4096 * 4096 - 1, SEEK_DATA)) == at / 4096 * 4096);
  }
  CHECK(errno_of(file.write(kEnd, bytes(1, 1))) == EFBIG);
  CHECK(must(file.write(kEnd - 10, bytes(100, 1))) == 10);
  CHECK(errno_of(file.truncate(kEnd + 1)) == EFBIG);
  must(file.truncate(kEnd));
  must(file.allocate(kPunch, 4096, kEnd - 4096));
  CHECK(must(file.stat()).blocks_512 == 0);
  fs.require_clean();
}
