// The batch requests that a mounted pmfs answers: ioctls on one of its directories, in the restricted form, so that the
// size of the one buffer, request and reply, is in the request number. FORMAT.md describes every byte.
//
//   request   BatchHeader, then `count` times {PathHeader, path without NUL, zeroes to the next multiple of 8}
//   reply     ReplyHeader, then `count` Rows, in the same order
//
// Paths are relative, and resolution never leaves the directory that the ioctl is called on. A row with error
// kAskKernel says: the ordinary system call knows, I do not.
#pragma once

#include <cerrno>

#include <linux/ioctl.h>

#include "pmfs/types.h"

namespace pmfs::mounted {

inline constexpr u32 kBatchVersion = 1;
inline constexpr std::size_t kBatchBytesMax = 16376;  ///< the largest multiple of 8 that a request number can say
inline constexpr i32 kAskKernel = EXDEV;

enum class BatchOp : u32 { kResolve = 1, kCreate = 2 };

struct BatchHeader {
  u32 version = kBatchVersion;
  BatchOp op = BatchOp::kResolve;
  u32 count = 0;
  u32 bytes = 0;  ///< of the request, this header included
  u32 umask = 0;  ///< kCreate: the caller's
  u32 reserved[3] = {};
};
static_assert(sizeof(BatchHeader) == 32);

struct PathHeader {
  u16 length = 0;  ///< of the path that follows, bytes
  u16 flags = 0;   ///< kFollowLast
  u32 mode = 0;    ///< kCreate: permission bits
};
static_assert(sizeof(PathHeader) == 8);
inline constexpr u16 kFollowLast = 1;

struct ReplyHeader {
  u32 version = kBatchVersion;
  u32 count = 0;
  u64 reserved = 0;
};
static_assert(sizeof(ReplyHeader) == 16);

/// Times are nanoseconds since the Unix epoch.
struct ReplyRow {
  i32 error = 0;  ///< errno; other members are zero then
  u32 mode = 0;
  u64 ino = 0, generation = 0;
  u32 links = 0, uid = 0, gid = 0, reserved = 0;
  u64 size_bytes = 0, blocks_512 = 0, rdev = 0;
  i64 atime_ns = 0, mtime_ns = 0, ctime_ns = 0, birth_ns = 0;
};
static_assert(sizeof(ReplyRow) == 96);

/// What a mount counts, by name; and the pivots that its look-ups begin from. Names end with NUL unless they fill the
/// array; a pivot's path that is too long shows its end.
struct NamedCount {
  char name[24] = {};
  u64 value = 0;
};
struct PivotRow {
  u32 heat = 0, overlap = 0;
  char path[248] = {};
};
struct StatisticsReply {
  u32 version = kBatchVersion;
  u32 counts = 0;  ///< in use
  NamedCount rows[255] = {};
};
struct PivotsReply {
  u32 version = kBatchVersion;
  u32 count = 0;  ///< in use: the hottest
  PivotRow rows[62] = {};
};
static_assert(sizeof(StatisticsReply) == 8168 && sizeof(PivotsReply) == 15880);

inline constexpr unsigned long kStatisticsIoctl = _IOR('p', 0xf8, StatisticsReply);
inline constexpr unsigned long kPivotsIoctl = _IOR('p', 0xf9, PivotsReply);

inline constexpr unsigned kBatchIoctlNumber = 0xf7;

/// The request number for a buffer of `bytes`, at most kBatchBytesMax.
constexpr unsigned long batch_ioctl(std::size_t bytes) {
  return _IOC(_IOC_READ | _IOC_WRITE, 'p', kBatchIoctlNumber, bytes);
}
/// Whether a request number is one of them, whatever its size.
constexpr bool is_batch_ioctl(unsigned command) {
  return (command & ~(static_cast<unsigned>(_IOC_SIZEMASK) << _IOC_SIZESHIFT)) == batch_ioctl(0);
}

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }
/// What a path takes in a request.
constexpr std::size_t request_bytes(std::size_t path_bytes) { return sizeof(PathHeader) + padded(path_bytes); }
inline constexpr std::size_t kBatchPathsMax = (kBatchBytesMax - sizeof(ReplyHeader)) / sizeof(ReplyRow);

}  // namespace pmfs::mounted
