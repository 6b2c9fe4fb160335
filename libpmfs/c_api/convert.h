// Between the structs of pmfs.h and the values of pmfs.hpp, and between a Result and a number. What every function of
// the C interface is made of; nothing here decides anything about file systems.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "pmfs/pmfs.h"
#include "pmfs/pmfs.hpp"

// The handles. Their names are in pmfs.h, what they hold is known to this folder alone.
struct pmfs_filesystem { pmfs::Filesystem fs; };
struct pmfs_file_handle {
  pmfs::File file;
  bool appends;  // opened with O_APPEND
};
struct pmfs_dir_handle { pmfs::Dir dir; };
struct pmfs_lease_handle { pmfs::Lease lease; };
struct pmfs_lock_wait_handle {
  pmfs::LockWait wait;
};

namespace pmfs::c_api {

// --- Results ---------------------------------------------------------------------------------------------------------

/// Whether error_detail() has words about this error: so after calls that open or make pools.
enum class Words : bool { kOwn, kPool };

/// Remembers an error for pmfs_strerror() in this thread. @return the negative errno.
int failed(const Error& error, Words words);

inline Error invalid(const char* what) { return {Errc::kInvalid, what, 0}; }
inline Error no_memory() { return {Errc::kNoMemory, "out of memory", 0}; }

/// What a call of the C interface returns: 0 or the number that `body` gives, or a negative errno. The C++ interface
/// throws nothing, but what is made for it here, strings for instance, may find no memory.
template <class Body>
auto answer(Body&& body, Words words = Words::kOwn) {
  using Given = decltype(body());
  constexpr bool plain = std::is_same_v<Given, Result<void>>;
  using Number = std::conditional_t<plain, int, std::int64_t>;
  try {
    const Given result = body();
    if (!result.ok()) return static_cast<Number>(failed(result.error(), words));
    if constexpr (plain) return 0;
    else return static_cast<Number>(*result);
  } catch (...) {
    return static_cast<Number>(failed(no_memory(), Words::kOwn));
  }
}

// --- Structs that may grow -------------------------------------------------------------------------------------------

/// A struct is longer than this in no version to come: a larger struct_bytes was never set.
inline constexpr std::size_t kMostBytes = 4096;

/// The size that a struct of pmfs.h had in its first version. When one grows, its old size is kept here.
template <class T>
inline constexpr std::size_t kFirstBytes = sizeof(T);

template <class T>
Result<void> sized(const T* given) {
  if (given == nullptr) return invalid("a struct is NULL");
  if (given->struct_bytes < kFirstBytes<T> || given->struct_bytes > kMostBytes)
    return invalid("struct_bytes is not the size of that struct; set it to sizeof");
  return {};
}

/// Copies what the caller gave, as far as his version of the struct goes; what is behind it is zero.
/// @error kInvalid. kTooLarge: he says something that this version does not understand.
template <class T>
Result<void> take(const T* given, T& out) {
  PMFS_TRY(sized(given));
  const std::size_t bytes = given->struct_bytes;
  const auto* const raw = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(T); i < bytes; ++i)
    if (raw[i] != 0) return Error{Errc::kTooLarge, "a struct says something that this version does not know", 0};
  std::memset(&out, 0, sizeof out);
  std::memcpy(&out, given, std::min(bytes, sizeof out));
  return {};
}

enum class Given : bool { kMust, kMay };  ///< whether the caller may pass NULL

/// Whether a struct can be filled later. To be asked before anything is changed.
template <class T>
Result<void> fillable(const T* out, Given given = Given::kMust) {
  if (out == nullptr && given == Given::kMay) return {};
  return sized(out);
}

/// Fills the caller's struct, which fillable() has seen, as far as it goes, and the rest of it with zeros.
template <class T>
void put(T value, T* out) {
  if (out == nullptr) return;
  const std::size_t bytes = out->struct_bytes;
  value.struct_bytes = out->struct_bytes;
  std::memcpy(out, &value, std::min(bytes, sizeof value));
  if (bytes > sizeof value) std::memset(reinterpret_cast<unsigned char*>(out) + sizeof value, 0, bytes - sizeof value);
}

pmfs_attributes attributes_of(const Attributes& from);

// --- Who and where ---------------------------------------------------------------------------------------------------

/// @error kInvalid, kTooLarge. The groups stay the caller's memory.
Result<Credentials> credentials_of(const pmfs_credentials* who);

struct Where {
  At at;
  Follow follow;
};
/// @param otherwise  whether a link at the end is followed if the caller says neither.
Result<Where> where_of(const pmfs_location_t& location, Follow otherwise = Follow::kYes);

/// What almost every call has.
struct Call {
  Filesystem& fs;
  Where where;
  Credentials who;
};
Result<Call> call_on(pmfs_t* fs, const pmfs_location_t& location, const pmfs_credentials* who,
                     Follow otherwise = Follow::kYes);

inline Result<Filesystem*> open_of(pmfs_t* fs) {
  if (fs == nullptr) return invalid("the file system is NULL");
  return &fs->fs;
}
inline Result<const File*> open_of(const pmfs_file_t* file) {
  if (file == nullptr) return invalid("the file is NULL");
  return &file->file;
}
inline Result<Dir*> open_of(pmfs_dir_t* dir) {
  if (dir == nullptr) return invalid("the directory is NULL");
  return &dir->dir;
}

inline Result<const Lease*> open_of(const pmfs_lease_t* lease) {
  if (lease == nullptr) return invalid("the lease is NULL");
  return &lease->lease;
}

/// A buffer; NULL only if it has no bytes.
template <class Byte, class Void>
Result<std::span<Byte>> buffer(Void* memory, std::size_t bytes) {
  if (memory == nullptr && bytes > 0) return invalid("a buffer is NULL");
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return invalid("a buffer is too long");  // no int64_t
  return std::span<Byte>(static_cast<Byte*>(memory), bytes);
}

inline Result<std::string_view> text(const char* given) {
  if (given == nullptr) return invalid("a string is NULL");
  return std::string_view(given);
}

}  // namespace pmfs::c_api
