// Advisory locks on files: byte ranges (POSIX and open-file owners) and whole files (flock). One table, in DRAM.
//
//   K1  A file has locks only while somebody has them or waits: what is given back is forgotten.
//   K2  Of one owner's ranges no two overlap, and neighbours of one kind are one.
//   K3  Two owners' locks overlap only if both are shared. Ranges and whole-file locks do not see each other.
//   K4  Before a process waits, it is added to a graph of who waits for whom; if that closes a circle it does not wait
//       (kDeadlock). Who is woken looks again, and is added again with whoever is in the way then: so no circle stays,
//       however its last part came to be.
// Thread rules: all functions from any thread. LOCK order: a shard, then the graph. Nobody waits here with any other
// lock of the file system held.
// Sources: POSIX.1-2017 fcntl(); Linux fcntl_locking(2), flock(2).
#pragma once

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "pmfs/pmfs.hpp"

namespace pmfs {

/// A file by number and generation: locks that were not given back do not pass to its successor.
struct LockedFile {
  InodeNo ino{};
  u64 generation = 0;
  auto operator<=>(const LockedFile&) const = default;
};

class LockTable {
 public:
  /// Takes, changes or gives back a range. @error kInvalid, kWouldBlock, kDeadlock, kInterrupted.
  Result<void> set_range(const LockedFile& file, const RangeLock& range, const LockOwner& owner, Wait wait,
                         LockWait* interruptible);
  /// The lowest lock in the way of `range`.
  std::optional<HeldLock> test_range(const LockedFile& file, const RangeLock& range, const LockOwner& owner);
  /// Takes, changes or gives back the whole-file lock. @error kWouldBlock, kInterrupted.
  Result<void> set_whole(const LockedFile& file, LockKind kind, const LockOwner& owner, Wait wait,
                         LockWait* interruptible);
  /// Gives back all that `owner` has on a file.
  void release(const LockedFile& file, const LockOwner& owner);
  /// Files with locks.
  std::size_t files();

 private:
  struct FileLocks {
    std::vector<HeldLock> ranges;
    std::vector<HeldLock> whole;
    std::vector<HeldLock>& of(bool whole_file) { return whole_file ? whole : ranges; }
  };
  struct Shard {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<LockedFile, FileLocks> files;
  };
  struct Waiting {
    LockOwner owner;
    std::vector<LockOwner> in_the_way;
  };
  static constexpr std::size_t kShards = 64;

  Result<void> set(const LockedFile& file, const RangeLock& range, const LockOwner& owner, bool whole, Wait wait,
                   LockWait* interruptible);
  Result<void> wait_for(Shard& shard, std::unique_lock<std::mutex>& lock, const LockOwner& owner,
                        std::vector<LockOwner> in_the_way, LockWait& wait);
  bool closes_circle(const LockOwner& owner, const std::vector<LockOwner>& in_the_way) const;
  Shard& shard(const LockedFile& file) { return shards_[to_u64(file.ino) % kShards]; }

  std::array<Shard, kShards> shards_;
  std::mutex graph_;
  std::vector<const Waiting*> waiting_;  // guarded by graph_; of processes only
};

}  // namespace pmfs
