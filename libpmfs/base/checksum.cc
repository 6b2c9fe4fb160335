#include "base/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pmfs {

u64 checksum64(const void* at, std::size_t bytes, u64 seed) { return XXH3_64bits_withSeed(at, bytes, seed); }

}  // namespace pmfs
