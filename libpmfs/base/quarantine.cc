#include "base/quarantine.h"

#include <thread>

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
  waiting_.push_back({std::move(freed), added_++});
}

void Quarantine::collect() {
  std::deque<Freed> ready;
  {
    std::lock_guard lock(mutex_);
    const u64 busy = readers_.busy();
    std::deque<Waiting> kept;
    for (Waiting& one : waiting_) {
      one.inside &= busy;
      if (one.inside == 0 && lanes_.retired(one.freed.by))
        ready.push_back(std::move(one.freed));
      else
        kept.push_back(std::move(one));
    }
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

// Whether a reader may still see something that was added before the set of that number.
bool Quarantine::seen_before(u64 number) {
  std::lock_guard lock(mutex_);
  for (const Waiting& one : waiting_)
    if (one.number < number && one.inside != 0) return true;
  return false;
}

bool Quarantine::drain() {
  if (size() == 0) return false;
  const u64 before = released();
  u64 added = 0;
  {
    std::lock_guard lock(mutex_);
    added = added_;
  }
  lanes_.retire_all(Order::kDrainHeader, Order::kDrainFence);
  for (collect(); seen_before(added); collect()) std::this_thread::yield();
  return released() != before;
}

}  // namespace pmfs
