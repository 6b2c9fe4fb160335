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

/// rename() does nothing with two names of one file, and says nothing; here it is an error, as of mv(1).
Result<void> move(Filesystem& fs, const std::string& from, const std::string& to, bool no_replace) {
  PMFS_ASSIGN(const Attributes source, look(fs, from));
  const Result<Attributes> target = fs.stat(without_end_slashes(to), Credentials::root(), Follow::kNo);
  if (target.ok() && target->ino == source.ino && !no_replace) {
    return Error{Errc::kInvalid, "source and destination are the same"};
  }
  return fs.rename(from, to, no_replace ? unsigned{RENAME_NOREPLACE} : 0u, Credentials::root());
}

int mv(const Options& options) {
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    const auto each = [&](const std::string& from, const std::string& to) -> Result<void> {
      const Result<void> moved = move(fs, from, to, options.no_replace);
      if (moved.ok() || moved.error().code != Errc::kExists || !options.no_replace) return moved;
      failures.add(from, "not moved: the destination exists, and -n keeps it");
      return {};
    };
    each_to_destination(fs, options.paths, options.as_name, failures, each);
  });
}

int ln(const Options& options) {
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    const auto each = [&](const std::string& from, const std::string& to) -> Result<void> {
      if (options.symbolic) {
        PMFS_TRY(fs.symlink(from, to, creator_credentials()));
      } else {
        PMFS_TRY(fs.link(from, to, Credentials::root()));
      }
      return {};
    };
    each_to_destination(fs, options.paths, options.as_name, failures, each);
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
