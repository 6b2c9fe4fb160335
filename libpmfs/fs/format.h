// Every struct on the medium except the lanes' (base/lane_format.h) and the directory leaves' (htree/leaf_format.h).
// FORMAT.md describes each byte. All integers little-endian; places are offsets from the start of the pool.
#pragma once

#include "base/le.h"
#include "base/on_media.h"
#include "pmfs/types.h"

namespace pmfs::media {

inline constexpr u64 kMagic = 0x31303073666d70;  // "pmfs001" and a zero byte
inline constexpr u32 kFormatVersion = 1;
inline constexpr u32 kInodeBytes = 256;
inline constexpr u32 kInodesPerBlock = 4096 / kInodeBytes;
inline constexpr u32 kMaxRegions = 255;

/// The root object of the libpmemobj pool: where the superblock is. Written last by mkfs.
struct alignas(64) Locator {
  Le64 magic;           // [ 0] kMagic; 0: mkfs did not finish
  Le32 format_version;  // [ 8] kFormatVersion
  Le32 reserved0;       // [12] zero
  Le64 superblock_off;  // [16] block-aligned, in region 0
  Le64 checksum;        // [24] XXH3-64 of [0,24), seed 0
  u8 reserved1[32];     // [32] zero
};
PMFS_ON_MEDIA(Locator, 64);

/// One block, the first of region 0.
struct alignas(64) Superblock {
  // Lines 0 and 1: written by mkfs, constant; covered by `checksum`.
  Le64 magic;             // [   0] kMagic
  Le32 format_version;    // [   8] kFormatVersion
  Le32 block_bytes;       // [  12] 4096
  Le64 compat;            // [  16] features that older versions may ignore
  Le64 ro_compat;         // [  24] features unknown here force a read-only open
  Le64 incompat;          // [  32] features unknown here refuse the open
  u8 uuid[16];            // [  40]
  Le64 hash_seed;         // [  56] secret; seeds the hashes of names
  u8 label[32];           // [  64] NUL-terminated
  Le64 lane_area_off;     // [  96] block-aligned
  Le64 region_table_off;  // [ 104] block-aligned
  Le32 lane_count;        // [ 112] lanes in use, 1..64
  Le32 reserved0;         // [ 116] zero
  Le64 checksum;          // [ 120] XXH3-64 of [0,120), seed 0

  // Line 2: the mount epoch, alone.
  Le64 epoch;        // [ 128] raised at each open for writing; starts at 1
  u8 reserved1[56];  // [ 136] zero

  // Line 3: the saved allocator map. Valid when its epoch is the superblock's and the checksums hold.
  Le64 saved_map_off;      // [ 192] block-aligned, in blocks that the map itself calls free
  Le64 saved_map_bytes;    // [ 200]
  Le64 saved_map_epoch;    // [ 208]
  Le64 saved_map_sum;      // [ 216] XXH3-64 of the map's bytes, seeded with its epoch
  Le64 saved_locator_sum;  // [ 224] XXH3-64 of [192,224), seed 0
  u8 reserved2[24];        // [ 232] zero

  // Line 4: the inode file. Changed by commits, under the inode file's lock.
  Le64 inode_map_root;  // [ 256] map root word, FORMAT.md "File maps"
  Le64 inode_slots;     // [ 264] slots in the inode file: 16 for each of its blocks
  u8 reserved3[48];     // [ 272] zero

  u8 reserved4[4096 - 320];  // [ 320] zero
};
PMFS_ON_MEDIA(Superblock, 4096);
static_assert(offsetof(Superblock, checksum) == 120);
static_assert(offsetof(Superblock, epoch) == 128);
static_assert(offsetof(Superblock, saved_map_off) == 192);
static_assert(offsetof(Superblock, inode_map_root) == 256);

/// A region: a run of whole blocks that belongs to the file system.
struct RegionEntry {
  Le64 off;           // [ 0] block-aligned
  Le64 length_bytes;  // [ 8] a multiple of 4096; 0: no region
};
PMFS_ON_MEDIA(RegionEntry, 16);

struct alignas(64) RegionTable {
  Le64 next_off;                     // [   0] another table, or 0; always 0 in this version
  Le64 reserved;                     // [   8] zero
  RegionEntry regions[kMaxRegions];  // [  16] the first unused one ends the list
};
PMFS_ON_MEDIA(RegionTable, 4096);

// Words of an inode's first line.
inline constexpr u32 kSlotFree = 0;
inline constexpr u32 kSlotLive = 1;
inline constexpr u32 kModeHasAcl = 1u << 16;         // beside the 16 bits of st_mode: it has an access ACL
inline constexpr u32 kModeHasCapability = 1u << 17;  // it has the attribute security.capability

/// An inode. The words change one at a time, by commits under the inode's lock, so no checksum covers them.
struct alignas(64) Inode {
  // Line 0: what stat and look-up need.
  Le64 state_gen;   // [  0] kSlotFree or kSlotLive in the low half; the low half of the generation in the high one
  Le64 mode_links;  // [  8] st_mode and kModeHas... in the low half; link count in the high one
  Le64 uid_gid;     // [ 16] uid in the low half, gid in the high one
  Le64 size_bytes;  // [ 24] length of a file or of a link's target; for a directory the bytes of its blocks
  Le64 blocks;      // [ 32] blocks of data, maps, index and attributes
  Le64 atime_ns;    // [ 40] ns since the Unix epoch, signed, UTC; may be older after a crash (stored without a record)
  Le64 mtime_ns;    // [ 48]
  Le64 ctime_ns;    // [ 56]
  // Line 1.
  Le64 map_root;     // [ 64] map root word
  Le64 parent;       // [ 72] directories: inode number of the parent (the root's is its own); otherwise 0
  Le64 rdev_index;   // [ 80] devices: device number. Directories: root of the index, 0: none
  Le64 birth_ns;     // [ 88]
  Le64 xattr_ref;    // [ 96] reference word of the extended attributes; 0: none
  Le64 acl_ref;      // [104] reference word of the ACLs; 0: none
  Le64 entry_count;  // [112] directories: names in it, "." and ".." not counted
  Le64 gen_high;     // [120] high half of the generation: the epoch that made this inode
  // Lines 2 and 3.
  u8 inline_data[128];  // [128] targets of symbolic links up to 128 bytes; small ACLs and attributes of everything else
};
PMFS_ON_MEDIA(Inode, kInodeBytes);
static_assert(offsetof(Inode, map_root) == 64);
static_assert(offsetof(Inode, inline_data) == 128);
inline constexpr u32 kInlineBytes = sizeof(Inode::inline_data);

constexpr u64 join(u32 low, u32 high) { return u64{low} | u64{high} << 32; }
constexpr u32 low_half(u64 word) { return static_cast<u32>(word); }
constexpr u32 high_half(u64 word) { return static_cast<u32>(word >> 32); }

// A map root word: 0: nothing mapped. Tag 1: one extent from logical block 0 on, in the word itself. Tag 2: a tree.
inline constexpr u64 kMapTagMask = 3;
inline constexpr u64 kMapDirect = 1;  // bit 2: unwritten; bits 3..22: length in blocks; bits 23..62: first block
inline constexpr u64 kMapTree = 2;    // bits 4..7: level of the root node; bits 12..63: its offset

inline constexpr u32 kMapNodeMagic = 0x50414d46;  // "FMAP"

/// Leaf: an extent. Above: a child; its `place` is the first logical block below it.
struct MapEntry {
  Le64 place;   // [ 0] leaf: logical block: 40 bits on top, length in blocks: 24 bits. Above: logical block << 24
  Le64 target;  // [ 8] first block, or the child's block: 40 bits; bit 63: unwritten (leaf)
};
PMFS_ON_MEDIA(MapEntry, 16);

inline constexpr u32 kMapNodeEntries = 254;

/// A node of an extent tree. Written once, into a fresh block; a change makes a new one.
struct alignas(64) MapNode {
  Le32 magic;       // [   0] kMapNodeMagic
  Le16 level;       // [   4] 0: leaf
  Le16 count;       // [   6] entries, 1..254, in ascending order
  Le64 checksum;    // [   8] XXH3-64 of [0,8) and the entries in use, seeded with the pool's hash seed
  u8 reserved[16];  // [  16] zero
  MapEntry entries[kMapNodeEntries];  // [  32]
};
PMFS_ON_MEDIA(MapNode, 4096);

// Features, in Superblock::ro_compat: inodes may have attributes and ACLs.
inline constexpr u64 kRoCompatAreas = 1;

// A reference word (xattr_ref, acl_ref): 0: nothing. Tags 1 and 2: the map root word of an area. Tag 3: in inline_data.
inline constexpr u64 kAreaInline = 3;  // bits 8..15: first byte there; bits 16..23: length

inline constexpr u32 kAreaMagic = 0x52545441;  // "ATTR"
inline constexpr u16 kAreaXattrs = 1;
inline constexpr u16 kAreaAcl = 2;

/// The start of an area: attributes or ACLs in blocks of their own. Written once, into fresh blocks.
struct AreaHeader {
  Le32 magic;         // [ 0] kAreaMagic
  Le16 kind;          // [ 4] kAreaXattrs, kAreaAcl
  Le16 reserved;      // [ 6] zero
  Le64 owner;         // [ 8] inode number
  Le64 length_bytes;  // [16] of what follows
  Le64 checksum;      // [24] XXH3-64 of what follows, seeded with that of [0,24), seeded with the pool's hash seed
};
PMFS_ON_MEDIA(AreaHeader, 32);

inline constexpr u64 kXattrBytesMax = u64{1} << 20;  // all attributes of one inode
inline constexpr u64 kAclEntriesMax = 8191;          // of one ACL: as many as a 64 KiB attribute of Linux's form shows

// Name spaces of attributes.
inline constexpr u8 kSpaceUser = 1;
inline constexpr u8 kSpaceTrusted = 2;
inline constexpr u8 kSpaceSecurity = 3;

/// An extended attribute; its name, without the name space, and its value follow. Not aligned.
struct XattrEntry {
  u8 space;          // [ 0] kSpaceUser, kSpaceTrusted, kSpaceSecurity
  u8 name_bytes;     // [ 1] 1 to 250
  Le16 reserved;     // [ 2] zero
  Le32 value_bytes;  // [ 4] 0 to 65536
};
PMFS_ON_MEDIA(XattrEntry, 8);

/// An entry of an ACL. What the mode says is not repeated: of the access ACL its owner, mask and other entries.
struct AclEntry {
  u8 list;         // [ 0] 1: access, 2: default
  u8 tag;          // [ 1] 1 owner, 2 user, 3 owning group, 4 group, 5 mask, 6 other
  u8 permissions;  // [ 2] 0 to 7
  u8 reserved;     // [ 3] zero
  Le32 id;         // [ 4] of a user or group; otherwise 0
};
PMFS_ON_MEDIA(AclEntry, 8);

}  // namespace pmfs::media
