// A trace of look-ups with the shape that the Stage Lookup paper gives for one day of an I/O forwarding node: of 13
// requests the paths have 89 components, and 235 distinct dentries take part.
#pragma once

#include <string>
#include <vector>

#include "pmfs/types.h"

namespace pmfs::bench {

struct IoTrace {
  std::vector<std::string> dirs;  ///< parents before children
  std::vector<std::string> files;
  std::vector<u16> requests;  ///< indexes into `files`, in order
  u64 components = 0;         ///< of the paths of all requests
  u64 dentries = 0;           ///< distinct ones that the requests pass
};

/// Jobs run in turn, for a long while each. While one runs, 15 of 16 requests are for its own files, which lie in its
/// folder and two below; few of them are popular (the k-th with weight 1/k), and so it is with the jobs themselves.
/// The last requests visit what was never asked for, so that all dentries take part.
/// @param requests  how many; at least 1000. The trace is the same each time.
IoTrace io_trace(u64 requests);

}  // namespace pmfs::bench
