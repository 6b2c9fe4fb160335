// Questions that a program may ask a mounted pmfs by ioctl on its root directory. The structs are the restricted form
// (their size is in the request number), little-endian, and only ever grow a new number.
//
// Who may ask: whoever can open the directory. Nothing here changes anything.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <iterator>

#include "pmfs/types.h"

namespace pmfs::bridge {

/// The requests that the bridge answers, in the order in which they are counted. New ones are appended.
enum class Request : u8 {
  kLookup = 0,
  kForget,
  kGetattr,
  kSetattr,
  kReadlink,
  kMknod,
  kMkdir,
  kUnlink,
  kRmdir,
  kSymlink,
  kRename,
  kLink,
  kOpen,
  kCreate,
  kRead,
  kWrite,
  kFsync,
  kOpendir,
  kReaddir,
  kReaddirplus,
  kReleasedir,
  kFsyncdir,
  kStatfs,
  kIoctl,
  kGetxattr,
  kListxattr,
  kSetxattr,
  kRemovexattr,
  kFallocate,
  kLseek,
  kCopyFileRange,
  kTmpfile,
  kStatx,
};

/// Their names, by Request.
inline constexpr const char* kRequestNames[] = {
    "LOOKUP", "FORGET",  "GETATTR", "SETATTR",     "READLINK",   "MKNOD",    "MKDIR",  "UNLINK",
    "RMDIR",  "SYMLINK", "RENAME",  "LINK",        "OPEN",       "CREATE",   "READ",   "WRITE",
    "FSYNC",  "OPENDIR", "READDIR", "READDIRPLUS", "RELEASEDIR", "FSYNCDIR", "STATFS", "IOCTL",
    "GETXATTR", "LISTXATTR", "SETXATTR", "REMOVEXATTR", "FALLOCATE", "LSEEK", "COPY_FILE_RANGE",
    "TMPFILE", "STATX",
};
inline constexpr std::size_t kRequestKinds = std::size(kRequestNames);
static_assert(kRequestKinds == static_cast<std::size_t>(Request::kStatx) + 1);

/// Who serves this mount. The process may be waited for (pidfd_open) by who lives in the same process namespace.
struct ServerReply {
  u32 pid = 0;            ///< in the server's own namespace
  u32 reserved = 0;       ///< zero
  u64 pid_namespace = 0;  ///< inode number of the server's /proc/self/ns/pid
};
static_assert(sizeof(ServerReply) == 16);

/// How many requests of each kind were answered since the mount.
struct CountsReply {
  u64 kinds = 0;        ///< how many of `counts` are in use
  u64 counts[63] = {};  ///< by Request
};
static_assert(sizeof(CountsReply) == 512);

inline constexpr unsigned kServerIoctl = static_cast<unsigned>(_IOR('p', 0xf5, ServerReply));
inline constexpr unsigned kCountsIoctl = static_cast<unsigned>(_IOR('p', 0xf6, CountsReply));

}  // namespace pmfs::bridge
