// Lanes: who may have one, and what is known about their headers. (What recovery makes of them: commit_test.cc and the
// crash tests.)
#include "base/lane.h"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/support/mini_store.h"

namespace pmfs::test {
namespace {

struct Fixture {
  explicit Fixture(u32 lane_count = 4) : memory(MiniStore::kSize) {
    MiniStore::format(memory);
    store.emplace(memory.memory(), lane_count);
  }
  Lanes& lanes() { return store->lanes(); }
  SimMemory memory;
  std::optional<MiniStore> store;
};

TEST_CASE("lanes: all are different, and a released one is taken again", "[unit][base]") {
  Fixture f;
  std::set<u32> taken;
  for (int i = 0; i < 4; ++i) taken.insert(f.lanes().acquire());
  CHECK(taken == std::set<u32>{0, 1, 2, 3});
  f.lanes().release(2);
  CHECK(f.lanes().acquire() == 2);
}

TEST_CASE("lanes: a thread stays with the lane it had", "[unit][base]") {
  Fixture f;
  const u32 mine = f.lanes().acquire();
  f.lanes().release(mine);
  for (int i = 0; i < 10; ++i) {
    const u32 again = f.lanes().acquire();
    CHECK(again == mine);
    f.lanes().release(again);
  }
}

TEST_CASE("lanes: more threads than lanes wait, and no lane is shared", "[unit][base]") {
  Fixture f(2);
  std::array<std::atomic<int>, 2> holders{};
  std::atomic<int> shared{0}, turns{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const u32 lane = f.lanes().acquire();
        if (holders[lane].fetch_add(1) != 0) ++shared;
        if (i % 16 == 0) std::this_thread::yield();
        holders[lane].fetch_sub(1);
        f.lanes().release(lane);
        ++turns;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(shared == 0);
  CHECK(turns == 4000);
}

TEST_CASE("lanes: a waiting thread goes on when a lane is released", "[unit][base]") {
  Fixture f(1);
  const u32 held = f.lanes().acquire();
  std::atomic<bool> got{false};
  std::thread waiter([&] {
    const u32 lane = f.lanes().acquire();
    got = true;
    f.lanes().release(lane);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(got);
  f.lanes().release(held);
  waiter.join();
  CHECK(got);
}

TEST_CASE("lanes: a commit is retired once its bump was read, flushed and fenced, and not before", "[unit][base]") {
  Fixture f;
  f.store->run({{'a', 1}});
  const ChangeMark mark = f.store->last('a');
  CHECK_FALSE(f.lanes().retired(mark));
  const u64 read = f.lanes().flush_header(mark.lane, Order::kRetireHeader);
  CHECK(read == mark.sequence + 1);
  CHECK_FALSE(f.lanes().retired(mark));
  f.store->persist().fence(Order::kRetireFence);
  f.lanes().set_durable(mark.lane, read);
  CHECK(f.lanes().retired(mark));
  CHECK(f.lanes().flush_header(mark.lane, Order::kRetireHeader) == 0);  // nothing left to flush
}

TEST_CASE("lanes: what is known of a header never goes back", "[unit][base]") {
  Fixture f;
  f.lanes().set_durable(1, 7);
  f.lanes().set_durable(1, 5);
  CHECK(f.lanes().durable_sequence(1) == 7);
}

TEST_CASE("lanes: retiring all costs one fence and leaves nothing to flush", "[unit][base]") {
  Fixture f;
  for (u32 lane = 0; lane < 4; ++lane) f.store->run_on(lane, {{static_cast<char>('a' + lane), 1}});
  const Counters before = thread_counters();
  f.lanes().retire_all(Order::kDrainHeader, Order::kDrainFence);
  CHECK((thread_counters() - before).fences == 1);
  for (const char name : {'a', 'b', 'c', 'd'}) CHECK(f.lanes().retired(f.store->last(name)));
  const Counters after = thread_counters();
  f.lanes().retire_all(Order::kDrainHeader, Order::kDrainFence);
  CHECK((thread_counters() - after).flushes == 0);
}

TEST_CASE("lanes: what was durable before the pool was opened counts as retired", "[unit][base]") {
  Fixture f;
  CHECK(ChangeMark{}.none());
  CHECK(f.lanes().retired(ChangeMark{}));
}

}  // namespace
}  // namespace pmfs::test
