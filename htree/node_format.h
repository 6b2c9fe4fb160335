// A node of a directory's index on the medium: FORMAT.md "Directory index".
#pragma once

#include "base/le.h"
#include "base/on_media.h"

namespace pmfs::media {

// An index root word: 0: the directory has no index. Otherwise bits 0..3: level of the root node; bits 12..63: its
// offset.
inline constexpr u32 kIndexNodeMagic = 0x52544e49;  // "INTR"
inline constexpr u32 kIndexNodeEntries = 254;

/// Everything from `key` on, up to the next entry's, is below `target`.
struct IndexEntry {
  Le64 key;     // [ 0] lowest key; a node's first entry begins where its parent lets it
  Le64 target;  // [ 8] level 0: the leaf's logical block in the directory file. Above: the child's block in the pool
};
PMFS_ON_MEDIA(IndexEntry, 16);

/// Written once, into a fresh block; a change makes a new one.
struct alignas(64) IndexNode {
  Le32 magic;      // [   0] kIndexNodeMagic
  Le16 level;      // [   4] 0: its entries name leaves
  Le16 count;      // [   6] entries, 1..254, keys ascending
  Le64 checksum;   // [   8] XXH3-64 of [0,8), [16,24) and the entries in use, seeded with the hash seed
  Le64 owner;      // [  16] inode number of the directory
  u8 reserved[8];  // [  24] zero
  IndexEntry entries[kIndexNodeEntries];  // [  32]
};
PMFS_ON_MEDIA(IndexNode, 4096);

}  // namespace pmfs::media
