// The regions: which bytes of the pool belong to the file system. Every stored offset is checked here before it is
// used.
#pragma once

#include <span>
#include <vector>

#include "base/block_source.h"
#include "base/memory.h"
#include "fs/pool.h"

namespace pmfs {

class Regions {
 public:
  Regions() = default;
  explicit Regions(std::vector<Region> list) : list_(std::move(list)) {}

  std::span<const Region> list() const { return list_; }
  bool contains(u64 off, u64 bytes) const {
    for (const Region& region : list_)
      if (off >= region.off && bytes <= region.length_bytes && off - region.off <= region.length_bytes - bytes)
        return true;
    return false;
  }
  bool contains_blocks(const BlockRun& run) const {
    constexpr u64 kMost = ~u64{0} / kBlockBytes;
    return run.first <= kMost && run.count <= kMost && contains(run.first * kBlockBytes, run.count * kBlockBytes);
  }
  u64 blocks() const {
    u64 sum = 0;
    for (const Region& region : list_) sum += region.length_bytes / kBlockBytes;
    return sum;
  }

 private:
  std::vector<Region> list_;
};

}  // namespace pmfs
