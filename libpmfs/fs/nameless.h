// Files without names (O_TMPFILE).
//
// On the medium the slot of such a file is free, so a crash needs to do nothing: the slot and all that only it leads to
// are found free. It is a file in DRAM alone, held by its handle like one whose last name has gone, and everything can
// be done to it by the same commits. What it is made of is durable when it is made (one fence): so any thread may give
// it a name later, by a commit that makes its slot live (make_link).
#pragma once

#include "fs/volume.h"

namespace pmfs {

/// Makes a regular file without a name, and takes a handle on it.
/// @param dir       a directory: who may make files there may make this one; and its group may be handed down.
/// @param linkable  whether it may get a name.
/// @error kNotDirectory, kNotFound (removed), kAccess, kNoSpace, kCorrupt, kIo.
/// Durability: it does not survive the mount; one fence, two when the inode file must grow.
Result<InodeNo> make_nameless(Volume& volume, const InodeRef& dir, u32 mode, bool linkable, const Credentials& who);

}  // namespace pmfs
