// The three instructions-level operations that libpmem does for us, chosen at run time for this CPU.
#pragma once

#include <cstddef>

#include "pmfs/types.h"

namespace pmfs {

void pmem_flush_lines(const void* at, std::size_t bytes);
void pmem_fence();
/// Copies and starts write-back; non-temporal above libpmem's threshold. libpmem executes one or two sfence of its own
/// inside; they order nothing for us.
void pmem_copy_nodrain(void* to, const void* from, std::size_t bytes);

/// Adds to this thread's count of what libpmemobj did by itself (see pmfs/counters.h).
void count_pmemobj(u64 flushes, u64 lines, u64 fences);

}  // namespace pmfs
