#include "fs/clock.h"

#include <ctime>

#include <atomic>

namespace pmfs {

namespace {
std::atomic<i64> test_ns{0};
}

i64 now_ns() {
  if (test_ns.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return test_ns.fetch_add(1, std::memory_order_relaxed);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return i64{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void set_clock_for_test(i64 ns) { test_ns.store(ns, std::memory_order_relaxed); }

}  // namespace pmfs
