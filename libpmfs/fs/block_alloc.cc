#include "fs/block_alloc.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "base/thread_index.h"

namespace pmfs {

namespace {
constexpr u32 kHugeBlocks = 512;  // 2 MiB: longer requests are aligned to it if possible
}  // namespace

BlockAlloc::BlockAlloc(const Regions& regions) {
  for (const Region& region : regions.list()) {
    const u64 first = region.off / kBlockBytes;
    const u64 count = region.length_bytes / kBlockBytes;
    for (u64 done = 0; done < count; done += kGroupBlocks) {
      auto group = std::make_unique<Group>();
      group->first = first + done;
      group->count = static_cast<u32>(std::min<u64>(kGroupBlocks, count - done));
      group->free = group->count;
      group->used.assign((group->count + 63) / 64, 0);
      if (group->count % 64 != 0) group->used.back() = ~u64{0} << group->count % 64;
      total_ += group->count;
      groups_.push_back(std::move(group));
    }
  }
  std::sort(groups_.begin(), groups_.end(), [](const auto& a, const auto& b) { return a->first < b->first; });
  free_ = total_;
  reserve_ = std::clamp<u64>(total_ / 256, 8, 1024);
}

BlockAlloc::Group* BlockAlloc::group_of(u64 block) const {
  auto it = std::upper_bound(groups_.begin(), groups_.end(), block, [](u64 b, const auto& g) { return b < g->first; });
  if (it == groups_.begin()) return nullptr;
  Group* group = std::prev(it)->get();
  return block - group->first < group->count ? group : nullptr;
}

u32 BlockAlloc::next_free(const Group& group, u32 from) {
  for (u32 word = from / 64; word < group.used.size(); ++word) {
    u64 open = ~group.used[word];
    if (word == from / 64) open &= ~u64{0} << from % 64;
    if (open != 0) return word * 64 + static_cast<u32>(std::countr_zero(open));
  }
  return group.count;
}

u32 BlockAlloc::next_used(const Group& group, u32 from, u32 limit) {
  for (u32 word = from / 64; word < group.used.size() && word * 64 < limit; ++word) {
    u64 taken = group.used[word];
    if (word == from / 64) taken &= ~u64{0} << from % 64;
    if (taken != 0) return std::min(limit, word * 64 + static_cast<u32>(std::countr_zero(taken)));
  }
  return std::min(limit, group.count);
}

void BlockAlloc::set_bits(Group& group, u32 from, u32 count, bool used) {
  while (count > 0) {
    const u32 n = std::min(count, 64 - from % 64);
    const u64 mask = (n == 64 ? ~u64{0} : (u64{1} << n) - 1) << from % 64;
    if (used)
      group.used[from / 64] |= mask;
    else
      group.used[from / 64] &= ~mask;
    from += n;
    count -= n;
  }
}

// How long the free run is that [from, end), now free, is a part of.
u32 BlockAlloc::free_run_at(const Group& group, u32 from, u32 end) {
  u32 first = from;
  while (first > 0) {
    const u64 below =
        first % 64 == 0 ? group.used[first / 64 - 1] : group.used[first / 64] & ((u64{1} << first % 64) - 1);
    const u32 word_first = (first - 1) / 64 * 64;
    if (below != 0) {
      first = word_first + static_cast<u32>(std::bit_width(below));
      break;
    }
    first = word_first;
  }
  return next_used(group, end, group.count) - first;
}

// Takes a run out of one group, which the caller has locked.
BlockRun BlockAlloc::take(Group& group, u64 want, u64 goal, Fit fit) {
  if (group.free == 0) return {};
  const auto most = static_cast<u32>(std::min<u64>(want, group.count));
  u32 best = 0;
  u32 best_len = 0;
  if (goal >= group.first && goal - group.first < group.count) {
    const auto at = static_cast<u32>(goal - group.first);
    if ((group.used[at / 64] >> at % 64 & 1) == 0) {
      best = at;
      best_len = next_used(group, at, std::min(group.count, at + most)) - at;
    }
  }
  const bool at_goal = best_len != 0;
  if (!at_goal && (fit != Fit::kWhole || group.longest >= most)) {
    u32 longest = 0;
    u32 at = next_free(group, group.low_word * 64);
    group.low_word = at / 64;
    while (at < group.count && best_len < most) {
      const u32 end = next_used(group, at, group.count);
      longest = std::max(longest, end - at);
      u32 start = at;
      if (most >= kHugeBlocks) {  // align to 2 MiB of the pool if the run still is long enough
        const auto aligned =
            static_cast<u32>((group.first + at + kHugeBlocks - 1) / kHugeBlocks * kHugeBlocks - group.first);
        if (aligned < end && end - aligned >= most) start = aligned;
      }
      const u32 len = std::min(end - start, most);
      if (len > best_len) {
        best = start;
        best_len = len;
        if (fit == Fit::kFirst) break;
      }
      at = next_free(group, end);
    }
    if (at >= group.count) group.longest = longest;  // the whole group was seen
  }
  if (best_len == 0 || (fit == Fit::kWhole && best_len < most && !at_goal)) return {};
  set_bits(group, best, best_len, true);
  group.free -= best_len;
  return {group.first + best, best_len};
}

// A run from any group, first of all from that of the goal. Empty: there is none.
BlockRun BlockAlloc::search(u64 want, u64 goal, std::initializer_list<Fit> fits) {
  const auto start = static_cast<std::size_t>(
      goal != 0 && group_of(goal) != nullptr
          ? std::upper_bound(groups_.begin(), groups_.end(), goal, [](u64 b, const auto& g) { return b < g->first; }) -
                groups_.begin() - 1
          : static_cast<std::ptrdiff_t>(thread_index() % groups_.size()));
  for (const Fit fit : fits) {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      Group& group = *groups_[(start + i) % groups_.size()];
      std::lock_guard lock(group.mutex);
      if (const BlockRun run = take(group, want, i == 0 ? goal : 0, fit); run.count != 0) return run;
    }
  }
  return {};
}

// Takes up to `want` from the count of free blocks, of which `keep` stay. @return how many; 0: there are none to be
// had.
u64 BlockAlloc::withdraw(u64 want, u64 keep) {
  u64 free = free_.load(std::memory_order_relaxed);
  u64 budget;
  do {
    if (free <= keep) return 0;
    budget = std::min(want, free - keep);
  } while (!free_.compare_exchange_weak(free, free - budget, std::memory_order_relaxed));
  return budget;
}

// Serves a request for one block anywhere, or for blocks where this thread's cache goes on. Empty: it cannot.
BlockRun BlockAlloc::from_cache(u64 want, u64 goal) {
  if (goal == 0 && want != 1) return {};
  Cache& cache = caches_[thread_index() % kCaches];
  std::lock_guard lock(cache.mutex);
  u64 count = cache.count.load(std::memory_order_relaxed);
  if (goal != 0 && (count == 0 || cache.first != goal)) return {};
  if (count == 0) {
    if (free_.load(std::memory_order_relaxed) < reserve_ + kPlenty) return {};
    const u64 budget = withdraw(kCacheBlocks, reserve_);
    if (budget == 0) return {};
    // The first run, however short: single blocks are what holes are good for.
    const BlockRun run = search(budget, 0, {Fit::kFirst});
    free_.fetch_add(budget - run.count, std::memory_order_relaxed);
    if (run.count == 0) return {};
    cache.first = run.first;
    count = run.count;
  }
  const BlockRun run{cache.first, std::min(want, count)};
  cache.first += run.count;
  cache.count.store(count - run.count, std::memory_order_relaxed);
  return run;
}

u64 BlockAlloc::cached_blocks() const {
  u64 sum = 0;
  for (const Cache& cache : caches_) sum += cache.count.load(std::memory_order_relaxed);
  return sum;
}

void BlockAlloc::empty_caches() {
  for (Cache& cache : caches_) {
    std::lock_guard lock(cache.mutex);
    const BlockRun run{cache.first, cache.count.load(std::memory_order_relaxed)};
    // Into the groups before it leaves the cache: space is never seen as less than it is.
    if (run.count != 0) put_back(run);
    cache.count.store(0, std::memory_order_relaxed);
  }
}

Result<BlockRun> BlockAlloc::allocate(u64 want, u64 goal, Purpose purpose) {
  PMFS_ASSERT(want > 0);
  if (const BlockRun run = from_cache(want, goal); run.count != 0) return run;
  const u64 keep = purpose == Purpose::kOrdinary ? reserve_ : 0;
  if (free_.load(std::memory_order_relaxed) < keep + want && cached_blocks() != 0) empty_caches();
  for (;;) {
    const u64 budget = withdraw(want, keep);
    const BlockRun run = budget == 0 ? BlockRun{} : search(budget, goal, {Fit::kWhole, Fit::kLongest});
    free_.fetch_add(budget - run.count, std::memory_order_relaxed);
    if (run.count != 0) return run;
    if (cached_blocks() == 0) return Error{Errc::kNoSpace, "no free block", 0};
    empty_caches();  // a cache was filled meanwhile; in want of space none is, so this ends
  }
}

void BlockAlloc::release(BlockRun run) { put_back(run); }

void BlockAlloc::put_back(BlockRun run) {
  while (run.count > 0) {
    Group* group = group_of(run.first);
    if (group == nullptr) {
      damaged_.store(true, std::memory_order_relaxed);
      return;
    }
    const auto from = static_cast<u32>(run.first - group->first);
    const auto n = static_cast<u32>(std::min<u64>(run.count, group->count - from));
    {
      std::lock_guard lock(group->mutex);
      if (next_free(*group, from) < from + n) {  // the pool had given it two owners
        damaged_.store(true, std::memory_order_relaxed);
        return;
      }
      set_bits(*group, from, n, false);
      group->free += n;
      group->low_word = std::min(group->low_word, from / 64);
      if (group->longest < group->count) group->longest = std::max(group->longest, free_run_at(*group, from, from + n));
    }
    free_.fetch_add(n, std::memory_order_relaxed);
    run.first += n;
    run.count -= n;
  }
}

bool BlockAlloc::mark_used(BlockRun run) {
  const u64 first = run.first;
  const auto undo = [&] {
    if (run.first != first) put_back({first, run.first - first});
    return false;
  };
  while (run.count > 0) {
    Group* group = group_of(run.first);
    if (group == nullptr) return undo();
    const auto from = static_cast<u32>(run.first - group->first);
    const auto n = static_cast<u32>(std::min<u64>(run.count, group->count - from));
    bool taken;
    {
      std::lock_guard lock(group->mutex);
      taken = next_used(*group, from, from + n) < from + n;
      if (!taken) {
        set_bits(*group, from, n, true);
        group->free -= n;
      }
    }
    if (taken) return undo();
    free_.fetch_sub(n, std::memory_order_relaxed);
    run.first += n;
    run.count -= n;
  }
  return true;
}

bool BlockAlloc::is_used(u64 block) const {
  const Group* group = group_of(block);
  if (group == nullptr) return false;
  const u64 at = block - group->first;
  std::lock_guard lock(group->mutex);
  return (group->used[at / 64] >> at % 64 & 1) != 0;
}

std::vector<u64> BlockAlloc::save() {
  empty_caches();
  std::vector<u64> words;
  for (const auto& group : groups_) words.insert(words.end(), group->used.begin(), group->used.end());
  return words;
}

bool BlockAlloc::load(std::span<const u64> words) {
  std::size_t need = 0;
  for (const auto& group : groups_) need += group->used.size();
  if (words.size() != need) return false;
  std::size_t at = 0;
  u64 free = 0;
  for (const auto& group : groups_) {
    std::copy_n(words.begin() + static_cast<std::ptrdiff_t>(at), group->used.size(), group->used.begin());
    at += group->used.size();
    if (group->count % 64 != 0) group->used.back() |= ~u64{0} << group->count % 64;
    group->free = 0;
    for (const u64 word : group->used) group->free += 64 - static_cast<u32>(std::popcount(word));
    group->low_word = 0;
    group->longest = ~u32{0};
    free += group->free;
  }
  free_ = free;
  return true;
}

void BlockAlloc::each_free_run(const std::function<void(BlockRun)>& visit) {
  empty_caches();
  for (const auto& group : groups_) {
    for (u32 at = next_free(*group, 0); at < group->count;) {
      const u32 end = next_used(*group, at, group->count);
      visit({group->first + at, end - at});
      at = next_free(*group, end);
    }
  }
}

BlockRun BlockAlloc::find_free(u64 count) {
  BlockRun found;
  each_free_run([&](BlockRun run) {
    if (found.count == 0 && run.count >= count) found = {run.first, count};
  });
  return found;
}

}  // namespace pmfs
