// The resolvers that are compared, by the names that reports use.
#pragma once

#include <string>
#include <vector>

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

struct NamedResolver {
  std::string name;
  OpenOptions options;
};

/// walk, stage/list (16 pivots in a list, as published), stage/hashed (the default of mounts), fullpath; in this order.
/// @param dcache_bytes  bound on the cache of each.
inline std::vector<NamedResolver> resolvers(u64 dcache_bytes = OpenOptions{}.dcache_bytes) {
  OpenOptions walk, list, hashed, fullpath;
  for (OpenOptions* one : {&walk, &list, &hashed, &fullpath}) one->dcache_bytes = dcache_bytes;
  walk.resolver = OpenOptions::Resolver::kWalk;
  list.pivots = 16;
  list.pivots_hashed = false;
  fullpath.resolver = OpenOptions::Resolver::kFullpath;
  return {{"walk", walk}, {"stage/list", list}, {"stage/hashed", hashed}, {"fullpath", fullpath}};
}

}  // namespace pmfs::tools
