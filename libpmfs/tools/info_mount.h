// pmfs info --mount DIR: what a mount has counted, asked of its server while it works.
#pragma once

#include <string>

namespace pmfs::tools {

struct InfoMountOptions {
  std::string dir;
  bool json = false;
  bool watch = false;  ///< a line a second, until interrupted
};

/// @return  exit code.
int info_mount(const InfoMountOptions& options);

}  // namespace pmfs::tools
