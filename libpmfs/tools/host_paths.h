// Commands that take ordinary host paths on stdin, many at once, and answer each: resolve, stat --batch, create
// --batch.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "pmfs/mounted.hpp"

namespace pmfs::tools {

struct HostPathsOptions {
  std::string command;      ///< as the JSON object names it
  bool zero = false;        ///< paths end with NUL, not with a newline
  bool json = false;        ///< one object with a row for each path; else a line for each
  bool attributes = false;  ///< lines show all attributes, not only what the path leads to
};

using Answer = std::function<void(mounted::Client&, std::span<const std::string>, std::span<mounted::Row>)>;

/// Reads paths from stdin, has them answered some thousands at a time, and prints the answers in the order of the
/// paths.
/// @return  exit code: kExitFailure if any path failed (the reason is in its row).
int answer_host_paths(const HostPathsOptions& options, const Answer& answer);

}  // namespace pmfs::tools
