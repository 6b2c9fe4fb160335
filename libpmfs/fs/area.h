// Areas: where the extended attributes and the ACLs of an inode lie, as bytes. What the bytes mean is said in xattr.h
// and acl.h.
//
//   X1  An area that is small lies in the inode's inline bytes, if those hold no target of a symbolic link: ACLs first,
//       then attributes. They are live words, changed by commits and read under the inode's lock (or version).
//   X2  Otherwise it lies in blocks of its own behind an AreaHeader, mapped like a file. It is never changed in place:
//   a
//       change writes a new one, and its commit swings the reference word.
//   X3  An area is input: map, header, length and checksum are looked at each time it is read.
// Thread rules: the caller holds the inode's lock, shared to look, exclusive to change; or, to look, asks its version.
#pragma once

#include <string>

#include "fs/volume.h"

namespace pmfs {

enum class AreaKind : u16 { kXattrs = media::kAreaXattrs, kAcl = media::kAreaAcl };

/// What an inode's two areas hold; empty: there is none.
struct Areas {
  std::string xattrs;
  std::string acl;
};

/// The bytes of an area. @error kCorrupt.
Result<std::string> read_area(const Volume& volume, InodeNo ino, const media::Inode& inode, AreaKind kind);
Result<Areas> read_areas(const Volume& volume, InodeNo ino, const media::Inode& inode);

/// The map root word in a reference word; 0: it has no blocks.
constexpr u64 area_map(u64 reference) { return (reference & media::kMapTagMask) == media::kAreaInline ? 0 : reference; }

/// The blocks of both areas. Stops quietly at damage, as ExtentMap::all_blocks().
std::vector<BlockRun> area_blocks(const ExtentMap& maps, const media::Inode& inode);

/// All blocks of an inode that its map does not name: a directory's index, and areas.
std::vector<BlockRun> blocks_beside_map(const Volume& volume, const InodeRef& ref);

u64 count_blocks(const std::vector<BlockRun>& runs);

/// Adds to a commit: from now on the areas hold `next`. Blocks that are no longer used go to `freed`; the inode's count
/// of blocks follows. REQUIRES: the exclusive lock; the inode is touched in `commit`.
/// @param before  what they hold.
/// @error kNoSpace, kCorrupt. Durability: new blocks are flushed; they ride in the caller's fence 1.
Result<void> plan_areas(Volume& volume, Commit& commit, const InodeRef& ref, const Areas& before, const Areas& next,
                        BlockHold& hold, Freed& freed);

/// One commit that makes the areas hold `next`: they, the mode word and the change time.
/// @param mode_word  the low half of mode_links.
/// REQUIRES: the exclusive lock. @error kNoSpace, kCorrupt, kIo. Durability: on return.
Result<void> change_areas(Volume& volume, const InodeRef& ref, const Areas& before, const Areas& next, u32 mode_word);

/// Whether inodes of this pool may have areas. @error kNotSupported: it was made by a version without them.
Result<void> check_areas_usable(const Volume& volume);

/// The same as plan_areas() for an inode that is being made: its words are set in `fresh`, a copy in DRAM. @error
/// kNoSpace.
Result<void> write_fresh_areas(Volume& volume, InodeNo ino, const Areas& areas, media::Inode& fresh, BlockHold& hold);

}  // namespace pmfs
