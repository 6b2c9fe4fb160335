// A tree as text, one line for each name: what a test compares with an oracle, a snapshot or a manifest.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "pmfs/pmfs.hpp"

namespace pmfs::test {

/// All that is said of one inode.
struct NodeText {
  FileType type{};
  u32 mode = 0;  // permission bits
  u32 links = 0;
  u32 uid = 0;
  u32 gid = 0;
  u64 rdev = 0;
  i64 atime_ns = 0;  // shown as they are below kTimeIsNow, and all others alike
  i64 mtime_ns = 0;
  std::string data;                           // contents or target
  std::string ranges = {};                    // of a file, "from-to " for each that is no hole
  std::map<std::string, std::string> xattrs;  // ACLs too, see text_of()

  std::string line(const std::string& path) const;
};

/// Times that a test sets lie below, those that the clock gave do not.
inline constexpr i64 kTimeIsNow = i64{1} << 60;

std::string text_of(const Acl& acl);

/// An inode of a real file system. Fails the test if anything of it cannot be read, or two ways of reading disagree.
NodeText look_at(Filesystem& fs, At at);

/// The line of the root, then of each name in order, each directory's names behind it.
std::string tree_of(Filesystem& fs);

/// The first lines in which two texts differ; two empty ones if they do not.
std::pair<std::string, std::string> first_difference(std::string_view a, std::string_view b);

}  // namespace pmfs::test
