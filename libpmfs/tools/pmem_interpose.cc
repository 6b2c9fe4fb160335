// Stands in front of libpmem in this program, so that what libpmemobj flushes and fences is counted. The dynamic linker
// binds libpmemobj's calls (through its PLT) to the functions below; each forwards to libpmem's own.
//
// Counted once: libpmem's functions call each other through the PLT too (pmem_persist is pmem_flush and pmem_drain), so
// only the outermost call of a thread counts. Not counted: what the pmfs library calls itself; it has counted that.
//
// Linked into the `pmfs` tool and into tests; never part of the library.
#include <dlfcn.h>
#include <libpmem.h>

#include <cstddef>
#include <cstdint>

#include "pmfs/interpose.h"

namespace {

thread_local unsigned depth = 0;

unsigned long lines_in(const void* at, std::size_t bytes) {
  constexpr std::uintptr_t kLineBytes = 64;
  if (bytes == 0) return 0;
  const auto first = reinterpret_cast<std::uintptr_t>(at);
  return static_cast<unsigned long>((first + bytes - 1) / kLineBytes - first / kLineBytes + 1);
}

/// Counts a call when its thread is in no other one, and knows for the calls inside that there is one.
class Outermost {
 public:
  Outermost(const void* at, std::size_t bytes, unsigned long flushes, unsigned long fences) {
    if (depth++ == 0 && !pmfs_interpose_own()) {
      pmfs_interpose_count(flushes, flushes != 0 ? lines_in(at, bytes) : 0, fences);
    }
  }
  ~Outermost() { --depth; }
  Outermost(const Outermost&) = delete;
  Outermost& operator=(const Outermost&) = delete;
};

unsigned long flushes_of(unsigned flags) { return (flags & PMEM_F_MEM_NOFLUSH) != 0 ? 0 : 1; }
unsigned long fences_of(unsigned flags) { return (flags & (PMEM_F_MEM_NOFLUSH | PMEM_F_MEM_NODRAIN)) != 0 ? 0 : 1; }

/// libpmem's own function of that name.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define PMFS_FORWARD(function) static auto* const forward = next<decltype(function)>(#function)

extern "C" {

void pmem_flush(const void* addr, size_t len) {
  PMFS_FORWARD(pmem_flush);
  const Outermost call(addr, len, 1, 0);
  forward(addr, len);
}

void pmem_deep_flush(const void* addr, size_t len) {
  PMFS_FORWARD(pmem_deep_flush);
  const Outermost call(addr, len, 1, 0);
  forward(addr, len);
}

void pmem_drain(void) {
  PMFS_FORWARD(pmem_drain);
  const Outermost call(nullptr, 0, 0, 1);
  forward();
}

int pmem_deep_drain(const void* addr, size_t len) {
  PMFS_FORWARD(pmem_deep_drain);
  const Outermost call(addr, len, 0, 1);
  return forward(addr, len);
}

void pmem_persist(const void* addr, size_t len) {
  PMFS_FORWARD(pmem_persist);
  const Outermost call(addr, len, 1, 1);
  forward(addr, len);
}

int pmem_deep_persist(const void* addr, size_t len) {
  PMFS_FORWARD(pmem_deep_persist);
  const Outermost call(addr, len, 1, 1);
  return forward(addr, len);
}

int pmem_msync(const void* addr, size_t len) {
  PMFS_FORWARD(pmem_msync);
  const Outermost call(addr, len, 1, 1);
  return forward(addr, len);
}

void* pmem_memcpy(void* dest, const void* src, size_t len, unsigned flags) {
  PMFS_FORWARD(pmem_memcpy);
  const Outermost call(dest, len, flushes_of(flags), fences_of(flags));
  return forward(dest, src, len, flags);
}

void* pmem_memmove(void* dest, const void* src, size_t len, unsigned flags) {
  PMFS_FORWARD(pmem_memmove);
  const Outermost call(dest, len, flushes_of(flags), fences_of(flags));
  return forward(dest, src, len, flags);
}

void* pmem_memset(void* dest, int value, size_t len, unsigned flags) {
  PMFS_FORWARD(pmem_memset);
  const Outermost call(dest, len, flushes_of(flags), fences_of(flags));
  return forward(dest, value, len, flags);
}

void* pmem_memcpy_persist(void* dest, const void* src, size_t len) {
  PMFS_FORWARD(pmem_memcpy_persist);
  const Outermost call(dest, len, 1, 1);
  return forward(dest, src, len);
}

void* pmem_memmove_persist(void* dest, const void* src, size_t len) {
  PMFS_FORWARD(pmem_memmove_persist);
  const Outermost call(dest, len, 1, 1);
  return forward(dest, src, len);
}

void* pmem_memset_persist(void* dest, int value, size_t len) {
  PMFS_FORWARD(pmem_memset_persist);
  const Outermost call(dest, len, 1, 1);
  return forward(dest, value, len);
}

void* pmem_memcpy_nodrain(void* dest, const void* src, size_t len) {
  PMFS_FORWARD(pmem_memcpy_nodrain);
  const Outermost call(dest, len, 1, 0);
  return forward(dest, src, len);
}

void* pmem_memmove_nodrain(void* dest, const void* src, size_t len) {
  PMFS_FORWARD(pmem_memmove_nodrain);
  const Outermost call(dest, len, 1, 0);
  return forward(dest, src, len);
}

void* pmem_memset_nodrain(void* dest, int value, size_t len) {
  PMFS_FORWARD(pmem_memset_nodrain);
  const Outermost call(dest, len, 1, 0);
  return forward(dest, value, len);
}
}
