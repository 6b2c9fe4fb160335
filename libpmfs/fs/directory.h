// One directory: finding, adding, removing and retargeting names in its leaves, and listing them.
//
// Owns nothing: works on an inode that the caller has locked, and on the caller's commit.
//   D1  Names are found by a scan of the leaves; entries stand in no particular order among leaves.
//   D2  An entry keeps its key while it lives, and stays in its logical block; only a rewrite of that block moves it.
//   D3  A change here adds words to the commit and fresh contents to the medium; nothing is live before the commit
//   runs. D4  What a change removed is not overwritten before that change is retired (R4): after_commit() notes it,
//   room for a
//       new entry is looked for elsewhere.
// Thread rules: shared lock for find() and the listing, exclusive lock for a DirectoryEdit, until its after_commit().
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fs/volume.h"

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
Result<std::optional<FoundEntry>> find_entry(const Volume& volume, const InodeRef& dir, std::string_view name);

/// Calls `visit` for each entry, leaf by leaf. @error kCorrupt, or the visitor's own.
Result<void> each_entry(const Volume& volume, const InodeRef& dir,
                        const std::function<Result<void>(const htree::Entry&, u64 block, u64 logical)>& visit);

/// The changes that one commit makes to one directory.
class DirectoryEdit {
 public:
  /// @param now  the time its mtime and ctime get.
  DirectoryEdit(Volume& volume, const InodeRef& dir, Commit& commit, BlockHold& hold, i64 now);

  /// Adds a name that is not there. @error kNoSpace (also: 32,767 names of one hash), kFileTooBig, kCorrupt.
  Result<void> insert(std::string_view name, InodeNo ino, FileType type);
  void remove(const FoundEntry& entry);
  void retarget(const FoundEntry& entry, InodeNo ino, FileType type);
  /// Adds to the directory's link count: subdirectories come and go.
  void add_links(int delta);

  /// After the commit has run: what the next change must know; and the blocks this one freed.
  void after_commit(const ChangeMark& mark, Freed& freed);

 private:
  Result<void> put_in_fresh_leaf(const media::Leaf* from, u64 logical, std::string_view name, u64 target, u64 key,
                                 const htree::NameHash& hash);
  u64 reserved_slots(u64 block) const;
  media::Leaf& leaf(u64 block) const;

  Volume& volume_;
  const InodeRef& dir_;
  Commit& commit_;
  BlockHold& hold_;
  std::vector<BlockRun> freed_;
  u64 removed_block_ = 0;
  u64 removed_slots_ = 0;
  u64 hint_;
};

/// The sorted keys of a directory at one moment, for a listing in key order without an index.
class DirectorySnapshot {
 public:
  /// Takes the snapshot. REQUIRES: at least the shared lock.
  Result<void> take(const Volume& volume, const InodeRef& dir);
  bool taken() const { return taken_; }
  void forget() { *this = DirectorySnapshot(); }
  /// The first entry with a key above `key` that is still there. @return false at the end. REQUIRES: the shared lock.
  Result<bool> next(const Volume& volume, const InodeRef& dir, u64 key, DirEntry& out);

 private:
  struct Key {
    u64 key;
    u64 logical;
  };
  std::vector<Key> keys_;
  std::size_t at_ = 0;  // where the last call stopped: sequential reading does not search
  bool taken_ = false;
};

/// Cookies of "." and ".."; those of entries are their keys, which are greater.
inline constexpr u64 kCookieDot = 1;
inline constexpr u64 kCookieDotDot = 2;

}  // namespace pmfs
