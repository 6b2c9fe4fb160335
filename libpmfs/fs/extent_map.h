// File maps: which block holds which part of a file. A map is named by its root word: nothing, one extent in the word
// itself, or a tree of extents.
//
//   M1  A tree is never changed in place. replace() writes new nodes for the path it changes, into fresh blocks, and
//   gives
//       the new root word; whoever called puts that word into its commit.
//   M2  Extents are in ascending order and do not overlap; neighbours in one node that could be one extent are one.
//   M3  A map is input: every node is checked (place, magic, level, checksum) before it is followed; levels fall
//   strictly.
//       A walk over many nodes also checks that entries ascend and stay in the range that the node above gives them: so
//       no node is met twice, and a walk ends.
// Thread rules: the caller holds the inode's lock, shared to look, exclusive for replace().
#pragma once

#include <functional>
#include <vector>

#include "base/persist.h"
#include "fs/block_alloc.h"
#include "fs/format.h"
#include "fs/regions.h"

namespace pmfs {

/// A piece of a file, in blocks.
struct Extent {
  u64 logical = 0;
  u64 count = 0;
  u64 block = 0;  ///< 0: a hole
  bool unwritten = false;

  bool hole() const { return block == 0; }
  u64 end() const { return logical + count; }
};

/// What replace() did.
struct MapChange {
  u64 root = 0;          ///< the new root word
  u64 added_blocks = 0;  ///< data blocks put in and new nodes, less nodes of an earlier replace() with this hold
  std::vector<BlockRun>
      freed;  ///< data blocks taken out, and nodes no longer reached; count blocks with freed_blocks()
  u64 freed_blocks() const;
};

/// Logical blocks run from 0 to kMapEnd - 1.
inline constexpr u64 kMapEnd = u64{1} << 40;
/// The largest size of a file, in bytes.
inline constexpr u64 kMaxFileBytes = kMapEnd * kBlockBytes - 1;
/// Longest extent in one entry, in blocks.
inline constexpr u64 kMaxExtentBlocks = (u64{1} << 24) - 1;

class ExtentMap {
 public:
  ExtentMap(Persist& persist, const Regions& regions, u64 seed) : persist_(persist), regions_(regions), seed_(seed) {}

  enum class Sums : bool { kSkip, kCompare };

  /// The extent or hole that holds `logical`, from `logical` on; a hole reaches to the next extent, or kMapEnd.
  /// @param sums  whether nodes' checksums are compared. They need not be where what is found proves itself, as a
  ///              directory's leaf does; everything that keeps a walk inside the pool is checked all the same.
  Result<Extent> find(u64 root, u64 logical, Sums sums = Sums::kCompare) const;

  /// Whether a map is one block at 0, and no tree: known from its root word alone.
  static bool one_block(u64 root);

  /// The end of the last extent; 0: the map is empty. @error kCorrupt.
  Result<u64> end(u64 root) const;

  /// Calls `visit` for each extent in [from, to), clipped to it, in order; stops at the first error.
  Result<void> each(u64 root, u64 from, u64 to, const std::function<Result<void>(const Extent&)>& visit) const;

  /// Calls `visit` for the block of each node.
  Result<void> each_node(u64 root, const std::function<Result<void>(u64 block, u32 level)>& visit) const;

  /// Makes a map in which [from, to) holds `put` and nothing else.
  /// @param put   extents inside [from, to), ascending.
  /// @param hold  takes the new nodes' blocks; the caller keeps them when its commit has run.
  /// @error kNoSpace, kCorrupt: nothing was changed.
  /// Durability: new nodes are flushed; they ride in the caller's fence 1.
  Result<MapChange> replace(u64 root, u64 from, u64 to, const std::vector<Extent>& put, BlockHold& hold) const;

  /// All blocks of a map, nodes and data, for freeing a whole file. Stops quietly at a damaged node: what it leads to
  /// is then found again by the next rebuild.
  std::vector<BlockRun> all_blocks(u64 root) const;

  /// The checksum a node must carry.
  static u64 node_checksum(const media::MapNode& node, u64 seed);

 private:
  struct Edit;
  static void drop_node(Edit& edit, u64 block);
  Result<const media::MapNode*> node(u64 block, u32 level, Sums sums = Sums::kCompare) const;
  // A node on the way down: its block and level, and the logical blocks that its entries may speak of.
  struct Below {
    u64 block;
    u32 level;
    u64 first;
    u64 end;
  };
  Result<std::vector<Below>> children(const Below& at) const;
  Result<std::vector<Extent>> extents(const Below& at) const;
  Result<void> each_below(const Below& at, u64 from, u64 to,
                          const std::function<Result<void>(const Extent&)>& visit) const;
  Result<void> each_node_below(const Below& at, const std::function<Result<void>(u64, u32)>& visit) const;
  Result<void> rewrite(Edit& edit, const Below& at, u64 from, u64 to, const std::vector<Extent>& put,
                       std::vector<media::MapEntry>& out) const;
  Result<void> write_nodes(Edit& edit, u32 level, const std::vector<media::MapEntry>& entries, bool append,
                           std::vector<media::MapEntry>& out) const;
  Result<Extent> decode(const media::MapEntry& entry, u64 node_off) const;
  Result<Extent> decode_direct(u64 root) const;

  Persist& persist_;
  const Regions& regions_;
  u64 seed_;
};

}  // namespace pmfs
