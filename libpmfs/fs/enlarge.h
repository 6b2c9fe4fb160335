// Making what a pool lies in larger: the file, or the last part of a poolset and the poolset's own text.
//   E1  Nothing that was there changes its place: only the end of the last part moves.
//   E2  Each step may be the last one before a crash, and the same call again goes on. A part that is longer than the
//       pool in it is harmless. A poolset whose last part is longer than its text says cannot be opened (libpmemobj
//       compares them) until the call is repeated; that is the moment between two system calls.
// Threads: any, no shared state; another process is kept out by the pool's own lock.
// Source: poolset(5), posix_fallocate(3).
#pragma once

#include "fs/pool_source.h"

namespace pmfs {

/// All parts together, in bytes.
u64 total_bytes(const PoolSource& source);

/// Sees that a poolset says how long its last part is: after a crash in enlarge_last_part() it may not. Nothing to do
/// for a file.
/// @error  kPoolBusy, kPoolDenied, kNoSpace, kIo, kRefused. Durability: on return.
Result<void> settle_poolset(const PoolSource& source);

/// Makes the last part `more_bytes` longer; the new bytes are zero, and all of them are allocated.
/// @error  kPoolBusy. kNoSpace: the part is as long as before. kPoolDenied, kFileTooBig, kIo, kRefused.
/// Durability: on return, name and length included.
Result<void> enlarge_last_part(PoolSource& source, u64 more_bytes);

}  // namespace pmfs
