// Commits: what their records say, and that recovery reads them so. The decoder here is written from FORMAT.md, not
// from the library's.
#include "base/commit.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/checksum.h"
#include "test/support/catch.h"
#include "test/support/mini_store.h"
#include "test/support/prng.h"

namespace pmfs::test {
namespace {

constexpr u64 kFirstWord = MiniStore::kWords;
constexpr u32 kWords = 512;

struct Decoded {
  std::vector<std::pair<u64, u64>> old;  // offset and old value, in record order
  u32 records = 0;
  u32 ranges = 0;
  u64 hash = 0;
  bool complete = false;
};

// FORMAT.md "Lanes": 64 headers of 64 bytes; then 16 records of 64 bytes for each lane: 48 bytes of payload, one word
// of {target: 48 bits, length: 8, kind: 8}, a checksum.
Decoded decode(const std::byte* memory, u32 lane) {
  const auto word = [&](u64 off) {
    u64 value;
    std::memcpy(&value, memory + off, 8);
    return value;
  };
  Decoded result;
  for (u32 i = 0; i < 16 && !result.complete; ++i) {
    const u64 at = MiniStore::kLaneArea + 4096 + (lane * 16 + i) * 64;
    const u64 meta = word(at + 48);
    const u64 target = meta & 0xffffffffffff;
    const u64 length = meta >> 48 & 0xff;
    const u64 kind = meta >> 56;
    ++result.records;
    if (kind == 1) {
      ++result.ranges;
      CHECK(length % 8 == 0);
      CHECK(length <= 48);
      for (u64 b = 0; b < length; b += 8) result.old.emplace_back(target + b, word(at + b));
    } else {
      CHECK((kind == 2 || kind == 3));
      CHECK(length <= (kind == 2 ? 3 : 2));
      for (u64 p = 0; p < length; ++p) result.old.emplace_back(word(at + p * 16), word(at + p * 16 + 8));
      if (kind == 3) {
        CHECK(word(at + 32) == i + 1);
        result.hash = word(at + 40);
        result.complete = true;
      }
    }
  }
  return result;
}

struct Fixture {
  Fixture() : memory(MiniStore::kSize) {
    MiniStore::format(memory);
    store.emplace(memory.memory(), 1);
    Prng prng(5);
    for (u32 i = 0; i < kWords; ++i) store->persist().store(word(i), prng.next());
    memory.settle();
  }
  Le64& word(u32 i) { return *reinterpret_cast<Le64*>(memory.memory().at(PoolOff{kFirstWord + i * 8})); }

  // Runs a commit, and gives what the memory held just before its first fence, and before its second.
  struct Seen {
    std::vector<std::byte> before_fence1, before_fence2;
  };
  Seen run(const std::map<u32, u64>& changes, bool backwards = false) {
    Seen seen;
    const auto contents = [&] {
      const std::byte* base = memory.memory().base;
      return std::vector<std::byte>(base, base + MiniStore::kSize);
    };
    memory.on_event([&](const Event& event) {
      if (event.kind == Event::Kind::kFence && event.why == Order::kFence1) seen.before_fence1 = contents();
      if (event.kind == Event::Kind::kFence && event.why == Order::kFence2) seen.before_fence2 = contents();
    });
    Commit commit(store->lanes(), store->persist());
    if (backwards)
      for (auto it = changes.rbegin(); it != changes.rend(); ++it) commit.set(word(it->first), it->second);
    else
      for (const auto& [i, value] : changes) commit.set(word(i), value);
    CHECK(commit.run().ok());
    memory.on_event({});
    return seen;
  }
  LaneVerdict recover(SimMemory& image) {
    Persist persist(image.memory());
    const auto verdict = recover_lane(persist, PoolOff{MiniStore::kLaneArea}, store->lanes().key(), 0,
                                      [](u64 off) { return off >= kFirstWord && off + 8 <= MiniStore::kSize; });
    REQUIRE(verdict.ok());
    return *verdict;
  }

  SimMemory memory;
  std::optional<MiniStore> store;
};

std::map<u32, u64> random_changes(u32 count, bool neighbours, Prng& prng) {
  std::map<u32, u64> changes;
  while (changes.size() < count) {
    const u32 at = static_cast<u32>(prng.below(kWords));
    const u32 run = neighbours ? static_cast<u32>(1 + prng.below(9)) : 1;
    for (u32 i = 0; i < run && at + i < kWords && changes.size() < count; ++i) changes[at + i] = prng.next();
  }
  return changes;
}

TEST_CASE("commit: records of 1 to 47 words name each word once with its old value, and hash the new ones",
          "[unit][base]") {
  Prng prng(17);
  for (u32 count = 1; count <= 47; ++count) {
    for (const bool neighbours : {false, true}) {
      CAPTURE(count, neighbours);
      Fixture f;
      std::map<u64, u64> old;
      const std::map<u32, u64> changes = random_changes(count, neighbours, prng);
      for (const auto& [i, value] : changes) old[kFirstWord + i * 8] = f.word(i).get();
      const auto seen = f.run(changes, prng.coin());

      const Decoded decoded = decode(seen.before_fence1.data(), 0);
      CHECK(decoded.complete);
      CHECK(decoded.records <= 16);
      CHECK(std::map<u64, u64>(decoded.old.begin(), decoded.old.end()) == old);
      CHECK(decoded.old.size() == count);
      std::vector<u64> new_words;
      for (const auto& [off, value] : decoded.old)
        new_words.push_back(changes.at(static_cast<u32>((off - kFirstWord) / 8)));
      CHECK(decoded.hash == checksum64(new_words.data(), new_words.size() * 8));
      if (!neighbours) CHECK(decoded.records == std::max(1u, (count + 3) / 3));
      for (const auto& [i, value] : changes) CHECK(f.word(i).get() == value);
    }
  }
}

TEST_CASE("commit: neighbouring words share a record of kind range", "[unit][base]") {
  Fixture f;
  std::map<u32, u64> changes;
  for (u32 i = 0; i < 12; ++i) changes[20 + i] = i;
  const Decoded decoded = decode(f.run(changes).before_fence1.data(), 0);
  CHECK(decoded.ranges == 2);
  CHECK(decoded.records == 3);
}

TEST_CASE("commit: recovery puts back what was not completely applied", "[unit][base]") {
  Prng prng(3);
  for (const u32 count : {1u, 2u, 3u, 7u, 20u, 47u}) {
    CAPTURE(count);
    Fixture f;
    const std::map<u32, u64> changes = random_changes(count, true, prng);
    std::map<u32, u64> old;
    for (const auto& [i, value] : changes) old[i] = f.word(i).get();
    const auto seen = f.run(changes);
    const auto word_in = [](SimMemory& image, u32 i) {
      return reinterpret_cast<Le64*>(image.memory().at(PoolOff{kFirstWord + i * 8}))->get();
    };
    SimMemory image(MiniStore::kSize);
    image.load(seen.before_fence1);
    CHECK(f.recover(image) == LaneVerdict::kUndone);
    for (const auto& [i, value] : old) CHECK(word_in(image, i) == value);

    image.load(seen.before_fence2);
    CHECK(f.recover(image) == LaneVerdict::kCommitted);
    for (const auto& [i, value] : changes) CHECK(word_in(image, i) == value);

    // Some word of it is missing.
    std::vector<std::byte> partly = seen.before_fence2;
    const u32 missing = changes.begin()->first;
    std::memcpy(partly.data() + kFirstWord + missing * 8, &old[missing], 8);
    image.load(partly);
    CHECK(f.recover(image) == LaneVerdict::kUndone);
    for (const auto& [i, value] : old) CHECK(word_in(image, i) == value);
    CHECK(f.recover(image) == LaneVerdict::kUndone);  // again: the same
    for (const auto& [i, value] : old) CHECK(word_in(image, i) == value);
  }
}

TEST_CASE("commit: any damaged bit of a set of records makes it incomplete", "[unit][base]") {
  Fixture f;
  Prng prng(11);
  const auto seen = f.run(random_changes(9, true, prng));
  const u32 records = decode(seen.before_fence1.data(), 0).records;
  SimMemory image(MiniStore::kSize);
  for (u64 bit = 0; bit < records * 512; bit += 7) {
    std::vector<std::byte> damaged = seen.before_fence1;
    damaged[MiniStore::kLaneArea + 4096 + bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    image.load(damaged);
    CHECK(f.recover(image) == LaneVerdict::kEmpty);
  }
}

TEST_CASE("commit: records of another lane, sequence, epoch or pool are no records here", "[unit][base]") {
  Fixture f;
  const auto seen = f.run({{3, 4}});
  SimMemory image(MiniStore::kSize);
  const auto verdict = [&](LaneKey key, u32 lane) {
    image.load(seen.before_fence1);
    Persist persist(image.memory());
    return recover_lane(persist, PoolOff{MiniStore::kLaneArea}, key, lane, [](u64) { return true; }).value();
  };
  LaneKey key = f.store->lanes().key();
  CHECK(verdict(key, 0) == LaneVerdict::kUndone);
  CHECK(verdict(key, 1) == LaneVerdict::kEmpty);
  key.epoch += 1;
  CHECK(verdict(key, 0) == LaneVerdict::kEmpty);
  key.epoch -= 1;
  key.uuid_low ^= 1;
  CHECK(verdict(key, 0) == LaneVerdict::kEmpty);
  key.uuid_low ^= 1;
  key.uuid_high ^= 1;
  CHECK(verdict(key, 0) == LaneVerdict::kEmpty);
}

TEST_CASE("commit: a complete set that names a place outside is refused and nothing is stored", "[unit][base]") {
  Fixture f;
  const auto seen = f.run({{3, 4}, {9, 5}});
  SimMemory image(MiniStore::kSize);
  image.load(seen.before_fence1);
  image.begin_trace();
  Persist persist(image.memory());
  const auto verdict = recover_lane(persist, PoolOff{MiniStore::kLaneArea}, f.store->lanes().key(), 0,
                                    [](u64 off) { return off != kFirstWord + 9 * 8; });
  REQUIRE_FALSE(verdict.ok());
  CHECK(verdict.error().code == Errc::kCorrupt);
  CHECK(image.end_trace().words.empty());
}

TEST_CASE("commit: a word set twice has its last value, and can be asked for before", "[unit][base]") {
  Fixture f;
  Commit commit(f.store->lanes(), f.store->persist());
  const u64 old = f.word(5).get();
  CHECK(commit.value(f.word(5)) == old);
  commit.set(f.word(5), 1);
  commit.set(f.word(5), 2);
  CHECK(commit.value(f.word(5)) == 2);
  CHECK(f.word(5).get() == old);
  CHECK(commit.run().ok());
  CHECK(f.word(5).get() == 2);
}

TEST_CASE("commit: two fences, and a line is flushed once in each step", "[unit][base]") {
  Fixture f;
  const Counters before = thread_counters();
  f.run({{0, 1}, {1, 1}, {2, 1}, {3, 1}, {8, 1}});  // two lines; a range record and the last one
  const Counters cost = thread_counters() - before;
  CHECK(cost.fences == 2);
  CHECK(cost.lines == 2 + 1 + 2);  // records, header, applied lines
}

TEST_CASE("commit: one that is never run has stored nothing", "[unit][base]") {
  Fixture f;
  f.memory.begin_trace();
  {
    Commit commit(f.store->lanes(), f.store->persist());
    commit.set(f.word(5), 1);
  }
  CHECK(f.memory.end_trace().events.empty());
}

TEST_CASE("commit: touched marks name its lane and sequence", "[unit][base]") {
  Fixture f;
  ChangeMark a, b;
  Commit commit(f.store->lanes(), f.store->persist());
  commit.touch(a);
  commit.touch(b);
  commit.touch(a);
  commit.set(f.word(1), 1);
  const u64 sequence = f.store->lanes().header(0).sequence.get();
  const auto mark = commit.run();
  REQUIRE(mark.ok());
  CHECK(mark->sequence == sequence);
  for (const ChangeMark& touched : {a, b}) {
    CHECK(touched.lane == mark->lane);
    CHECK(touched.sequence == mark->sequence);
  }
  CHECK(f.store->lanes().header(0).sequence.get() == sequence + 1);
}

}  // namespace
}  // namespace pmfs::test
