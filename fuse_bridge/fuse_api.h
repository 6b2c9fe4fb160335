// The one door to libfuse: its low-level interface as of 3.14, and what differs in later releases.
// It owns nothing. No other file of the project includes libfuse.
#pragma once

// A macro that libfuse's headers ask for: the version of the interface this code is written against.
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "pmfs/types.h"

// What later releases brought: handlers for it are there where libfuse has a place for them.
#define PMFS_FUSE_HAS_TMPFILE (FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17))
#define PMFS_FUSE_HAS_STATX (FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18))
#define PMFS_FUSE_HAS_URING (FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18))

namespace pmfs::bridge {

/// Whether a request came through io_uring. Its reply must come from the thread that got it.
inline bool is_by_uring([[maybe_unused]] fuse_req_t req) {
#if PMFS_FUSE_HAS_URING
  return fuse_req_is_uring(req);
#else
  return false;
#endif
}

/// Asks for a capability if the kernel has it. Only in the INIT handler.
inline void ask_for(fuse_conn_info& conn, u64 capability) {
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
  fuse_set_feature_flag(&conn, capability);  // capabilities have 64 bits from here on
#else
  conn.want |= static_cast<unsigned>(capability) & conn.capable;
#endif
}

/// Declines a capability, also one that libfuse asks for by itself. Only in the INIT handler.
inline void decline(fuse_conn_info& conn, u64 capability) {
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
  fuse_unset_feature_flag(&conn, capability);
#else
  conn.want &= ~static_cast<unsigned>(capability);
#endif
}

/// Whether the kernel has a capability. Only in the INIT handler.
inline bool is_offered(const fuse_conn_info& conn, u64 capability) {
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
  return (conn.capable_ext & capability) != 0;
#else
  return (conn.capable & capability) != 0;
#endif
}

}  // namespace pmfs::bridge
