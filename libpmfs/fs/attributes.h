// What stat shows, and chmod, chown, utimens, truncate: several of them at once are one commit.
#pragma once

#include "fs/volume.h"

namespace pmfs {

/// REQUIRES: the inode's lock, at least shared; or its version is asked before and behind.
Attributes attributes_of(const InodeRef& ref);

/// Attributes without the inode's lock or a reference: of an inode that is in use by its version, of one that nobody
/// uses as it lies there.
/// @param generation  0: whichever it has.
/// @return false: it is changing, or not there; look under the lock, and use nothing of `found`.
bool peek_attributes(const Volume& volume, InodeNo ino, u64 generation, Attributes& found);

/// Filesystem::set_attributes for an inode. @error see there.
/// @param through_handle  size: write access was checked when the file was opened.
Result<Attributes> set_attributes(Volume& volume, const InodeRef& ref, const SetAttributes& change,
                                  const Credentials& who, bool through_handle = false);

/// Names an inode whose words a commit changes. A waiting access time is stored along: its line is flushed anyway.
/// REQUIRES: the exclusive lock.
void touch_inode(Volume& volume, Commit& commit, const InodeRef& ref);

/// The versions that a commit on this inode changes.
Watched watched(const InodeRef& ref);

/// Mode without the bits that a write or a change of owner by `who` takes away from an inode of group `gid`.
u32 without_set_id(u32 mode, u32 gid, const Credentials& who);

/// The mode word with its flags that a write by `who` leaves: without set-id bits, and without security.capability,
/// whose attribute plan_without_capability() (fs/xattr.h) removes.
u32 mode_word_after_write(const media::Inode& inode, const Credentials& who);

/// Filesystem::sync for an inode.
Result<void> sync_inode(Volume& volume, const InodeRef& ref);

}  // namespace pmfs
