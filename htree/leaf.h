// Directory leaves: what lies in one block, and how it changes.
//
// Owns nothing: functions over a block that the caller found, in the directory's map or by its index, and has locked.
//   H1  An entry's key {hash, ordinal} never changes while it lives: it is the index's key and the listing cookie.
//   H2  Insert writes free bytes, then one bit; remove is one bit; retarget is one word. The caller puts the bit or
//   word
//       into its commit.
//   H3  A leaf is input: every offset and length is checked before it is followed, and every loop is bounded.
// Thread rules: the caller holds the directory's lock, shared to look, exclusive to change. match(), read_entry(),
// find() and check_header() may also look at a leaf that is changing: what they give is then of no use
// (base/version.h), but they stay inside the leaf. Sources: the hash-keyed directory index of Htree (leaf = a block of
// the directory), DESIGN.md "Directories".
#pragma once

#include <optional>
#include <string_view>

#include "base/persist.h"
#include "htree/leaf_format.h"
#include "pmfs/result.h"

namespace pmfs::htree {

/// What a name hashes to.
struct NameHash {
  u64 hash = 0;        ///< 48 bits, 1 .. 2^48-2: the values at both ends are reserved for cookies of ".", "..", the end
  u8 fingerprint = 0;  ///< the lowest 8 bits of `hash`: names of equal hash have equal fingerprints
};

/// Hashes names with the pool's secret seed.
struct NameHasher {
  u64 seed = 0;
  u32 bits = 48;  ///< fewer in tests, to make equal hashes common
  NameHash operator()(std::string_view name) const;
};

inline constexpr u32 kOrdinalBits = 15;
inline constexpr u32 kOrdinals = (u32{1} << kOrdinalBits) - 1;  ///< ordinals of one hash: 0 .. kOrdinals-1
constexpr u64 make_key(u64 hash, u32 ordinal) { return hash << kOrdinalBits | ordinal; }
constexpr u64 key_hash(u64 key) { return key >> kOrdinalBits; }
constexpr u32 key_ordinal(u64 key) { return static_cast<u32>(key & ((u64{1} << kOrdinalBits) - 1)); }

constexpr u64 make_target(InodeNo ino, u8 type, std::size_t name_len) {
  return to_u64(ino) | u64{type} << 48 | u64{name_len} << 56;
}
constexpr InodeNo target_ino(u64 target) { return InodeNo{target & ((u64{1} << 48) - 1)}; }
constexpr u8 target_type(u64 target) { return static_cast<u8>(target >> 48); }
constexpr u8 target_name_len(u64 target) { return static_cast<u8>(target >> 56); }

/// One live entry, as read and checked.
struct Entry {
  u32 slot = 0;
  InodeNo ino{};
  u8 type = 0;
  u64 key = 0;
  std::string_view name;  ///< points into the leaf
};

/// Where a new entry would go.
struct Place {
  u32 slot = 0;
  u32 off = 0;
};

constexpr u32 entry_bytes(std::size_t name_len) {
  return static_cast<u32>(sizeof(media::LeafEntry) + ((name_len + 7) & ~std::size_t{7}));
}

/// Whether the block is a leaf of `owner` at `logical`. @error kCorrupt, with `media_off`.
Result<void> check_header(const media::Leaf& leaf, InodeNo owner, u64 logical, u64 media_off);
/// The checksum that the header must carry; compared by check(), not by every look-up.
u64 header_checksum(const media::Leaf& leaf, u64 seed);

/// Reads a live slot. @error kCorrupt: its bytes leave the leaf, or its name is empty.
Result<Entry> read_entry(const media::Leaf& leaf, u32 slot, u64 media_off);

/// The live slots with this fingerprint, as a bitmap: every entry of an equal hash, and some others.
u64 match(const media::Leaf& leaf, u8 fingerprint);

/// Finds a name. @return the entry, or nothing. @error kCorrupt.
/// @param compared  gets how many names were compared: 1 for a name that is there, but for equal 48-bit hashes.
Result<std::optional<Entry>> find(const media::Leaf& leaf, const NameHash& hash, std::string_view name, u64 media_off,
                                  u32* compared = nullptr);

/// Where an entry with a name of `name_len` bytes fits, or nothing.
std::optional<Place> find_room(const media::Leaf& leaf, std::size_t name_len);
/// Whether it would fit if the entries in `slots` were moved together into a fresh leaf.
bool fits_compacted(const media::Leaf& leaf, std::size_t name_len, u64 slots);
/// Bytes that the entries in `slots` take. A damaged one counts as a whole leaf.
u32 bytes_in_use(const media::Leaf& leaf, u64 slots);

/// Writes an entry into free bytes and flushes it. It is not live until its bit is set in `leaf.live`.
void write_entry(Persist& persist, media::Leaf& leaf, const Place& place, u64 target, u64 key, const NameHash& hash,
                 std::string_view name);
/// The word to retarget for an existing entry.
Le64& target_word(media::Leaf& leaf, const Entry& entry);

/// Makes an empty leaf in a fresh block. Not flushed: see flush_fresh().
void init(Persist& persist, media::Leaf& leaf, InodeNo owner, u64 logical, u64 seed);
/// Adds the entries in `slots` of `from` to the fresh leaf `to`, live at once: nothing points to it yet. Not flushed.
/// REQUIRES: there is room; `slots` are live in `from` and have been read before.
void copy_entries(Persist& persist, const media::Leaf& from, u64 slots, media::Leaf& to);
/// Adds an entry to a fresh leaf, live at once: nothing points to the leaf yet. Not flushed.
void add_fresh(Persist& persist, media::Leaf& leaf, u64 target, u64 key, const NameHash& hash, std::string_view name);
/// Flushes what a fresh leaf uses.
void flush_fresh(Persist& persist, const media::Leaf& leaf);

}  // namespace pmfs::htree
