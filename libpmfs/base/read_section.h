// Grace periods for readers of the pool that hold no lock: what they may stand on is not reused before they have left.
//
//   G1  A reader is inside from before it reads the first word until after the last.
//   G2  What was made unreachable before busy() was asked, and in whose stripe nobody was inside then, is seen by
//       nobody of that stripe any more: a reader who comes later finds the new words.
// Asking costs a few loads and waits for nobody, so it may be done with locks held, and one thread alone always finds
// the same answers: crash exploration relies on it. That is why it is not liburcu, which can only be waited for.
// Thread rules: everything from any thread. Reading sections may be nested.
#pragma once

#include <array>
#include <atomic>

#include "base/thread_index.h"

namespace pmfs {

class ReadSections {
 public:
  static constexpr u32 kStripes = 64;

  class Guard {
   public:
    explicit Guard(ReadSections& sections) : inside_(sections.stripes_[thread_index() % kStripes].inside) {
      inside_.fetch_add(1, std::memory_order_seq_cst);  // seen by busy() before anything is read
    }
    ~Guard() { inside_.fetch_sub(1, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<u32>& inside_;
  };

  /// Bit i: somebody of stripe i is inside.
  u64 busy() {
    // What the caller made unreachable is so before anybody is looked at.
    asked_.fetch_add(1, std::memory_order_seq_cst);
    u64 bits = 0;
    for (u32 i = 0; i < kStripes; ++i) bits |= u64{stripes_[i].inside.load(std::memory_order_acquire) != 0} << i;
    return bits;
  }

 private:
  struct alignas(64) Stripe {
    std::atomic<u32> inside{0};
  };
  std::array<Stripe, kStripes> stripes_;
  std::atomic<u64> asked_{0};
};

}  // namespace pmfs
