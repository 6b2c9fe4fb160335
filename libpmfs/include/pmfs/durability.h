// How stores reach the medium.
#pragma once

#include "pmfs/types.h"

#pragma GCC visibility push(default)  // what this header declares is what libpmfs.so exports

namespace pmfs {

enum class Durability : u8 {
  kPersistent,   ///< device DAX, or a file system mounted dax: flush and fence, survives power loss
  kVolatile,     ///< tmpfs, or forced by PMEM_IS_PMEM_FORCE=1: flush and fence, survives a killed process only
  kFileBacked,   ///< ordinary file: msync of the touched pages, survives power loss, slow
  kRelaxed,      ///< ordinary file, nothing until fsync, sync or close; after power loss the pool may be inconsistent
  kPrivate,      ///< read-only open: private pages, nothing reaches the medium
};

/// A sentence for people about a mode: what it survives and what not. Static text.
const char* describe(Durability durability);

}  // namespace pmfs

#pragma GCC visibility pop
