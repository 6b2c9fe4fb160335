// A trace of look-ups: paths, in the order in which they are asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pmfs/types.h"

namespace pmfs::tools {

struct TraceLine {
  std::string path;
  u64 count = 1;  ///< asked for so many times in a row
};

struct Trace {
  std::vector<TraceLine> lines;
  u64 requests = 0;                 ///< all counts together
  u64 components = 0;               ///< of all requests' paths; neither "." nor what lies between "//" is one
  std::vector<std::string> dirs;    ///< distinct paths that lead on to others, or end with a slash; parents first
  std::vector<std::string> leaves;  ///< the other distinct paths
  u64 dentries() const { return dirs.size() + leaves.size(); }
};

/// Reads a line a path, and behind it, if the line ends with a tab and digits, how many times it is asked for. Empty
/// lines mean nothing; a path without a slash in front begins at the root, as all do.
/// @param file       "-": standard input.
/// @param delimiter  what ends a line: '\n' or '\0'.
/// @return           nothing: the file cannot be read, or a count has more than 12 digits; it has been reported.
std::optional<Trace> read_trace(const std::string& file, char delimiter);

}  // namespace pmfs::tools
