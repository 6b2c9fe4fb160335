// The door through which a test sees what the library does to its memory. Compiled in only with PMFS_SIMULATE (the
// library copy that tests link); in the shipped library every function here is empty and inline.
//
// A hook is registered for a range of memory and hears of each store, flush and fence in it. It may also switch a rule
// of the protocol off (to show that the rule's counterexample then fails), leave out a flush or fence, and stop a
// thread at a named point.
#pragma once

#include "base/memory.h"
#include "base/order.h"

namespace pmfs {

/// Rules that a test may switch off. DESIGN.md "RULES" states them.
enum class Rule : u8 {
  kEpochInRecords,    // R1: record checksums are keyed by the mount epoch
  kFreshSequence,     // R1: a sequence serves one set of records
  kFlushLastHeader,   // R2: step 1 flushes the header of the lane that last changed each locked inode
  kRetireBeforeLazy,  // R3: times stored without a record wait until the last logged change is retired
  kQuarantine,        // R4: freed blocks and slots wait until the freeing bump is ordered
  kHideUntilDurable,  // R6: readers without locks see no word between its change and fence 2
};

struct SimHook {
  virtual ~SimHook() = default;
  virtual void stored(const void* at, std::size_t bytes) = 0;
  /// @return false to leave this flush out.
  virtual bool flushing(const void* at, std::size_t bytes, Order why) = 0;
  /// @return false to leave this fence out.
  virtual bool fencing(Order why) = 0;
  virtual bool rule(Rule) { return true; }
  virtual void point(const char* /*name*/) {}
};

#if PMFS_SIMULATE
/// Registers a hook for [base, base+size). The caller keeps it alive until removed.
void sim_add(SimHook* hook, const void* base, u64 size_bytes);
void sim_remove(SimHook* hook);
/// The hook for `base`, or null.
SimHook* sim_find(const void* base);
/// Lets this thread's requests for blocks fail, all but the next `allowed`, until it is called again. ~0: none fails.
void sim_allow_allocations(u64 allowed);
/// Whether the request that is being made must fail.
bool sim_allocation_fails();
/// How many requests have failed since sim_allow_allocations().
u64 sim_failed_allocations();
#else
inline SimHook* sim_find(const void*) { return nullptr; }
inline bool sim_allocation_fails() { return false; }
#endif

}  // namespace pmfs
