// Contents of files: reading, writing, and changing their size.
//
//   F1  Nothing below a file's size was ever anything but written or zero: whoever raises the size, or maps a block
//   below
//       it, zeroes the unwritten part before fence 1. Nobody zeroes when a size goes down.
//   F2  A write that maps blocks or raises the size is one commit, however many blocks it takes.
//   F3  A write inside the file, over mapped blocks, stores data in place: one fence; times follow without a record
//   (R3).
// Thread rules: readers hold the inode's shared lock, writers the exclusive one.
// Source: POSIX.1-2017 pread(), pwrite(), ftruncate().
#pragma once

#include <span>

#include "fs/volume.h"

namespace pmfs {

/// Filesystem::read. @param no_atime  O_NOATIME: the access time stays.
/// @error kIsDirectory, kInvalid (no regular file), kStale, kCorrupt.
Result<std::size_t> read_file(Volume& volume, const InodeRef& ref, u64 off, std::span<std::byte> out,
                              bool no_atime = false);

/// Filesystem::write.
/// @param append  write at the end, whatever `off` says.
/// @error kNoSpace: nothing was written. kFileTooBig, kIsDirectory, kInvalid, kStale, kCorrupt, kIo.
Result<std::size_t> write_file(Volume& volume, const InodeRef& ref, u64 off, std::span<const std::byte> in, bool append,
                               const Credentials& who);

/// What a write stores: puts `bytes` of it, from byte `at` on, where it is told, and flushes them under `why`.
using DataSource = std::function<void(std::byte* to, u64 at, u64 bytes, Order why)>;

/// Writes `len` bytes from a source, or fewer when the pool is full. REQUIRES: the exclusive lock; a regular file.
/// @error kNoSpace: nothing was written. kFileTooBig, kCorrupt, kIo. Durability: on return.
Result<std::size_t> write_range(Volume& volume, const InodeRef& ref, u64 off, u64 len, const DataSource& data,
                                const Credentials& who);

/// Ends a change of data in place (F3) that was flushed under kOverwriteData: one fence; the times behind it. REQUIRES:
/// the exclusive lock. @error kIo. Durability: of the data, on return.
Result<void> end_overwrite(Volume& volume, const InodeRef& ref);

/// Filesystem::seek.
Result<u64> seek_file(Volume& volume, const InodeRef& ref, u64 off, int whence);

/// Keeps the access time in DRAM, as the mount's rule has it. Several readers may do so at once. REQUIRES: at least the
/// shared lock.
void note_access(Volume& volume, const InodeRef& ref);

/// Zeroes what lies behind the old end of a file in its last block, up to `to` at most: it is about to become readable.
/// Flushed; it rides in the caller's fence 1. REQUIRES: the exclusive lock. @error kCorrupt.
Result<void> zero_tail(Volume& volume, const InodeRef& ref, u64 old_size, u64 to);

/// Adds a change of size to a commit. REQUIRES: the exclusive lock; a regular file; size <= kMaxFileBytes.
/// @param freed  gets the blocks cut off.
/// @error kNoSpace, kCorrupt.
Result<void> plan_size(Volume& volume, const InodeRef& ref, u64 size_bytes, Commit& commit, BlockHold& hold,
                       Freed& freed);

}  // namespace pmfs
