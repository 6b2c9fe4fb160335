// The memory seam: everything above works on {base, size}. A pool provides one (fs/pool.h); tests use plain memory.
#pragma once

#include <cstddef>

#include "pmfs/durability.h"
#include "pmfs/types.h"

namespace pmfs {

struct Memory {
  std::byte* base = nullptr;
  u64 size_bytes = 0;
  Durability durability = Durability::kVolatile;
  Durability medium = durability;  ///< what it would be if it were open for writing, and not relaxed

  /// REQUIRES: off < size_bytes. The one place that turns an offset into an address.
  std::byte* at(PoolOff off) const { return base + to_u64(off); }
  PoolOff off_of(const void* p) const { return PoolOff{static_cast<u64>(static_cast<const std::byte*>(p) - base)}; }
  bool contains(u64 off, u64 len) const { return off <= size_bytes && len <= size_bytes - off; }
};

}  // namespace pmfs
