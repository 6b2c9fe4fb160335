// statistics: what a mount has counted, as a program may ask for it (libpmfs/mounted/wire.h).
#pragma once

#include "fuse_bridge/ops.h"
#include "mounted/wire.h"

namespace pmfs::bridge {

/// Requests by kind, what persistence cost in this process, the path cache, space.
mounted::StatisticsReply statistics_of(Bridge& bridge);

/// The pivots that serve now, hottest first.
mounted::PivotsReply pivots_of(Bridge& bridge);

}  // namespace pmfs::bridge
