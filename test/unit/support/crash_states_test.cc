// How images are built from what is open: choices, enumeration, and memory that takes them back.
#include "test/support/crash_states.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/lane_format.h"
#include "base/persist.h"
#include "test/support/catch.h"

namespace pmfs::test {
namespace {

constexpr u64 kLaneArea = 4096;
constexpr u64 kRecords = kLaneArea + 4096;
constexpr u64 kElsewhere = kLaneArea + (media::kLaneAreaBytes + 4095) / 4096 * 4096;
constexpr u64 kSize = kElsewhere + 4096;

struct Fixture {
  Fixture() : contents(kSize), model(contents) {}
  void store(u64 off, u64 value) { model.store({static_cast<u32>(off / 8), value}); }
  Cut cut(bool collapse = true) { return make_cut(model, Layout{kLaneArea}, prng, collapse); }
  u64 count(Part part) {
    const Cut now = cut();
    return static_cast<u64>(
        std::count_if(now.choices.begin(), now.choices.end(), [=](const Choice& c) { return c.part == part; }));
  }
  std::vector<std::byte> contents;
  PersistencyModel model;
  Prng prng{1};
};

u64 images(const Cut& cut, u64 bound, std::set<std::vector<std::pair<u32, u64>>>* all = nullptr) {
  Prng prng(2);
  u64 given = 0;
  const Enumerated done = for_each_picks(cut, bound, prng, [&](const Picks& picks) {
    ++given;
    std::vector<std::pair<u32, u64>> words;
    for (const WordValue& w : words_of(cut, picks)) words.emplace_back(w.word, w.value);
    if (all != nullptr) all->insert(words);
  });
  CHECK(done.states == given);
  return given;
}

TEST_CASE_METHOD(Fixture, "crash states: nothing open is one image", "[unit][support]") {
  CHECK(images(cut(), 100) == 1);
}

TEST_CASE_METHOD(Fixture, "crash states: live words are taken in all combinations of all their values",
                 "[unit][support]") {
  store(kElsewhere, 1);
  store(kElsewhere + 8, 1);
  store(kElsewhere + 8, 2);
  store(kElsewhere + 64, 3);
  std::set<std::vector<std::pair<u32, u64>>> all;
  CHECK(images(cut(), 100, &all) == 12);
  CHECK(all.size() == 12);
}

TEST_CASE_METHOD(Fixture, "crash states: a value that came back is no other value", "[unit][support]") {
  store(kElsewhere, 1);
  store(kElsewhere, 0);
  CHECK(images(cut(), 100) == 2);  // 0, and 1 which it had
  store(kElsewhere + 8, 0);
  CHECK(images(cut(), 100) == 2);
}

TEST_CASE_METHOD(Fixture, "crash states: words are told apart by place and by the tag they are flushed with",
                 "[unit][support]") {
  store(kLaneArea, 2);
  store(kLaneArea + 64, 2);
  for (u64 i = 0; i < 16; ++i) store(kRecords + i * 8, 100 + i);
  store(kElsewhere, 1);
  store(kElsewhere + 128, 1);
  model.flush(0, kElsewhere + 128, 8, Order::kFreshInode);
  store(kElsewhere + 256, 1);
  model.flush(0, kElsewhere + 256, 8, Order::kOverwriteData);
  CHECK(count(Part::kHeader) == 2);
  CHECK(count(Part::kRecord) == 2);
  CHECK(count(Part::kLive) == 1);
  CHECK(count(Part::kFresh) == 1);
  CHECK(count(Part::kData) == 1);
  store(kElsewhere + 128, 2);  // stored again behind its flush: nothing is known of it any more
  CHECK(count(Part::kFresh) == 0);
  CHECK(count(Part::kLive) == 2);
  CHECK(cut(false).choices.size() == 2 + 16 + 3);
}

TEST_CASE_METHOD(Fixture, "crash states: a record is old, new, torn, or what it was when it was written before",
                 "[unit][support]") {
  const auto write_record = [&](u64 value) {
    for (u64 i = 0; i < 8; ++i) store(kRecords + i * 8, value + (i == 0 ? 0 : i));  // word 0 is the same in all
  };
  write_record(1000);
  CHECK(cut().choices.at(0).options.size() == 4);  // old, new, two torn
  store(kRecords, 1000);
  for (u64 i = 1; i < 8; ++i) store(kRecords + i * 8, 2000 + i);
  const Cut now = cut();
  REQUIRE(now.choices.size() == 1);
  bool first_writing = false;
  for (const auto& option : now.choices[0].options) {
    if (option.size() != 8) continue;
    first_writing |= std::all_of(option.begin(), option.end(), [&](WordValue w) {
      return w.value == 1000 + (w.word == kRecords / 8 ? 0 : w.word - kRecords / 8);
    });
  }
  CHECK(first_writing);
}

TEST_CASE_METHOD(Fixture, "crash states: above the bound live parts are still exhaustive if they can be",
                 "[unit][support]") {
  for (u64 i = 0; i < 5; ++i) store(kElsewhere + i * 8, 1);
  for (u64 i = 0; i < 64; ++i) store(kElsewhere + 512 + i * 8, 1);
  model.flush(0, kElsewhere + 512, 512, Order::kFreshData);
  Prng seed(1);
  CHECK(for_each_picks(cut(), 1000, seed, [](const Picks&) {}).states == 32 * 4);
  const Enumerated less = for_each_picks(cut(), 40, seed, [](const Picks&) {});
  CHECK(less.exhaustive);
  CHECK(less.states == 32 * 3);
}

TEST_CASE_METHOD(Fixture, "crash states: a sample has none, all, each alone, all but each, pairs", "[unit][support]") {
  for (u64 i = 0; i < 20; ++i) store(kElsewhere + i * 8, 1);
  const Cut now = cut();
  Prng seed(1);
  std::set<std::vector<u8>> seen;
  const Enumerated done = for_each_picks(now, 3000, seed, [&](const Picks& picks) { seen.insert(picks); });
  CHECK_FALSE(done.exhaustive);
  CHECK(done.states >= 2000);
  CHECK(done.states <= 3100);
  Picks none(20, 0), all(20, 1);
  CHECK(seen.contains(none));
  CHECK(seen.contains(all));
  for (std::size_t i = 0; i < 20; ++i) {
    Picks single = none, complement = all, pair = none;
    single[i] = 1, complement[i] = 0, pair[i] = pair[(i + 7) % 20] = 1;
    CHECK(seen.contains(single));
    CHECK(seen.contains(complement));
    CHECK(seen.contains(pair));
  }
}

TEST_CASE_METHOD(Fixture, "crash states: the same seed gives the same images", "[unit][support]") {
  for (u64 i = 0; i < 30; ++i) store(kElsewhere + i * 8, i + 1);
  const auto sampled = [&] {
    Prng seed(9);
    std::vector<Picks> picks;
    for_each_picks(make_cut(model, Layout{kLaneArea}, seed), 500, seed, [&](const Picks& p) { picks.push_back(p); });
    return picks;
  };
  CHECK(sampled() == sampled());
}

// --- Walking
// -----------------------------------------------------------------------------------------------------------

TEST_CASE("crash states: a walk stops before fences, before begins, behind returns, and at the end",
          "[unit][support]") {
  SimMemory memory(kSize);
  Persist persist(memory.memory());
  Le64& word = *reinterpret_cast<Le64*>(memory.memory().base);
  memory.begin_trace();
  memory.mark(MarkKind::kBegin, 0);
  persist.store(word, 1);
  persist.flush(&word, 8, Order::kApplied);
  persist.fence(Order::kFence1);
  persist.store(word, 2);
  memory.mark(MarkKind::kNote, 7);
  memory.mark(MarkKind::kReturn, 0);
  const Trace trace = memory.end_trace();
  std::vector<std::string> places;
  std::vector<std::size_t> open;
  walk(trace, {}, [&](const Place& place, const PersistencyModel& model) {
    places.push_back(describe(place));
    open.push_back(model.open().size());
  });
  CHECK(places.size() == 4);
  CHECK(open == std::vector<std::size_t>{0, 1, 1, 1});

  // A fence that is left out is no place, and makes nothing durable.
  u64 versions = 0;
  walk(trace, Omissions({{Order::kFence1}}), [&](const Place& place, const PersistencyModel& model) {
    if (place.event == nullptr) versions = model.open().begin()->second.versions.size();
  });
  CHECK(versions == 3);
  // And a flush that is left out captures nothing.
  walk(trace, Omissions({{Order::kApplied, 0}}), [&](const Place& place, const PersistencyModel& model) {
    if (place.event == nullptr) versions = model.open().begin()->second.versions.size();
  });
  CHECK(versions == 3);
}

// --- ImageMemory
// -------------------------------------------------------------------------------------------------------

TEST_CASE("image memory: rolls back what was applied and what was stored and announced", "[unit][support]") {
  std::vector<u64> base(kSize / 8, 5);
  ImageMemory image(base);
  const auto word = [&](u64 i) { return reinterpret_cast<const u64*>(image.contents().data())[i]; };
  image.apply(std::vector<WordValue>{{10, 1}, {1000, 2}});
  {
    Persist persist(image.memory());
    persist.store(*reinterpret_cast<Le64*>(image.memory().base + 77 * 8), 9);
    persist.zero(image.memory().base + 3000, 500);
    CHECK(word(77) == 9);
  }
  CHECK(word(10) == 1);
  CHECK(image.undone_completely());
  image.roll_back();
  for (u64 i = 0; i < base.size(); ++i) REQUIRE(word(i) == 5);

  image.advance(std::vector<WordValue>{{10, 6}});
  image.apply(std::vector<WordValue>{{10, 7}});
  image.roll_back();
  CHECK(word(10) == 6);
}

TEST_CASE("image memory: an unannounced store is noticed", "[unit][support]") {
  std::vector<u64> base(kSize / 8, 5);
  ImageMemory image(base);
  image.memory().base[5000] = std::byte{1};
  CHECK_FALSE(image.undone_completely());
}

}  // namespace
}  // namespace pmfs::test
