// The look-up interface: what the cache asks of the file system when it does not know. `fs` implements it.
//
//   L1  An answer is exact: all of it was true at one instant between call and return.
//   L2  An answer shows nothing that is not yet durable; after a crash it cannot turn out never to have been so.
//   L3  Answers are numbers. They keep nothing alive: the inode may be freed when the call has returned, and possibly
//       used again, which the generation then shows.
//   L4  `seen` runs with that answer while the lock that makes it true is held (shared) of the inode that was asked. So
//       what it puts into a cache is there before whoever changes that inode can tell the cache of the change. If a
//       writer has that lock, `seen` does not run: the answer is for now only.
// Threads: every function from any thread at any time. None stores to the medium, flushes or fences.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
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

inline constexpr u32 kTypeMask = 0170000, kTypeDirectory = 0040000, kTypeSymlink = 0120000;

/// What decides who may do what with an inode.
struct Permission {
  u32 mode = 0;  ///< permission, set-id and sticky bits, with S_IFMT
  u32 uid = 0;
  u32 gid = 0;
  bool has_acl = false;  ///< it has an access ACL: the words alone do not decide
};

/// Who is asking.
struct Searcher {
  bool may_all = false;  ///< root, or checked elsewhere: every directory may be searched
  u32 uid = 0;
  u32 gid = 0;
  std::span<const u32> groups = {};  ///< the memory outlives the call
  bool* depends = nullptr;           ///< set if other groups or privileges could lead to another answer
  bool beneath = false;              ///< the way must not leave the directory where it starts (kCrossDevice)
  bool no_links = false;             ///< no symbolic link is followed (kLoop)
};

/// One directory at one instant.
struct Answer {
  InodeNo ino{};
  u64 generation = 0;
  Permission permission;
  bool acl_permits = false;      ///< if it has an ACL: whether who asks may search it
  bool removed = false;          ///< it has no name any more, and somebody still holds it
  std::optional<Target> target;  ///< what was asked for, if it is there
};

using Seen = std::function<void(const Answer&)>;

class LookupSource {
 public:
  virtual ~LookupSource() = default;

  /// Finds a name in a directory.
  /// @param generation  of the directory; 0: whichever it has.
  /// @param who         for whom: an ACL is judged at the instant of the answer.
  /// @param name        1 to kNameMax bytes, neither '/' nor NUL in them, and neither "." nor "..".
  /// @error             kNotDirectory: `dir` is none. kStale: `dir` is not there any more. kCorrupt.
  /// Durability:        stores nothing.
  virtual Result<Answer> lookup(InodeNo dir, u64 generation, std::string_view name, const Searcher& who,
                                const Seen& seen) = 0;

  /// A directory's own words, and its parent as the target (of the root: the root). @error as lookup().
  virtual Result<Answer> parent(InodeNo dir, u64 generation, const Searcher& who, const Seen& seen) = 0;

  /// A symbolic link's target. @error kStale: it is not there any more. kInvalid: no symbolic link. kCorrupt.
  virtual Result<std::string> link_target(InodeNo link, u64 generation) = 0;
};

}  // namespace pmfs::dcache
