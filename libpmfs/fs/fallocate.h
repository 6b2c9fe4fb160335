// fallocate(2): giving a file blocks, taking them away, zeroing, and moving what lies behind a place.
//
//   L1  Each call is one commit of the inode: a new map, the size, times, and the mode if set-id bits go.
//   L2  What is zeroed is not written over in place: whole blocks become unwritten or go; of the blocks at the ends, of
//       which only a part is meant, copies are made. So a crash shows all of it or nothing.
//   L3  Behind the block in which a file's size falls lie unwritten blocks only (KEEP_SIZE puts them there).
// Thread rules: from any thread, without locks held.
// Source: Linux fallocate(2); errors as ext4 gives them.
#pragma once

#include "fs/volume.h"

namespace pmfs {

/// Filesystem::allocate.
/// @error kInvalid: no length, a place beyond what a signed number holds, or not in whole blocks where those are
///        wanted. kNotSupported: such a mode. kIsDirectory, kNotSeekable (pipe), kNoDevice (no regular file).
///        kFileTooBig. kNoSpace: nothing has changed. kStale, kCorrupt, kIo. Durability: on return.
Result<void> allocate_range(Volume& volume, const InodeRef& ref, int mode, u64 off, u64 len, const Credentials& who);

}  // namespace pmfs
