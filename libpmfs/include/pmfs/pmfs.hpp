// pmfs: a POSIX file system in a libpmemobj pool, in this process.
//
// Promise: when a call that changes the tree or writes data returns, the change survives power loss, and a crash shows
// each metadata call entirely or not at all. Exceptions, all stated again at the call: data overwritten in place may be
// mixed per 8-byte word until the call returns; its times, and access times, may be older until fsync or the inode's
// next logged change.
//
// Thread rules: every function may be called from any thread at any time, unless it says otherwise. After fork() the
// child owns nothing: each call, close and destructor there returns at once (kForked) and touches neither pool nor
// lock. Nothing here throws, prints or exits.
//
// Errors common to all functions and not repeated at each: kForked, kCorrupt (the pool says something impossible),
// kIo (the medium failed; from then on changes are refused with kReadOnly), kNoMemory, kBadHandle (closed).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pmfs/acl.h"
#include "pmfs/counters.h"
#include "pmfs/durability.h"
#include "pmfs/result.h"
#include "pmfs/types.h"

struct pmemobjpool;  // libpmemobj's PMEMobjpool
namespace pmfs {
struct Volume;  // internal, so its first declaration stands before what is exported
}

#pragma GCC visibility push(default)  // what this header declares is what libpmfs.so exports

namespace pmfs {

enum class FileType : u8 { kNone = 0, kRegular, kDirectory, kSymlink, kFifo, kCharDevice, kBlockDevice, kSocket };

/// The S_IFMT bits for a type, and back (kNone for bits that name none).
u32 mode_bits(FileType type);
FileType type_of_mode(u32 mode);

/// Who is asking. Explicit in every call that checks or that gives a new inode its owner.
struct Credentials {
  u32 uid = 0;
  u32 gid = 0;
  std::span<const u32> groups = {};  ///< supplementary groups; the memory must outlive the call
  u32 umask = 0;  ///< permission bits taken from the mode of what is created in a directory without a default ACL
  bool checked_elsewhere = false;    ///< the caller has checked already (the kernel, by default_permissions)

  /// Which permission bits do not bind: Linux's CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE. By default uid 0 has both.
  enum class Privilege : u8 { kByUid, kNone, kSearch, kAll } privilege = Privilege::kByUid;
  /// If given: set when a look-up's answer could be another with other groups or privileges; never cleared.
  bool* depends = nullptr;

  static Credentials root() { return {}; }
};

/// What stat() shows. Times are nanoseconds since the Unix epoch, UTC.
struct Attributes {
  InodeNo ino{};
  u64 generation = 0;   ///< with `ino`, names this inode for ever
  u32 mode = 0;         ///< S_IFMT and permission bits
  u32 links = 0;
  u32 uid = 0;
  u32 gid = 0;
  u64 size_bytes = 0;
  u64 blocks_512 = 0;   ///< units of 512 bytes, as st_blocks
  u64 rdev = 0;         ///< device number, as makedev() gives it
  i64 atime_ns = 0;
  i64 mtime_ns = 0;
  i64 ctime_ns = 0;
  i64 birth_ns = 0;

  FileType type() const { return type_of_mode(mode); }
};

/// Where an operation acts: a path, from a directory when it does not begin with '/'; or an inode itself.
/// The path's memory must outlive the call.
struct At {
  At(const char* where) : path(where) {}
  At(std::string_view where) : path(where) {}
  At(const std::string& where) : path(where) {}
  At(InodeNo start, std::string_view where) : dir(start), path(where) {}
  /// The inode itself, as AT_EMPTY_PATH. It must be pinned, held open, or known to be linked; kStale otherwise.
  static At inode(InodeNo ino) { At at{ino, {}}; at.self = true; return at; }
  /// The inode that had this number and generation when its attributes were looked at, in this mount or an earlier one
  /// (a file handle, as open_by_handle_at()). kStale if it is gone, whatever has its number now. No path is walked, so
  /// no search permission is checked.
  static At handle(InodeNo ino, u64 of_generation) { At at = inode(ino); at.generation = of_generation; return at; }

  InodeNo dir = kRootIno;   ///< start of a relative path; it is not looked up, so nothing above it is checked
  std::string_view path;
  bool self = false;
  u64 generation = 0;       ///< with `self`: the inode must have this one; 0: any
  bool no_links = false;    ///< kLoop at any symbolic link that would be followed (RESOLVE_NO_SYMLINKS)
  /// The way must not leave `dir`: kCrossDevice where it would, by "..", an absolute path or link; and at links in
  /// sticky directories that everybody may write, which Linux follows or not by a setting.
  bool beneath = false;
};

enum class Follow : bool { kNo, kYes };  ///< whether a symbolic link as the last component is followed
enum class Ref : bool { kNone, kPin };   ///< kPin: the returned inode also gets one pin, as by Filesystem::pin()

/// What to change; empty members stay. All of it is one commit.
struct SetAttributes {
  std::optional<u32> mode = {};        ///< permission bits; S_IFMT is ignored
  std::optional<u32> uid = {};
  std::optional<u32> gid = {};
  std::optional<u64> size_bytes = {};
  std::optional<i64> atime_ns = {};
  std::optional<i64> mtime_ns = {};
  bool atime_now = false;         ///< the current time; needs only write permission, not ownership
  bool mtime_now = false;
};

/// One entry of a directory.
struct DirEntry {
  InodeNo ino{};
  FileType type{};
  u64 cookie = 0;           ///< 63 bits; read() with it goes on behind this entry, also after a remount
  u16 name_len = 0;
  char name[kNameMax + 1];  ///< NUL-terminated

  std::string_view view() const { return {name, name_len}; }
};

enum class LockKind : u8 { kNone, kShared, kExclusive };
enum class Wait : bool { kNo, kYes };  ///< whether a call waits for a lock; kWouldBlock if it does not

/// A lock on bytes of a file. Locks are advisory: they keep nobody from reading and writing.
struct RangeLock {
  LockKind kind = LockKind::kNone;  ///< kNone gives the range back
  u64 first = 0;
  u64 last = ~u64{0};  ///< the last byte, itself included; the greatest number: however far the file will reach
};

/// Who has locks. Locks of one owner never stand in his own way: a later one replaces an earlier one where they meet.
struct LockOwner {
  /// kProcess: as fcntl() with F_SETLK; who would wait in a circle gets kDeadlock. kOpenFile: as F_OFD_SETLK; waits in
  /// circles are not found.
  enum class Kind : u8 { kProcess, kOpenFile } kind = Kind::kProcess;
  u64 id = 0;   ///< the caller's choice for processes; of open files File's own
  u32 pid = 0;  ///< told to others by test_lock()
};

/// A lock that somebody has.
struct HeldLock {
  RangeLock range;
  LockOwner owner;
};

/// A wait for a lock that another thread may end. One call at a time uses it.
class LockWait {
 public:
  /// The call that waits with this, or the next one that would, returns kInterrupted. From any thread, while the file
  /// system is open.
  void interrupt();

 private:
  friend class LockTable;
  std::mutex mutex_;
  std::function<void()> wake_;  // guarded by mutex_; empty: nobody waits
  std::atomic<bool> interrupted_{false};
};

/// Space, as statfs() shows it. Blocks are `block_bytes` long.
struct SpaceInfo {
  u64 block_bytes = 0;
  u64 blocks = 0;         ///< all that hold data or metadata of files
  u64 blocks_free = 0;    ///< blocks waiting only for their freeing to be ordered count as free
  u64 blocks_avail = 0;   ///< for ordinary writes: free less the reserve that lets deletes work on a full pool
  u64 inodes = 0;         ///< in use and free: as many more as the free blocks could hold
  u64 inodes_free = 0;
};

/// What a directory is made of.
struct DirectoryInfo {
  u64 entries = 0;
  u64 leaves = 0;        ///< blocks that hold entries
  u32 index_levels = 0;  ///< levels of the index that look-ups use; 0: its leaves are scanned
};

struct RegionInfo { u64 off = 0; u64 length_bytes = 0; };

/// Facts about an open pool.
struct PoolInfo {
  std::string path;
  std::string label;
  std::string uuid;              ///< 8-4-4-4-12 hexadecimal digits
  u32 format_version = 0;
  u64 compat = 0, ro_compat = 0, incompat = 0;
  u64 pool_bytes = 0;
  u64 epoch = 0;                 ///< 1 more than the opens for writing so far; of a read-only open, the private one
  u32 lanes = 0;
  Durability durability{};
  Durability medium{};           ///< what the medium offers: `durability`, unless opened read-only or relaxed
  bool read_only = false;
  bool recovered = false;        ///< this open undid at least one unfinished operation
  bool saved_map_used = false;   ///< the allocator's map of the last clean close was taken
  std::vector<RegionInfo> regions;
  SpaceInfo space;
  u64 files = 0;                 ///< inodes in use
};

struct FormatOptions {
  u64 size_bytes = 0;      ///< of the file to create; 0 for a device or a poolset, which have a size
  std::string label;       ///< up to 31 bytes
  bool force = false;      ///< overwrite an existing file, pool or device contents
  u32 mode = 0600;         ///< permission bits of the pool file
  u32 root_uid = 0;        ///< owner and group of the root directory
  u32 root_gid = 0;
  u64 reserve_bytes = 0;   ///< of the pool's heap, left to an application's own objects; see attach()
};

struct OpenOptions {
  bool read_only = false;    ///< private copy-on-write pages: recovery included, nothing reaches the medium
  bool relaxed = false;      ///< Durability::kRelaxed, if the pool is an ordinary file
  bool dir_index = true;     ///< use directory indexes, and make them where they are missing; false: scan directories
  enum class Atime : u8 { kRelative, kNone, kStrict } atime = Atime::kRelative;
  u32 busy_wait_ms = 0;      ///< how long to try again while the pool is open elsewhere: a killed process keeps its
                             ///< lock until the last of its threads is gone
  u32 rebuild_threads = 0;   ///< threads that learn what is in use; 0: one for each CPU. Small pools need one

  /// How a path is found: component by component; from a pivot, a popular place, or one of its ancestors (Stage
  /// Lookup); by a hash of the whole path.
  enum class Resolver : u8 { kWalk, kStage, kFullpath } resolver = Resolver::kStage;
  u64 dcache_bytes = u64{64} << 20;  ///< bound on the cache of directory entries; 0: no cache, directories are read
  // Of kStage:
  u32 pivots = 1024;            ///< at most
  bool pivots_hashed = true;    ///< found by the hashes of a path's prefixes; false: in an ordered list, for few pivots
  bool pivots_adaptive = true;  ///< period and threshold follow what happens: a period of 10 ms to the next line's
  u32 pivot_period_ms = 2000;   ///< how often pivots are chosen anew
  u32 pivot_threshold = 1;      ///< by how much a newcomer's heat must exceed that of the candidate it replaces
  bool heat_inline = false;     ///< a look-up counts heat itself, in memory that others read; false: by samples
};

/// What growing a pool did.
struct GrowReport {
  u64 bytes_before = 0;  ///< of all parts together
  u64 bytes_after = 0;
  u64 blocks_added = 0;  ///< that the file system has more now; of an earlier call, too, that was cut short
};

/// One path of a batch, and what came of it.
struct Resolved {
  std::optional<Errc> error;  ///< none: found
  Attributes attributes;      ///< without BatchOptions::attributes only ino, generation, and the type in mode
};

struct BatchOptions {
  InodeNo start = kRootIno;      ///< where relative paths begin; it is not looked up, so nothing above it is checked
  Follow follow = Follow::kYes;  ///< whether a symbolic link as the last component is followed
  bool attributes = true;        ///< read the attributes of what is found
  bool beneath = false;          ///< as At::beneath
  bool no_links = false;         ///< as At::no_links
};

/// One component that a path passes.
struct PassedComponent {
  std::string name;  ///< as it stands in the path, or in the symbolic link's target that led here
  Attributes attributes;
};

/// All components of a path, as far as it goes.
struct ResolvedComponents {
  std::vector<PassedComponent> passed;
  std::optional<Errc> error;  ///< none: the last of them is what the path leads to; else why there is no next one
};

/// A popular place, from which look-ups begin.
struct PivotInfo {
  std::string path;
  u32 heat = 0;     ///< look-ups of it that were counted in the period after which it became a pivot
  u32 overlap = 0;  ///< components that it shares with the pivot before it
};

/// What looking up has cost and saved since the pool was opened; every thread's counts.
struct LookupStatistics {
  u64 lookups = 0;      ///< paths resolved, those of batches included
  u64 hits = 0;         ///< components found in the cache
  u64 misses = 0;       ///< components for which a directory was read
  u64 negative = 0;     ///< look-ups answered by a name known to be absent
  u64 skipped = 0;      ///< components that a pivot or a known path made unnecessary
  u64 pivot_hits = 0;   ///< look-ups that began at a pivot
  u64 whole_hits = 0;   ///< look-ups that needed no step at all
  u64 shared = 0;       ///< components that a batch had walked before
  u64 retries = 0;      ///< steps repeated because the directory changed meanwhile
  u64 bytes = 0;        ///< memory of the cache now
  u64 bytes_limit = 0;
  u64 entries = 0, negative_entries = 0, directories = 0;  ///< in the cache now
  u64 evictions = 0;
  u64 deferred = 0;       ///< freed things that wait for a grace period now
  u64 not_remembered = 0; ///< found, but there was no room
  u64 pivots = 0, candidates = 0;
  u64 periods = 0, swaps = 0, skipped_swaps = 0;
  u64 invalidations = 0, invalidated_pivots = 0;
  u64 revived_pivots = 0; ///< that became true again by the next look-up of their path
  u32 pivot_period_ms = 0, pivot_threshold = 0;
  u64 path_entries = 0;   ///< Resolver::kFullpath: paths known
  u64 path_visits = 0;    ///< Resolver::kFullpath: entries looked at by changes of directories above them
};

/// Inodes that are in memory now. Each shard of them was looked at by itself: exact only while nothing changes.
struct HeldInodes {
  u64 states = 0;    ///< known, in use or not; of those not in use a bounded number is kept
  u64 handles = 0;   ///< open files and directory streams
  u64 pins = 0;      ///< look-up counts of a bridge
  u64 nameless = 0;  ///< inodes that live only because they are held
};

class Filesystem;

enum class DirectUse : bool { kRead, kWrite };
enum class Holes : bool { kRefuse, kFill };  ///< a lease on a hole: kNoAddress, or zeroes are written there first

/// A part of a file, as memory: pointers into the pool. Move-only; holds the inode open.
///
/// Its blocks are not used for anything else while it lives, whatever happens to the file: what is cut off, punched or
/// removed meanwhile stays readable here, and is out of the file. A lease costs no fence, and nobody waits for it:
/// reads and writes of the file go on, and are seen here word by word.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();  ///< gives it back

  bool is_open() const { return fs_ != nullptr; }
  u64 bytes() const { return bytes_; }
  /// The range, in order, in as many pieces as it lies in.
  std::span<const std::span<const std::byte>> pieces() const { return pieces_; }
  /// The same for storing into; nothing if it was taken for reading. What is stored is durable after persist(), before
  /// that perhaps, each aligned word by itself; nothing else about it is atomic.
  std::span<const std::span<std::byte>> writable_pieces() const { return writable_; }

  /// Makes what was stored in a part of the lease durable, and gives the file the present time as its modification time
  /// (which may be older after a crash until the file is synced).
  /// @param from, bytes  of the lease; clipped to it.
  /// @error      kBadHandle: given back, or taken for reading. kReadOnly. kIo.
  /// Concurrency: waits for readers and writers of the inode. Durability: on return, one fence.
  Result<void> persist(u64 from, u64 bytes) const;

  /// Blocks that left the file meanwhile become free. No fence.
  Result<void> give_back();

 private:
  friend class File;
  std::shared_ptr<class FilesystemImpl> fs_;
  InodeNo ino_{};
  u64 bytes_ = 0;
  std::vector<std::span<const std::byte>> pieces_;
  std::vector<std::span<std::byte>> writable_;
};

/// An open file. Move-only; pins its inode, so the file stays readable and writable after its last name is gone.
class File {
 public:
  File() = default;
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();  ///< closes

  InodeNo ino() const { return ino_; }
  bool is_open() const { return fs_ != nullptr; }

  /// Reads up to out.size() bytes from byte `off`.
  /// @param off  bytes from the start of the file; may lie past its end.
  /// @param out  caller's buffer; bytes past the returned count are untouched.
  /// @return     bytes read; fewer than asked only at the end of the file. Holes read as zero.
  /// @error      kBadHandle: not opened for reading. kIsDirectory.
  /// Concurrency: beside other reads; waits for writers of the same inode.
  /// Durability:  stores nothing; the access time is kept in DRAM until fsync or the next logged change.
  /// Source:      POSIX.1-2017 pread().
  Result<std::size_t> read(u64 off, std::span<std::byte> out) const;

  /// Writes all of `in` at byte `off`, or at the end if opened with O_APPEND.
  /// @return     bytes written: in.size(), or fewer when the pool is full after a part of it.
  /// @error      kBadHandle: not opened for writing. kNoSpace: nothing was written. kFileTooBig.
  /// Concurrency: waits for readers and writers of the same inode.
  /// Durability:  on return. What extends the file or fills holes is one commit; what overwrites is atomic per 8-byte
  ///              word, and its times may be older until fsync.
  /// Source:      POSIX.1-2017 pwrite().
  Result<std::size_t> write(u64 off, std::span<const std::byte> in) const;

  /// Makes lazily stored times durable; everything else already is.
  /// Durability: on return.
  Result<void> sync() const;

  /// As Filesystem::stat of this inode.
  Result<Attributes> stat() const;

  /// Sets the size; growing reads as zero. @error kInvalid: not opened for writing. Durability: on return.
  Result<void> truncate(u64 size_bytes) const;

  /// As Filesystem::get_xattr and so on, of this inode, for whatever the file was opened.
  Result<std::size_t> get_xattr(std::string_view name, std::span<std::byte> value, const Credentials& who) const;
  Result<std::size_t> list_xattrs(std::span<char> names, const Credentials& who) const;
  Result<void> set_xattr(std::string_view name, std::span<const std::byte> value, int flags,
                         const Credentials& who) const;
  Result<void> remove_xattr(std::string_view name, const Credentials& who) const;
  Result<Acl> get_acl(AclKind kind) const;
  Result<void> set_acl(AclKind kind, const Acl& acl, const Credentials& who) const;
  /// As Filesystem::allocate. @error kBadHandle: not opened for writing.
  Result<void> allocate(int mode, u64 off, u64 len) const;

  /// As Filesystem::seek.
  Result<u64> seek(u64 off, int whence) const;

  /// As Filesystem::copy_range, to another open file of the same file system, or to this one.
  /// @error kBadHandle: not opened for reading, or `to` not for writing, or for appending. kCrossDevice: `to` is of
  ///        another file system.
  Result<std::size_t> copy_to(u64 off, const File& to, u64 to_off, u64 len) const;

  /// Pointers to bytes [off, off + len) of the file, clipped to its size.
  /// @param holes  kFill: each piece that has no data gets zeroes first, a commit for each.
  /// @error      kBadHandle: not opened for this. kNoAddress: a hole. kNoSpace, kReadOnly, kInvalid (no regular file).
  /// Durability: stores nothing but what fills holes, and takes set-id bits from a file that a user leases for writing.
  Result<Lease> direct(u64 off, u64 len, DirectUse use = DirectUse::kRead, Holes holes = Holes::kRefuse) const;

  /// Locks the whole file, as flock(2): the lock is this open file's and goes with it. Changing its kind first gives it
  /// back, so that somebody else may be faster.
  /// @param wait  kYes: until it can be had, or `interruptible` is interrupted. @error kWouldBlock, kInterrupted.
  /// Durability:  locks are in DRAM. Concurrency: REQUIRES that close() is not called meanwhile.
  Result<void> lock(LockKind kind, Wait wait = Wait::kYes, LockWait* interruptible = nullptr) const;

  /// Locks bytes, as fcntl() with F_OFD_SETLK: the lock is this open file's and goes with it. It does not see those of
  /// lock(), nor they it.
  /// @error kBadHandle: shared and not opened for reading, exclusive and not for writing. kWouldBlock, kInterrupted,
  ///        kInvalid (first behind last).
  Result<void> lock_range(const RangeLock& range, Wait wait = Wait::kYes, LockWait* interruptible = nullptr) const;

  /// A lock of somebody else that keeps `range` from being had; nothing: it could be had now.
  Result<std::optional<HeldLock>> test_lock(const RangeLock& range) const;

  /// Gives the handle back. A file without names is freed with its last handle; that costs no fence.
  Result<void> close();

 private:
  friend class Filesystem;
  File(std::shared_ptr<class FilesystemImpl> fs, InodeNo ino, int flags, const Credentials& who);
  std::shared_ptr<class FilesystemImpl> fs_;
  InodeNo ino_{};
  LockOwner lock_owner() const;
  int flags_ = 0;
  Credentials who_;  // who opened it: decides whether writing takes set-id bits away
  mutable std::atomic<u64> lock_id_{0};  // 0: it has had no lock
};

/// An open directory stream. Move-only; pins its inode. One thread at a time per stream.
class Dir {
 public:
  Dir() noexcept;
  Dir(Dir&&) noexcept;
  Dir& operator=(Dir&&) noexcept;
  ~Dir();

  InodeNo ino() const { return ino_; }
  bool is_open() const { return fs_ != nullptr; }

  /// Gives the first entry behind `cookie` in listing order; 0 starts at ".".
  /// @param cookie  0, or DirEntry::cookie of an entry of this directory, from any stream of any time.
  /// @param out     filled when true is returned.
  /// @return        false at the end. An entry that is there from the first read to the last is returned exactly once.
  /// Concurrency:   beside anything; entries added or removed meanwhile may or may not be seen.
  /// Source:        POSIX.1-2017 readdir(), seekdir().
  Result<bool> read(u64 cookie, DirEntry& out);

  /// The same, with the attributes of what the entry leads to, both true at one instant. Entries that are removed
  /// meanwhile are passed over.
  Result<bool> read(u64 cookie, DirEntry& out, Attributes& attributes);

  /// Forgets what was seen: the next read at cookie 0 lists the directory as it is then.
  void rewind();

  Result<void> close();

 private:
  friend class Filesystem;
  struct Stream;
  Dir(std::shared_ptr<class FilesystemImpl> fs, InodeNo ino);
  std::shared_ptr<class FilesystemImpl> fs_;
  InodeNo ino_{};
  std::unique_ptr<Stream> stream_;
};

/// A mounted pool. Movable; shares nothing with other Filesystem objects.
class Filesystem {
 public:
  Filesystem() = default;
  Filesystem(Filesystem&&) noexcept;
  Filesystem& operator=(Filesystem&&) noexcept;
  ~Filesystem();  ///< as close(), its error lost

  /// Makes a pool and an empty file system in it.
  /// @param path  a file to create, a device DAX (/dev/daxN.M), or a poolset file.
  /// @error       kPoolExists: something is there and `force` is not set. kPoolTooSmall. kReplicaSet. kDirectorySet.
  ///              kPoolBusy. kRefused: libpmemobj's words are in error_detail().
  /// Durability:  on return; a crash before leaves a pool that open() refuses with kNotFormatted.
  static Result<void> format(const std::string& path, const FormatOptions& options = {});

  /// Opens a pool: recovers what a crash left unfinished and takes the lock against other processes.
  /// @error  kPoolMissing, kNotAPool, kOtherLayout, kNotFormatted, kTooNew, kPoolBusy, kPoolTruncated, kPoolDenied,
  ///         kReplicaSet, kDirectorySet, kNoPrivateOpen (read_only only), kCorrupt (damaged superblock), kRefused.
  ///         error_detail() names the pool and says what to do.
  /// Durability: recovery's effects are durable on return, unless read_only.
  static Result<Filesystem> open(const std::string& path, const OpenOptions& options = {});

  /// Makes an empty file system in a pool of any layout that the application has opened, beside its own objects.
  /// @param path        what `pool` was opened by.
  /// @param size_bytes  how much of the heap it takes, at least; it cannot grow, and nothing gives the room back.
  /// @param options     label, root_uid and root_gid count.
  /// @return            the locator's offset in the pool. The application stores it durably, for attach(); a crash
  ///                    before leaves the room taken.
  /// @error  kInvalid: `path` is not that pool's. kNoSpace: the heap has not so much room. kPoolTooSmall. kNoMemory.
  /// Concurrency: as libpmemobj's own allocations. Durability: on return.
  static Result<u64> format_in(const std::string& path, ::pmemobjpool* pool, u64 size_bytes,
                               const FormatOptions& options = {});

  /// Opens the file system in a pool that the application has opened, and will close after the Filesystem. It may use
  /// libpmemobj in it at the same time. When it has closed the pool the command line can open it too, if format() made
  /// it with reserve_bytes: the root object of such a pool has 4096 bytes, of which the first 192 are the file
  /// system's, and must not be made larger.
  /// @param locator_off  what format_in() returned; 0: the pool was made by format() with reserve_bytes.
  /// @error  kNotSupported: options.read_only. kInvalid: `path` is not that pool's. kOtherLayout, kNotFormatted,
  ///         kTooNew, kCorrupt, kNoMemory. error_detail() says more.
  /// Concurrency: one Filesystem for each locator. Durability: as open().
  static Result<Filesystem> attach(const std::string& path, ::pmemobjpool* pool, u64 locator_off = 0,
                                   const OpenOptions& options = {});

  /// Makes a pool larger that nobody has open: the file, or the last part of a poolset (its text is changed, too).
  /// @param size_bytes  of the file, or of all parts together; rounded down to whole blocks. With the size that it has,
  ///                    only what an interrupted call left undone is done.
  /// @param options     how the pool is opened meanwhile; always for writing.
  /// @error  kInvalid: smaller than it is. kNotSupported: a device. kNoSpace: the medium is full, nothing has changed.
  ///         Otherwise as open().
  /// Durability: on return. A crash leaves the old file system or the larger one, possibly in a file that is longer
  ///             already; a poolset whose part is longer than its text says is opened again after another grow().
  static Result<GrowReport> grow(const std::string& path, u64 size_bytes, const OpenOptions& options = {});

  /// Makes lazy times durable, saves the allocator's map, closes the pool.
  /// @error kBusy: files, directories or pins are still held; nothing was closed.
  /// Concurrency: REQUIRES that no other call on this file system is running.
  Result<void> close();
  bool is_open() const { return impl_ != nullptr; }

  // --- Looking ------------------------------------------------------------------------------------------------------

  /// The attributes of what `at` names.
  /// @error      kNotFound, kNotDirectory, kAccess (search), kLoop, kNameTooLong, kStale.
  /// Durability: stores nothing. Cost: no flush, no fence. Source: POSIX.1-2017 fstatat().
  Result<Attributes> stat(At at, const Credentials& who, Follow follow = Follow::kYes, Ref ref = Ref::kNone);

  /// Resolves many paths, in any order, as stat() would each of them: prefixes that paths share are walked once, and
  /// the waits for memory of independent paths overlap.
  /// @param paths    each as in At, relative ones begin at options.start; their memory outlives the call.
  /// @param results  one for each path, in the same order.
  /// @error          kInvalid: more paths than results. What is wrong with one path is in its result alone.
  /// Concurrency:    each result was true at some instant within the call, not all of them at the same one.
  /// Durability:     stores nothing. Cost: no flush, no fence.
  Result<void> resolve(std::span<const std::string_view> paths, std::span<Resolved> results, const Credentials& who,
                       const BatchOptions& options = {});

  /// Resolves one path and tells every component it passes, the target last. (The reply of Lookupplus.)
  /// @error      none of a path's: those are in the result, behind what was passed before.
  /// Durability: stores nothing. Cost: no flush, no fence.
  Result<ResolvedComponents> resolve_components(At at, const Credentials& who, Follow follow = Follow::kYes);

  LookupStatistics lookup_statistics() const;
  /// What is held now. Cost: looks at every inode in memory. Stores nothing.
  HeldInodes held_inodes() const;
  /// The pivots that serve now, in ascending order. Empty unless OpenOptions::resolver is kStage.
  std::vector<PivotInfo> pivots() const;
  /// Sets how often pivots are chosen anew. Nothing happens unless OpenOptions::resolver is kStage.
  void set_pivot_period(u32 period_ms);

  /// A symbolic link's target. @error kInvalid: not a symbolic link.
  Result<std::string> readlink(At at, const Credentials& who);

  /// Whether `who` may do `mode` (R_OK | W_OK | X_OK). @error kAccess. Source: POSIX.1-2017 faccessat().
  Result<void> access(At at, int mode, const Credentials& who, Follow follow = Follow::kYes);

  /// How large the directory `at` is, and whether it has an index in use.
  /// @error      kNotDirectory. Cost: reads the directory's map; the first use of an index also looks at all of that.
  Result<DirectoryInfo> directory_info(At at, const Credentials& who);

  Result<SpaceInfo> space() const;
  PoolInfo info() const;

  /// What there is at most, by the names of pathconf(): _PC_NAME_MAX, _PC_PATH_MAX, _PC_LINK_MAX, _PC_FILESIZEBITS,
  /// _PC_SYMLINK_MAX, _PC_NO_TRUNC, _PC_CHOWN_RESTRICTED, _PC_2_SYMLINKS, _PC_SYNC_IO, _PC_ALLOC_SIZE_MIN,
  /// _PC_REC_MIN_XFER_SIZE, _PC_REC_INCR_XFER_SIZE, _PC_REC_XFER_ALIGN, _PC_PIPE_BUF.
  /// @error kInvalid: another name, or one without a limit (_PC_REC_MAX_XFER_SIZE). Source: POSIX.1-2017 pathconf().
  static Result<i64> limit(int name);

  // --- Changing the tree: each is one commit, two fences, durable on return ------------------------------------------

  /// Creates a file, device, FIFO or socket; `mode` carries S_IFMT (0 means a regular file).
  /// @error  kExists, kNotFound (parent, or parent removed), kAccess, kNoSpace, kPermission (a directory; a device by a
  ///         user, but for a whiteout: character device 0:0).
  /// Source: POSIX.1-2017 mknodat().
  Result<Attributes> mknod(At at, u32 mode, u64 rdev, const Credentials& who, Ref ref = Ref::kNone);
  Result<Attributes> mkdir(At at, u32 mode, const Credentials& who, Ref ref = Ref::kNone);
  /// @param target  1 to 4095 bytes, stored as given. @error kNotFound: empty target. kNameTooLong.
  Result<Attributes> symlink(std::string_view target, At at, const Credentials& who, Ref ref = Ref::kNone);
  /// Another name `to` for the file `from`. @error kPermission: a directory. kTooManyLinks.
  Result<Attributes> link(At from, At to, const Credentials& who, Follow follow = Follow::kNo, Ref ref = Ref::kNone);
  /// @error kIsDirectory, kNotFound, kAccess, kPermission (sticky directory).
  Result<void> unlink(At at, const Credentials& who);
  /// @error kNotEmpty, kNotDirectory, kBusy (the root), kInvalid ("." as last component).
  Result<void> rmdir(At at, const Credentials& who);
  /// @param flags  0, RENAME_EXCHANGE, or RENAME_NOREPLACE and RENAME_WHITEOUT in any combination; others are kInvalid.
  ///               RENAME_WHITEOUT leaves a character device 0:0 of mode 0 at the old name, in the same commit; it
  ///               belongs to `who`, and any user may make it (Linux since 5.8).
  /// @error  kExists (NOREPLACE), kNotEmpty, kIsDirectory, kNotDirectory, kInvalid (into itself), kBusy (the root).
  /// Source: POSIX.1-2017 renameat(), Linux renameat2().
  Result<void> rename(At from, At to, unsigned flags, const Credentials& who);

  /// chmod, chown, utimens and truncate in one call and one commit.
  /// @error  kPermission (owner, ids), kAccess (write), kIsDirectory (size of one), kFileTooBig, kNoSpace.
  Result<Attributes> set_attributes(At at, const SetAttributes& change, const Credentials& who,
                                    Follow follow = Follow::kYes);

  // --- Extended attributes and ACLs ----------------------------------------------------------------------------------
  //
  // Names begin with "user." (files and directories only), "trusted." (root only) or "security.", and have at most 255
  // bytes; values have at most 65536. The attributes of one inode have at most 1 MiB together, their names 64 KiB.
  // "system.posix_acl_access" and "system.posix_acl_default" are the ACLs in Linux's form (version 2, little-endian).
  // Errors of all: as stat(); kNotSupported: another name space, or a pool made without attributes; kRange: a name of
  // no or too many bytes; kInvalid: nothing behind the name space; kAccess. Source: xattr(7).

  /// An attribute's value.
  /// @param value  gets it. Empty: nothing is copied, and only the length is returned.
  /// @return       its length in bytes.
  /// @error        kNoAttribute. kRange: `value` is too small.
  /// Concurrency:  waits for whoever changes the same inode. Durability: stores nothing. Source: getxattr(2).
  Result<std::size_t> get_xattr(At at, std::string_view name, std::span<std::byte> value, const Credentials& who,
                                Follow follow = Follow::kYes);
  /// The names, each with a NUL behind it; parameters as of get_xattr(). Source: listxattr(2).
  Result<std::size_t> list_xattrs(At at, std::span<char> names, const Credentials& who, Follow follow = Follow::kYes);
  /// Sets an attribute.
  /// @param flags  XATTR_CREATE, XATTR_REPLACE or 0. Not looked at for ACLs.
  /// @error        kExists (CREATE), kNoAttribute (REPLACE), kPermission, kTooLarge, kNoSpace (limits too).
  /// Durability:   on return, one commit with the change time. Source: setxattr(2).
  Result<void> set_xattr(At at, std::string_view name, std::span<const std::byte> value, int flags,
                         const Credentials& who, Follow follow = Follow::kYes);
  /// @error kNoAttribute (never for ACLs), kPermission. Durability: on return. Source: removexattr(2).
  Result<void> remove_xattr(At at, std::string_view name, const Credentials& who, Follow follow = Follow::kYes);

  /// An ACL. Without an access ACL: the three entries that the mode stands for. Without a default one: none.
  /// @error kNotSupported: a symbolic link. Durability: stores nothing.
  Result<Acl> get_acl(At at, AclKind kind, const Credentials& who, Follow follow = Follow::kYes);
  /// Sets an ACL; an empty one is removed, and leaves the mode as it is. An access ACL sets the mode bits in the same
  /// commit: owner, mask (or owning group, if there is no mask) and other; and takes S_ISGID from who is not in the
  /// group. One that says no more than a mode is stored as that.
  /// @param acl  in any order.
  /// @error      kPermission: neither owner nor root. kInvalid: no valid list. kAccess: a default one of no directory.
  ///             kNotSupported: a symbolic link, or a pool made without ACLs. kNoSpace.
  /// Durability: on return.
  Result<void> set_acl(At at, AclKind kind, const Acl& acl, const Credentials& who, Follow follow = Follow::kYes);

  // --- Files ---------------------------------------------------------------------------------------------------------

  /// Opens, and with O_CREAT creates.
  /// @param flags  O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NOFOLLOW, O_DIRECTORY,
  ///               O_NOATIME; others are ignored as open(2) ignores them. Access is checked here, once.
  ///               O_TMPFILE: `at` is a directory, in whose file system a file without names is made, for O_WRONLY or
  ///               O_RDWR. It goes with its last handle, or gets a name by link(At::inode(file.ino()), ...), if O_EXCL
  ///               is not given.
  /// @param mode   permission bits of a file created here, less who.umask.
  /// @error  kNotFound, kExists, kIsDirectory, kAccess, kLoop, kNoSpace, kInvalid (O_TMPFILE and O_RDONLY).
  ///         kNotSupported: a device or a FIFO, which are the kernel's to open. kNoAddress: a socket.
  /// Durability: creation and truncation are durable on return. A nameless file costs one fence; a crash frees it.
  Result<File> open_file(At at, int flags, u32 mode, const Credentials& who);
  Result<Dir> open_dir(At at, const Credentials& who);

  // --- By inode, for bridges that keep no open-file state: no access check; the inode must be pinned or linked -------

  Result<std::size_t> read(InodeNo ino, u64 off, std::span<std::byte> out);
  /// @param who  decides whether set-id bits are lost: kept only for uid 0.
  Result<std::size_t> write(InodeNo ino, u64 off, std::span<const std::byte> in, const Credentials& who);
  Result<void> sync(InodeNo ino);

  /// Gives bytes [off, off + len) blocks, takes them away, zeroes them, removes them, or puts as many in between.
  /// @param mode  0: blocks wherever there are none, reading as zero; the size grows if the range ends behind it.
  ///              FALLOC_FL_ZERO_RANGE: reads as zero, has blocks; the size grows likewise. With either,
  ///              FALLOC_FL_KEEP_SIZE: the size stays, and blocks may lie behind it, until it is set by truncation.
  ///              FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE: reads as zero, whole blocks become free.
  ///              FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE: what lies behind moves to `off`, or to `off + len`.
  /// @param off, len  bytes; of whole blocks (4096) for collapse and insert.
  /// @error  kInvalid: no length; not of whole blocks; collapse up to the end or beyond; insert behind the end.
  ///         kNotSupported: another mode. kFileTooBig, kNoSpace: nothing has changed. kIsDirectory.
  ///         kNotSeekable (FIFO), kNoDevice (other special files).
  /// Concurrency: waits for readers and writers of the inode.
  /// Durability:  one commit, on return. Set-id bits go as by write().
  /// Source:      Linux fallocate(2).
  Result<void> allocate(InodeNo ino, int mode, u64 off, u64 len, const Credentials& who);

  /// The first place from `off` on that has data (SEEK_DATA) or none (SEEK_HOLE). Blocks that were never written count
  /// as holes; the end of the file is one.
  /// @error kNoAddress: `off` is not below the size, or no data follows. kInvalid: another `whence`, no regular file.
  /// Source: Linux lseek(2).
  Result<u64> seek(InodeNo ino, u64 off, int whence);

  /// Copies up to `len` bytes, at most 64 MiB, less at the source's end or when the pool is full.
  /// @return bytes copied; 0: the source has none at `from_off`.
  /// @error  kInvalid: ranges of one file that overlap, or no regular file. kIsDirectory, kNoSpace, kFileTooBig,
  ///         kOverflow.
  /// Concurrency: beside readers of the source; waits for readers and writers of the target.
  /// Durability:  as write(): on return.
  /// Source:      Linux copy_file_range(2).
  Result<std::size_t> copy_range(InodeNo from, u64 from_off, InodeNo to, u64 to_off, u64 len, const Credentials& who);

  // Locks by owner, for who speaks for processes: POSIX locks (fcntl) of each process, and flock by open file. They are
  // kept in DRAM, in one table with those of File.

  /// As File::lock_range, for any owner; opened for what is not asked. @error also kDeadlock.
  Result<void> lock_range(InodeNo ino, const RangeLock& range, const LockOwner& owner, Wait wait,
                          LockWait* interruptible = nullptr);
  /// As File::test_lock. Source: fcntl(2) F_GETLK.
  Result<std::optional<HeldLock>> test_lock(InodeNo ino, const RangeLock& range, const LockOwner& owner);
  /// As File::lock.
  Result<void> lock(InodeNo ino, LockKind kind, const LockOwner& owner, Wait wait, LockWait* interruptible = nullptr);
  /// Gives back all that an owner has on a file: a process that closes any descriptor of it, an open file that goes.
  Result<void> release_locks(InodeNo ino, const LockOwner& owner);

  /// Keeps an inode's slot and blocks from being reused, whatever happens to its names. Counted.
  /// @error kStale: it is not there any more.
  Result<void> pin(InodeNo ino);
  /// Gives `count` pins back. @error kInvalid: more than are held (hostile input); then none is.
  Result<void> unpin(InodeNo ino, u64 count);
  /// Gives back every pin taken by pin() and Ref::kPin; handles stay. For the end of a mount.
  void unpin_all();

  /// Makes all lazy times durable. Durability: on return, for everything that returned before.
  Result<void> sync();

 private:
  friend Result<struct CheckReport> check(Filesystem& fs);
  friend struct Volume& volume_of(Filesystem& fs);
  friend Result<struct Survey> survey(Filesystem& fs);
  friend Result<void> dump(Filesystem& fs, const std::function<void(std::string_view)>& line);
  friend Result<Filesystem> open_memory(struct Memory memory, PoolOff locator_off, const OpenOptions& options);
  explicit Filesystem(std::shared_ptr<FilesystemImpl> impl);
  std::shared_ptr<FilesystemImpl> impl_;
};

// --- Proof and inspection --------------------------------------------------------------------------------------------

/// One thing that check() found wrong.
struct Finding {
  std::string code;      ///< short and stable, e.g. "link-count", "block-owned-twice"
  std::string text;      ///< a sentence with the numbers
  u64 media_off = 0;     ///< where, bytes from the start of the pool; 0 if nowhere in particular
  InodeNo ino{};         ///< whose; kNoInode if nobody's
};

struct CheckReport {
  std::vector<Finding> findings;  ///< empty: the file system is consistent
  u64 inodes = 0;                 ///< in use
  u64 directories = 0;
  u64 entries = 0;
  u64 blocks_used = 0;            ///< by files, maps and the file system itself
  u64 blocks_free = 0;
  u64 lanes_undone = 0;           ///< unfinished operations that opening undid (in private pages when read-only)
  bool clean() const { return findings.empty(); }
};

/// Examines an open file system: reachability, link and entry counts, every block owned at most once, leaves, maps, and
/// the allocator against all of it. Changes nothing.
/// Concurrency: REQUIRES that no other call runs on `fs`. Cost: reads everything but file data.
Result<CheckReport> check(Filesystem& fs);

/// What a file system holds, and how scattered it and its free space are.
struct Survey {
  u64 regular_files = 0;
  u64 directories = 0;
  u64 symlinks = 0;
  u64 special_files = 0;
  u64 extents = 0;            ///< of regular files: pieces that lie in one row in the pool
  u64 most_extents = 0;       ///< of one file
  u64 fragmented_files = 0;   ///< in more than one extent
  u64 unwritten_blocks = 0;   ///< allocated, read as zero
  u64 map_nodes = 0;
  u64 index_nodes = 0;
  u64 with_xattrs = 0;        ///< inodes that have extended attributes
  u64 with_acls = 0;
  u64 attribute_blocks = 0;   ///< of attributes and ACLs that do not fit into the inode
  u64 indexes_stale = 0;      ///< directories of several leaves without an index
  u64 indexes_damaged = 0;    ///< that are scanned, and get a new one with the next entry
  /// Directories by the levels of their index; [0]: those that need none, having at most one leaf.
  std::vector<u64> directories_by_depth;
  u64 free_runs = 0;          ///< free blocks in a row
  u64 longest_free_run = 0;   ///< blocks
  /// [k]: free blocks that lie in runs of 2^k to 2^(k+1) - 1 blocks.
  std::vector<u64> free_blocks_by_run;
};

/// Looks at all inodes, maps and indexes, and at the allocator. Changes nothing.
/// @error       kCorrupt: a map is damaged. Concurrency: as check().
Result<Survey> survey(Filesystem& fs);

/// Writes the file system's structures as stable, readable text, one line a call, without line ends.
/// Concurrency: as check().
Result<void> dump(Filesystem& fs, const std::function<void(std::string_view)>& line);

}  // namespace pmfs

#pragma GCC visibility pop
