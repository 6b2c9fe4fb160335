// libpmemobj's own part of a pool, mutated with its checksums made right again. Only Pool::open stands between that and
// libpmemobj, which trusts what it reads. Verdict for every image: an Error or an open pool; never a signal, never a
// hang. PMFS_LONG=1 makes it long; PMFS_SEED=n repeats one.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>

#include "fs/pool.h"
#include "pmfs/result.h"
#include "test/support/catch.h"
#include "test/support/prng.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

constexpr u64 kPoolBytes = u64{8} << 20;
constexpr u64 kMutated = u64{4} << 20;  // header, descriptor, lanes, heap and zone header lie within
constexpr u64 kDescriptor = 4096;
constexpr u64 kLanes = 8192;
constexpr u64 kLaneBytes = 3072;
constexpr u64 kLaneCount = 1024;
constexpr u64 kHeap = kLanes + kLaneCount * kLaneBytes;

u64 word_at(const std::string& image, u64 off) {
  u64 word;
  std::memcpy(&word, image.data() + off, sizeof word);
  return word;
}

void set_word(std::string& image, u64 off, u64 word) { std::memcpy(image.data() + off, &word, sizeof word); }

/// Fletcher-64 over 32-bit words, the checksum's own place taken as zero: how libpmemobj seals its headers.
u64 fletcher64(const std::string& image, u64 from, u64 bytes, u64 checksum_at) {
  u32 low = 0, high = 0;
  for (u64 at = from; at < from + bytes; at += 4) {
    u32 word;
    std::memcpy(&word, image.data() + at, sizeof word);
    if (at == checksum_at || at == checksum_at + 4) word = 0;
    low += word;
    high += low;
  }
  return u64{high} << 32 | low;
}

struct Sealed {
  u64 from, bytes;
  u64 checksum_at() const { return from + bytes - 8; }
};
constexpr Sealed kSealed[] = {{0, 4096}, {kDescriptor, 2048}, {kHeap, 1024}};

void seal(std::string& image) {
  for (const Sealed& each : kSealed)
    set_word(image, each.checksum_at(), fletcher64(image, each.from, each.bytes, each.checksum_at()));
}

/// A place that libpmemobj looks at when it opens a pool.
u64 place(Prng& prng) {
  constexpr u64 kLogWords[] = {0, 8, 16, 24, 64, 72, 80, 256, 264, 272, 320, 328, 960, 968, 976, 984, 1024, 1032, 1040};
  switch (prng.below(8)) {
    case 0: return prng.below(4096);
    case 1: return kDescriptor + prng.below(1024);
    case 2:
    case 3: return kDescriptor + 1024 + 8 * prng.below(4);
    case 4: return kDescriptor + 2048 + prng.below(128);
    case 5: return kLanes + prng.below(kLaneCount * kLaneBytes);
    case 6: return kLanes + prng.below(kLaneCount) * kLaneBytes + kLogWords[prng.below(std::size(kLogWords))];
    default: return kHeap + prng.below(kMutated - kHeap);
  }
}

void mutate(std::string& image, Prng& prng) {
  constexpr u64 kSpecial[] = {0,    1,      ~u64{0},      ~u64{0} >> 1, u64{1} << 63, 64,
                              4096, kLanes, u64{1} << 32, kHeap,        kLaneBytes};
  for (u64 left = 1 + prng.below(4); left > 0; --left) {
    const u64 at = place(prng);
    const u64 word = at / 8 * 8;
    switch (prng.below(4)) {
      case 0: image[at] = static_cast<char>(prng.next()); break;
      case 1: image[at] = static_cast<char>(image[at] ^ (1 << prng.below(8))); break;
      case 2: set_word(image, word, kSpecial[prng.below(std::size(kSpecial))]); break;
      default:
        set_word(image, word, word_at(image, word) + (prng.coin() ? u64{1} : ~u64{0}) * (u64{1} << prng.below(40)));
    }
  }
  if (!prng.once_in(8)) seal(image);
}

/// The words that were mutated: ", OFF: WAS -> IS" each.
std::string differences(const std::string& good, const std::string& image) {
  std::ostringstream words;
  words << std::hex;
  for (u64 off = 0; off < image.size(); off += 8)
    if (word_at(good, off) != word_at(image, off))
      words << ", " << off << ": " << word_at(good, off) << " -> " << word_at(image, off);
  return words.str();
}

/// Opens, reads and stores a little, closes: 0, or 1 for an error that is none of ours.
int use(const std::string& path, bool read_only) {
  auto pool = Pool::open(path, read_only);
  if (!pool.ok()) return static_cast<u16>(pool.error().code) == 0 || *error_detail() == '\0' ? 1 : 0;
  const Memory memory = pool->memory();
  volatile std::byte* const last = memory.base + memory.size_bytes - 1;
  (void)*last;
  std::memset(memory.at(pool->locator_off()), 0x5a, kLocatorBytes);
  return pool->close().ok() ? 0 : 1;
}

}  // namespace

TEST_CASE("hostile: libpmemobj's headers and logs, mutated, give an error or a pool", "[hostile][fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("pool");
  REQUIRE(Pool::create(path, kPoolBytes, false, 0600).ok());
  const std::string good = read_file(path).substr(0, kMutated);
  std::string sealed = good;
  seal(sealed);
  REQUIRE(sealed == good);  // so the test knows how libpmemobj seals

  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  const char* const one = std::getenv("PMFS_SEED");
  const u64 first = one != nullptr ? std::strtoull(one, nullptr, 10) : 1;
  const u64 rounds = one != nullptr ? 1 : std::getenv("PMFS_LONG") != nullptr ? 20000 : 400;
  std::string image;
  for (u64 seed = first; seed < first + rounds; ++seed) {
    Prng prng{seed};
    image = good;
    mutate(image, prng);
    const bool read_only = prng.coin();
    REQUIRE(::pwrite(fd, image.data(), image.size(), 0) == static_cast<ssize_t>(image.size()));
    const int verdict = in_child([&] { return use(path, read_only); }, 10);
    INFO("PMFS_SEED=" << seed << (read_only ? ", read-only" : ""));
    if (verdict != 0) FAIL_CHECK(verdict << differences(good, image));  // 128 + n: signal n; 200: it hung
  }
  ::close(fd);
}

TEST_CASE("hostile: a root object that no heap has room for does not open the way to the logs", "[hostile][fs]") {
  const Scratch scratch;
  const std::string path = scratch.file("pool");
  REQUIRE(Pool::create(path, kPoolBytes, false, 0600).ok());
  std::string image = read_file(path).substr(0, kMutated);
  constexpr u64 kRootBytesAt = kDescriptor + 2048 + 16;
  // An application's root object may be large, and its logs may hold work; but not larger than the pool.
  set_word(image, kRootBytesAt, word_at(image, kRootBytesAt) + (u64{1} << 46));
  set_word(image, kLanes + 8, kHeap);
  seal(image);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::pwrite(fd, image.data(), image.size(), 0) == static_cast<ssize_t>(image.size()));
  ::close(fd);
  const auto pool = Pool::open(path, false);
  REQUIRE_FALSE(pool.ok());
  CHECK(pool.error().code == Errc::kCorrupt);
}
