// Space: the allocator, what opening learns of it, huge and scattered files, a full pool, and sizes up to 1 TiB.
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>

#include "base/checksum.h"
#include "fs/attributes.h"
#include "fs/file_io.h"
#include "fs/filesystem_impl.h"
#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();
constexpr u64 kMiB = u64{1} << 20;
constexpr u64 kTiB = u64{1} << 40;

bool long_form() { return std::getenv("PMFS_LONG") != nullptr; }

InodeNo make(MemoryFs& fs, const std::string& path) { return must(fs->mknod(path, 0644, 0, kRoot)).ino; }

void write(MemoryFs& fs, InodeNo ino, u64 off, u64 bytes) {
  const std::vector<std::byte> data(bytes, std::byte{0x5a});
  REQUIRE(must(fs->write(ino, off, data, kRoot)) == bytes);
}

Result<void> reserve(MemoryFs& fs, InodeNo ino, u64 first, u64 count) {
  return fs->allocate(ino, 0, first * kBlockBytes, count * kBlockBytes, kRoot);
}

std::vector<Extent> extents(MemoryFs& fs, InodeNo ino) {
  Volume& volume = volume_of(fs.fs());
  std::vector<Extent> list;
  must(volume.maps.each(volume.inodes.slot(to_u64(ino) - 1).map_root.get(), 0, kMapEnd,
                        [&](const Extent& e) -> Result<void> {
                          list.push_back(e);
                          return {};
                        }));
  return list;
}

// Maps whatever is free into one file, in unwritten blocks, so that no memory is touched. The last blocks, which would
// be too few for the file's new map nodes, go to files of their own; their names are returned.
std::vector<std::string> fill(MemoryFs& fs, InodeNo ino) {
  u64 at = 0;
  for (u64 piece = u64{1} << 20; piece != 0; piece /= 2) {
    Result<void> done;
    while ((done = reserve(fs, ino, at, piece)).ok()) at += piece;
    REQUIRE(done.error().code == Errc::kNoSpace);
  }
  static int number = 0;
  std::vector<std::string> names;
  while (must(fs->space()).blocks_avail != 0) {
    REQUIRE(names.size() < 8);
    names.push_back("/last" + std::to_string(number++));
    must(reserve(fs, make(fs, names.back()), 0, 1));
  }
  return names;
}

SpaceInfo space_of(MemoryFs& fs) { return must(fs->space()); }

}  // namespace

// --- The allocator
// -------------------------------------------------------------------------------------------------------

TEST_CASE("alloc: threads get each block once, to the last one, and give all of them back", "[unit][fs]") {
  constexpr u64 kBlocks = 100'000;
  BlockAlloc alloc(Regions({{kBlockBytes, kBlocks * kBlockBytes}}));
  std::vector<std::atomic<u8>> owners(kBlocks + 1);
  std::atomic<u64> taken{0};
  std::atomic<u64> twice{0};
  const auto work = [&](unsigned seed, Purpose purpose) {
    std::vector<BlockRun> mine;
    u64 goal = 0;
    for (u32 random = seed;;) {
      random = random * 1664525 + 1013904223;
      const u64 want = random >> 28 < 8 ? 1 : 1 + (random >> 20) % 600;
      const auto run = alloc.allocate(want, random >> 31 != 0 ? goal : 0, purpose);
      if (!run.ok()) break;
      goal = run->end();
      taken += run->count;
      for (u64 block = run->first; block < run->end(); ++block) twice += owners[block].exchange(1);
      mine.push_back(*run);
      if (random >> 29 == 0) {  // and some back again
        const BlockRun back = mine[random % mine.size()];
        std::swap(mine[random % mine.size()], mine.back());
        mine.pop_back();
        for (u64 block = back.first; block < back.end(); ++block) owners[block] = 0;
        taken -= back.count;
        alloc.release(back);
      }
    }
    return mine;
  };
  std::vector<std::vector<BlockRun>> held(4);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back([&, i] { held[i] = work(i + 1, Purpose::kOrdinary); });
  for (std::thread& thread : threads) thread.join();
  held.push_back(work(9, Purpose::kOrdinary));  // what a thread gave back after the others had given up
  CHECK(twice == 0);
  CHECK(taken == kBlocks - alloc.reserve());
  CHECK(alloc.free_blocks() == alloc.reserve());
  held.push_back(work(9, Purpose::kFreeing));
  CHECK(taken == kBlocks);
  CHECK(alloc.free_blocks() == 0);
  for (const auto& runs : held)
    for (const BlockRun& run : runs) alloc.release(run);
  CHECK(alloc.free_blocks() == kBlocks);
  CHECK_FALSE(alloc.damaged());
  CHECK(alloc.save() == BlockAlloc(Regions({{kBlockBytes, kBlocks * kBlockBytes}})).save());
}

TEST_CASE("alloc: single blocks fill holes, and what is in a cache counts as free", "[unit][fs]") {
  BlockAlloc alloc(Regions({{kBlockBytes, 32768 * kBlockBytes}}));
  CHECK(must(alloc.allocate(511, 1, Purpose::kOrdinary)).first == 1);  // what lies before the first multiple of 2 MiB
  const BlockRun all = must(alloc.allocate(20'000, 0, Purpose::kOrdinary));
  for (u64 i = 0; i < 100; ++i) alloc.release({all.first + 10 * i, 1});
  const u64 free = alloc.free_blocks();
  for (u64 i = 0; i < 100; ++i) {
    const BlockRun run = must(alloc.allocate(1, 0, Purpose::kOrdinary));
    CHECK((run.first >= all.first && run.first < all.first + 1000));
    CHECK(alloc.free_blocks() == free - i - 1);
  }
}

TEST_CASE("files: written in pieces they lie in one row; large ones begin at a multiple of 2 MiB", "[unit][fs]") {
  MemoryFs fs(256 * kMiB);
  const InodeNo pieces = make(fs, "/pieces");
  for (u64 i = 0; i < 2000; ++i) write(fs, pieces, i * 4096, 4096);
  CHECK(extents(fs, pieces).size() <= 2);  // the second begins where what the thread's cache had ends
  const InodeNo large = make(fs, "/large");
  write(fs, large, 0, 8 * kMiB);
  REQUIRE(extents(fs, large).size() == 1);
  CHECK(extents(fs, large)[0].block % 512 == 0);
  fs.require_clean();
}

// --- Full pools
// ----------------------------------------------------------------------------------------------------------

TEST_CASE("full: the last free block is had from the quarantine, for one fence more", "[unit][fs]") {
  MemoryFs fs(16 * kMiB);
  const InodeNo first = make(fs, "/first");
  write(fs, first, 0, 4096);
  const InodeNo other = make(fs, "/other");
  fill(fs, make(fs, "/filler"));
  REQUIRE(code_of(fs->write(other, 0, std::vector<std::byte>(1), kRoot)) == Errc::kNoSpace);
  must(fs->unlink("/first", kRoot));
  CHECK(space_of(fs).blocks_avail == 1);
  const u64 fences = thread_counters().fences;
  write(fs, other, 0, 1);
  CHECK(thread_counters().fences - fences == 3);
  CHECK(space_of(fs).blocks_avail == 0);
  fs.require_clean();
}

TEST_CASE("full: data goes into blocks that were reserved for it", "[unit][fs]") {
  MemoryFs fs(16 * kMiB);
  const InodeNo file = make(fs, "/file");
  must(reserve(fs, file, 0, 500));
  fill(fs, make(fs, "/filler"));
  const Extent before = extents(fs, file)[0];
  std::vector<std::byte> seen(20'000, std::byte{1});
  REQUIRE(must(fs->read(file, 0, seen)) == seen.size());
  CHECK(seen == std::vector<std::byte>(20'000));  // unwritten blocks read as zero
  const u64 used = space_of(fs).blocks_free;
  for (u64 i = 0; i < 500; i += 2) write(fs, file, i * 4096 + 100, 500);  // each splits an extent
  for (u64 i = 0; i < 500; ++i) {
    REQUIRE(must(fs->read(file, i * 4096, std::span(seen).first(4096))) == 4096);
    const auto is = [&](std::size_t at, int byte) { return seen[at] == static_cast<std::byte>(byte); };
    REQUIRE((is(0, 0) && is(99, 0) && is(100, i % 2 == 0 ? 0x5a : 0) && is(599, i % 2 == 0 ? 0x5a : 0) && is(600, 0)));
  }
  CHECK(used - space_of(fs).blocks_free < 5);  // map nodes, from the reserve
  for (u64 i = 1; i < 500; i += 2) write(fs, file, i * 4096, 4096);
  u64 next = before.block;
  for (const Extent& e : extents(fs, file)) {  // what lies in one leaf of the map has become one again
    CHECK(e.block == next);
    CHECK_FALSE(e.unwritten);
    next = e.block + e.count;
  }
  CHECK(next == before.block + 500);
  CHECK(extents(fs, file).size() <= 4);
  fs.require_clean();
  fs.reopen_after_kill();
  fs.require_clean();
}

TEST_CASE("huge map: truncate and delete are one commit of two fences, also on a full pool", "[unit][fs]") {
  // 1,000,000 extents in the long form. Their blocks are unwritten, so that only map nodes take memory.
  const u64 kExtents = long_form() ? 1'000'000 : 30'000;
  MemoryFs fs(kExtents * kBlockBytes + kExtents / 100 * kBlockBytes + 64 * kMiB);
  Volume& volume = volume_of(fs.fs());
  const u64 free_before = space_of(fs).blocks_free;
  const InodeNo file = make(fs, "/file");
  // Every other logical block, many of them a commit.
  constexpr u64 kBatch = 1000;
  for (u64 at = 0; at < kExtents; at += kBatch) {
    const InodeRef ref = must(volume.inodes.get(file));
    std::unique_lock lock(ref->lock);
    Commit commit = volume.begin_commit();
    BlockHold hold(volume.blocks);
    std::vector<Extent> put;
    for (u64 i = at; i < at + kBatch; ++i) put.push_back({2 * i, 1, must(hold.take(1)).first, true});
    MapChange change = must(volume.maps.replace(ref.media().map_root.get(), 2 * at, 2 * (at + kBatch), put, hold));
    touch_inode(volume, commit, ref);
    commit.set(ref.media().map_root, change.root);
    commit.set(ref.media().blocks, ref.media().blocks.get() + change.added_blocks - change.freed_blocks());
    commit.set(ref.media().size_bytes, 2 * (at + kBatch) * kBlockBytes);
    Freed freed;
    freed.by = must(commit.run());
    hold.keep();
    freed.blocks = std::move(change.freed);
    volume.quarantine.add(std::move(freed));
  }
  REQUIRE(extents(fs, file).size() == kExtents);
  const InodeNo filler = make(fs, "/filler");
  std::vector<std::string> last = fill(fs, filler);
  REQUIRE(space_of(fs).blocks_avail == 0);
  fs.require_clean();

  const auto cost = [&](auto&& call) {
    const Counters before = thread_counters();
    must(call());
    CHECK(thread_counters().fences - before.fences == 2);
    CHECK(thread_counters().lines - before.lines < 400);  // a map node on each level, and the words
  };
  cost([&] {
    SetAttributes cut;
    cut.size_bytes = kExtents * kBlockBytes + 5000;  // about half of it
    return fs->set_attributes("/file", cut, kRoot);
  });
  CHECK(extents(fs, file).size() == kExtents / 2 + 1);
  CHECK(space_of(fs).blocks_avail >= kExtents / 2 - 10);
  fs.require_clean();
  for (const std::string& name : fill(fs, filler)) last.push_back(name);
  cost([&] { return fs->unlink("/file", kRoot); });
  fs.require_clean();
  cost([&] { return fs->unlink("/filler", kRoot); });
  for (const std::string& name : last) must(fs->unlink(name, kRoot));
  fs.require_clean();
  CHECK(space_of(fs).blocks_free == free_before - 1);  // the root directory's leaf
  fs.reopen_after_kill();
  CHECK(space_of(fs).blocks_free == free_before - 1);
  fs.require_clean();
}

// --- Leases
// --------------------------------------------------------------------------------------------------------------

TEST_CASE("leases: blocks that leave a file stay out of reach while a lease is on them", "[unit][fs]") {
  MemoryFs fs(16 * kMiB);
  Volume& volume = volume_of(fs.fs());
  const InodeNo file = make(fs, "/file");
  write(fs, file, 0, 40 * 4096);
  const u64 block = extents(fs, file)[0].block;
  const u64 free = space_of(fs).blocks_free;
  volume.quarantine.pin({block + 3, 2});
  volume.quarantine.pin({block + 4, 1});
  must(fs->unlink("/file", kRoot));
  volume.quarantine.drain();
  CHECK(volume.blocks.is_used(block + 3));
  const u64 pinned = volume.quarantine.pinned_blocks();  // whole runs stay
  CHECK(pinned >= 2);
  CHECK(space_of(fs).blocks_free == free + 40 - pinned);
  fs.require_clean();
  volume.quarantine.unpin({block + 3, 2});
  CHECK(volume.blocks.is_used(block + 4));
  fs.require_clean();
  volume.quarantine.unpin({block + 4, 1});
  CHECK_FALSE(volume.blocks.is_used(block + 4));
  CHECK(volume.quarantine.pinned_blocks() == 0);
  CHECK(space_of(fs).blocks_free == free + 40);
  fs.require_clean();
}

// --- Opening
// -------------------------------------------------------------------------------------------------------------

namespace {

constexpr PoolOff kLocatorOff{kBlockBytes};  // as MemoryFs has it

// The bytes of a pool, aligned as one.
class Image {
 public:
  explicit Image(std::span<const std::byte> bytes) : bytes_(bytes.size()), held_(bytes.size() + kBlockBytes) {
    std::memcpy(base(), bytes.data(), bytes.size());
  }
  Image(const Image& other) : Image(std::span(other.base(), other.bytes_)) {}
  Image& operator=(const Image&) = delete;

  std::byte* base() const {
    const u64 at = reinterpret_cast<u64>(held_.data());
    return const_cast<std::byte*>(held_.data()) + ((at + kBlockBytes - 1) / kBlockBytes * kBlockBytes - at);
  }
  Memory memory() const { return {base(), bytes_, Durability::kVolatile}; }
  media::Superblock& superblock() const { return *must(find_superblock(memory(), kLocatorOff)); }

 private:
  u64 bytes_;
  std::vector<std::byte> held_;
};

struct Known {
  std::vector<u64> used;
  u64 free_slots = 0;
  bool saved_map_used = false;
  InodeNo next{};
};

// What an open knows of a copy of `image`.
Known opened(const Image& image, u32 threads) {
  const Image copy = image;
  OpenOptions options;
  options.rebuild_threads = threads;
  Filesystem fs = must(open_memory(copy.memory(), kLocatorOff, options));
  Volume& volume = volume_of(fs);
  Known known{volume.blocks.save(), volume.inodes.free_slots(), fs.info().saved_map_used, {}};
  const CheckReport report = must(check(fs));
  for (const Finding& finding : report.findings) UNSCOPED_INFO(finding.code << ": " << finding.text);
  REQUIRE(report.clean());
  known.next = must(fs.mknod("/next", 0644, 0, kRoot)).ino;
  return known;
}

// A closed pool with some of everything.
Image closed_pool() {
  MemoryFs fs(80 * kMiB);
  for (int d = 0; d < 10; ++d) {
    const std::string dir = "/d" + std::to_string(d);
    must(fs->mkdir(dir, 0755, kRoot));
    for (int i = 0; i < 1500; ++i) {
      const InodeNo ino = make(fs, dir + "/" + std::to_string(i));
      if (i % 3 == 0) write(fs, ino, 0, 5000);
    }
    for (int i = 0; i < 1500; i += 5) must(fs->unlink(dir + "/" + std::to_string(i), kRoot));
  }
  const InodeNo scattered = make(fs, "/scattered");
  for (u64 i = 0; i < 2000; ++i) write(fs, scattered, i * 8192, 10);
  must(fs->close());
  return Image({fs.memory().base, fs.memory().size_bytes});
}

void seal(media::Superblock& sb) { sb.saved_locator_sum.set(checksum64(&sb.saved_map_off, 32)); }

}  // namespace

TEST_CASE("open: the saved map, a rebuild by one thread and by several know the same", "[unit][fs]") {
  const Image image = closed_pool();
  const Known saved = opened(image, 1);
  CHECK(saved.saved_map_used);
  image.superblock().saved_map_epoch.set(0);
  for (const u32 threads : {1u, 2u, 7u, 0u}) {
    INFO(threads << " threads");
    const Known rebuilt = opened(image, threads);
    CHECK_FALSE(rebuilt.saved_map_used);
    CHECK(rebuilt.used == saved.used);
    CHECK(rebuilt.free_slots == saved.free_slots);
    CHECK(rebuilt.next == saved.next);
  }
}

TEST_CASE("open: a saved map is used only if its epoch and both checksums are right", "[unit][fs]") {
  const Image good = closed_pool();
  const std::vector<u64> used = opened(good, 1).used;
  const auto refused = [&](const char* what, const std::function<void(media::Superblock&, std::byte * map)>& damage) {
    INFO(what);
    const Image image = good;
    media::Superblock& sb = image.superblock();
    damage(sb, image.base() + sb.saved_map_off.get());
    const Known known = opened(image, 1);
    CHECK_FALSE(known.saved_map_used);
    CHECK(known.used == used);
  };
  refused("a bit of the map", [](media::Superblock&, std::byte* map) { map[77] ^= std::byte{4}; });
  refused("the locator's checksum", [](media::Superblock& sb, std::byte*) { sb.saved_locator_sum.set(1); });
  refused("the map's checksum", [](media::Superblock& sb, std::byte*) {
    sb.saved_map_sum.set(sb.saved_map_sum.get() + 1);
    seal(sb);
  });
  refused("an epoch of before, all checksums right", [](media::Superblock& sb, std::byte* map) {
    sb.saved_map_epoch.set(sb.epoch.get() - 1);
    sb.saved_map_sum.set(checksum64(map, sb.saved_map_bytes.get(), sb.epoch.get() - 1));
    seal(sb);
  });
  refused("a place outside the pool", [](media::Superblock& sb, std::byte*) {
    sb.saved_map_off.set(u64{1} << 50);
    seal(sb);
  });
  refused("a length that is not the pool's, all checksums right", [](media::Superblock& sb, std::byte* map) {
    sb.saved_map_bytes.set(sb.saved_map_bytes.get() - 8);
    sb.saved_map_sum.set(checksum64(map, sb.saved_map_bytes.get(), sb.epoch.get()));
    seal(sb);
  });
}

TEST_CASE("open: what a sealed saved map says wrongly of slots does no harm", "[unit][fs]") {
  const Image good = closed_pool();
  // Slots that another program's map calls what they are not: the map lies behind the blocks' words.
  const auto with_word = [&](const Image& image, std::size_t from_end, u64 word) {
    media::Superblock& sb = image.superblock();
    std::byte* const map = image.base() + sb.saved_map_off.get();
    const u64 bytes = sb.saved_map_bytes.get();
    std::memcpy(map + bytes - from_end * sizeof(u64), &word, sizeof(u64));
    sb.saved_map_sum.set(checksum64(map, bytes, sb.epoch.get()));
    seal(sb);
  };
  u64 words = 0;
  {
    const Image image = good;
    Filesystem fs = must(open_memory(image.memory(), kLocatorOff, {}));
    words = volume_of(fs).inodes.saved_words();
  }
  SECTION("slots in use are called free") {
    const Image image = good;
    with_word(image, words, 0);  // the first 64, the root among them
    Filesystem fs = must(open_memory(image.memory(), kLocatorOff, {}));
    REQUIRE(fs.info().saved_map_used);
    const u64 before = must(fs.directory_info("/d0", kRoot)).entries;
    int refused = 0;
    while (refused < 100 && code_of(fs.mknod("/new" + std::to_string(refused), 0644, 0, kRoot)) == Errc::kCorrupt)
      ++refused;
    CHECK(refused > 0);
    CHECK(refused < 100);
    CHECK(must(fs.directory_info("/d0", kRoot)).entries == before);
    const CheckReport report = must(check(fs));  // each that was offered is not offered again; there are others
    REQUIRE(report.findings.size() == 1);
    CHECK(report.findings[0].code == "slot-count");
  }
  SECTION("free slots are called used") {
    const Image image = good;
    with_word(image, 1, ~u64{0});
    Filesystem fs = must(open_memory(image.memory(), kLocatorOff, {}));
    REQUIRE(fs.info().saved_map_used);
    const CheckReport report = must(check(fs));
    REQUIRE(report.findings.size() == 1);
    CHECK(report.findings[0].code == "slot-count");
  }
}

TEST_CASE("open: two owners of a block are found by any number of threads", "[unit][fs]") {
  const Image image = closed_pool();
  // The map root of one live file becomes that of another, far away in the inode file.
  Filesystem before = must(open_memory(image.memory(), kLocatorOff, {.read_only = true}));
  Volume& volume = volume_of(before);
  std::vector<u64> files;
  for (u64 slot = 0; slot < volume.inodes.slots(); ++slot)
    if (const media::Inode& inode = volume.inodes.slot(slot);
        media::low_half(inode.state_gen.get()) == media::kSlotLive && inode.map_root.get() != 0)
      files.push_back(slot);
  REQUIRE(files.size() > 1000);
  volume.inodes.slot(files.back()).map_root.set(volume.inodes.slot(files[files.size() / 2]).map_root.get());
  before = Filesystem();
  image.superblock().saved_map_epoch.set(0);
  for (const u32 threads : {1u, 3u}) {
    OpenOptions options;
    options.rebuild_threads = threads;
    CHECK(code_of(open_memory(image.memory(), kLocatorOff, options)) == Errc::kCorrupt);
  }
}

// --- Sizes
// ---------------------------------------------------------------------------------------------------------------

TEST_CASE("sizes: a pool of 1 TiB in regions of 16 GiB, as mkfs makes them, is used from end to end", "[unit][fs]") {
  constexpr u64 kRegion = u64{16} << 30;
  void* const at = ::mmap(nullptr, kTiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    WARN("no address space for 1 TiB: not tried");
    return;
  }
  const Memory memory{static_cast<std::byte*>(at), kTiB, Durability::kVolatile};
  FormatParameters parameters;
  // libpmemobj's chunks have headers, so that regions are a little short of their distance, and at odd places.
  for (u64 off = 0; off < kTiB; off += kRegion)
    parameters.regions.push_back({off + 3 * kBlockBytes, kRegion - 5 * kBlockBytes});
  parameters.locator_off = PoolOff{kBlockBytes};
  must(format_memory(memory, parameters));
  u64 blocks_free = 0;
  {
    Filesystem fs = must(open_memory(memory, parameters.locator_off, {}));
    Volume& volume = volume_of(fs);
    CHECK(must(fs.space()).blocks == 64 * (kRegion / kBlockBytes - 5));
    blocks_free = must(fs.space()).blocks_free;
    const InodeNo ino = must(fs.mknod("/huge", 0644, 0, kRoot)).ino;
    const u64 most = must(fs.space()).blocks_avail / 1024 * 1024 - (1u << 16);
    must(fs.allocate(ino, 0, 0, most * kBlockBytes, kRoot));
    u64 highest = 0;
    must(volume.maps.each(volume.inodes.slot(to_u64(ino) - 1).map_root.get(), 0, kMapEnd,
                          [&](const Extent& e) -> Result<void> {
                            highest = std::max(highest, e.block + e.count);
                            return {};
                          }));
    CHECK(highest > (kTiB - kRegion) / kBlockBytes);
    const std::vector<std::byte> data(100, std::byte{7});
    for (const u64 off : {u64{0}, kTiB / 2, most * kBlockBytes - 50})
      REQUIRE(must(fs.write(ino, off, data, kRoot)) == 100);
    CHECK(must(fs.stat("/huge", kRoot)).size_bytes == most * kBlockBytes + 50);
    CHECK(must(check(fs)).clean());
    must(fs.close());
  }
  {
    Filesystem fs = must(open_memory(memory, parameters.locator_off, {}));
    CHECK(fs.info().saved_map_used);
    std::vector<std::byte> seen(100);
    REQUIRE(must(fs.read(must(fs.stat("/huge", kRoot)).ino, kTiB / 2, seen)) == 100);
    CHECK(seen == std::vector<std::byte>(100, std::byte{7}));
    must(fs.unlink("/huge", kRoot));
    CHECK(must(check(fs)).clean());
    CHECK(must(fs.space()).blocks_free == blocks_free - 1);  // the root directory's leaf
  }
  ::munmap(at, kTiB);
}

TEST_CASE("sizes: pools of device DAX sizes, aligned to 4 KiB, 2 MiB and 1 GiB, waste no block", "[unit][fs]") {
  for (const u64 align : {u64{4096}, 2 * kMiB, 1024 * kMiB}) {
    for (const u64 units : {u64{3}, u64{5}, u64{31}}) {
      const u64 bytes = std::max(align * units, 16 * kMiB + align);
      INFO(bytes << " bytes");
      MemoryFs fs(bytes);
      CHECK(space_of(fs).blocks == bytes / kBlockBytes - 2);  // what MemoryFs keeps for itself
      const InodeNo ino = make(fs, "/file");
      fill(fs, ino);
      CHECK(space_of(fs).blocks_avail == 0);
      fs.require_clean();
      must(fs->unlink("/file", kRoot));
      fs.reopen();
      fs.require_clean();
    }
  }
}
