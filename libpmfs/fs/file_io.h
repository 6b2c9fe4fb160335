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

/// Maps unwritten blocks wherever [first, first + count) has none, and raises the size if they end behind it. They read
/// as zero; a write into them needs no more blocks for data. Not offered to users yet: what fallocate will be made of.
/// @param first, count  logical blocks.
/// @error kNoSpace: nothing has changed. kInvalid, kIsDirectory, kStale, kCorrupt, kIo. Durability: on return.
Result<void> reserve_blocks(Volume& volume, const InodeRef& ref, u64 first, u64 count);

/// Adds a change of size to a commit. REQUIRES: the exclusive lock; a regular file; size <= kMaxFileBytes.
/// @param freed  gets the blocks cut off.
/// @error kNoSpace, kCorrupt.
Result<void> plan_size(Volume& volume, const InodeRef& ref, u64 size_bytes, Commit& commit, BlockHold& hold,
                       Freed& freed);

}  // namespace pmfs
