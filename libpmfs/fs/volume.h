// An open file system on a piece of memory: its parts, wired together. The operations (namei, file_io, attributes) work
// on a Volume; who made the memory (a pool, a test) is not its business.
//
// Thread rules: after open_volume() everything here is either constant or guarded by its own locks.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/commit.h"
#include "base/quarantine.h"
#include "dcache/path_cache.h"
#include "fs/block_alloc.h"
#include "fs/extent_map.h"
#include "fs/inode_table.h"
#include "fs/locks.h"
#include "fs/lookup_source.h"
#include "fs/superblock.h"
#include "htree/index.h"
#include "htree/leaf.h"
#include "pmfs/pmfs.hpp"

namespace pmfs {

struct Volume {
  Volume(Memory memory, media::Superblock& superblock, Regions region_list, LaneKey key,
         const OpenOptions& open_options);

  Persist persist;
  media::Superblock& superblock;
  const Regions regions;
  Lanes lanes;
  BlockAlloc blocks;
  ExtentMap maps;
  htree::IndexSpace index_space;
  VersionTable versions;  // of directory leaves, by block; an inode's are in its state
  ReadSections sections;  // readers that hold no lock
  Quarantine quarantine;
  InodeTable inodes;
  LockTable locks;
  htree::NameHasher hash_name;
  OpenOptions options;
  VolumeLookup lookup_source;
  dcache::PathCache paths;  // what names lead to; told of each change under the locks that made it, after fence 2
  std::mutex rename_mutex;  // one rename that crosses directories and has one at either end; first in the LOCK order

  bool recovered = false;  // opening undid at least one unfinished operation
  u64 lanes_undone = 0;
  bool saved_map_used = false;
  mutable std::atomic<u64> damaged_indexes{0};  // directory indexes found damaged since it was opened
  mutable std::atomic<u64> locked_reads{0};     // look-ups that took a lock in the end (fs/read_unlocked.h)

  bool read_only() const { return options.read_only || persist.failed() || blocks.damaged(); }
  /// @error kReadOnly. Asked before anything that changes the pool.
  Result<void> writable() const {
    if (options.read_only) return Error{Errc::kReadOnly, "opened read-only", 0};
    if (persist.failed()) return Error{Errc::kReadOnly, "the medium failed; the file system is read-only now", 0};
    if (blocks.damaged()) return Error{Errc::kReadOnly, "a block has two owners; the file system is read-only now", 0};
    return {};
  }
  Commit begin_commit() { return Commit(lanes, persist, &versions); }

  /// Runs an operation; if it finds no space, reclaims what waits in the quarantine (one fence more) and runs it again.
  /// REQUIRES: no lock held. The operation has stored nothing live when it fails.
  template <class Operation>
  auto with_space(Operation&& operation) -> decltype(operation()) {
    if (quarantine.size() >= kCollectAt) quarantine.collect();
    const u64 released = quarantine.released();
    auto result = operation();
    if (result.ok() || result.error().code != Errc::kNoSpace) return result;
    quarantine.drain();
    if (quarantine.released() == released) return result;  // nothing came free meanwhile, by us or by others
    return operation();
  }

 private:
  static constexpr u64 kCollectAt = 64;  // freed sets that may wait before somebody looks whether they still must
};

/// Opens the file system in `memory`: recovers the lanes, raises the epoch, learns what is free.
/// @error see Filesystem::open(). Durability: recovery and the new epoch are durable on return, unless read_only.
Result<std::unique_ptr<Volume>> open_volume(Memory memory, PoolOff locator_off, const OpenOptions& options);

/// Makes lazy times durable and saves the allocator's map. Nobody else may use the volume; it is not used afterwards.
/// @error kBusy: something is held. kIo. Durability: on return.
Result<void> close_volume(Volume& volume);

/// Makes all lazily stored times durable. Durability: on return.
Result<void> sync_all(Volume& volume);

}  // namespace pmfs
