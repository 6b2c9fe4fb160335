// How readers without locks know that what they read was whole, and durable (R6).
//
//   V1  Whoever changes words in place counts himself into their version before the first store, and out again behind
//       fence 2. So while a word is not durable its version says "changing".
//   V2  A reader asks the version before he reads and behind it. If it was not changing, and is the same, nobody has
//       written in between. Otherwise he throws away what he has read.
//   V3  A version may stand for more than one thing (a stripe): then readers are disturbed needlessly, never misled.
// x86-64 orders loads with loads and stores with stores; the atomics here keep the compiler to it.
// Thread rules: everything from any thread. Nothing here lies on the medium.
#pragma once

#include <array>
#include <atomic>

#include "pmfs/types.h"

namespace pmfs {

class Version {
 public:
  /// What it is now: to be given to changing() and still().
  u64 look() const { return value_.load(std::memory_order_acquire); }
  static bool changing(u64 seen) { return (seen & (kDone - 1)) != 0; }
  /// Whether nothing has changed since look() gave `seen`.
  bool still(u64 seen) const {
    std::atomic_signal_fence(std::memory_order_acq_rel);  // the reads before stay before
    return value_.load(std::memory_order_acquire) == seen;
  }

  void begin_change() { value_.fetch_add(1, std::memory_order_acq_rel); }
  void end_change() { value_.fetch_add(kDone - 1, std::memory_order_release); }

 private:
  static constexpr u64 kDone = u64{1} << 16;  // below: how many are changing now; above: how many have
  std::atomic<u64> value_{0};
};

/// The versions of blocks, in stripes.
class VersionTable {
 public:
  Version& of(u64 block) { return stripes_[index(block)]; }
  const Version& of(u64 block) const { return stripes_[index(block)]; }

 private:
  static constexpr u64 kStripes = 4096;
  static u64 index(u64 block) { return (block * 0x9E3779B97F4A7C15) >> 52; }
  static_assert(kStripes == u64{1} << (64 - 52));
  std::array<Version, kStripes> stripes_;
};

/// What one read without locks depends on.
class ReadSet {
 public:
  /// Adds a version that what is read next belongs to.
  /// @return false: it is changing, or there are too many. Then stop, and what was read is of no use.
  bool watch(const Version& version) {
    const u64 seen = version.look();
    if (Version::changing(seen) || count_ == kMost) {
      failed_ = true;
      hopeless_ = hopeless_ || count_ == kMost;
      return false;
    }
    seen_[count_++] = {&version, seen};
    return true;
  }
  /// What `version` was when it was added; what it is now, if it was not.
  u64 seen(const Version& version) const {
    for (u32 i = 0; i < count_; ++i)
      if (seen_[i].version == &version) return seen_[i].seen;
    return version.look();
  }
  /// This cannot be read without the lock, however often it is tried.
  void give_up() { failed_ = hopeless_ = true; }
  bool hopeless() const { return hopeless_; }
  bool failed() const { return failed_; }
  /// Whether all of it is as it was, so that what was read may be used.
  bool still() const {
    if (failed_) return false;
    for (u32 i = 0; i < count_; ++i)
      if (!seen_[i].version->still(seen_[i].seen)) return false;
    return true;
  }

 private:
  static constexpr u32 kMost = 8;
  struct Seen {
    const Version* version;
    u64 seen;
  };
  std::array<Seen, kMost> seen_;
  u32 count_ = 0;
  bool failed_ = false;
  bool hopeless_ = false;
};

}  // namespace pmfs
