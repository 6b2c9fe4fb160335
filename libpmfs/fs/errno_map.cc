// The one place that gives an error code its errno and its sentence, and a durability mode its sentence.
//   Each switch is without `default`, so a new enumerator breaks the build here (-Werror=switch).
#include <cerrno>

#include "pmfs/durability.h"
#include "pmfs/result.h"

#pragma GCC diagnostic error "-Wswitch"

namespace pmfs {

// Three tables, a line each where it fits.
// clang-format off

int to_errno(Errc code) {
  switch (code) {
    case Errc::kNotFound: return ENOENT;
    case Errc::kExists: return EEXIST;
    case Errc::kNotDirectory: return ENOTDIR;
    case Errc::kIsDirectory: return EISDIR;
    case Errc::kNotEmpty: return ENOTEMPTY;
    case Errc::kNameTooLong: return ENAMETOOLONG;
    case Errc::kLoop: return ELOOP;
    case Errc::kInvalid: return EINVAL;
    case Errc::kAccess: return EACCES;
    case Errc::kPermission: return EPERM;
    case Errc::kTooManyLinks: return EMLINK;
    case Errc::kFileTooBig: return EFBIG;
    case Errc::kBadHandle: return EBADF;
    case Errc::kStale: return ESTALE;
    case Errc::kBusy: return EBUSY;
    case Errc::kNotSupported: return ENOTSUP;
    case Errc::kOverflow: return EOVERFLOW;
    case Errc::kCrossDevice: return EXDEV;
    case Errc::kNoAttribute: return ENODATA;
    case Errc::kRange: return ERANGE;
    case Errc::kTooLarge: return E2BIG;
    case Errc::kNotSeekable: return ESPIPE;
    case Errc::kNoDevice: return ENODEV;
    case Errc::kNoAddress: return ENXIO;
    case Errc::kWouldBlock: return EAGAIN;
    case Errc::kDeadlock: return EDEADLK;
    case Errc::kInterrupted: return EINTR;
    case Errc::kNoSpace: return ENOSPC;
    case Errc::kNoMemory: return ENOMEM;
    case Errc::kReadOnly: return EROFS;
    case Errc::kIo: return EIO;
    case Errc::kCorrupt: return EUCLEAN;
    case Errc::kForked: return EOWNERDEAD;
    case Errc::kPoolMissing: return ENOENT;
    case Errc::kPoolExists: return EEXIST;
    case Errc::kPoolDenied: return EACCES;
    case Errc::kPoolBusy: return EBUSY;
    case Errc::kPoolTooSmall: return EINVAL;
    case Errc::kPoolTruncated: return EINVAL;
    case Errc::kNotAPool: return EINVAL;
    case Errc::kOtherLayout: return EINVAL;
    case Errc::kNotFormatted: return EINVAL;
    case Errc::kTooNew: return ENOTSUP;
    case Errc::kReplicaSet: return ENOTSUP;
    case Errc::kDirectorySet: return ENOTSUP;
    case Errc::kNoPrivateOpen: return ENOTSUP;
    case Errc::kRefused: return EIO;
  }
  return EIO;  // a number that is no Errc
}

const char* describe(Errc code) {
  switch (code) {
    case Errc::kNotFound: return "no such file or directory";
    case Errc::kExists: return "the name exists already";
    case Errc::kNotDirectory: return "a part of the path is not a directory";
    case Errc::kIsDirectory: return "this is a directory";
    case Errc::kNotEmpty: return "the directory is not empty";
    case Errc::kNameTooLong: return "the name is longer than 255 bytes, or the path longer than 4095";
    case Errc::kLoop: return "the path leads through more than 40 symbolic links, or through one where none is allowed";
    case Errc::kInvalid: return "an argument makes no sense here";
    case Errc::kAccess: return "the permission bits deny it";
    case Errc::kPermission: return "only the owner or root may do this";
    case Errc::kTooManyLinks: return "the file has as many names as it can have; remove one first";
    case Errc::kFileTooBig: return "the file would be larger than the format allows";
    case Errc::kBadHandle: return "the handle is closed, or was not opened for this; open it again";
    case Errc::kStale: return "what this handle named has been removed; look it up again";
    case Errc::kBusy: return "it is in use; close what uses it and try again";
    case Errc::kNotSupported: return "this version does not support that operation";
    case Errc::kOverflow: return "a value is too large for the format";
    case Errc::kCrossDevice: return "the path leaves the directory that it was to stay in";
    case Errc::kNoAttribute: return "there is no attribute of that name";
    case Errc::kRange: return "the buffer is too small, or the name of the attribute is too long";
    case Errc::kTooLarge: return "the value of an attribute has at most 65536 bytes";
    case Errc::kNotSeekable: return "a pipe has no places in it";
    case Errc::kNoDevice: return "only regular files have blocks";
    case Errc::kNoAddress: return "nothing is at that place";
    case Errc::kWouldBlock: return "somebody else has the lock; wait for it, or try again";
    case Errc::kDeadlock: return "those who have the lock wait for one that is held here; give that back first";
    case Errc::kInterrupted: return "the wait for the lock was interrupted";
    case Errc::kNoSpace: return "no space is left; remove files, or make room on the medium";
    case Errc::kNoMemory: return "the machine is out of memory; free some and try again";
    case Errc::kReadOnly: return "the file system is open for reading only";
    case Errc::kIo: return "the medium failed, and the pool is now read-only; copy what you can and check the medium";
    case Errc::kCorrupt: return "the pool contradicts itself; run pmfs check on it";
    case Errc::kForked:
      return "called in a forked child, which owns no part of the file system; use it in the parent, or open the pool "
             "in the child after the parent has closed it";
    case Errc::kPoolMissing: return "there is no pool of that name; check the path, or make one with pmfs mkfs";
    case Errc::kPoolExists: return "something is there already; choose another path, or overwrite it with --force";
    case Errc::kPoolDenied:
      return "the operating system denies access; change the owner or mode of the pool file (or of its directory), or "
             "run as another user";
    case Errc::kPoolBusy: return "the pool is open elsewhere; unmount it or end the program that holds it";
    case Errc::kPoolTooSmall: return "a pool needs at least 8 MiB; give it more";
    case Errc::kPoolTruncated:
      return "the file is shorter than the pool in it, so a part is lost; restore the file from a copy";
    case Errc::kNotAPool: return "there is no libpmemobj pool in it; check the path, or make one with pmfs mkfs";
    case Errc::kOtherLayout:
      return "the pool belongs to another program (its layout is not pmfs); open it with that program";
    case Errc::kNotFormatted:
      return "mkfs of this pool did not finish; if it never held files, run pmfs mkfs --force on it again";
    case Errc::kTooNew: return "a newer version made this pool, with a feature this one lacks; use the newer version";
    case Errc::kReplicaSet:
      return "the poolset has a REPLICA section, and replicas are not supported; use a poolset without it";
    case Errc::kDirectorySet:
      return "the poolset lists a directory, and such sets are not supported; list files or devices of a fixed size";
    case Errc::kNoPrivateOpen:
      return "this pool cannot be opened for reading only (it is a device, or its file cannot be written); open it for "
             "writing, or copy it to a file first";
    case Errc::kRefused: return "libpmemobj or the system refused the pool; its own words say why";
  }
  return "an error without a name";
}

const char* describe(Durability durability) {
  switch (durability) {
    case Durability::kPersistent: return "persistent memory: what a call has returned survives power loss";
    case Durability::kVolatile: return "volatile: survives a killed process, not power loss";
    case Durability::kFileBacked:
      return "file-backed: survives power loss, but slow, since every change is written by msync";
    case Durability::kRelaxed:
      return "relaxed: survives a killed process; after power loss the pool may be inconsistent; durable at fsync, "
             "sync and close";
    case Durability::kPrivate: return "read-only: private pages, nothing reaches the medium";
  }
  return "unknown";
}

// clang-format on

}  // namespace pmfs
