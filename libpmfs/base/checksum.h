// Checksums and name hashes: the only door to xxHash.
#pragma once

#include <cstddef>
#include <string_view>

#include "pmfs/types.h"

namespace pmfs {

/// XXH3-64 of `bytes` bytes, with a seed.
u64 checksum64(const void* at, std::size_t bytes, u64 seed = 0);

}  // namespace pmfs
