// Copies of files and trees from one place of a pool to another.
#pragma once

#include <memory>
#include <string>

#include "pmfs/pmfs.hpp"
#include "pool_work.h"

namespace pmfs::tools {

struct CopyOptions {
  bool recursive = false;  ///< directories with everything in them; symbolic links are copied, not followed
  bool archive = false;    ///< modes, owners, times, hard links, extended attributes and ACLs, too
};

/// Holes stay holes. What exists at a destination: directories are merged; a regular file gets the new contents, in
/// place; anything else is removed first. What fails is said through `failures`, and the rest is copied, until nothing
/// more can be stored. Each step is a commit of its own: an interrupted copy leaves a part, and a consistent pool.
class CopyWithin {
 public:
  CopyWithin(Filesystem& fs, const CopyOptions& options, Failures& failures);
  ~CopyWithin();

  /// Copies what `from` names to the name `to`. Hard links are kept among all that one object copies.
  /// @error  nothing was copied; what fails below `from` is said.
  Result<void> copy(const std::string& from, const std::string& to);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pmfs::tools
