// The cache's memory: slots of 128 bytes in one range of addresses, and beside them a few bytes about each.
//
//   A1  A slot's memory is never unmapped while the arena lives, and its serial number changes each time it is freed.
//   So
//       a pair {slot, serial} that was noted somewhere tells later, without a read section, whether it still means the
//       same thing.
//   A2  Nothing in the arena is written by a look-up that finds all it needs (a test makes it read-only).
// Thread rules: the caller's mutex guards everything but at().
#pragma once

#include <memory>

#include "dcache/dentry.h"

namespace pmfs::dcache {

enum class SlotKind : u8 { kFree, kDentry, kDir, kMore, kEntry };

struct SlotInfo {
  u32 serial;
  SlotKind kind;
  u8 mark;     ///< for eviction: how often the hand passes before it goes
  u8 leaving;  ///< deferred: it is freed after a grace period
  u8 unused;
};

class Arena {
 public:
  /// @param slots  at most this many; only address space is taken for them.
  /// @return       null: no memory.
  static std::unique_ptr<Arena> make(u64 slots);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// A free slot, its contents unknown. @return 0: none.
  Slot take(SlotKind kind);
  void give_back(Slot slot);

  void* at(Slot slot) const { return base_ + std::size_t{slot} * kSlotBytes; }
  template <class T>
  T* as(Slot slot) const {
    static_assert(sizeof(T) == kSlotBytes);
    return static_cast<T*>(at(slot));
  }
  Slot slot_of(const void* object) const {
    return static_cast<Slot>(static_cast<std::size_t>(static_cast<const std::byte*>(object) - base_) / kSlotBytes);
  }
  SlotInfo& info(Slot slot) const { return info_[slot]; }

  u64 used() const { return used_; }  ///< slots, those that wait for a grace period included
  u64 free() const { return slots_ - 1 - used_; }
  Slot end() const { return fresh_; }  ///< one above the highest slot that was ever taken
  static constexpr u64 kBytesPerSlot = kSlotBytes + sizeof(SlotInfo);

  /// For tests: makes the slots and what is known of them read-only, or writable again.
  bool protect(bool read_only);

 private:
  Arena(std::byte* base, SlotInfo* info, u64 slots) : base_(base), info_(info), slots_(slots) {}

  std::byte* base_;
  SlotInfo* info_;
  u64 slots_;
  u64 used_ = 0;
  Slot fresh_ = 1;  // from here on no slot was ever taken
  Slot free_ = 0;   // a list through the slots' first words
};

}  // namespace pmfs::dcache
