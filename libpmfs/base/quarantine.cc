#include "base/quarantine.h"

#include <algorithm>
#include <thread>

#include "base/assert.h"

namespace pmfs {

namespace {

u64 count_blocks(const std::vector<BlockRun>& runs) {
  u64 count = 0;
  for (const BlockRun& run : runs) count += run.count;
  return count;
}

}  // namespace

void Quarantine::add(Freed freed) {
  if (freed.empty()) return;
  if (!persist_.rule(Rule::kQuarantine)) {
    release_(freed);
    return;
  }
  std::lock_guard lock(mutex_);
  blocks_.fetch_add(count_blocks(freed.blocks), std::memory_order_relaxed);
  slots_.fetch_add(freed.slots.size(), std::memory_order_relaxed);
  size_.fetch_add(1, std::memory_order_relaxed);
  waiting_.push_back({std::move(freed), added_++});
}

// REQUIRES: the mutex.
bool Quarantine::is_pinned(const BlockRun& run) const {
  return std::any_of(pins_.begin(), pins_.end(),
                     [&](const BlockRun& pin) { return run.first < pin.end() && pin.first < run.end(); });
}

void Quarantine::pin(BlockRun run) {
  std::lock_guard lock(mutex_);
  pins_.push_back(run);
}

void Quarantine::unpin(BlockRun run) {
  Freed ready;
  {
    std::lock_guard lock(mutex_);
    const auto same = [&](const BlockRun& pin) { return pin.first == run.first && pin.count == run.count; };
    const auto found = std::find_if(pins_.begin(), pins_.end(), same);
    PMFS_ASSERT(found != pins_.end());
    pins_.erase(found);
    const auto free = std::partition(kept_.begin(), kept_.end(), [&](const BlockRun& kept) { return is_pinned(kept); });
    ready.blocks.assign(free, kept_.end());
    kept_.erase(free, kept_.end());
  }
  if (ready.blocks.empty()) return;
  release_(ready);
  pinned_.fetch_sub(count_blocks(ready.blocks), std::memory_order_relaxed);
  released_.fetch_add(1, std::memory_order_relaxed);
}

void Quarantine::collect() {
  std::deque<Freed> ready;
  {
    std::lock_guard lock(mutex_);
    const u64 busy = readers_.busy();
    std::deque<Waiting> waiting;
    for (Waiting& one : waiting_) {
      one.inside &= busy;
      if (one.inside != 0 || !lanes_.retired(one.freed.by)) {
        waiting.push_back(std::move(one));
        continue;
      }
      Freed& freed = one.freed;
      const auto pinned = pins_.empty() ? freed.blocks.end()
                                        : std::stable_partition(freed.blocks.begin(), freed.blocks.end(),
                                                                [&](const BlockRun& run) { return !is_pinned(run); });
      if (pinned != freed.blocks.end()) {
        const std::vector<BlockRun> kept(pinned, freed.blocks.end());
        freed.blocks.erase(pinned, freed.blocks.end());
        pinned_.fetch_add(count_blocks(kept), std::memory_order_relaxed);
        blocks_.fetch_sub(count_blocks(kept), std::memory_order_relaxed);
        kept_.insert(kept_.end(), kept.begin(), kept.end());
      }
      ready.push_back(std::move(freed));
    }
    waiting_.swap(waiting);
  }
  for (const Freed& freed : ready) {
    // Released before it is uncounted: space is never seen as less than it is.
    release_(freed);
    blocks_.fetch_sub(count_blocks(freed.blocks), std::memory_order_relaxed);
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
