// One directory: finding, adding, removing and retargeting names in its leaves, and listing them.
//
// Owns nothing: works on an inode that the caller has locked, and on the caller's commit.
//   D1  With an index, the leaves are found by key; without, all of them are scanned. Both give the same answers.
//   D2  An entry keeps its key while it lives. Without an index it also stays in its logical block.
//   D3  A change here adds words to the commit and fresh contents to the medium; nothing is live before the commit
//   runs. D4  A directory of one leaf has no index. One of several leaves without an index root has a stale index: it
//   is scanned,
//       and the next indexed change makes the index, as a commit of its own (prepare_directory()).
//   D5  An index is looked at as a whole before it is first used. A damaged one counts as stale from then on.
//   D6  Bytes of removed entries may be written over by the next commit on the directory, before the removing one is
//       retired: no commit logs a word in an entry or a block that it removes, and any earlier commit that did was
//       retired by the removing one (R2).
// Thread rules: shared lock for finding and listing, or a ReadSet (fs/read_unlocked.h): then what is found is to be
// used only if that holds still; exclusive lock for a DirectoryEdit, until its after_commit().
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/version.h"
#include "fs/volume.h"
#include "htree/index.h"

namespace pmfs {

/// An entry found in a directory.
struct FoundEntry {
  InodeNo ino{};
  FileType type{};
  u64 key = 0;
  u64 block = 0;    ///< of its leaf
  u64 logical = 0;  ///< the leaf's number in the directory file
  u32 slot = 0;
};

/// Finds a name. @error kCorrupt.
Result<std::optional<FoundEntry>> find_entry(const Volume& volume, const InodeRef& dir, std::string_view name,
                                             ReadSet* reads = nullptr);

/// Calls `visit` for each entry, leaf by leaf. @error kCorrupt, or the visitor's own.
Result<void> each_entry(const Volume& volume, const InodeRef& dir,
                        const std::function<Result<void>(const htree::Entry&, u64 block, u64 logical)>& visit);

/// The leaf in block `block`. REQUIRES: it lies in the file system.
inline media::Leaf& leaf_at(const Volume& volume, u64 block) {
  return *reinterpret_cast<media::Leaf*>(volume.persist.memory().at(block_off(block)));
}

/// Calls `visit` for each leaf, checked, in logical order; it returns true to go on, false to stop. @error kCorrupt.
Result<void> each_leaf(const Volume& volume, const InodeRef& dir,
                       const std::function<Result<bool>(const media::Leaf&, u64 block, u64 logical)>& visit,
                       ReadSet* reads = nullptr);

/// The index of a directory, as a thing to walk and change.
htree::Index index_of(const Volume& volume, const InodeRef& dir);
/// The root of an index that may be used now; 0: the directory is to be scanned. REQUIRES: at least the shared lock, or
/// `reads`, which gives up if the index has not been looked at yet.
u64 usable_index(const Volume& volume, const InodeRef& dir, ReadSet* reads = nullptr);
/// The blocks of an index; none if it is damaged. REQUIRES: at least the shared lock, or that nobody else is here.
std::vector<BlockRun> index_blocks(const Volume& volume, const InodeRef& dir);
/// The block of a leaf that the index names. @error kCorrupt.
Result<u64> leaf_block(const Volume& volume, const InodeRef& dir, u64 logical, ReadSet* reads = nullptr);
/// Calls `visit` for each leaf that may hold names of `hash`.
Result<void> each_leaf_of_hash(const Volume& volume, const InodeRef& dir, u64 root, u64 hash,
                               const std::function<Result<bool>(const media::Leaf&, u64 block, u64 logical)>& visit,
                               ReadSet* reads = nullptr);

/// Makes the index of a directory that should have one and has not: all entries in key order into fresh leaves, one
/// commit. Without space for it the directory stays scanned. REQUIRES: the exclusive lock, before a change is begun.
/// @error kCorrupt, kIo.
Result<void> prepare_directory(Volume& volume, const InodeRef& dir);

/// The changes that one commit makes to one directory.
class DirectoryEdit {
 public:
  /// @param now  the time its mtime and ctime get.
  DirectoryEdit(Volume& volume, const InodeRef& dir, Commit& commit, BlockHold& hold, i64 now);

  /// Adds a name that is not there. @error kNoSpace (also: 32,767 names of one hash), kFileTooBig, kCorrupt.
  Result<void> insert(std::string_view name, InodeNo ino, FileType type);
  /// Takes an entry away. With an index, a leaf that becomes nearly empty is given up or joined with its neighbour, if
  /// `may_shrink` and blocks for it can be had. Not together with insert() in one directory.
  Result<void> remove(const FoundEntry& entry, bool may_shrink);
  /// Makes an entry lead to another inode. Together with insert() in one directory: behind it, since that may move the
  /// entry into a fresh leaf.
  void retarget(const FoundEntry& entry, InodeNo ino, FileType type);
  /// Adds to the directory's link count: subdirectories come and go.
  void add_links(int delta);

  /// After the commit has run: what the next change must know; and the blocks this one freed.
  void after_commit(Freed& freed);

 private:
  struct NewEntry {
    std::string_view name;
    htree::NameHash hash;
    u64 target;
    u64 key;
  };
  Result<u32> free_ordinal(u64 root, u64 hash, u8 fingerprint) const;
  Result<void> insert_by_scan(const NewEntry& entry);
  Result<void> insert_by_index(u64 root, const NewEntry& entry);
  bool put_in_place(u64 block, u64 logical, const NewEntry& entry);
  Result<void> add_leaf(u64 logical, const NewEntry& entry);
  Result<void> rewrite_leaf(u64 block, u64 logical, const NewEntry& entry);
  Result<void> split(u64 root, const htree::IndexedLeaf& leaf, u64 block, const NewEntry& entry);
  Result<void> shrink(u64 root, const FoundEntry& entry, u64 live, bool& done);

  u64 live_after(const media::Leaf& leaf) const { return commit_.value(leaf.live); }
  Result<u64> fresh_leaf(BlockHold& hold, u64 logical);
  Result<void> map_leaf(BlockHold& hold, u64 logical, u64 block);
  void take_map_change(MapChange change);
  void take_index_change(htree::IndexChange change);
  Result<void> drop_index();
  u64 end_logical() const;

  Volume& volume_;
  const InodeRef& dir_;
  Commit& commit_;
  BlockHold& hold_;
  std::vector<BlockRun> freed_;
  u64 removed_from_ = 0;  // the block of a leaf whose live word this commit changes by a removal
  struct Copied {  // entries that insert() moves
    u64 from = 0;  // block of the leaf they stand in; 0: none
    u64 slots = 0;
    u64 to = 0;  // block of the fresh leaf
  } copied_;
  u64 hint_;
  u64 new_root_ = 0;
};

/// A listing in key order: by the index, or from the sorted keys of the directory at one moment.
class DirectoryListing {
 public:
  /// The first entry with a key above `key` that is still there. @return false at the end. REQUIRES: the shared lock,
  /// or `reads`, which gives up if a snapshot is needed.
  Result<bool> next(const Volume& volume, const InodeRef& dir, u64 key, DirEntry& out, ReadSet* reads = nullptr);
  void forget() { *this = DirectoryListing(); }

 private:
  struct Key {
    u64 key;
    u64 logical;
  };
  // The leaf that the last call read, sorted: good for as long as neither it nor the way to it has changed.
  struct Sorted {
    u64 last_key = 0;  // what the last call returned
    u64 block = 0;     // 0: none
    u64 leaf_seen = 0;
    u64 shape_seen = 0;
    u64 next_key = 0;
    u32 at = 0;  // the first slot that has not been returned
    u32 count = 0;
    std::array<u8, media::kLeafSlots> slots{};
  };
  Result<void> sort_leaf(const Volume& volume, const InodeRef& dir, u64 root, u64 from, ReadSet* reads);
  Result<void> take_snapshot(const Volume& volume, const InodeRef& dir);
  Result<bool> next_of_snapshot(const Volume& volume, const InodeRef& dir, u64 key, DirEntry& out);

  Sorted leaf_;
  std::vector<Key> keys_;
  std::size_t at_ = 0;  // where the last call stopped: sequential reading does not search
  u64 rebuilds_ = 0;
  bool taken_ = false;
};

/// Cookies of "." and ".."; those of entries are their keys, which are greater.
inline constexpr u64 kCookieDot = 1;
inline constexpr u64 kCookieDotDot = 2;

}  // namespace pmfs
