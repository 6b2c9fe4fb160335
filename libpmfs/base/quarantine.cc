#include "base/quarantine.h"

namespace pmfs {

void Quarantine::add(Freed freed) {
  if (freed.empty()) return;
  if (!persist_.rule(Rule::kQuarantine)) {
    release_(freed);
    return;
  }
  u64 count = 0;
  for (const BlockRun& run : freed.blocks) count += run.count;
  std::lock_guard lock(mutex_);
  blocks_.fetch_add(count, std::memory_order_relaxed);
  slots_.fetch_add(freed.slots.size(), std::memory_order_relaxed);
  size_.fetch_add(1, std::memory_order_relaxed);
  waiting_.push_back(std::move(freed));
}

void Quarantine::collect() {
  std::deque<Freed> ready;
  {
    std::lock_guard lock(mutex_);
    std::deque<Freed> kept;
    for (Freed& freed : waiting_) (lanes_.retired(freed.by) ? ready : kept).push_back(std::move(freed));
    waiting_.swap(kept);
  }
  for (const Freed& freed : ready) {
    // Released before it is uncounted: space is never seen as less than it is.
    release_(freed);
    u64 count = 0;
    for (const BlockRun& run : freed.blocks) count += run.count;
    blocks_.fetch_sub(count, std::memory_order_relaxed);
    slots_.fetch_sub(freed.slots.size(), std::memory_order_relaxed);
    size_.fetch_sub(1, std::memory_order_relaxed);
    released_.fetch_add(1, std::memory_order_relaxed);
  }
}

bool Quarantine::drain() {
  if (size() == 0) return false;
  const u64 before = released();
  lanes_.retire_all(Order::kDrainHeader, Order::kDrainFence);
  collect();
  return released() != before;
}

}  // namespace pmfs
