// What stands behind a Filesystem: a volume, the pool or memory it lies in, and the fork check.
#pragma once

#include <memory>
#include <new>
#include <optional>
#include <string>

#include "base/fork.h"
#include "fs/pool.h"
#include "fs/volume.h"
#include "pmfs/pmfs.hpp"

namespace pmfs {

class FilesystemImpl {
 public:
  FilesystemImpl(std::optional<Pool> pool, std::unique_ptr<Volume> volume, std::string path);
  ~FilesystemImpl();

  /// @error kForked: in a child of the process that opened the pool.
  Result<void> usable() const {
    if (fork_generation() == generation_) return {};
    return Error{Errc::kForked, "the pool belongs to the parent process", 0};
  }
  Volume& volume() const { return *volume_; }
  const std::string& path() const { return path_; }
  bool closed() const { return volume_ == nullptr; }
  Result<void> close();

 private:
  std::optional<Pool> pool_;
  std::unique_ptr<Volume> volume_;
  std::string path_;
  u64 generation_;
};

// What every public call does first: is the caller at the right place, and may it change anything?

/// @error kBadHandle, kForked.
inline Result<Volume*> usable_volume(const std::shared_ptr<FilesystemImpl>& impl) {
  if (impl == nullptr) return Error{Errc::kBadHandle, "it is closed", 0};
  PMFS_TRY(impl->usable());
  if (impl->closed()) return Error{Errc::kBadHandle, "the file system is closed", 0};
  return &impl->volume();
}

/// @error also kReadOnly.
inline Result<Volume*> writable_volume(const std::shared_ptr<FilesystemImpl>& impl) {
  PMFS_ASSIGN(Volume* const volume, usable_volume(impl));
  PMFS_TRY(volume->writable());
  return volume;
}

/// Turns what memory allocation throws into an error: nothing leaves the library as an exception.
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

/// What an open file system is made of, for tests. REQUIRES: it is open.
Volume& volume_of(Filesystem& fs);

/// Opens a file system on memory that is not a pool: tests, and crash states.
Result<Filesystem> open_memory(Memory memory, PoolOff locator_off, const OpenOptions& options = {});

}  // namespace pmfs
