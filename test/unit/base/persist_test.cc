// The persist seam's counters are exact, and file-backed pools are synced by runs of pages.
#include "base/persist.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "test/support/catch.h"
#include "test/support/sim_persist.h"

namespace pmfs::test {
namespace {

struct Fixture {
  Fixture() : buffer(16384), persist(Memory{buffer.data(), buffer.size(), Durability::kVolatile}) {}
  Counters cost(const std::function<void()>& work) const {
    const Counters before = thread_counters();
    work();
    return thread_counters() - before;
  }
  AlignedBuffer buffer;
  Persist persist;
};

TEST_CASE_METHOD(Fixture, "persist: a flush counts each line it touches once", "[unit][base]") {
  const auto lines = [&](u64 off, u64 bytes) {
    const Counters c = cost([&] { persist.flush(buffer.data() + off, bytes, Order::kApplied); });
    CHECK(c.flushes == (bytes == 0 ? 0 : 1));
    CHECK(c.fences == 0);
    return c.lines;
  };
  CHECK(lines(0, 1) == 1);
  CHECK(lines(0, 64) == 1);
  CHECK(lines(63, 1) == 1);
  CHECK(lines(63, 2) == 2);
  CHECK(lines(1, 64) == 2);
  CHECK(lines(64, 4096) == 64);
  CHECK(lines(60, 4096) == 65);
  CHECK(lines(17, 0) == 0);
}

TEST_CASE_METHOD(Fixture, "persist: a fence counts as one, a store as nothing", "[unit][base]") {
  const Counters c = cost([&] {
    persist.store(*reinterpret_cast<Le64*>(buffer.data()), 7);
    persist.write(buffer.data() + 8, "abc", 3);
    persist.zero(buffer.data() + 16, 8);
    persist.fence(Order::kFence1);
  });
  CHECK(c.fences == 1);
  CHECK(c.flushes == 0);
  CHECK(c.lines == 0);
  CHECK(buffer.data()[0] == std::byte{7});
}

TEST_CASE_METHOD(Fixture, "persist: a copy counts its bytes and its lines and asks for no fence", "[unit][base]") {
  const std::vector<std::byte> data(5000, std::byte{9});
  const Counters c = cost([&] { persist.copy(buffer.data() + 100, data.data(), data.size(), Order::kFreshData); });
  CHECK(c.copies == 1);
  CHECK(c.copied_bytes == 5000);
  CHECK(c.flushes == 1);
  CHECK(c.lines == (100 + 5000 - 1) / 64 - 100 / 64 + 1);
  CHECK(c.fences == 0);
  CHECK(buffer.data()[100] == std::byte{9});
  CHECK(buffer.data()[5099] == std::byte{9});
  CHECK(buffer.data()[5100] == std::byte{0});
  CHECK(cost([&] { persist.copy(buffer.data(), data.data(), 0, Order::kFreshData); }).copies == 0);
}

TEST_CASE_METHOD(Fixture, "persist: each thread counts for itself, the process counts all, also those that ended",
                 "[unit][base]") {
  const Counters process_before = process_counters();
  const Counters mine = cost([&] {
    std::thread other([&] {
      for (int i = 0; i < 5; ++i) persist.fence(Order::kFence1);
      CHECK(thread_counters().fences == 5);
    });
    other.join();
    persist.fence(Order::kFence2);
  });
  CHECK(mine.fences == 1);
  CHECK((process_counters() - process_before).fences == 6);
}

TEST_CASE("persist: a file is synced by one msync for each run of pages, once for each page", "[unit][base]") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  constexpr std::size_t kBytes = 16 * 4096;
  REQUIRE(::ftruncate(fileno(file), kBytes) == 0);
  void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  REQUIRE(at != MAP_FAILED);
  {
    auto* base = static_cast<std::byte*>(at);
    Persist persist(Memory{base, kBytes, Durability::kFileBacked});
    const Counters before = thread_counters();
    for (const u64 page : {u64{9}, u64{2}, u64{3}, u64{2}, u64{4}, u64{12}})
      persist.flush(base + page * 4096 + 100, 8, Order::kApplied);
    CHECK((thread_counters() - before).msyncs == 0);
    persist.fence(Order::kFence1);
    CHECK((thread_counters() - before).msyncs == 3);  // 2 to 4, 9, 12
    persist.fence(Order::kFence2);
    CHECK((thread_counters() - before).msyncs == 3);
    CHECK_FALSE(persist.failed());

    // What cannot be written back is remembered for ever.
    persist.flush(base + kBytes - 8, 8, Order::kApplied);
    ::munmap(base + kBytes - 4096, 4096);
    persist.fence(Order::kFence1);
    CHECK(persist.failed());
  }
  ::munmap(at, kBytes - 4096);
  std::fclose(file);
}

TEST_CASE("persist: relaxed and private memory is not synced at fences", "[unit][base]") {
  AlignedBuffer buffer(4096);
  for (const Durability durability : {Durability::kRelaxed, Durability::kPrivate}) {
    Persist persist(Memory{buffer.data(), buffer.size(), durability});
    const Counters before = thread_counters();
    persist.flush(buffer.data(), 8, Order::kApplied);
    persist.fence(Order::kFence1);
    const Counters c = thread_counters() - before;
    CHECK(c.msyncs == 0);
    CHECK(c.fences == 1);
  }
}

TEST_CASE("persist: every order tag has a name and a reason", "[unit][base]") {
  for (unsigned i = 0; i < kOrderCount; ++i) {
    CHECK(std::string(order_name(static_cast<Order>(i))).size() > 1);
    CHECK(std::string(order_reason(static_cast<Order>(i))).size() > 10);
  }
}

}  // namespace
}  // namespace pmfs::test
