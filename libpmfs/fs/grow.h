// A larger pool: what lies behind the regions becomes a region, in one commit.
//   G1  Offline: nobody else has the file system open.
//   G2  A crash shows the region table as before or as after. What lies in the new space means nothing to anybody.
// Not here: making the file larger (enlarge.h).
#pragma once

#include "base/memory.h"
#include "pmfs/result.h"

namespace pmfs {

/// Gives the file system all whole blocks between `from_off`, or the end of the last region if that is later, and the
/// end of its memory. Recovers first, as an open for writing does. The saved map is void afterwards.
/// @param from_off  nothing of anybody else's lies from here on: the end of libpmemobj's heap.
/// @return blocks added; 0 if there are none. @error as opening; kNotSupported: the region table is full.
/// Durability: on return.
Result<u64> grow_memory(Memory memory, PoolOff locator_off, u64 from_off);

}  // namespace pmfs
