// The quarantine: freed things come back when their freeing can no longer be undone, and not before (R4).
#include "base/quarantine.h"

#include "test/support/catch.h"
#include "test/support/mini_store.h"

namespace pmfs::test {
namespace {

struct Fixture {
  Fixture() : memory(MiniStore::kSize) {
    MiniStore::format(memory);
    store.emplace(memory.memory(), 4);
    quarantine.emplace(store->lanes(), store->persist(), readers, [this](const Freed& freed) {
      for (const BlockRun& run : freed.blocks) blocks += run.count;
      slots += freed.slots.size();
      still_counted = quarantine->blocks();  // no lock of the quarantine's is held here
    });
  }
  Freed freed_by(char name) { return {store->last(name), {{100, 3}, {200, 1}}, {7}}; }

  SimMemory memory;
  std::optional<MiniStore> store;
  ReadSections readers;
  std::optional<Quarantine> quarantine;
  u64 blocks = 0, slots = 0, still_counted = 0;
};

TEST_CASE_METHOD(Fixture, "quarantine: keeps what a commit freed until its bump is ordered", "[unit][base]") {
  store->run_on(0, {{'a', 1}});
  quarantine->add(freed_by('a'));
  quarantine->collect();
  CHECK(blocks == 0);
  CHECK(quarantine->blocks() == 4);
  CHECK(quarantine->slots() == 1);
  CHECK(quarantine->size() == 1);
  store->run_on(1, {{'b', 1}});  // another lane and other words: nothing is known about lane 0
  quarantine->collect();
  CHECK(blocks == 0);
  store->run_on(0, {{'c', 1}});  // the same lane: its header rode in fence 1
  quarantine->collect();
  CHECK(blocks == 4);
  CHECK(slots == 1);
  CHECK(quarantine->size() == 0);
}

TEST_CASE_METHOD(Fixture, "quarantine: a later commit of the same words lets it go, on whatever lane", "[unit][base]") {
  store->run_on(0, {{'a', 1}});
  quarantine->add(freed_by('a'));
  store->run_on(2, {{'a', 2}});
  quarantine->collect();
  CHECK(blocks == 4);
}

TEST_CASE_METHOD(Fixture, "quarantine: draining costs one fence and releases all", "[unit][base]") {
  for (u32 lane = 0; lane < 4; ++lane) {
    const char name = static_cast<char>('a' + lane);
    store->run_on(lane, {{name, 1}});
    quarantine->add(freed_by(name));
  }
  const Counters before = thread_counters();
  CHECK(quarantine->drain());
  CHECK((thread_counters() - before).fences == 1);
  CHECK(blocks == 16);
  CHECK(quarantine->size() == 0);
  CHECK_FALSE(quarantine->drain());
  CHECK((thread_counters() - before).fences == 1);
}

TEST_CASE_METHOD(Fixture, "quarantine: nothing freed is nothing kept", "[unit][base]") {
  store->run_on(0, {{'a', 1}});
  quarantine->add({store->last('a'), {}, {}});
  CHECK(quarantine->size() == 0);
}

TEST_CASE_METHOD(Fixture, "quarantine: space is counted until it has been released", "[unit][base]") {
  store->run_on(0, {{'a', 1}});
  quarantine->add(freed_by('a'));
  quarantine->drain();
  CHECK(still_counted == 4);
  CHECK(quarantine->blocks() == 0);
}

TEST_CASE_METHOD(Fixture, "quarantine: with its rule switched off it keeps nothing", "[unit][base]") {
  memory.switch_off({Rule::kQuarantine});
  store->run_on(0, {{'a', 1}});
  quarantine->add(freed_by('a'));
  CHECK(blocks == 4);
}

}  // namespace
}  // namespace pmfs::test
