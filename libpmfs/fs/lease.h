// Leases: pointers to a file's data in the pool, for as long as a user wants.
//
//   Z1  The blocks under a lease are pinned in the quarantine while the inode's lock is held and they are in the file:
//       so they cannot be freed between being found and being pinned (base/quarantine.h, Q3).
//   Z2  A lease is given on written blocks below the file's size only: unwritten ones have no contents yet, and bytes
//       behind the size are zeroed by whoever raises it.
// Thread rules: from any thread, without locks held.
#pragma once

#include <span>
#include <vector>

#include "fs/volume.h"

namespace pmfs {

/// Pins the blocks of [off, off + len), clipped to the file's size, and takes a handle on the inode.
/// @param fill  holes are filled first; otherwise they are an error.
/// @return the pieces, in order.
/// @error kNoAddress: a hole. kInvalid: no regular file. kNoSpace, kStale, kCorrupt, kIo.
Result<std::vector<std::span<std::byte>>> take_lease(Volume& volume, const InodeRef& ref, u64 off, u64 len, bool fill);

/// Gives back what take_lease() took. No fence.
void end_lease(Volume& volume, const InodeRef& ref, std::span<const std::span<const std::byte>> pieces);

/// Makes bytes [from, from + bytes) of a lease durable, and sets the times. @error kIo. Durability: on return.
Result<void> persist_lease(Volume& volume, const InodeRef& ref, std::span<const std::span<std::byte>> pieces, u64 from,
                           u64 bytes);

}  // namespace pmfs
