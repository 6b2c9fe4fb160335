// A pool that is opened again and again: each time with nothing in its cache. And the resolvers that benches compare.
#pragma once

#include <string>
#include <vector>

#include "pmfs/pmfs.hpp"

namespace pmfs::bench {

/// A pool in a folder of its own, which goes with this object. Flushes and fences are those of persistent memory, as
/// with tools::throw_away_pool().
class KeptPool {
 public:
  /// @param target  where to make the folder; empty: /dev/shm. @param bytes  size of the pool.
  /// Throws std::runtime_error: no folder or no pool can be made there.
  KeptPool(const std::string& target, u64 bytes);
  ~KeptPool();
  KeptPool(const KeptPool&) = delete;
  KeptPool& operator=(const KeptPool&) = delete;

  /// One at a time. Throws std::runtime_error.
  Filesystem open(const OpenOptions& options) const;

 private:
  std::string folder_, pool_;
};

/// A resolver as the rows name it.
struct NamedResolver {
  std::string name;
  OpenOptions options;
};

/// walk, stage/list (the paper's 16 pivots in a list), stage/hashed (as shipped), fullpath; `walk` is the first.
/// @param dcache_bytes  bound on the cache of each.
std::vector<NamedResolver> resolvers(u64 dcache_bytes = OpenOptions{}.dcache_bytes);

}  // namespace pmfs::bench
