// batch: many paths in one ioctl (libpmfs/mounted/wire.h). Here the kernel has checked nothing: the library checks, as
// the caller.
//
//   P1  An answer is the kernel's own, or kAskKernel. The kernel is asked when the caller cannot be seen or sees other
//       mounts, when a path leaves the directory it starts in, and when something else is mounted on the way.
//   P2  A request tells uid and gid. Groups and capabilities are read from /proc only when an answer depends on them.
//   P3  What is created is announced (notifier.h) before it is reported: the kernel may know that the name is absent.
#pragma once

#include "fuse_bridge/ops.h"

namespace pmfs::bridge {

/// Answers a request on the directory `ino`; `in` and the reply are at most `out_bytes` long.
void answer_batch(Bridge& bridge, fuse_req_t req, InodeNo ino, std::span<const char> in, std::size_t out_bytes);

}  // namespace pmfs::bridge
