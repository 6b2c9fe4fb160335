#include "tree_copy.h"

#include <fmt/format.h>

#include "size_text.h"

namespace pmfs::tools {

std::string summary(const TreeCounts& counts) {
  std::string text;
  const auto add = [&](u64 count, const char* one, const char* many) {
    if (count != 0) text += fmt::format("{} {}, ", count, count == 1 ? one : many);
  };
  add(counts.files, "file", "files");
  add(counts.directories, "directory", "directories");
  add(counts.symlinks, "symbolic link", "symbolic links");
  add(counts.specials, "special file", "special files");
  add(counts.hard_links, "further hard link", "further hard links");
  text += size_text(counts.bytes);
  if (counts.skipped != 0) text += fmt::format("; {} skipped", counts.skipped);
  if (counts.failed != 0) text += fmt::format("; {} FAILED", counts.failed);
  if (counts.with_xattrs != 0)
    text += fmt::format("; {} with extended attributes or ACLs that could not all be kept", counts.with_xattrs);
  return text;
}

}  // namespace pmfs::tools
