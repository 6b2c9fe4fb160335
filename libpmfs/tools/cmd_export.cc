// pmfs export: a whole tree of a pool to the host.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>

#include "commands.h"
#include "interrupt.h"
#include "open_pool.h"
#include "report.h"
#include "tree_copy.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string pool_dir;
  std::string host_dir;
  bool resume = false;
};

bool is_empty(int fd) {
  DIR* const dir = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir == nullptr) return false;
  std::size_t entries = 0;
  while (entries <= 2 && readdir(dir) != nullptr) ++entries;  // "." and ".." are two
  closedir(dir);
  return entries <= 2;
}

int export_from(Filesystem& fs, const Options& options) {
  const std::string subject = options.pool + ": " + options.pool_dir;
  const Result<Attributes> source = fs.stat(options.pool_dir, Credentials::root());
  if (!source.ok()) {
    report(subject, source.error());
    return kExitFailure;
  }
  if (source->type() != FileType::kDirectory) {
    report_text(subject, "not a directory; `pmfs get` copies one file");
    return kExitFailure;
  }
  const bool made = mkdir(options.host_dir.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) {
    report_errno(options.host_dir, "cannot make the directory", errno);
    return kExitFailure;
  }
  HostFd host_dir(open(options.host_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!host_dir.is_open()) {
    report_errno(options.host_dir, "cannot open the directory to export to", errno);
    return kExitFailure;
  }
  const TopAttributes top = made || is_empty(host_dir.get()) ? TopAttributes::kAll : TopAttributes::kTimes;
  Progress progress;
  return conclude("exported", options.pool,
                  export_tree(fs, source->ino, options.pool, std::move(host_dir), options.host_dir,
                              {top, options.resume}, progress));
}

int export_command(const Options& options) {
  const Interruptible stoppable;
  std::optional<Filesystem> fs = open_for_reading(options.pool);
  if (!fs) return kExitFailure;
  const int code = export_from(*fs, options);
  return close_pool(*fs, options.pool, code);
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "export",
      "Copy what is in a directory of a pool into a directory of the host: files, directories, symbolic and hard "
      "links, special files, with modes and times, and as root with owners and devices");
  command->add_option("POOL", options->pool, "Pool file or poolset file")->required();
  command->add_option("POOLDIR", options->pool_dir, "Directory in the pool")->required();
  command->add_option("HOSTDIR", options->host_dir, "Directory of the host; made if missing")->required();
  command->add_flag("--resume", options->resume,
                    "Go on with an export that was interrupted: what it has copied to the end stays as it is");
  command->footer(
      "Existing directories are merged, other existing names replaced; no symbolic link in HOSTDIR is followed. Exit "
      "code 1 if anything was left out; each case is said.\n"
      "Ctrl-C or SIGTERM ends it in order, with exit code 130 or 143. --resume takes for copied what has the size, "
      "modification time, owner, mode and links of its source; not after a power failure, which may take from the "
      "host's "
      "files what they had.\n"
      "Example:\n  pmfs export /dev/shm/demo.pool /photos ~/photos-copy\n"
      "  pmfs export --resume /dev/shm/demo.pool /photos ~/photos-copy");
  command->callback([options, &exit_code] { exit_code = export_command(*options); });
}

}  // namespace pmfs::tools
