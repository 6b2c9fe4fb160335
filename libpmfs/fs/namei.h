// Changes of the tree: making, naming, renaming and removing. Each is one commit.
//
// Thread rules: all functions from any thread, without locks held. Locks are taken in the LOCK order; where an inode is
// found only under another's lock and its number is smaller, it is only tried, and on failure everything begins again.
// Source: POSIX.1-2017; rename flags: Linux renameat2(2).
#pragma once

#include "fs/resolve.h"
#include "fs/volume.h"

namespace pmfs {

/// What to make.
struct NewNode {
  u32 mode = 0;  ///< S_IFMT and permission bits, before the umask
  u64 rdev = 0;
  std::string_view target = {};  ///< of a symbolic link
  bool nameless = false;         ///< without a link
};

/// Fills a free slot: everything but the state word, which the caller sets. Nothing points to it yet. Flushed, that
/// word too. REQUIRES: the new inode's lock, and that of `dir`, whose group it may get.
Result<void> write_new_inode(Volume& volume, const InodeRef& fresh, const InodeRef& dir, const NewNode& node,
                             const Credentials& who, i64 now, BlockHold& hold);

/// Makes an inode and its name.
/// @param hold_new  called with the new inode while it is locked, after the commit: takes pins and handles.
Result<Attributes> make_node(Volume& volume, const At& at, const NewNode& node, const Credentials& who,
                             const std::function<void(InodeState&)>& hold_new);

Result<Attributes> make_link(Volume& volume, const At& from, const At& to, const Credentials& who, Follow follow,
                             const std::function<void(InodeState&)>& hold_linked);

enum class RemoveKind : bool { kFile, kDirectory };
Result<void> remove_name(Volume& volume, const At& at, RemoveKind kind, const Credentials& who);

Result<void> rename_name(Volume& volume, const At& from, const At& to, unsigned flags, const Credentials& who);

}  // namespace pmfs
