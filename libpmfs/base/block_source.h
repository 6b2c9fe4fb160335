// What htree and fs ask blocks from.
#pragma once

#include "pmfs/result.h"
#include "pmfs/types.h"

namespace pmfs {

/// A run of blocks, by number: a block's offset in the pool divided by kBlockBytes.
struct BlockRun {
  u64 first = 0;
  u64 count = 0;
  u64 end() const { return first + count; }
};

constexpr PoolOff block_off(u64 block) { return PoolOff{block * kBlockBytes}; }

/// Who asks. Operations that free space may take from the reserve, so that a full pool can be emptied.
enum class Purpose : u8 { kOrdinary, kFreeing };

class BlockSource {
 public:
  virtual ~BlockSource() = default;
  /// Takes 1 to `want` adjacent blocks, as near behind block `goal` as may be (0: anywhere).
  /// @error kNoSpace.
  virtual Result<BlockRun> allocate(u64 want, u64 goal, Purpose purpose) = 0;
  /// Gives back what nothing on the medium ever pointed to (a failed operation's blocks), or what the quarantine let
  /// go.
  virtual void release(BlockRun run) = 0;
};

}  // namespace pmfs
