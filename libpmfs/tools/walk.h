// A walk over a tree of a pool: by inode, sorted by name, never following a symbolic link, as deep as the tree may be.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "json_out.h"
#include "pmfs/pmfs.hpp"
#include "pool_work.h"

namespace pmfs::tools {

/// Whether an entry's name is one that a file can have. "." and ".." are not; a damaged pool may hold others, which
/// must not be taken for paths.
bool is_plain_name(std::string_view name);

/// One object that a walk meets.
struct Met {
  std::string_view path;  ///< the top's path as given, and the names below it
  std::string_view name;  ///< its own; of the top, the last component
  InodeNo dir{};          ///< the directory that it was found in; kNoInode: it is the top
  u32 depth = 0;          ///< 0: the top
  bool last = false;      ///< in its directory
  Attributes attributes;

  /// Its place for a call that changes the directory. REQUIRES: it is not the top.
  At at() const { return {dir, name}; }
};

struct Walk {
  /// Called for each object, before what is in it. @return whether to go into it, if it is a directory.
  std::function<bool(const Met&)> enter;
  /// If given: called for each directory gone into, after what was in it.
  std::function<void(const Met&)> leave = {};
  /// If given: other names are not met at all.
  std::function<bool(std::string_view)> is_shown = {};
};

/// Walks the tree at `top`, whose attributes the caller has looked at. A directory is read entirely before anything in
/// it is met, so what was met may be removed. What cannot be read is said through `failures`, and the rest is walked,
/// until nothing more can be stored.
void walk(Filesystem& fs, std::string_view top_path, const Attributes& top, Failures& failures, const Walk& on);

/// The row of one object in a list: its path and attributes, and a symbolic link's target.
Json row_of(Filesystem& fs, const Met& met);
/// Prints the object of a command that lists rows.
void print_rows(std::string_view command, const std::string& pool, Json rows);

}  // namespace pmfs::tools
