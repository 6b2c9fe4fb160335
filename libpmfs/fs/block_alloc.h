// Which blocks are free: in DRAM only. What is in use follows from what is reachable, so an allocation stores nothing
// in the pool, and a crash leaks nothing.
//
//   A1  A block is used, or free, or in the quarantine (then it counts as used here).
//   A2  Ordinary requests leave the reserve alone; operations that free space may use it.
//   A3  A block in a cache has its bit set and counts as free. Caches are filled only while there is plenty, and
//   emptied
//       as soon as a request would have to go without.
// Structure: groups of up to 32,768 blocks with a bitmap and a lock each; no lock covers two groups. Before them
// caches, one for every thread if there are not too many: a short run of blocks, from which requests for single blocks
// are served, and requests that want to go on where the run begins (a file that is written in pieces stays in one row).
// Threads start their searches in different groups.
// Thread rules: all functions from any thread, but load(), save(), find_free() and each_free_run() only while nobody
// else is here. LOCK order: a cache, then a group.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "fs/regions.h"

namespace pmfs {

class BlockAlloc final : public BlockSource {
 public:
  /// All blocks of all regions, free.
  explicit BlockAlloc(const Regions& regions);

  Result<BlockRun> allocate(u64 want, u64 goal, Purpose purpose) override;
  void release(BlockRun run) override;

  /// Marks a run used while the state is rebuilt, by any number of threads. @return false: a part is outside every
  /// region, or used already; then nothing was marked.
  bool mark_used(BlockRun run);
  bool is_used(u64 block) const;

  /// Whether a block was given back that was free already, or none of ours: the pool gives it two owners. Set for ever.
  bool damaged() const { return damaged_.load(std::memory_order_relaxed); }

  u64 total() const { return total_; }
  u64 free_blocks() const { return free_.load(std::memory_order_relaxed) + cached_blocks(); }
  u64 reserve() const { return reserve_; }

  /// The bitmaps of all groups, one behind another, in region order; bit set: used.
  std::vector<u64> save();
  /// Takes saved bitmaps. @return false: they are not of this shape; nothing changed.
  bool load(std::span<const u64> words);
  /// The first run of `count` free blocks, or an empty run. Takes nothing.
  BlockRun find_free(u64 count);
  /// Calls `visit` for each run of free blocks, ascending. Runs do not go on from one group to the next.
  void each_free_run(const std::function<void(BlockRun)>& visit);

 private:
  struct Group {
    mutable std::mutex mutex;
    u64 first = 0;
    u32 count = 0;
    u32 free = 0;
    u32 low_word = 0;       // no block before this word's is free
    u32 longest = ~u32{0};  // no free run is longer
    std::vector<u64> used;  // bits behind `count` are set
  };
  static constexpr u32 kGroupBlocks = 32768;

  /// Blocks that one thread will take next. Guarded by `mutex`; the count may be read without.
  struct alignas(64) Cache {
    std::mutex mutex;
    u64 first = 0;
    std::atomic<u64> count{0};
  };
  static constexpr u32 kCaches = 16;
  static constexpr u64 kCacheBlocks = 32;
  static constexpr u64 kPlenty = 4 * kCaches * kCacheBlocks;  // free blocks beyond the reserve for caches to be filled

  /// How a group is searched: a run at the goal or of full length; the longest run; or the first there is.
  enum class Fit : u8 { kWhole, kLongest, kFirst };

  Group* group_of(u64 block) const;
  BlockRun take(Group& group, u64 want, u64 goal, Fit fit);
  BlockRun search(u64 want, u64 goal, std::initializer_list<Fit> fits);
  u64 withdraw(u64 want, u64 keep);
  BlockRun from_cache(u64 want, u64 goal);
  u64 cached_blocks() const;
  void empty_caches();
  void put_back(BlockRun run);
  static u32 next_free(const Group& group, u32 from);
  static u32 next_used(const Group& group, u32 from, u32 limit);
  static u32 free_run_at(const Group& group, u32 from, u32 end);
  static void set_bits(Group& group, u32 from, u32 count, bool used);

  std::vector<std::unique_ptr<Group>> groups_;
  std::array<Cache, kCaches> caches_;
  u64 total_ = 0;
  u64 reserve_ = 0;
  std::atomic<u64> free_{0};  // without those in caches
  std::atomic<bool> damaged_{false};
};

}  // namespace pmfs
