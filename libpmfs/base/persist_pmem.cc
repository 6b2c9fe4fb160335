// The only file that calls libpmem.
#include "base/persist_pmem.h"

#include <libpmem.h>

namespace pmfs {
namespace {

// True while this thread is inside one of our own calls to libpmem, so that a program that interposes libpmem's
// functions can tell ours from libpmemobj's.
thread_local bool own_call = false;

struct OwnCall {
  OwnCall() { own_call = true; }
  ~OwnCall() { own_call = false; }
};

}  // namespace

void pmem_flush_lines(const void* at, std::size_t bytes) {
  OwnCall own;
  pmem_flush(at, bytes);
}

void pmem_fence() {
  OwnCall own;
  pmem_drain();
}

void pmem_copy_nodrain(void* to, const void* from, std::size_t bytes) {
  OwnCall own;
  pmem_memcpy(to, from, bytes, PMEM_F_MEM_NODRAIN);
}

}  // namespace pmfs

extern "C" {
bool pmfs_interpose_own() noexcept { return pmfs::own_call; }
void pmfs_interpose_count(unsigned long flushes, unsigned long lines, unsigned long fences) noexcept {
  pmfs::count_pmemobj(flushes, lines, fences);
}
}
