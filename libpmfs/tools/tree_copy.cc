#include "tree_copy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>

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

bool holds_the_same(Filesystem& fs, const Attributes& in_pool, int host_dir, const char* name,
                    const struct stat& on_host) {
  if ((in_pool.mode & S_IFMT) != (on_host.st_mode & S_IFMT)) return false;
  switch (in_pool.type()) {
    case FileType::kRegular: return in_pool.size_bytes == static_cast<u64>(on_host.st_size);
    case FileType::kCharDevice:
    case FileType::kBlockDevice: return in_pool.rdev == on_host.st_rdev;
    case FileType::kSymlink: {
      std::array<char, PATH_MAX> target;
      const ssize_t length = readlinkat(host_dir, name, target.data(), target.size());
      const Result<std::string> there = fs.readlink(At::inode(in_pool.ino), Credentials::root());
      return length >= 0 && there.ok() && *there == std::string_view(target.data(), static_cast<std::size_t>(length));
    }
    default: return true;
  }
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
