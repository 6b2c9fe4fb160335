// What the cache is made of: dentries (a name in a directory, and what it leads to), and Dirs (a directory's own
// words). Each takes one or more slots of the arena (arena.h).
//
//   D1  A dentry's name, parent and target never change: a change takes it out and puts another one in. So what a read
//       section has found stays what it was.
//   D2  What a directory may change without changing its number, its permission words and its place, stands in its Dir.
//       `sequence` is odd while they, or any name in the directory, change. A reader that finds it even and the same
//       before and after a step has seen the step at one instant.
//   D3  A Dir lives as long as a dentry has it for its parent. Hence a dentry's parent pointer is as good a key as the
//       parent's number and generation, and is what dentries are found by.
//   D4  Everything is changed under the cache's mutex alone (DentryCache); readers hold a read section and nothing
//   else.
// Volatile: losing all of it costs time, never truth. No pointer into the pool is stored here.
#pragma once

#include <atomic>

#include "base/rcu.h"
#include "dcache/lookup.h"
#include "dcache/path_scan.h"

namespace pmfs::dcache {

using Slot = u32;  ///< a slot's number in the arena; 0 is none

inline constexpr std::size_t kSlotBytes = 128;
inline constexpr std::size_t kInlineName = 40;
inline constexpr std::size_t kMoreBytes = kSlotBytes - sizeof(u32) * 2;

struct Dir;

/// What can be of no use any more when a dentry has left the table shares its place with what is of use only then.
struct DentryLinks {
  u32 heat;          ///< stage: how often it was the target of a look-up, as long as
  u32 heat_version;  ///<   this is the global version
  Slot previous;     ///< stage: neighbours in the candidate set. fullpath: among the parent's children
  Slot next;
  u32 pins;    ///< stage: how many pivots have it for a component. Evicted only at 0
  Slot entry;  ///< fullpath: its entry in the table of paths
};

struct alignas(64) Dentry {
  // What a look-up reads.
  RcuNode node;
  Dir* parent;
  Dir* dir;  ///< of a directory; else null
  u64 ino;   ///< 0: a negative dentry, the name is not there
  u64 generation;
  Slot more;  ///< where the name goes on behind kInlineName
  u8 name_length;
  u8 type;       ///< S_IFMT bits >> 12
  u8 candidate;  ///< stage: it is in the candidate set
  u8 alive;      ///< 0: it has left the table. Not for readers
  Slot slot;     ///< its own
  u32 serial;    ///< the slot's, for heat samples
  // The second line.
  union {
    DentryLinks links;
    RcuHead head;
  };
  char name[kInlineName];

  bool negative() const { return ino == 0; }
  bool is_directory() const { return type == kTypeDirectory >> 12; }
  bool is_symlink() const { return type == kTypeSymlink >> 12; }
  Target target() const { return {InodeNo{ino}, generation, u32{type} << 12}; }
};
static_assert(sizeof(Dentry) == kSlotBytes);
static_assert(offsetof(Dentry, links) == 64 && offsetof(Dentry, name) == 88);

struct alignas(64) Dir {
  static constexpr u32 kUnknown = 1u << 31;  ///< in `mode`: the permission words are not known yet
  static constexpr u32 kRemoved = 1u << 30;  ///< in `mode`: it has no name any more
  static constexpr u32 kHasAcl = 1u << 29;   ///< in `mode`: the mode alone does not decide

  // What a look-up reads.
  std::atomic<u32> sequence;
  std::atomic<u32> mode;
  std::atomic<u32> uid;
  std::atomic<u32> gid;
  u64 seed;  ///< of the hashes of its names
  u64 ino;
  u64 generation;
  std::atomic<Dentry*> place;  ///< its dentry; null: not known, or the root
  u64 unused[2];
  // The second line.
  RcuNode node;  ///< in the table of Dirs, by number
  RcuHead head;
  u32 children;      ///< dentries whose parent it is
  Slot first_child;  ///< fullpath: the list of them
  u32 held;          ///< reasons to keep it apart from children: it is the root
  u32 listed;        ///< it is in the table of Dirs
};
static_assert(sizeof(Dir) == kSlotBytes);
static_assert(offsetof(Dir, node) == 64);

/// Where a long name or path goes on.
struct alignas(64) More {
  Slot next;
  u32 unused;
  char text[kMoreBytes];
};
static_assert(sizeof(More) == kSlotBytes);

/// Whether a directory with these words may be searched. REQUIRES: no ACL.
/// Source: POSIX.1-2017 4.5 File Access Permissions: owner, else group, else other; the first that fits decides.
inline bool may_search(u32 mode, u32 uid, u32 gid, const Searcher& who) {
  if (who.may_all || (mode & 0111) == 0111) return true;
  bool member = who.gid == gid;
  if (who.depends != nullptr) {
    const bool certain = who.uid == uid ? (mode & 0100) != 0 : (mode & 0010) != 0 && (member || (mode & 0001) != 0);
    if (!certain) *who.depends = true;
  }
  if (who.uid == uid) return (mode & 0100) != 0;
  for (const u32 group : who.groups) member = member || group == gid;
  return (mode & (member ? 0010 : 0001)) != 0;
}

}  // namespace pmfs::dcache
