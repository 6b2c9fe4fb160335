// A pool for measurements: it dies with the process.
#pragma once

#include <string>

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

/// Makes and opens a pool whose name is gone again before anything happens in it. Flushes and fences are those of
/// persistent memory on any medium (PMEM_IS_PMEM_FORCE, unless the environment says otherwise): there is nothing to
/// lose.
/// @param bytes   size of the pool file.
/// @param folder  where to make it; empty: /dev/shm, TMPDIR or /tmp, the first with room.
/// Throws std::runtime_error: no folder has room, or the pool cannot be made; with the reason.
Filesystem throw_away_pool(u64 bytes, const std::string& folder = {}, const OpenOptions& options = {});

}  // namespace pmfs::tools
