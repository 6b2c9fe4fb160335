// pmfs rm: removes names, and with -r whole trees, from an unmounted pool.
#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "walk.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::vector<std::string> paths;
  bool recursive = false;
  bool force = false;
};

/// What lies below goes first; a directory in which something could not be removed stays, and so do those above it.
void remove_tree(Filesystem& fs, const std::string& path, const Attributes& top, Failures& failures) {
  const auto said = [&](std::string_view subject, const Result<void>& done) {
    if (!done.ok()) failures.add(subject, done.error());
  };
  const std::string plain = without_end_slashes(path);
  const auto place = [&](const Met& met) { return met.depth == 0 ? At(plain) : met.at(); };
  Walk on;
  on.enter = [&](const Met& met) {
    if (met.attributes.type() == FileType::kDirectory) return true;
    said(met.path, fs.unlink(place(met), Credentials::root()));
    return false;
  };
  on.leave = [&](const Met& met) { said(met.path, fs.rmdir(place(met), Credentials::root())); };
  walk(fs, plain, top, failures, on);
}

void remove(Filesystem& fs, const std::string& path, const Options& options, Failures& failures) {
  const std::string name = last_name(path);
  if (name == "." || name == "..") return failures.add(path, "neither . nor .. is removed; give the directory's name");
  const Result<Attributes> found = look(fs, path);
  if (!found.ok()) {
    if (!options.force || found.error().code != Errc::kNotFound) failures.add(path, found.error());
    return;
  }
  if (found->ino == kRootIno) return failures.add(path, "the root directory stays; give the names of what is in it");
  if (found->type() == FileType::kDirectory && !options.recursive)
    return failures.add(path, "this is a directory; -r removes it with everything in it");
  remove_tree(fs, path, *found, failures);
}

int rm(const Options& options) {
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    for_each_path(options.paths, failures, [&](const std::string& path) -> Result<void> {
      remove(fs, path, options, failures);
      return {};
    });
  });
}

}  // namespace

void add_rm(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("rm", "Remove files, and with -r directories, from a pool");
  add_pool_and_paths(*command, options->pool, options->paths, "What to remove; a symbolic link itself");
  command->add_flag("-r,-R,--recursive", options->recursive, "Directories, with everything in them");
  command->add_flag("-f,--force", options->force, "What is not there is no error");
  command->footer(
      "Never asks. Each name goes by itself: if it is interrupted, what has not gone is whole.\n\n"
      "Example:\n  pmfs rm -r /dev/shm/demo.pool /photos/2023 /notes.txt");
  command->callback([options, &exit_code] { exit_code = rm(*options); });
}

}  // namespace pmfs::tools
