// What every call of the public face begins with: may the caller be here, and nothing leaves as an exception.
#pragma once

#include <new>

#include "fs/filesystem_impl.h"

namespace pmfs {

/// @error kBadHandle: closed. kForked.
inline Result<Volume*> usable_volume(const std::shared_ptr<FilesystemImpl>& impl) {
  if (impl == nullptr) return Error{Errc::kBadHandle, "it is closed", 0};
  PMFS_TRY(impl->usable());
  if (impl->closed()) return Error{Errc::kBadHandle, "the file system is closed", 0};
  return &impl->volume();
}

/// @error as usable_volume(); kReadOnly.
inline Result<Volume*> writable_volume(const std::shared_ptr<FilesystemImpl>& impl) {
  PMFS_ASSIGN(Volume* const volume, usable_volume(impl));
  PMFS_TRY(volume->writable());
  return volume;
}

/// Turns what memory allocation throws into an error.
template <class Call>
auto guarded(Call&& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Error{Errc::kNoMemory, "out of memory", 0};
  } catch (...) {
    return Error{Errc::kNoMemory, "the C++ library failed", 0};
  }
}

}  // namespace pmfs
