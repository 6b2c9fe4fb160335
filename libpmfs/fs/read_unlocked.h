// Readers beside writers (R6): looking at an inode without its lock.
//
// What is read may be changing under the reader's eyes. So he keeps a list of the versions it depends on (ReadSet),
// stays in a read section, so that nothing he stands on is reused, and uses what he has read only if no version has
// changed. Nothing that he may meet in between can lead him out of the pool or keep him: offsets and counts are
// checked, and every loop is bounded. After kUnlockedTries he takes the shared lock like anybody else.
//   Thread rules: no lock of the inode is held; others may be.
#pragma once

#include <mutex>
#include <shared_mutex>

#include "fs/volume.h"

namespace pmfs {

inline constexpr int kUnlockedTries = 3;

/// Runs `look(reads)` without the inode's lock until what it saw was whole and durable, at most kUnlockedTries times;
/// else `look(nullptr)` once under the shared lock.
/// @param version  what all of it depends on: the inode's `version`, or its `shape`.
/// @param look     gives reads->watch() the version of each leaf before it reads it. It may be given anything to read,
///                 and stores nothing but its result.
template <class Look>
auto read_unlocked(Volume& volume, const InodeRef& ref, const Version& version, Look&& look)
    -> decltype(look(static_cast<ReadSet*>(nullptr))) {
  for (int tries = 0; tries < kUnlockedTries; ++tries) {
    const ReadSections::Guard section(volume.sections);
    ReadSet reads;
    if (!reads.watch(version)) continue;
    auto result = look(&reads);
    if (reads.still()) return result;
    if (reads.hopeless()) break;
  }
  volume.locked_reads.fetch_add(1, std::memory_order_relaxed);
  std::shared_lock lock(ref->lock);
  return look(nullptr);
}

}  // namespace pmfs
