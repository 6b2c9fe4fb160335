#include "test/bench/kept_pool.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "test/bench/bench.h"

namespace pmfs::bench {

KeptPool::KeptPool(const std::string& target, u64 bytes) {
  setenv("PMEM_IS_PMEM_FORCE", "1", 0);
  std::string name = (target.empty() ? "/dev/shm" : target) + "/pmfs-bench-pool.XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": cannot be made");
  folder_ = name;
  pool_ = folder_ + "/pool";
  FormatOptions format;
  format.size_bytes = bytes;
  if (!Filesystem::format(pool_, format).ok()) {
    ::rmdir(folder_.c_str());
    throw std::runtime_error(pool_ + ": cannot be formatted: " + error_detail());
  }
}

KeptPool::~KeptPool() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Filesystem KeptPool::open(const OpenOptions& options) const { return must(Filesystem::open(pool_, options)); }

std::vector<NamedResolver> resolvers(u64 dcache_bytes) {
  std::vector<NamedResolver> all{{"walk", {}}, {"stage/list", {}}, {"stage/hashed", {}}, {"fullpath", {}}};
  for (NamedResolver& one : all) one.options.dcache_bytes = dcache_bytes;
  all[0].options.resolver = OpenOptions::Resolver::kWalk;
  all[1].options.pivots = 16;
  all[1].options.pivots_hashed = false;
  all[3].options.resolver = OpenOptions::Resolver::kFullpath;
  return all;
}

}  // namespace pmfs::bench
