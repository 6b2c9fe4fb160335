// pmfs find: the paths of what is in a tree of a pool.
#include <fmt/format.h>
#include <fnmatch.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "json_out.h"
#include "report.h"
#include "walk.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::vector<std::string> paths{"/"};
  std::string name;
  std::string types;
  u32 max_depth = ~u32{0};
  bool zero = false;
  bool json = false;
};

char type_letter(FileType type) {
  switch (type) {
    case FileType::kRegular: return 'f';
    case FileType::kDirectory: return 'd';
    case FileType::kSymlink: return 'l';
    case FileType::kFifo: return 'p';
    case FileType::kCharDevice: return 'c';
    case FileType::kBlockDevice: return 'b';
    case FileType::kSocket: return 's';
    case FileType::kNone: break;
  }
  return '?';
}

bool is_wanted(const Met& met, const Options& options) {
  if (!options.types.empty() && options.types.find(type_letter(met.attributes.type())) == std::string::npos) {
    return false;
  }
  return options.name.empty() || fnmatch(options.name.c_str(), std::string(met.name).c_str(), 0) == 0;
}

int find(const Options& options) {
  if (options.types.find_first_not_of("fdlpcbs,") != std::string::npos) {
    report_text("-type " + options.types, "types are f, d, l, p, c, b and s, several with commas");
    return kExitUsage;
  }
  Json rows = Json::array();
  const bool terminal = !options.zero && isatty(STDOUT_FILENO) == 1;
  const int exit_code = look_at_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    Walk on;
    on.enter = [&](const Met& met) {
      if (is_wanted(met, options)) {
        if (options.json) {
          rows.push_back(row_of(fs, met));
        } else {
          fmt::print("{}{}", terminal ? printable(met.path) : met.path, options.zero ? '\0' : '\n');
        }
      }
      return met.depth < options.max_depth;
    };
    for_each_path(options.paths, failures, [&](const std::string& path) -> Result<void> {
      PMFS_ASSIGN(const Attributes top, fs.stat(path, Credentials::root(), Follow::kNo));
      walk(fs, path, top, failures, on);
      return {};
    });
  });
  if (options.json && (exit_code == kExitOk || !rows.empty())) print_rows("find", options.pool, std::move(rows));
  return exit_code;
}

}  // namespace

void add_find(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("find", "List what is in trees of a pool, one path a line");
  command->add_option("POOL", options->pool, "Pool file or poolset file")->required();
  command->add_option("PATH", options->paths, "Where to begin (default /)");
  command->add_option("--name", options->name, "Only names that match this pattern, as of the shell: '*.jpg'");
  command->add_option("--type", options->types, "Only these: f, d, l, p, c, b, s; several with commas");
  command->add_option("--maxdepth", options->max_depth, "No deeper below PATH than this");
  CLI::Option* const zero = command->add_flag("--print0", options->zero, "A NUL byte behind each path");
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)")->excludes(zero);
  command->footer(
      "Sorted by name in each directory. One minus does, too: -name, -type, -maxdepth, -print0.\n\n"
      "Example:\n  pmfs find /dev/shm/demo.pool /photos -name '*.jpg' -type f");
  command->callback([options, &exit_code] { exit_code = find(*options); });
}

}  // namespace pmfs::tools
