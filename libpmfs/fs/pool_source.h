// What stands at a pool's path: a file, a device, a poolset of several, or nothing that can be a pool. It is found out
// before libpmemobj sees the path, because libpmemobj dies of SIGBUS on an empty file, waits for ever on some node
// types, and reports most mistakes as "invalid argument".
//   S1  Everything read here is hostile input: sizes and lines are bounded, a garbled poolset is a typed error.
//   S2  Looking changes nothing and takes no lock that could turn another process away, except where it says so.
//   S3  Nothing here is remembered. Between looking and opening the path may change; then libpmemobj's own error is the
//       answer, and a file cut short at that moment can still raise SIGBUS, as it can while a pool is open.
// Threads: any; no shared state. Not here: libpmemobj, mappings of the pool (pool.cc).
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "pmfs/durability.h"
#include "pmfs/result.h"

namespace pmfs {

/// One file or device that holds a piece of a pool.
struct PoolPart {
  std::string path;
  bool exists = false;
  bool is_device = false;  ///< device DAX
  u64 size_bytes = 0;      ///< of the file or device; 0 if it does not exist
  dev_t dev = 0;           ///< with `inode`: which file it is, however it is called
  ino_t inode = 0;
};

/// What stands at a path.
struct PoolSource {
  enum class Kind : u8 { kMissing, kFile, kDevice, kPoolset } kind = Kind::kMissing;
  std::string path;             ///< as given
  std::vector<PoolPart> parts;  ///< one for a file or device; all of a poolset, in its order
  u64 later_header_bytes = 0;   ///< what every part but the first keeps for itself at its start
};

/// Looks at `path`, and parses it if it is a poolset. A path at which nothing is gives Kind::kMissing.
///
/// @error  kReplicaSet, kDirectorySet: a poolset of a kind that is not supported. kNotAPool: a garbled poolset, or a
///         node that can hold no pool (a directory, a block device, a socket ...); kIsDirectory only for a directory.
///         kPoolDenied. kPoolMissing: a directory of the path is missing. Details in error_detail().
/// Durability: stores nothing.
/// Source: poolset(5).
Result<PoolSource> look_at(const std::string& path);

/// What the first 8 KiB of a part say.
struct PoolHeader {
  bool all_zero = false;   ///< the first 4 KiB, or all there is of them, are zero
  bool is_pool = false;    ///< libpmemobj's signature is there; the rest is meaningful only then
  bool cut = false;        ///< the file ends within the header
  std::string layout;      ///< as stored, up to its first NUL
  bool plausible = false;  ///< the areas named below lie behind one another
  u64 lanes_off = 0;
  u64 lanes = 0;
  u64 heap_off = 0;
  u64 heap_bytes = 0;  ///< 0: creation was interrupted
  u64 root_off = 0;    ///< 0: there is no root object yet
  u64 root_bytes = 0;
};

/// Reads the header of a part. A device is mapped for that, as it cannot be read.
/// @error  kPoolDenied, kIo, kPoolMissing, kRefused (a device that cannot be mapped).
Result<PoolHeader> read_header(const PoolPart& part);

/// Bytes of the pool as a whole, `off` counted from its start; fewer if it ends before.
/// @error  as read_header().
Result<std::string> read_pool(const PoolSource& source, u64 off, u64 bytes);

/// Whether some lane of libpmemobj's has something to replay or to undo, which it would do at the next open, trusting
/// what is stored there. In a pool that Pool::create() has finished, none ever has.
/// REQUIRES: `header` is that of the first part, and plausible.
/// @error  as read_header().
/// Source: libpmemobj 1.12, lane.h and ulog.h.
Result<bool> has_unfinished_work(const PoolSource& source, const PoolHeader& header);

/// Whether another open file description holds the part's lock. Takes a shared lock for an instant, which can turn away
/// somebody who opens at this very moment; so ask only when there is reason to.
bool is_locked(const PoolPart& part);

/// Takes the lock that an open pool would hold on a part, exclusively; it is given back with the descriptor.
/// @error  kPoolBusy. kRefused.
Result<void> lock_or_busy(int fd, const std::string& path);

/// How stores to the whole pool reach the medium: what its weakest part offers, in the order kVolatile, kFileBacked,
/// kPersistent. Never kRelaxed or kPrivate.
///
/// A device: kPersistent. A file on tmpfs or ramfs: kVolatile. Otherwise PMEM_IS_PMEM_FORCE=1 in the environment makes
/// it kVolatile; PMEM_IS_PMEM_FORCE=0 changes nothing, since it only tells libpmemobj to use msync and our own flushes
/// are the CPU's. Then: a file that can be mapped with MAP_SYNC is kPersistent (fsdax), any other kFileBacked.
/// pmem_is_pmem() is not asked: for libpmemobj's mappings it answers 0 also on persistent memory.
/// @error  kPoolDenied, kPoolMissing, kIo.
Result<Durability> durability_of(const PoolSource& source);

/// The same for a part that does not exist yet, from its directory. kFileBacked where that cannot be found out.
Durability durability_of_new(const PoolPart& part);

/// Overwrites the first 4 KiB of a device with zeros, durably, if nobody holds it open.
/// @error  kPoolBusy. kPoolDenied. kRefused.
Result<void> wipe_device(const PoolPart& part);

/// Removes a regular file, if nobody holds it open as a pool.
/// @error  kPoolBusy. kPoolDenied. kRefused.
Result<void> remove_file(const PoolPart& part);

/// Makes a new file and its name durable (fsync of both).
/// @error  kIo.
Result<void> sync_file_and_name(const PoolPart& part);

/// The Errc for an errno from a system call on `path`, with the detail set to "PATH: words: strerror".
Error system_error(const std::string& path, const char* words, int err);

/// The words of an errno. Unlike strerror(), safe in any thread.
std::string errno_words(int err);

}  // namespace pmfs
