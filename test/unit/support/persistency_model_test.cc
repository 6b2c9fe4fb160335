// The simulator's idea of persistent memory, fact by fact.
#include "test/support/persistency_model.h"

#include <array>

#include "test/support/catch.h"

namespace pmfs::test {
namespace {

constexpr u32 kWord = 9;  // in the second line
constexpr u64 kOff = kWord * 8;

struct Fixture {
  std::array<std::byte, 256> zeros{};
  PersistencyModel model{zeros};
  std::vector<u64> possible(u32 word = kWord) const {
    std::vector<u64> values;
    const auto found = model.open().find(word);
    if (found == model.open().end()) return {model.now(word)};
    for (const auto& version : found->second.versions) values.push_back(version.value);
    return values;
  }
};
using Values = std::vector<u64>;

TEST_CASE_METHOD(Fixture, "persistency model: a stored word may be old or new until it is flushed and fenced",
                 "[unit][support]") {
  model.store({kWord, 7});
  CHECK(possible() == Values{0, 7});
  model.flush(0, kOff, 8, Order::kApplied);
  CHECK(possible() == Values{0, 7});
  model.fence(0);
  CHECK(possible() == Values{7});
  CHECK(model.open().empty());
}

TEST_CASE_METHOD(Fixture, "persistency model: a word may have any value it had since it was durable",
                 "[unit][support]") {
  for (const u64 value : {u64{1}, u64{2}, u64{3}}) model.store({kWord, value});
  CHECK(possible() == Values{0, 1, 2, 3});
}

TEST_CASE_METHOD(Fixture, "persistency model: a flush captures the value of its moment", "[unit][support]") {
  model.store({kWord, 1});
  model.store({kWord, 2});
  model.flush(0, kOff, 8, Order::kApplied);
  model.store({kWord, 3});
  model.fence(0);
  CHECK(possible() == Values{2, 3});
}

TEST_CASE_METHOD(Fixture, "persistency model: a fence counts for flushes of its own thread only", "[unit][support]") {
  model.store({kWord, 1});
  model.flush(1, kOff, 8, Order::kApplied);
  model.fence(0);
  CHECK(possible() == Values{0, 1});
  model.fence(1);
  CHECK(possible() == Values{1});
}

TEST_CASE_METHOD(Fixture, "persistency model: an old capture does not make a later value durable", "[unit][support]") {
  model.store({kWord, 1});
  model.flush(0, kOff, 8, Order::kApplied);
  model.flush(1, kOff, 8, Order::kApplied);
  model.fence(1);
  model.store({kWord, 2});
  model.fence(0);
  CHECK(possible() == Values{1, 2});
}

TEST_CASE_METHOD(Fixture, "persistency model: a flush reaches every word of the lines it touches and no other",
                 "[unit][support]") {
  for (u32 word = 0; word < 32; ++word) model.store({word, 1});
  model.flush(0, 63, 2, Order::kApplied);
  model.fence(0);
  for (u32 word = 0; word < 32; ++word) CHECK(possible(word).size() == (word < 16 ? 1 : 2));
}

TEST_CASE_METHOD(Fixture, "persistency model: a store of the value that is there changes nothing", "[unit][support]") {
  model.store({kWord, 0});
  CHECK(model.open().empty());
}

TEST_CASE_METHOD(Fixture, "persistency model: flushes of a killed process stay undecided", "[unit][support]") {
  model.store({kWord, 1});
  model.flush(0, kOff, 8, Order::kApplied);
  model.forget_threads();
  model.fence(0);
  CHECK(possible() == Values{0, 1});
  CHECK(model.now(kWord) == 1);
}

TEST_CASE_METHOD(Fixture, "persistency model: the durable log repeats what became durable", "[unit][support]") {
  model.store({kWord, 1});
  model.flush(0, kOff, 8, Order::kApplied);
  model.store({kWord, 2});
  model.fence(0);
  CHECK(model.durable_log() == std::vector<WordValue>{{kWord, 1}});
  CHECK(model.durable_contents()[kWord] == 1);
}

}  // namespace
}  // namespace pmfs::test
