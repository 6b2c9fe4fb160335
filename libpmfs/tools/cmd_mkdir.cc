// pmfs mkdir, rmdir: directories of an unmounted pool, as the tools of those names.
#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "mode_change.h"
#include "pool_work.h"
#include "report.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::vector<std::string> paths;
  std::string mode;
  bool parents = false;
};

/// The mode is set after the umask had its say, but before anything else sees the directory: nobody else has the pool.
Result<void> make(Filesystem& fs, const std::string& path, const Options& options,
                  const std::optional<ModeChange>& mode) {
  const Credentials who = creator_credentials();
  bool made = true;
  Result<Attributes> directory =
      options.parents ? make_directories(fs, path, 0777, who, made) : fs.mkdir(path, 0777, who);
  if (!directory.ok()) return directory.error();
  if (!mode || !made) return {};
  // A symbolic mode begins at a=rwx. With the sticky bit, others than the owner may write only if it says so, or sets
  // an id: so does coreutils' mkdir.
  u32 decided = 0;
  const u32 wanted = mode->apply(0777u | (directory->mode & 06000u), true, who.umask, &decided);
  SetAttributes change;
  change.mode = (wanted & 01000u) != 0 && (wanted & decided & 06022u) == 0 ? wanted & ~0022u : wanted;
  PMFS_TRY(fs.set_attributes(At::inode(directory->ino), change, Credentials::root()));
  return {};
}

int mkdir_command(const Options& options) {
  std::optional<ModeChange> mode;
  if (!options.mode.empty()) {
    mode = ModeChange::parse(options.mode);
    if (!mode) {
      report_text("--mode " + options.mode, "not a mode; octal like 755, or symbolic like u=rwx,go=rx");
      return kExitUsage;
    }
  }
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    for_each_path(options.paths, failures, [&](const std::string& path) { return make(fs, path, options, mode); });
  });
}

int rmdir_command(const Options& options) {
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    for_each_path(options.paths, failures,
                  [&](const std::string& path) { return fs.rmdir(path, Credentials::root()); });
  });
}

}  // namespace

void add_mkdir(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("mkdir", "Make directories in a pool");
  add_pool_and_paths(*command, options->pool, options->paths, "Directories to make");
  command->add_flag("-p,--parents", options->parents, "Also what is missing above; one that is there is no error");
  command->add_option("-m,--mode", options->mode, "Mode as chmod takes it, whatever the umask");
  command->footer("Example:\n  pmfs mkdir -p -m 750 /dev/shm/demo.pool /photos/2024/may");
  command->callback([options, &exit_code] { exit_code = mkdir_command(*options); });
}

void add_rmdir(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("rmdir", "Remove empty directories of a pool");
  add_pool_and_paths(*command, options->pool, options->paths, "Directories to remove");
  command->footer("Example:\n  pmfs rmdir /dev/shm/demo.pool /photos/2024/may");
  command->callback([options, &exit_code] { exit_code = rmdir_command(*options); });
}

}  // namespace pmfs::tools
