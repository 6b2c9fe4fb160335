// A directory leaf on the medium: FORMAT.md "Directory leaf".
#pragma once

#include "base/le.h"
#include "base/on_media.h"

namespace pmfs::media {

inline constexpr u32 kLeafMagic = 0x4641454c;  // "LEAF"
inline constexpr u32 kLeafSlots = 64;
inline constexpr u32 kLeafHeapOff = 256;

/// One 4 KiB block of a directory file. A slot is in use when its bit in `live` is set; everything that belongs to a
/// slot without it is free bytes.
struct alignas(64) Leaf {
  // Written once, when the leaf is made; covered by `checksum`.
  Le32 magic;                  // [   0] kLeafMagic
  Le32 reserved0;              // [   4] zero
  Le64 live;                   // [   8] bit s: slot s holds an entry. Changes by one 8-byte store; not in the checksum
  Le64 owner;                  // [  16] inode number of the directory
  Le64 logical;                // [  24] this block's number in the directory file
  Le64 checksum;               // [  32] XXH3-64 of magic, reserved0, owner, logical, seeded with the pool's hash seed
  u8 reserved1[24];            // [  40] zero
  u8 fingerprint[kLeafSlots];  // [  64] one byte of the name's hash for each slot in use
  Le16 entry_off[kLeafSlots];  // [ 128] where the slot's entry starts, bytes from the start of the leaf, 8-byte aligned
  u8 heap[4096 - kLeafHeapOff];  // [ 256] entries
};
PMFS_ON_MEDIA(Leaf, 4096);
static_assert(offsetof(Leaf, fingerprint) == 64);
static_assert(offsetof(Leaf, entry_off) == 128);
static_assert(offsetof(Leaf, heap) == kLeafHeapOff);

/// The fixed part of an entry; the name follows, padded with zeros to 8 bytes.
struct LeafEntry {
  Le64 target;  // [ 0] inode number: 48 bits, file type: 8 bits, name length (1..255): 8 bits. Retargeted by one store
  Le64 key;     // [ 8] hash: 48 bits, ordinal: 15 bits, 0: 1 bit on top. Never changes while the entry lives
};
PMFS_ON_MEDIA(LeafEntry, 16);

}  // namespace pmfs::media
