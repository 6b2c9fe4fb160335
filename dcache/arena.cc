#include "dcache/arena.h"

#include <sys/mman.h>

namespace pmfs::dcache {

namespace {

void* reserve(std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

std::unique_ptr<Arena> Arena::make(u64 slots) {
  slots += 1;  // slot 0 is none
  void* const base = reserve(slots * kSlotBytes);
  if (base == nullptr) return nullptr;
  void* const info = reserve(slots * sizeof(SlotInfo));
  if (info == nullptr) {
    ::munmap(base, slots * kSlotBytes);
    return nullptr;
  }
  return std::unique_ptr<Arena>(new Arena(static_cast<std::byte*>(base), static_cast<SlotInfo*>(info), slots));
}

Arena::~Arena() {
  ::munmap(base_, slots_ * kSlotBytes);
  ::munmap(info_, slots_ * sizeof(SlotInfo));
}

Slot Arena::take(SlotKind kind) {
  Slot slot = free_;
  if (slot != 0) {
    free_ = *static_cast<Slot*>(at(slot));
  } else {
    if (fresh_ == slots_) return 0;
    slot = fresh_++;
  }
  used_ += 1;
  info_[slot].kind = kind;
  info_[slot].mark = 0;
  info_[slot].leaving = 0;
  return slot;
}

void Arena::give_back(Slot slot) {
  info_[slot].serial += 1;
  info_[slot].kind = SlotKind::kFree;
  *static_cast<Slot*>(at(slot)) = free_;
  free_ = slot;
  used_ -= 1;
}

bool Arena::protect(bool read_only) {
  const int access = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  return ::mprotect(base_, slots_ * kSlotBytes, access) == 0 &&
         ::mprotect(info_, slots_ * sizeof(SlotInfo), access) == 0;
}

}  // namespace pmfs::dcache
