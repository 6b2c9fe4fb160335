// The index of one directory: from keys to leaves. A tree whose leaves are the directory's own blocks, named by their
// logical numbers; all of them at one depth.
//
// Owns nothing: an index is named by its root word, which lies in the directory's inode.
//   X1  A node is never changed in place. What changes is written anew, into fresh blocks, up to the root; the new root
//       word goes into the caller's commit, with the words of the leaves.
//   X2  A leaf's entries have keys from its own index key up to the next one's. The first entry of a node begins where
//   the
//       node above lets the node begin, whatever key it carries: the node before may have gone. Entries of one hash may
//       so continue in
//   the
//       next leaf: they are found by looking there while the next index key still has that hash.
//   X3  An index is input: verify() looks at all of it once. Until the root word changes by our own hand, what it found
//       holds, and walks check no more than they need to stay inside memory.
// Thread rules: the caller holds the directory's lock, shared to look, exclusive to change.
// Sources: "directory index for PMFS" (Htree, logical addresses, copy-on-write of index blocks); DESIGN.md
// "Directories".
#pragma once

#include <functional>
#include <vector>

#include "base/block_source.h"
#include "base/persist.h"
#include "htree/node_format.h"

namespace pmfs::htree {

/// A leaf as the index knows it.
struct IndexedLeaf {
  u64 key = 0;       ///< lowest key that belongs to it
  u64 next_key = 0;  ///< lowest key of the leaf behind it; kNoKey: it is the last
  u64 logical = 0;
  bool next_is_near = false;  ///< the leaf behind it stands in the same node: the two can become one
};
inline constexpr u64 kNoKey = ~u64{0};

/// What a change did to the index.
struct IndexChange {
  u64 root = 0;  ///< the new root word
  u64 added_blocks = 0;
  std::vector<BlockRun> freed;  ///< nodes no longer reached, when the commit has run
};

/// Where index nodes lie: the same for all directories of a file system.
struct IndexSpace {
  Persist& persist;
  std::function<bool(u64 block)> contains;  ///< whether a block lies in the file system
  u64 seed = 0;                             ///< the pool's hash seed
};

class Index {
 public:
  Index(const IndexSpace& space, InodeNo owner) : space_(space), owner_(owner) {}

  /// Looks at every node: place, magic, level, owner, checksum, order. Calls `node` for each block, `leaf` for each
  /// leaf.
  /// @error kCorrupt.
  Result<void> verify(u64 root, const std::function<Result<void>(u64 block)>& node,
                      const std::function<Result<void>(const IndexedLeaf&)>& leaf) const;

  /// The leaf that `key` belongs to. @error kCorrupt.
  Result<IndexedLeaf> find(u64 root, u64 key) const;

  /// Puts `leaves` (ascending keys, none to three) in the place of the leaf whose key is `key`.
  /// @return root 0, if no leaf is left. @error kNoSpace, kCorrupt.
  Result<IndexChange> replace(u64 root, u64 key, const std::vector<IndexedLeaf>& leaves, BlockHold& hold) const;

  /// Makes an index of these leaves (ascending keys, the first one's taken as 0). @error kNoSpace.
  Result<IndexChange> build(const std::vector<IndexedLeaf>& leaves, BlockHold& hold) const;

  /// Whether it names more than one leaf. @error kCorrupt.
  Result<bool> names_several(u64 root) const;

  /// Levels of nodes; 0: no index.
  static u32 levels(u64 root) { return root == 0 ? 0 : static_cast<u32>(root & 15) + 1; }
  static u64 node_checksum(const media::IndexNode& node, u64 seed);

 private:
  struct Edit;
  static void drop_node(Edit& edit, u64 block);
  Result<const media::IndexNode*> node(u64 block, u32 level) const;
  Result<void> verify_below(u64 block, u32 level, u64 first, u64 end, const std::function<Result<void>(u64)>& node,
                            const std::function<Result<void>(const IndexedLeaf&)>& leaf) const;
  Result<void> rewrite(Edit& edit, u64 block, u32 level, u64 first, u64 key, const std::vector<media::IndexEntry>& put,
                       std::vector<media::IndexEntry>& out) const;
  Result<void> write_nodes(Edit& edit, u32 level, const std::vector<media::IndexEntry>& entries,
                           std::vector<media::IndexEntry>& out) const;
  Result<u64> finish(Edit& edit, u32 level, std::vector<media::IndexEntry> nodes) const;

  const IndexSpace& space_;
  InodeNo owner_;
};

}  // namespace pmfs::htree
