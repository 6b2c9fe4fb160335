// A file system on plain memory: microseconds to make, gone at the end.
#pragma once

#include "fs/filesystem_impl.h"
#include "test/support/must.h"

namespace pmfs::test {

class MemoryFs {
 public:
  /// Formats `bytes` of memory and opens the file system in it.
  explicit MemoryFs(u64 bytes, OpenOptions options = {}, u32 lanes = media::kLaneCount);
  ~MemoryFs();
  MemoryFs(const MemoryFs&) = delete;
  MemoryFs& operator=(const MemoryFs&) = delete;

  Filesystem& fs() { return fs_; }
  Filesystem* operator->() { return &fs_; }
  const Memory& memory() const { return memory_; }

  /// Closes cleanly and opens again.
  void reopen(OpenOptions options = {});
  /// Drops the open file system as a killed process does, and opens again.
  void reopen_after_kill(OpenOptions options = {});
  /// Fails the test, with the findings, unless check() finds nothing.
  void require_clean();

 private:
  Memory memory_;
  Filesystem fs_;
};

}  // namespace pmfs::test
