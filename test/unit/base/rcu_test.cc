#include "base/rcu.h"

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fork.h"
#include "test/support/catch.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

struct Numbered {
  RcuHead head;
  RcuNode node;
  u64 key = 0;
  std::atomic<u64> alive{1};  // cleared when it is freed: a reader that sees 0 stood on freed memory

  static Numbered* of(RcuNode* at) {
    return reinterpret_cast<Numbered*>(reinterpret_cast<char*>(at) - offsetof(Numbered, node));
  }
  static const Numbered* of(const RcuNode* at) { return of(const_cast<RcuNode*>(at)); }
};

struct SameKey {
  static bool equal(const RcuNode* node, const u64& key) { return Numbered::of(node)->key == key; }
};

u64 hash_of(u64 key) { return key * 0x9e3779b97f4a7c15; }

void free_it(RcuHead* head, void* freed) {
  auto* const it = reinterpret_cast<Numbered*>(head);
  it->alive.store(0, std::memory_order_relaxed);
  static_cast<std::atomic<u64>*>(freed)->fetch_add(1);
  delete it;
}

}  // namespace

TEST_CASE("rcu: deferred work runs after the read sections that were open, and is counted", "[base]") {
  std::atomic<u64> freed{0};
  RcuDefer defer(&freed);
  std::atomic<bool> inside{false}, leave{false};
  std::thread reader([&] {
    const RcuReadGuard reading;
    inside = true;
    while (!leave) std::this_thread::yield();
  });
  while (!inside) std::this_thread::yield();
  auto* const it = new Numbered;
  defer.defer(it->head, free_it, 100);
  CHECK(defer.waiting() == 1);
  CHECK(defer.waiting_bytes() == 100);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(freed == 0);  // the reader is still inside
  leave = true;
  reader.join();
  defer.barrier();
  CHECK(freed == 1);
  CHECK(defer.waiting() == 0);
  CHECK(defer.waiting_bytes() == 0);
}

TEST_CASE("rcu: the end of a queue runs what waits in it", "[base]") {
  std::atomic<u64> freed{0};
  {
    RcuDefer defer(&freed);
    for (int i = 0; i < 1000; ++i) defer.defer((new Numbered)->head, free_it, 1);
  }
  CHECK(freed == 1000);
}

TEST_CASE("rcu: a table finds what was added until it is removed, through resizes", "[base]") {
  constexpr u64 kNodes = 10000;
  auto table = RcuTable::make(1 << 14);
  REQUIRE(table != nullptr);
  std::vector<std::unique_ptr<Numbered>> nodes;
  for (u64 i = 0; i < kNodes; ++i) {
    nodes.push_back(std::make_unique<Numbered>());
    nodes.back()->key = i;
    const RcuReadGuard reading;
    CHECK(table->add<SameKey>(hash_of(i), i, &nodes.back()->node) == nullptr);
  }
  CHECK(table->count() == kNodes);
  CHECK(table->should_resize());
  table->resize();
  CHECK(!table->should_resize());
  CHECK(table->buckets() == 1 << 14);
  {
    const RcuReadGuard reading;
    for (u64 i = 0; i < kNodes; ++i) CHECK(table->find<SameKey>(hash_of(i), i) == &nodes[i]->node);
    Numbered twin;
    CHECK(table->add<SameKey>(hash_of(7), u64{7}, &twin.node) == &nodes[7]->node);
    for (u64 i = 0; i < kNodes; i += 2) CHECK(table->remove(&nodes[i]->node));
    CHECK(!table->remove(&nodes[0]->node));
    for (u64 i = 0; i < kNodes; ++i) CHECK((table->find<SameKey>(hash_of(i), i) != nullptr) == (i % 2 == 1));
    for (u64 i = 1; i < kNodes - 8; i += 2) CHECK(table->remove(&nodes[i]->node));
  }
  CHECK(table->count() == 4);
  CHECK(table->should_resize());
  table->resize();
  CHECK(table->buckets() == 64);
  const RcuReadGuard reading;
  CHECK(table->find<SameKey>(hash_of(kNodes - 1), kNodes - 1) == &nodes[kNodes - 1]->node);
}

TEST_CASE("rcu: readers beside replacing writers and a resizer never see what was freed", "[base]") {
  constexpr u64 kKeys = 512;
  std::atomic<u64> freed{0};
  auto table = RcuTable::make(1 << 12);
  RcuDefer defer(&freed);
  std::atomic<bool> stop{false};
  std::atomic<u64> dead_seen{0}, found{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (u64 i = 0; !stop; ++i) {
        const RcuReadGuard reading;
        const u64 key = i % kKeys;
        if (RcuNode* const node = table->find<SameKey>(hash_of(key), key); node != nullptr) {
          found.fetch_add(1, std::memory_order_relaxed);
          if (Numbered::of(node)->alive.load(std::memory_order_relaxed) != 1) ++dead_seen;
        }
      }
    });
  threads.emplace_back([&] {
    for (int i = 0; i < 200 && !stop; ++i) table->resize(), std::this_thread::yield();
  });
  u64 removed = 0;
  for (u64 i = 0; i < 20000 || found < 1000; ++i) {
    const u64 key = i % kKeys;
    const RcuReadGuard reading;
    if (RcuNode* const old = table->find<SameKey>(hash_of(key), key); old != nullptr) {
      REQUIRE(table->remove(old));
      defer.defer(Numbered::of(old)->head, free_it, sizeof(Numbered));
      removed += 1;
    }
    auto* const fresh = new Numbered;
    fresh->key = key;
    REQUIRE(table->add<SameKey>(hash_of(key), key, &fresh->node) == nullptr);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(dead_seen == 0);
  {
    const RcuReadGuard reading;
    for (u64 key = 0; key < kKeys; ++key)
      if (RcuNode* const node = table->find<SameKey>(hash_of(key), key); node != nullptr) {
        table->remove(node);
        defer.defer(Numbered::of(node)->head, free_it, 0);
        removed += 1;
      }
  }
  defer.barrier();
  CHECK(freed == removed);
}

TEST_CASE("rcu: fork beside readers and grace periods leaves both processes able to end and to go on", "[base]") {
  REQUIRE(fork_generation() == 0);  // this also links base/fork.cc, whose handlers are what is tested
  std::atomic<u64> freed{0};
  RcuDefer defer(&freed);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) const RcuReadGuard reading;
  });
  for (int i = 0; i < 20; ++i) {
    defer.defer((new Numbered)->head, free_it, 1);
    // A child that has an RcuDefer of its own gets along: liburcu's locks are free there, dead readers forgotten.
    CHECK(in_child([] {
#if PMFS_TSAN_BUILD  // it starts no threads in a child of a process with several: sections and a grace period alone,
                     // then
            { const RcuReadGuard reading; }
            rcu_synchronize();
            return 0;
#endif
            std::atomic<u64> freed_here{0};
            RcuDefer own(&freed_here);
            own.defer((new Numbered)->head, free_it, 1);
            own.barrier();
            return freed_here == 1 ? 0 : 1;
          }) == 0);
  }
  stop = true;
  reader.join();
  defer.barrier();
  CHECK(freed == 20);
}
