#include "base/block_source.h"

#include <algorithm>

#include "base/assert.h"
#include "base/simulate.h"

namespace pmfs {

#if PMFS_SIMULATE
namespace {
thread_local u64 allowed_allocations = ~u64{0};
thread_local u64 failed_allocations = 0;
}  // namespace

void sim_allow_allocations(u64 allowed) {
  allowed_allocations = allowed;
  failed_allocations = 0;
}

bool sim_allocation_fails() {
  if (allowed_allocations == ~u64{0}) return false;
  if (allowed_allocations != 0) {
    allowed_allocations -= 1;
    return false;
  }
  failed_allocations += 1;
  return true;
}

u64 sim_failed_allocations() { return failed_allocations; }
#endif

Result<BlockRun> BlockHold::take(u64 want, u64 goal) {
  if (sim_allocation_fails()) return Error{Errc::kNoSpace, "no free block", 0};
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
