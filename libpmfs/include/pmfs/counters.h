// What persistence cost: counted for every thread, always on.
#pragma once

#include "pmfs/types.h"

#pragma GCC visibility push(default)  // what this header declares is what libpmfs.so exports

namespace pmfs {

/// Counts since the thread started. Differences between two readings are exact.
struct Counters {
  u64 flushes = 0;         ///< calls that start write-back of one or more lines
  u64 lines = 0;           ///< distinct-by-call 64-byte lines handed to those calls, streaming copies included
  u64 fences = 0;          ///< ordering points this library asked for
  u64 copies = 0;          ///< copies of file data, streaming (non-temporal) from libpmem's threshold on
  u64 copied_bytes = 0;    ///< bytes they moved
  u64 msyncs = 0;          ///< msync system calls (file-backed pools only)
  u64 pmemobj_flushes = 0; ///< libpmemobj's own share: flush calls ...
  u64 pmemobj_lines = 0;   ///< ... lines ...
  u64 pmemobj_fences = 0;  ///< ... and fences; seen only if counting_pmemobj()

  Counters& operator+=(const Counters& other);
  Counters operator-(const Counters& other) const;
};

/// The calling thread's counts.
/// Concurrency: any thread. Durability: stores nothing. Cost: a copy.
Counters thread_counters();

/// The counts of all threads that ever called the library, those that have ended included.
/// Concurrency: any thread; other threads' latest few counts may be missing.
Counters process_counters();

/// Whether libpmemobj's own share is being seen. It is in the `pmfs` tool and in this project's tests, which interpose
/// libpmem's functions (libpmemobj calls them through its PLT); it is not in a program that merely links the library.
bool counting_pmemobj();

}  // namespace pmfs

#pragma GCC visibility pop
