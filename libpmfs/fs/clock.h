// The time that inodes get. One door, so that tests can make it stand still.
#pragma once

#include "pmfs/types.h"

namespace pmfs {

/// Nanoseconds since the Unix epoch, UTC, as CLOCK_REALTIME says.
i64 now_ns();

/// Makes now_ns() return `ns` and 1 more at each call, in all threads; 0 ends that. For tests only.
void set_clock_for_test(i64 ns);

}  // namespace pmfs
