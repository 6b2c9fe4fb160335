// pmfs cp: copies within an unmounted pool.
#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "copy_within.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::vector<std::string> paths;  ///< the last one is the destination
  bool as_name = false;
  CopyOptions copy;
};

int cp(const Options& options) {
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    CopyWithin copies(fs, options.copy, failures);
    each_to_destination(fs, options.paths, options.as_name, failures,
                        [&](const std::string& from, const std::string& to) { return copies.copy(from, to); });
  });
}

}  // namespace

void add_cp(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("cp", "Copy files and trees within a pool");
  add_sources_and_destination(*command, options->pool, options->paths, options->as_name);
  command->add_flag("-r,-R,--recursive", options->copy.recursive,
                    "Directories with everything in them; symbolic links and special files as what they are");
  command->add_flag("-a,--archive", options->copy.archive,
                    "As -r, and keep modes, owners, times, hard links, extended attributes and ACLs");
  command->footer(
      "Holes stay holes. Directories are merged; a file that exists gets the new contents. If it is interrupted, a "
      "part "
      "is there; the same command again completes it.\n\n"
      "Example:\n  pmfs cp -a /dev/shm/demo.pool /photos /photos.old");
  command->callback([options, &exit_code] {
    options->copy.recursive = options->copy.recursive || options->copy.archive;
    exit_code = cp(*options);
  });
}

}  // namespace pmfs::tools
