// Learning at open what is in use: from what is reachable.
//   B1  The inode file is cut into pieces of some thousand slots; threads take pieces until none is left. Whoever looks
//       at an inode also walks its map and its index. The answer does not depend on who looked at what.
//   B2  Nobody else is here: nothing changes meanwhile, and nothing is allocated before it is complete (V5).
#pragma once

#include "fs/volume.h"

namespace pmfs {

enum class Rebuild : u8 {
  kSlots,           // which slots are free; a saved map has said which blocks are
  kSlotsAndBlocks,  // both, after a crash. Stores of a killed process that may still be in a CPU cache are flushed too
};

/// Fills the inode table's free slots, and the block allocator. Uses OpenOptions::rebuild_threads.
/// @error kCorrupt: an inode in no known state, a damaged map, a block with two owners. kNoMemory.
/// Durability: what can be seen afterwards is durable.
Result<void> rebuild(Volume& volume, Rebuild what);

}  // namespace pmfs
