// One file's bytes between a pool and the host.
#pragma once

#include <string>

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

/// Bytes moved by one call. Large, because a write that extends a file is one commit however long it is.
inline constexpr std::size_t kCopyBytes = std::size_t{1} << 20;

/// Writes the file `path` of the pool to the descriptor. Errors are reported with their subject.
/// @return whether all of it arrived.
bool copy_to_host(Filesystem& fs, const std::string& pool, const std::string& path, int host_fd,
                  const std::string& host_name);

/// Runs `cat` and `get`: opens the pool, copies `path` to `host_name` ("-" is stdout). @return the exit code.
int get_file(const std::string& pool, const std::string& path, const std::string& host_name);

}  // namespace pmfs::tools
