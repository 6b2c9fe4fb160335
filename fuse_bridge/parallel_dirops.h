// parallel_dirops: look-ups and listings of one directory side by side, with any libfuse.
//
// The kernel serialises them per directory unless INIT's reply says that it need not. libfuse before 3.17 wants to
// say so and forgets the bit in the reply, so it is put there on its way out. It owns one flag; later versions need
// nothing.
// Threads: expect_init_reply() and INIT's reply are in one thread, before there are others.
#pragma once

#include "fuse_bridge/fuse_api.h"

namespace pmfs::bridge {

/// Sees every reply of the session go by. REQUIRES: mounted, not yet serving.
/// @return  false without memory; the session then works as before.
bool watch_replies(fuse_session* session);

/// Called by the INIT handler: the next reply is INIT's.
void expect_init_reply(const fuse_conn_info& conn);

}  // namespace pmfs::bridge
