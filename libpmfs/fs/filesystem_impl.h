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

/// What an open file system is made of, for tests. REQUIRES: it is open.
Volume& volume_of(Filesystem& fs);

/// Opens a file system on memory that is not a pool: tests, and crash states.
Result<Filesystem> open_memory(Memory memory, PoolOff locator_off, const OpenOptions& options = {});

}  // namespace pmfs
