// Where freed blocks and inode slots wait until nothing can want them back.
//
// What it owns: the freed things of commits whose bump is not known to be durable. If they were reused before, a crash
// could undo the freeing change, and its owner would come back with somebody else's contents (R4).
//   Q1  What is handed to release was freed by a retired commit.
//   Q2  What open handles and pins hold is not here yet: it is added when the last of them goes.
//   Q3  Blocks under a lease (a pointer into the pool that a user holds) stay here until it is given back, however long
//       ago they were freed, and count as used meanwhile. A lease is taken while the blocks are in a file, under its
//       inode's lock: so it is here before they are.
//   Q4  drain() costs one fence, and is called with no lock held and in no read section: it waits for readers.
//   Q5  What is handed to release can be seen by no reader without locks any more (base/read_section.h). collect() does
//       not wait for that: what somebody may still see stays for the next time.
// Thread rules: all functions from any thread.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "base/block_source.h"
#include "base/lane.h"
#include "base/read_section.h"

namespace pmfs {

/// What one commit freed.
struct Freed {
  ChangeMark by;
  std::vector<BlockRun> blocks;
  std::vector<u64> slots;
  bool empty() const { return blocks.empty() && slots.empty(); }
};

class Quarantine {
 public:
  /// @param release  gets what may be reused; called without this object's lock.
  Quarantine(Lanes& lanes, Persist& persist, ReadSections& readers, std::function<void(const Freed&)> release)
      : lanes_(lanes), persist_(persist), readers_(readers), release_(std::move(release)) {}

  void add(Freed freed);
  /// A lease begins: `run` is kept from reuse until it is unpinned. Counted: leases may overlap.
  void pin(BlockRun run);
  /// A lease ends. REQUIRES: the same run was pinned. What was freed under it comes free now, if nothing else holds it.
  void unpin(BlockRun run);
  /// Blocks that were freed and are kept by leases alone.
  u64 pinned_blocks() const { return pinned_.load(std::memory_order_relaxed); }
  /// Releases what is retired already and seen by nobody. No flush, no fence, no waiting.
  void collect();
  /// Makes everything here retired, at the cost of one fence, waits for readers without locks that are inside now, and
  /// releases it. Costs nothing if nothing waits.
  /// @return whether anything was released meanwhile.
  bool drain();
  /// How many freed sets were ever released: whoever found no space looks whether this has grown.
  u64 released() const { return released_.load(std::memory_order_relaxed); }
  /// Blocks waiting here: they count as free, one fence yields them.
  u64 blocks() const { return blocks_.load(std::memory_order_relaxed); }
  u64 slots() const { return slots_.load(std::memory_order_relaxed); }
  /// How many freed sets wait.
  u64 size() const { return size_.load(std::memory_order_relaxed); }

 private:
  struct Waiting {
    Freed freed;
    u64 number;
    u64 inside = ~u64{0};  // stripes of readers that may still see it
  };
  bool seen_before(u64 number);
  bool is_pinned(const BlockRun& run) const;

  Lanes& lanes_;
  Persist& persist_;
  ReadSections& readers_;
  std::function<void(const Freed&)> release_;
  std::mutex mutex_;
  std::deque<Waiting> waiting_;
  u64 added_ = 0;  // sets ever added
  std::vector<BlockRun> pins_;  // of leases, in no order
  std::vector<BlockRun> kept_;  // freed and retired, but under a lease
  std::atomic<u64> blocks_{0};
  std::atomic<u64> pinned_{0};
  std::atomic<u64> slots_{0};
  std::atomic<u64> size_{0};
  std::atomic<u64> released_{0};
};

}  // namespace pmfs
