// Learning at open what is in use: from what is reachable.
//   B1  The inode file is cut into pieces of some thousand slots; threads take pieces until none is left. Whoever looks
//       at an inode also walks its map and its index. The answer does not depend on who looked at what.
//   B2  Nobody else is here: nothing changes meanwhile, and nothing is allocated before it is complete (V5).
#pragma once

#include "fs/volume.h"

namespace pmfs {

/// Fills the inode table's free slots and the block allocator, after a crash. Uses OpenOptions::rebuild_threads. Stores
/// of a killed process that may still be in a CPU cache are flushed too.
/// @error kCorrupt: an inode in no known state, a damaged map, a block with two owners. kNoMemory.
/// Durability: what can be seen afterwards is durable.
Result<void> rebuild(Volume& volume);

}  // namespace pmfs
