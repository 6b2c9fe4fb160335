// Copying between files, or within one, without a way through the caller's memory.
//
// Thread rules: from any thread, without locks held. The source's lock is shared, the target's exclusive, in the order
// of their numbers.
// Source: Linux copy_file_range(2).
#pragma once

#include "fs/volume.h"

namespace pmfs {

/// Filesystem::copy_range. @error see there.
Result<std::size_t> copy_range(Volume& volume, const InodeRef& from, u64 from_off, const InodeRef& to, u64 to_off,
                               u64 len, const Credentials& who);

}  // namespace pmfs
