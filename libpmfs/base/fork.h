// fork: what a forked child must not keep. The child gets a copy of everything; a pool must not be one of them.
//   F1  fork_generation() differs between parent and child. Whoever owns something a child must not use remembers the
//       generation it was made in, and compares at each public call.
//   F2  A ForkWatch names descriptors and one mapping. In the child the descriptors are closed and the mapping is
//       replaced by inaccessible memory, before fork() returns. Both hold the open file, and with it the flock: as long
//       as one copy lives, the pool stays locked. (libpmemobj closes its descriptors after mapping a file; there the
//       mapping alone holds the lock.) The addresses stay taken, so that nothing else lands there and a stray access
//       in the child faults instead of reaching the pool.
//   F3  No fork() begins while a ForkHold exists: opening and closing happen under one; a child never gets half.
// Threads: any. fork() waits for holds and is therefore as slow as an open or close under way.
// Not covered: children made behind the C library's back (the clone system call, _Fork) run no handlers; in them the
//   generation is unchanged. posix_spawn and vfork run none either, but the child execs, which drops mappings;
//   a descriptor that libpmemobj has open at that moment (it sets no O_CLOEXEC) can leak into the new program.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "pmfs/types.h"

namespace pmfs {

namespace internal {
extern std::atomic<u64> fork_generation_;
}

/// How many forks lie between the first process and this one.
/// Concurrency: any thread. Durability: none. Cost: one load of a line that nobody writes.
inline u64 fork_generation() { return internal::fork_generation_.load(std::memory_order_relaxed); }

/// Keeps forks of this process out while it lives; also excludes other holds. Not recursive: a thread that has one must
/// neither make another one nor fork.
class ForkHold {
 public:
  ForkHold();
  ~ForkHold();
  ForkHold(const ForkHold&) = delete;
  ForkHold& operator=(const ForkHold&) = delete;
};

/// What a forked child gives up. Linked into a list, so it stays where it is.
class ForkWatch {
 public:
  ForkWatch() = default;
  /// Ends the watch, if it still goes on.
  ~ForkWatch();
  ForkWatch(const ForkWatch&) = delete;
  ForkWatch& operator=(const ForkWatch&) = delete;

  /// Begins to watch.
  /// @param base, bytes  a mapping, page-aligned; bytes may be 0.
  /// @param fds          descriptors; may be empty.
  /// REQUIRES: `hold` is alive; not watching yet.
  void watch(const ForkHold& hold, void* base, std::size_t bytes, std::vector<int> fds);

  /// Ends it; nothing happens if it is not watching. REQUIRES: `hold` is alive.
  void unwatch(const ForkHold& hold);

 private:
  friend struct ForkHandlers;
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<int> fds_;
  ForkWatch* next_ = nullptr;
  ForkWatch** link_ = nullptr;  ///< the pointer that points here; null when not watching
};

}  // namespace pmfs
