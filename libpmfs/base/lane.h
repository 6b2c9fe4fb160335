// Lanes: log areas in the pool, each owned by one thread for one operation.
//
// What it owns: the lane area's DRAM side (which lane is free, how far each header is known to be durable), and the
// recovery of the lanes.
//   L1  A sequence serves one set of records (R1). It is used up by the bump at the end of the commit that wrote them.
//   L2  durable_sequence(k) <= what lane k's header says on the medium, whatever happens. It is raised only by a thread
//       that read the header, then flushed it, then fenced (R3).
//   L3  A header is never flushed when it is bumped: whoever relies on the bump flushes the header itself first. (A
//       flush there would be one line more in every operation, and the next bump would wait for its write-back.)
// Thread rules: acquire() waits when all lanes are taken; a holder never waits for anything, so this cannot deadlock.
#pragma once

#include <array>
#include <atomic>
#include <functional>

#include "base/lane_format.h"
#include "base/persist.h"

namespace pmfs {

/// Which commit last changed something: its lane and its sequence there. Zero: nothing since the pool was opened, and
/// what was before is durable (opening saw to it).
struct ChangeMark {
  u32 lane = 0;
  u64 sequence = 0;
  bool none() const { return sequence == 0; }
};

/// What record checksums are keyed by, beside lane, sequence and index (R1).
struct LaneKey {
  u64 uuid_low = 0;
  u64 uuid_high = 0;
  u64 epoch = 0;
};

class Lanes {
 public:
  /// @param area   start of the lane area.
  /// @param count  lanes to use, 1..64; fewer only in tests.
  Lanes(Persist& persist, PoolOff area, LaneKey key, u32 count = media::kLaneCount);

  /// Takes a free lane, the calling thread's last one if possible; waits if there is none.
  u32 acquire();
  void release(u32 lane);

  media::LaneHeader& header(u32 lane) const;
  media::Record& record(u32 lane, u32 index) const;
  const LaneKey& key() const { return key_; }

  u64 durable_sequence(u32 lane) const { return state_[lane].durable.load(std::memory_order_acquire); }
  /// Notes that lane's header was read as `sequence`, then flushed, then fenced, by this thread.
  void set_durable(u32 lane, u64 sequence);

  /// Whether the bump that ended `mark`'s commit is durable: recovery can no longer undo that commit.
  bool retired(const ChangeMark& mark) const { return mark.none() || durable_sequence(mark.lane) > mark.sequence; }
  /// Flushes a lane's header, unless its present sequence is known to be durable. Returns what to pass to set_durable()
  /// after the next fence, or 0.
  u64 flush_header(u32 lane, Order why);

  /// Makes every commit that has returned retired: flushes all headers, one fence.
  void retire_all(Order flush_why, Order fence_why);

  u32 count() const { return count_; }

 private:
  struct alignas(64) State {
    std::atomic<u64> durable{0};  // unknown at open: the last process may have died with its bump still in a CPU cache
  };
  Persist& persist_;
  PoolOff area_;
  LaneKey key_;
  u32 count_;
  std::atomic<u64> free_;  // bit k set: lane k is free
  std::array<State, media::kLaneCount> state_;
};

/// The checksum a record must carry.
u64 record_checksum(const media::Record& record, const LaneKey& key, u32 lane, u32 index, u64 sequence);

/// What recovery found in one lane.
enum class LaneVerdict : u8 { kEmpty, kCommitted, kUndone };

/// Recovers one lane: records incomplete for the current sequence -> nothing was applied. Complete, and the words in
/// place hash to the recorded value -> committed. Otherwise the old values are put back.
/// Either way every word of a complete set is flushed: the process may have died, without a power cut, before it could.
/// Idempotent. Orders nothing: the caller fences once behind all lanes, then raises the epoch, which ends the records.
/// @param valid  whether 8 bytes at an offset may be written by recovery.
/// @error kCorrupt: a complete set names a place outside the file system's memory.
Result<LaneVerdict> recover_lane(Persist& persist, PoolOff area, const LaneKey& key, u32 lane,
                                 const std::function<bool(u64 off)>& valid);

}  // namespace pmfs
