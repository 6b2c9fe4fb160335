#include "base/block_source.h"

#include <algorithm>

#include "base/assert.h"

namespace pmfs {

Result<BlockRun> BlockHold::take(u64 want, u64 goal) {
  auto run = source_.allocate(want, goal, purpose_);
  if (run.ok()) runs_.push_back(*run);
  return run;
}

bool BlockHold::holds(u64 first) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const BlockRun& run) { return run.first == first; });
}

void BlockHold::give_back(u64 first) {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].first != first) continue;
    source_.release(runs_[i]);
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  PMFS_ASSERT(false);
}

}  // namespace pmfs
