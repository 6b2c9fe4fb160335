// What htree and fs ask blocks from.
#pragma once

#include <vector>

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

/// Blocks that an operation took. Gives them back when dropped, unless kept: an operation that fails leaves nothing
/// taken.
class BlockHold {
 public:
  explicit BlockHold(BlockSource& source, Purpose purpose = Purpose::kOrdinary) : source_(source), purpose_(purpose) {}
  BlockHold(const BlockHold&) = delete;
  BlockHold& operator=(const BlockHold&) = delete;
  ~BlockHold() {
    for (const BlockRun& run : runs_) source_.release(run);
  }
  /// 1 to `want` adjacent blocks. @error kNoSpace.
  Result<BlockRun> take(u64 want, u64 goal = 0);
  /// Whether a run that starts at `first` is held.
  bool holds(u64 first) const;
  /// Gives one run back early.
  void give_back(u64 first);
  void keep() { runs_.clear(); }
  /// Takes over what `other` holds.
  void adopt(BlockHold& other) {
    runs_.insert(runs_.end(), other.runs_.begin(), other.runs_.end());
    other.runs_.clear();
  }
  /// An empty hold on the same source, for an attempt that may be given up.
  BlockHold attempt() const { return BlockHold(source_, purpose_); }

 private:
  BlockSource& source_;
  Purpose purpose_;
  std::vector<BlockRun> runs_;
};

}  // namespace pmfs
