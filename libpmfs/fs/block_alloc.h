// Which blocks are free: in DRAM only. What is in use follows from what is reachable, so an allocation stores nothing
// in the pool, and a crash leaks nothing.
//
//   A1  A block is used, or free, or in the quarantine (then it counts as used here).
//   A2  Ordinary requests leave the reserve alone; operations that free space may use it.
// Structure: groups of up to 32,768 blocks with a bitmap and a lock each; no lock covers two groups.
// Thread rules: all functions from any thread, but mark_used(), load() and save() only while nobody else is here.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "fs/regions.h"

namespace pmfs {

class BlockAlloc final : public BlockSource {
 public:
  /// All blocks of all regions, free.
  explicit BlockAlloc(const Regions& regions);

  Result<BlockRun> allocate(u64 want, u64 goal, Purpose purpose) override;
  void release(BlockRun run) override;

  /// Marks a run used while the state is rebuilt. @return false: a part is outside every region, or used already.
  bool mark_used(BlockRun run);
  bool is_used(u64 block) const;

  /// Whether a block was given back that was free already, or none of ours: the pool gives it two owners. Set for ever.
  bool damaged() const { return damaged_.load(std::memory_order_relaxed); }

  u64 total() const { return total_; }
  u64 free_blocks() const { return free_.load(std::memory_order_relaxed); }
  u64 reserve() const { return reserve_; }

  /// The bitmaps of all groups, one behind another, in region order; bit set: used.
  std::vector<u64> save() const;
  /// Takes saved bitmaps. @return false: they are not of this shape; nothing changed.
  bool load(const std::vector<u64>& words);
  /// The first run of `count` free blocks, or an empty run. Takes nothing.
  BlockRun find_free(u64 count) const;

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

  Group* group_of(u64 block) const;
  BlockRun take(Group& group, u64 want, u64 goal, bool whole);
  static u32 next_free(const Group& group, u32 from);
  static u32 next_used(const Group& group, u32 from, u32 limit);
  static void set_bits(Group& group, u32 from, u32 count, bool used);

  std::vector<std::unique_ptr<Group>> groups_;
  u64 total_ = 0;
  u64 reserve_ = 0;
  std::atomic<u64> free_{0};
  std::atomic<bool> damaged_{false};
};

}  // namespace pmfs
