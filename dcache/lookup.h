// The look-up interface: what a path resolver asks of the file system, one name and one inode at a time. `fs`
// implements it, and so far its path walk is the only caller. The dentry cache will take the same interface and stand
// in between, so that a warm look-up never reaches the directory (README.md).
//
//   L1  An answer is exact: it was true at some instant between call and return.
//   L2  An answer shows nothing that is not yet durable; after a crash it cannot turn out never to have been so.
//   L3  Answers are numbers. They keep nothing alive: between lookup() and the next call the inode may be freed, and
//       possibly used again, which the generation then shows.
// Threads: every function from any thread at any time. None stores to the medium, flushes or fences.
#pragma once

#include <string_view>

#include "pmfs/result.h"
#include "pmfs/types.h"

namespace pmfs::dcache {

/// What a name leads to.
struct Target {
  InodeNo ino{};
  u64 generation = 0;  ///< with `ino`, names that inode for ever
  u32 type = 0;        ///< S_IFMT bits: S_IFDIR, S_IFREG, ...
};

/// What decides who may do what with an inode.
struct Permission {
  u32 mode = 0;  ///< permission, set-id and sticky bits, with S_IFMT
  u32 uid = 0;
  u32 gid = 0;
  u64 acl = 0;  ///< reference to its access ACL; 0: none, the mode alone decides
};

class LookupSource {
 public:
  virtual ~LookupSource() = default;

  /// Finds a name in a directory. `.` and `..` are the resolver's affair, and not asked here.
  /// @param dir   the directory.
  /// @param name  1 to kNameMax bytes, neither '/' nor NUL in them.
  /// @error       kNotFound: no such name. kNotDirectory: `dir` is none. kStale: `dir` is not there any more. kCorrupt.
  /// Durability:  stores nothing.
  virtual Result<Target> lookup(InodeNo dir, std::string_view name) = 0;

  /// The words that a search or access check needs.
  /// @error       kStale: the inode is not there any more. kCorrupt.
  /// Durability:  stores nothing.
  virtual Result<Permission> permission(InodeNo ino) = 0;
};

}  // namespace pmfs::dcache
