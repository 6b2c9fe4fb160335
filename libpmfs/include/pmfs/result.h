// Errors as values. A call returns Result<T>: either its value or an Error; nothing is thrown across the library's
// boundary and nothing is printed.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "pmfs/types.h"

#pragma GCC visibility push(default)  // what this header declares is what libpmfs.so exports

namespace pmfs {

/// Every way a call can fail. `libpmfs/fs/errno_map.cc` gives each one an errno and a sentence.
enum class Errc : u16 {
  // The caller's request.
  kNotFound = 1,      ///< ENOENT: no such name, or the path is empty
  kExists,            ///< EEXIST
  kNotDirectory,      ///< ENOTDIR
  kIsDirectory,       ///< EISDIR
  kNotEmpty,          ///< ENOTEMPTY
  kNameTooLong,       ///< ENAMETOOLONG: a name over 255 or a path over 4095 bytes
  kLoop,              ///< ELOOP: more than 40 symbolic links, or one where none was allowed
  kInvalid,           ///< EINVAL
  kAccess,            ///< EACCES: permission bits deny it
  kPermission,        ///< EPERM: only the owner or root may
  kTooManyLinks,      ///< EMLINK
  kFileTooBig,        ///< EFBIG
  kBadHandle,         ///< EBADF: closed, or not opened for this
  kStale,             ///< ESTALE: the inode this handle named is gone
  kBusy,              ///< EBUSY: the root directory, or a file system still in use
  kNotSupported,      ///< ENOTSUP: this version does not do that, and says so
  kOverflow,          ///< EOVERFLOW: a value does not fit the format
  kCrossDevice,       ///< EXDEV: the way leaves the directory that it was to stay beneath
  kNoAttribute,       ///< ENODATA: no extended attribute or ACL of that name
  kRange,             ///< ERANGE: the caller's buffer is too small, or a name too long for an attribute
  kTooLarge,          ///< E2BIG: the value of an attribute is over 65536 bytes
  kNotSeekable,       ///< ESPIPE: a pipe has no places in it
  kNoDevice,          ///< ENODEV: not a file with blocks
  kNoAddress,         ///< ENXIO: nothing is at that place, or behind it
  kWouldBlock,        ///< EAGAIN: somebody else has the lock
  kDeadlock,          ///< EDEADLK: those who have the lock wait for this caller
  kInterrupted,       ///< EINTR: the wait was ended by LockWait::interrupt()
  // The machine and the pool's state.
  kNoSpace,           ///< ENOSPC
  kNoMemory,          ///< ENOMEM
  kReadOnly,          ///< EROFS
  kIo,                ///< EIO: the medium failed; the pool has turned read-only
  kCorrupt,           ///< EUCLEAN: what the pool says cannot be; Error::media_off says where
  kForked,            ///< EOWNERDEAD: called in a forked child, which owns no part of the file system
  // Opening and making a pool.
  kPoolMissing,       ///< ENOENT
  kPoolExists,        ///< EEXIST: mkfs would overwrite something
  kPoolDenied,        ///< EACCES
  kPoolBusy,          ///< EBUSY: open elsewhere, in this process or another
  kPoolTooSmall,      ///< EINVAL
  kPoolTruncated,     ///< EINVAL: the file is shorter than the pool in it
  kNotAPool,          ///< EINVAL: no libpmemobj pool
  kOtherLayout,       ///< EINVAL: a libpmemobj pool, but not a pmfs one
  kNotFormatted,      ///< EINVAL: a pmfs pool whose mkfs did not finish
  kTooNew,            ///< ENOTSUP: made by a newer version, with a feature this one lacks
  kReplicaSet,        ///< ENOTSUP: a poolset with a REPLICA section
  kDirectorySet,      ///< ENOTSUP: a poolset of directories
  kNoPrivateOpen,     ///< ENOTSUP: a read-only open is impossible here (device DAX, or no write permission)
  kRefused,           ///< EIO: libpmemobj refused; error_detail() has its words
};

/// What went wrong. Holds no memory of its own, so it works when memory is short.
struct Error {
  Errc code{};
  const char* what = "";  ///< a static sentence in plain words; never null
  u64 media_off = 0;      ///< for kCorrupt and kIo: bytes from the start of the pool; 0 if unknown
};

/// Either a T or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(error) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  /// REQUIRES: ok().
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  /// REQUIRES: !ok().
  const Error& error() const { return error_; }

 private:
  std::optional<T> value_;
  Error error_{};
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(error), failed_(true) {}

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  /// REQUIRES: !ok().
  const Error& error() const { return error_; }

 private:
  Error error_{};
  bool failed_ = false;
};

/// Leaves the calling function with the error of `expr`, if it has one.
#define PMFS_TRY(expr)                                           \
  do {                                                           \
    if (auto pmfs_try_ = (expr); !pmfs_try_.ok()) [[unlikely]]   \
      return pmfs_try_.error();                                  \
  } while (0)

#define PMFS_CONCAT_(a, b) a##b
#define PMFS_CONCAT(a, b) PMFS_CONCAT_(a, b)

/// `PMFS_ASSIGN(auto x, f());` declares x from f()'s value, or leaves with its error.
#define PMFS_ASSIGN(decl, expr) PMFS_ASSIGN_(PMFS_CONCAT(pmfs_result_, __LINE__), decl, expr)
#define PMFS_ASSIGN_(name, decl, expr)                   \
  auto name = (expr);                                    \
  if (!name.ok()) [[unlikely]] return name.error();      \
  decl = std::move(*name)

/// The errno that a POSIX caller gets for `code`.
int to_errno(Errc code);

/// A sentence for people: what happened and, where there is something to do, what to do next. Static text.
const char* describe(Errc code);

/// More about this thread's last failed open or format: the pool's name, libpmemobj's own words. Never null; valid
/// until this thread's next call into the library.
const char* error_detail();

}  // namespace pmfs

#pragma GCC visibility pop
