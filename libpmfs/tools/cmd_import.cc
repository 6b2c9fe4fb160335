// pmfs import: a whole tree of the host into a pool.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>

#include "commands.h"
#include "interrupt.h"
#include "open_pool.h"
#include "pool_work.h"
#include "report.h"
#include "tree_copy.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string host_dir;
  std::string pool_dir;
  bool resume = false;
};

Result<bool> is_empty(Filesystem& fs, InodeNo ino) {
  PMFS_ASSIGN(Dir dir, fs.open_dir(At::inode(ino), Credentials::root()));
  DirEntry entry;
  for (u64 cookie = 0;; cookie = entry.cookie) {
    PMFS_ASSIGN(const bool more, dir.read(cookie, entry));
    if (!more) return true;
    if (entry.view() != "." && entry.view() != "..") return false;
  }
}

int import_into(Filesystem& fs, const Options& options, HostFd host_dir) {
  const std::string subject = options.pool + ": " + options.pool_dir;
  bool made = false;
  const Result<Attributes> target = make_directories(fs, options.pool_dir, 0755, operator_credentials(), made);
  if (!target.ok()) {
    report(subject, target.error());
    return kExitFailure;
  }
  const Result<bool> empty = is_empty(fs, target->ino);
  if (!empty.ok()) {
    report(subject, empty.error());
    return kExitFailure;
  }
  Progress progress;
  const TreeOptions how{made || *empty ? TopAttributes::kAll : TopAttributes::kTimes, options.resume};
  return conclude("imported", options.pool,
                  import_tree(fs, std::move(host_dir), options.host_dir, target->ino, options.pool, how, progress));
}

int import_command(const Options& options) {
  HostFd host_dir(open(options.host_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!host_dir.is_open()) {
    report_errno(options.host_dir, "cannot open the directory to import", errno);
    return kExitFailure;
  }
  const Interruptible stoppable;
  std::optional<Filesystem> fs = open_for_writing(options.pool);
  if (!fs) return kExitFailure;
  const int code = import_into(*fs, options, std::move(host_dir));
  return close_pool(*fs, options.pool, code);
}

}  // namespace

void add_import(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "import",
      "Copy what is in a directory of the host into a directory of a pool: files, directories, symbolic and hard "
      "links, special files, with modes and times, and as root with owners and devices");
  command->add_option("POOL", options->pool, "Pool file, device DAX, or poolset file")->required();
  command->add_option("HOSTDIR", options->host_dir, "Directory of the host")->required();
  command->add_option("POOLDIR", options->pool_dir, "Directory in the pool; made if missing")->required();
  command->add_flag("--resume", options->resume,
                    "Go on with an import that was interrupted: what it has copied to the end stays as it is");
  command->footer(
      "Existing directories are merged, other existing names replaced. Exit code 1 if anything was left out; each case "
      "is said.\n"
      "Ctrl-C or SIGTERM ends it in order, with exit code 130 or 143; the pool is consistent after a kill, too. "
      "--resume takes for copied what has the size, modification time, owner, mode and links of its source.\n"
      "Example:\n  pmfs import /dev/shm/demo.pool ~/photos /photos\n"
      "  pmfs import --resume /dev/shm/demo.pool ~/photos /photos");
  command->callback([options, &exit_code] { exit_code = import_command(*options); });
}

}  // namespace pmfs::tools
