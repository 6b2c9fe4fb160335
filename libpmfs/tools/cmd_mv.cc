// pmfs mv, ln: other names and further names for what is in an unmounted pool.
#include <stdio.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "pool_work.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::vector<std::string> paths;  ///< the last one is the destination
  bool no_replace = false;
  bool as_name = false;
  bool symbolic = false;
};

/// Does it to one source.
using Each = std::function<Result<void>(const std::string& from, const std::string& to)>;

void each_to_destination(Filesystem& fs, const Options& options, Failures& failures, const Each& each) {
  const Result<Destination> to = destination(fs, options.paths.back(), options.paths.size() - 1, options.as_name);
  if (!to.ok()) return failures.add(options.paths.back(), to.error());
  for_each_path({options.paths.begin(), options.paths.end() - 1}, failures,
                [&](const std::string& source) { return each(source, to->for_source(source)); });
}

/// rename() leaves two names of one file both alone; mv takes the first away.
Result<void> move(Filesystem& fs, const std::string& from, const std::string& to, bool no_replace) {
  PMFS_ASSIGN(const Attributes source, look(fs, from));
  const Result<Attributes> target = fs.stat(without_end_slashes(to), Credentials::root(), Follow::kNo);
  if (target.ok() && target->ino == source.ino) {
    PMFS_ASSIGN(const Attributes from_dir, fs.stat(parent_of(from), Credentials::root()));
    PMFS_ASSIGN(const Attributes to_dir, fs.stat(parent_of(to), Credentials::root()));
    const bool one_name = from_dir.ino == to_dir.ino && last_name(from) == last_name(to);
    if (one_name || source.type() == FileType::kDirectory) {
      return Error{Errc::kInvalid, "source and destination are the same"};
    }
    if (!no_replace) return fs.unlink(from, Credentials::root());
  }
  return fs.rename(from, to, no_replace ? unsigned{RENAME_NOREPLACE} : 0u, Credentials::root());
}

int mv(const Options& options) {
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    each_to_destination(fs, options, failures, [&](const std::string& from, const std::string& to) -> Result<void> {
      const Result<void> moved = move(fs, from, to, options.no_replace);
      if (moved.ok() || moved.error().code != Errc::kExists || !options.no_replace) return moved;
      failures.add(from, "not moved: the destination exists, and -n keeps it");
      return {};
    });
  });
}

int ln(const Options& options) {
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    each_to_destination(fs, options, failures, [&](const std::string& from, const std::string& to) -> Result<void> {
      if (options.symbolic) {
        PMFS_TRY(fs.symlink(from, to, creator_credentials()));
      } else {
        PMFS_TRY(fs.link(from, to, Credentials::root()));
      }
      return {};
    });
  });
}

}  // namespace

void add_mv(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("mv", "Rename or move things within a pool");
  add_sources_and_destination(*command, options->pool, options->paths, options->as_name);
  command->add_flag("-n,--no-clobber", options->no_replace, "Replace nothing; exit code 1 if something was kept");
  command->footer(
      "What stands at the destination is replaced, in the same step: one of the two is always there.\n\n"
      "Example:\n  pmfs mv /dev/shm/demo.pool /cat.jpg /dog.jpg /photos");
  command->callback([options, &exit_code] { exit_code = mv(*options); });
}

void add_ln(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("ln", "Make hard or symbolic links in a pool");
  add_sources_and_destination(*command, options->pool, options->paths, options->as_name);
  command->add_flag("-s,--symbolic", options->symbolic, "Symbolic links; the source is stored as it is given");
  command->footer(
      "Nothing is replaced. A hard link to a symbolic link is another name of the link itself.\n\n"
      "Example:\n  pmfs ln -s /dev/shm/demo.pool photos/cat.jpg /cat");
  command->callback([options, &exit_code] { exit_code = ln(*options); });
}

}  // namespace pmfs::tools
