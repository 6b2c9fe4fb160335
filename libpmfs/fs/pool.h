// The pool: the one module that knows libpmemobj. It makes and opens a pool, and hands out its memory, its regions and
// the place of the locator; after that libpmemobj is not called again until the pool is closed.
//   P1  A file operation never calls libpmemobj: what it offers (publish, transactions) costs 2 to 5 fences and more.
//   P2  create() takes all of the heap as a few large allocations, the regions. Nobody allocates in the pool later, so
//       its heap metadata never changes again. A pool in which libpmemobj has work left is therefore one whose mkfs
//       did not finish, or a damaged or forged one: open() says so and does not let libpmemobj replay it.
//   P3  A pool is hostile input. Its header is checked before libpmemobj sees it, and the locator's place after.
//       A shared pool, whose root object is kSharedRootBytes long, is the exception: an application has objects of its
//       own beside the file system, so libpmemobj may have work left there and is trusted to do it.
//   P4  The lock (flock) belongs to the open file; descriptors and mappings hold it. A forked child loses both at once
//       (base/fork.h), so the parent's close gives the pool free, whatever children do.
//   P5  Read-only means private pages: libpmemobj's copy_on_write.at_open. That switch belongs to the process, not the
//       pool; all opens and closes here are serialised (ForkHold). A program that calls pmemobj_open itself, in another
//       thread at the same moment, can get a private pool by it; nothing can prevent that.
// Threads: create() and open() from any thread, one at a time. A Pool's functions but close() may run concurrently.
// Not here: what lies in the regions (superblock), flushing (base/persist.h), growing.
// Sources: libpmemobj(7), pmemobj_open(3), pmemobj_ctl_get(3), poolset(5).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/memory.h"
#include "pmfs/result.h"

struct pmemobjpool;  // libpmemobj's PMEMobjpool

namespace pmfs {

/// A stretch of the pool that belongs to the file system.
struct Region {
  u64 off = 0;           ///< bytes from the start of the pool; a multiple of kBlockBytes
  u64 length_bytes = 0;  ///< a multiple of kBlockBytes, at most 16 GiB
};

/// Smallest pool, in bytes: libpmemobj's own limit. Half of it is libpmemobj's.
inline constexpr u64 kMinPoolBytes = u64{8} << 20;

/// Bytes at locator_off() that belong to the file system.
inline constexpr u64 kLocatorBytes = 64;

/// Of the root object of a pool that an application shares: the file system's part comes first, the rest is the
/// application's.
inline constexpr u64 kSharedRootBytes = 4096;

/// An open pool. Move-only; of one that was moved from, only assignment, close() and is_open() may be used.
/// The destructor closes; in a forked child it only forgets.
class Pool {
 public:
  Pool(Pool&& other) noexcept;
  Pool& operator=(Pool&& other) noexcept;
  ~Pool();

  /// Makes a pool of layout "pmfs" and takes its whole heap.
  ///
  /// @param path        a new file; a device DAX; or a poolset, whose parts are created as needed. An existing file is
  ///                    replaced only with `force`; if `path` is a symbolic link, what it leads to.
  /// @param size_bytes  of the new file, at least kMinPoolBytes; all of it is allocated, nothing is sparse. 0 for a
  ///                    device or a poolset, which have a size; 0 with `force` on an existing file keeps its size.
  /// @param force       overwrite: an existing file, a device or poolset parts that hold data. Never a directory, nor a
  ///                    pool that is open.
  /// @param mode        permission bits of created files, exactly (no umask).
  /// @param reserve_bytes  of the heap, left to an application; 0: none, otherwise at least these.
  /// @return            the open pool; its locator is zero.
  /// @error  kPoolExists, kPoolBusy, kPoolTooSmall, kPoolDenied, kPoolMissing (no such directory), kNoSpace,
  ///         kInvalid (a size where none belongs, or none where one does), kIsDirectory, kNotAPool (a node that can
  ///         hold none), kReplicaSet, kDirectorySet, kFileTooBig, kRefused, kNoMemory. error_detail() says more. A file
  ///         made by this call is removed again; what `force` has removed is lost.
  /// Concurrency: any thread; waits for other creates, opens and closes, and holds up fork() meanwhile.
  /// Durability:  on return: the file, its name, the empty heap. libpmemobj's shutdown state (SDS) is recorded only
  ///              where the medium is persistent; elsewhere it cannot be read and would only stop a later open.
  static Result<Pool> create(const std::string& path, u64 size_bytes, bool force, u32 mode, u64 reserve_bytes = 0);

  /// Opens a pool made by create().
  ///
  /// @param path       file, device DAX or poolset.
  /// @param read_only  private pages: nothing that is stored to memory() reaches the medium, libpmemobj's own
  ///                   bookkeeping included. The pool is locked all the same.
  /// @error  kPoolMissing, kPoolDenied, kPoolBusy, kNotAPool, kOtherLayout, kPoolTruncated, kNotFormatted (create()
  ///         did not finish), kReplicaSet, kDirectorySet, kNoPrivateOpen (read_only on a device, or without write
  ///         permission, which libpmemobj wants even so), kCorrupt (libpmemobj's header or logs contradict themselves),
  ///         kRefused, kNoMemory. error_detail() says more.
  /// Concurrency: as create().
  /// Durability:  stores a few words of libpmemobj's, durably; nothing if `read_only`.
  static Result<Pool> open(const std::string& path, bool read_only);

  /// Uses a pool that the application has opened, and closes. `path` is what it was opened by.
  ///
  /// @param locator_off  0: the pool was made by create() with reserve_bytes, so the locator is in its root object.
  /// @error  kPoolMissing, kInvalid (`path` is not that pool's), kOtherLayout (no root object that could hold a
  /// locator),
  ///         kCorrupt (the locator's place is none). Concurrency: as open(). Durability: stores nothing.
  static Result<Pool> attach(const std::string& path, pmemobjpool* pop, u64 locator_off);

  /// Takes room for a file system out of such a pool: regions() of at least `size_bytes` in all, and a locator.
  /// @error  as attach(); kNoSpace: the heap has not so much room; what was taken is given back. A crash leaves what
  /// was
  ///         taken as lost room of the heap.
  /// Durability: on return.
  static Result<Pool> take(const std::string& path, pmemobjpool* pop, u64 size_bytes);

  /// The pool's mapping: base is where the pool starts, offsets count from there. Empty after close().
  /// `durability` is kPrivate if opened read-only, otherwise what the medium offers; never kRelaxed.
  Memory memory() const;

  /// What the medium under the pool offers, read-only or not.
  Durability medium() const;

  /// Where the kLocatorBytes bytes of the locator are: one cache line, in libpmemobj's root object.
  PoolOff locator_off() const;

  /// What mkfs may use, ordered by offset. Empty unless made by create(): afterwards the superblock knows.
  std::span<const Region> regions() const;

  /// As given to create() or open().
  const std::string& path() const;

  bool is_open() const;

  /// Closes the pool and gives up its lock. Does not flush anything of the file system's.
  /// @error  kForked: in a child; nothing was touched. None if it is closed already.
  /// Concurrency: no other use of the pool's memory may be under way; as create() otherwise.
  Result<void> close();

 private:
  struct State;
  explicit Pool(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pmfs
