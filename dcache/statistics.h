// Counts of the cache, and the samples of what was looked up: a block for each thread, so that counting writes no line
// that another look-up reads.
//
//   H1  A block is written by its thread alone (heat samples and counts: relaxed stores), and read by whoever sums up
//   or
//       drains. It is the only memory a warm look-up writes.
//   H2  A sample is {slot, serial}: it keeps nothing alive, and is ignored when the slot means something else by now.
//   H3  When a thread samples faster than the manager drains, the oldest samples are lost. Heat is a matter of degree.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "dcache/dentry.h"

namespace pmfs::dcache {

enum class Count : u32 {
  kLookups,    ///< paths resolved
  kSteps,      ///< components found in the cache
  kMisses,     ///< components for which a directory was read
  kNegatives,  ///< steps that found a negative dentry
  kSkipped,    ///< components that a pivot or a known path made unnecessary
  kPivotHits,  ///< look-ups that began at a pivot
  kWholeHits,  ///< look-ups that needed no step at all
  kRetries,    ///< steps repeated because the directory changed meanwhile
  kShared,     ///< components and paths that a batch had found before
  kLast_,
};
inline constexpr std::size_t kCounts = static_cast<std::size_t>(Count::kLast_);

struct alignas(64) ThreadBlock {
  static constexpr u32 kSamples = 1024;
  std::array<std::atomic<u64>, kCounts> counts{};
  std::atomic<u32> sampled{0};
  std::atomic<bool> in_use{true};
  alignas(64) std::array<std::atomic<u64>, kSamples> samples{};
  alignas(64) u32 drained = 0;  // the drainer's

  void count(Count what, u64 n = 1) {
    std::atomic<u64>& word = counts[static_cast<std::size_t>(what)];
    word.store(word.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void sample(Slot slot, u32 serial) {
    const u32 n = sampled.load(std::memory_order_relaxed);
    samples[n % kSamples].store(u64{serial} << 32 | slot, std::memory_order_relaxed);
    sampled.store(n + 1, std::memory_order_release);
  }
};

/// The blocks of all threads that use one cache.
class ThreadBlocks {
 public:
  ThreadBlocks();
  ~ThreadBlocks();
  ThreadBlocks(const ThreadBlocks&) = delete;
  ThreadBlocks& operator=(const ThreadBlocks&) = delete;

  /// The calling thread's. Cost: two loads, but for a thread's first call.
  ThreadBlock& here() { return last_used.cache == id_ ? *last_used.block : find(); }

  u64 sum(Count what) const;

  /// Gives every sample that came since the last call to `visit(slot, serial)`, each thread's in order.
  template <class Visit>
  void drain(Visit&& visit) {
    std::lock_guard lock(mutex_);
    for (const auto& block : blocks_) {
      const u32 sampled = block->sampled.load(std::memory_order_acquire);
      if (sampled - block->drained > ThreadBlock::kSamples) block->drained = sampled - ThreadBlock::kSamples;
      for (; block->drained != sampled; ++block->drained) {
        const u64 sample = block->samples[block->drained % ThreadBlock::kSamples].load(std::memory_order_relaxed);
        visit(static_cast<Slot>(sample), static_cast<u32>(sample >> 32));
      }
    }
  }

 private:
  struct LastUsed {
    u64 cache;
    ThreadBlock* block;
  };
  // A few bytes of the loader's reserve for such variables: reached without a call.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local LastUsed last_used;

  ThreadBlock& find();

  const u64 id_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<ThreadBlock>> blocks_;  // guarded by mutex_
};

}  // namespace pmfs::dcache
