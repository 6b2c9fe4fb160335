// A pool for measurements that is opened again and again: each time with nothing in its cache.
#pragma once

#include <string>

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

/// A pool in a folder of its own, which goes with this object. Flushes and fences are those of persistent memory, as
/// with throw_away_pool().
class KeptPool {
 public:
  /// @param folder  where to make the pool's own; empty: /dev/shm, or else TMPDIR or /tmp.
  /// @param bytes   size of the pool.
  /// Throws std::runtime_error: no pool can be made there; with the reason.
  KeptPool(const std::string& folder, u64 bytes);
  ~KeptPool();
  KeptPool(const KeptPool&) = delete;
  KeptPool& operator=(const KeptPool&) = delete;

  /// One at a time. Throws std::runtime_error.
  Filesystem open(const OpenOptions& options) const;
  const std::string& path() const { return pool_; }

 private:
  std::string folder_, pool_;
};

}  // namespace pmfs::tools
