// One tag for each place that flushes or fences. The shipped library ignores them; the simulator uses them to name
// crash states, to count, and to leave one out on purpose. DESIGN.md "ORDER" lists the reason of each.
#pragma once

#include "pmfs/types.h"

namespace pmfs {

// X(tag, reason): the reason is what goes wrong without it.
#define PMFS_ORDERS(X)                                                                                           \
  X(kFreshInode, "a name could lead to an inode whose contents are not there")                                   \
  X(kFreshEntry, "a live bit could show an entry whose bytes are not there")                                     \
  X(kFreshLeaf, "a directory could map a leaf whose bytes are not there")                                        \
  X(kFreshNode, "a map root could lead to a node whose bytes are not there")                                     \
  X(kFreshIndex, "an index root could lead to a node whose bytes are not there")                                 \
  X(kFreshData, "a mapped block, or bytes below a raised size, could show what lay there before")                \
  X(kFreshArea, "an inode could have attributes or ACLs that are not there")                                     \
  X(kFreshTarget, "a symbolic link could have another target")                                                   \
  X(kFreshSlots, "slots of a grown inode file could look live")                                                  \
  X(kFreshRegion, "a region's length could be there and its place not")                                          \
  X(kRecord, "recovery could not put the old words back")                                                        \
  X(kOwnHeader, "records of this sequence would not be found: the last bump may not be durable")                 \
  X(kLastHeader, "recovery could undo the last change of an inode under this one (R2)")                          \
  X(kFence1, "new words could be durable before the records that undo them")                                     \
  X(kApplied, "the operation would return before its words are durable")                                         \
  X(kFence2, "the operation would return before its words are durable")                                          \
  X(kOverwriteData, "a write would return before its data is durable")                                           \
  X(kOverwriteHeader, "recovery could undo the last logged change together with the times stored after it (R3)") \
  X(kOverwriteFence, "a write would return before its data is durable")                                          \
  X(kLazyTimes, "fsync would return before lazily stored times are durable")                                     \
  X(kSyncFence, "fsync would return before lazily stored times are durable")                                     \
  X(kRetireHeader, "an unlogged word could be undone together with the last logged change (R3)")                 \
  X(kRetireFence, "an unlogged word could be undone together with the last logged change (R3)")                  \
  X(kNamelessFence, "another thread could give a name to an inode whose contents are not there")                 \
  X(kDrainHeader, "a freed block could be reused while recovery may still bring its owner back (R4)")            \
  X(kDrainFence, "a freed block could be reused while recovery may still bring its owner back (R4)")             \
  X(kUndo, "the epoch would declare records invalid whose undoing is not durable")                               \
  X(kUndoFence, "the epoch would declare records invalid whose undoing is not durable")                          \
  X(kEpoch, "records of the last mount could be taken for records of this one (R1)")                             \
  X(kEpochFence, "records of the last mount could be taken for records of this one (R1)")                        \
  X(kSavedMap, "the locator could name a map that is not there")                                                 \
  X(kSavedMapFence, "the locator could name a map that is not there")                                            \
  X(kSavedLocator, "a clean close would not be seen as one")                                                     \
  X(kSavedLocatorFence, "a clean close would not be seen as one")                                                \
  X(kFormat, "the locator could name a file system that is not there")                                           \
  X(kFormatFence, "the locator could name a file system that is not there")                                      \
  X(kLocator, "mkfs would return before the file system can be found")                                           \
  X(kLocatorFence, "mkfs would return before the file system can be found")

enum class Order : u8 {
#define X(tag, reason) tag,
  PMFS_ORDERS(X)
#undef X
};

/// The tag's name, for reports.
const char* order_name(Order why);
/// What goes wrong without it.
const char* order_reason(Order why);
inline constexpr unsigned kOrderCount = 0
#define X(tag, reason) +1
    PMFS_ORDERS(X)
#undef X
    ;

}  // namespace pmfs
