#include "tree_copy.h"

#include <fmt/format.h>

#include "report.h"
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
  if (counts.already != 0) text += fmt::format("; {} already there", counts.already);
  if (counts.skipped != 0) text += fmt::format("; {} skipped", counts.skipped);
  if (counts.failed != 0) text += fmt::format("; {} FAILED", counts.failed);
  if (counts.with_xattrs != 0)
    text += fmt::format("; {} with extended attributes or ACLs that could not all be kept", counts.with_xattrs);
  return text;
}

int conclude(const std::string& what, const std::string& pool, const TreeCounts& counts) {
  if (counts.interrupted != 0) {
    report_text(pool, fmt::format("interrupted; {} {} so far. The same command with --resume goes on from here", what,
                                  summary(counts)));
    return kExitSignal + counts.interrupted;
  }
  fmt::print("{} {}\n", what, summary(counts));
  return counts.failed == 0 && counts.skipped == 0 ? kExitOk : kExitFailure;
}

}  // namespace pmfs::tools
