// pmfs du: how much room trees of a pool take.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <unordered_set>

#include "commands.h"
#include "json_out.h"
#include "report.h"
#include "size_text.h"
#include "walk.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::vector<std::string> paths{"/"};
  bool summary = false;
  bool human = false;
  bool json = false;
};

class Sums {
 public:
  explicit Sums(const Options& options) : options_(options) {}

  bool enter(const Met& met) {
    if (sums_.size() <= met.depth) sums_.resize(met.depth + 1);
    sums_[met.depth] = 0;
    const Attributes& found = met.attributes;
    const bool directory = found.type() == FileType::kDirectory;
    // A file of several names takes its room once.
    const bool counts = directory || found.links < 2 || linked_.insert(to_u64(found.ino)).second;
    if (counts) sums_[met.depth] = found.blocks_512 * 512;
    if (directory) return true;
    if (met.depth > 0) {
      sums_[met.depth - 1] += sums_[met.depth];
    } else if (counts) {
      show(met.path, sums_[0]);
    }
    return false;
  }

  void leave(const Met& met) {
    if (met.depth == 0 || !options_.summary) show(met.path, sums_[met.depth]);
    if (met.depth > 0) sums_[met.depth - 1] += sums_[met.depth];
  }

  Json take_rows() { return std::move(rows_); }

 private:
  void show(std::string_view path, u64 bytes) {
    if (options_.json) {
      Json row;
      add_bytes(row, "path", path);
      row["used_bytes"] = bytes;
      rows_.push_back(std::move(row));
    } else {
      fmt::print("{}\t{}\n", options_.human ? size_text(bytes) : fmt::format("{}", (bytes + 1023) / 1024),
                 terminal_ ? printable(path) : path);
    }
  }

  const Options& options_;
  const bool terminal_ = isatty(STDOUT_FILENO) == 1;
  std::vector<u64> sums_;  ///< of the directories that the walk is in, outermost first
  std::unordered_set<u64> linked_;
  Json rows_ = Json::array();
};

int du(const Options& options) {
  Sums sums(options);
  const int exit_code = look_at_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    Walk on;
    on.enter = [&](const Met& met) { return sums.enter(met); };
    on.leave = [&](const Met& met) { sums.leave(met); };
    for_each_path(options.paths, failures, [&](const std::string& path) -> Result<void> {
      PMFS_ASSIGN(const Attributes top, fs.stat(path, Credentials::root(), Follow::kNo));
      walk(fs, path, top, failures, on);
      return {};
    });
  });
  if (options.json) {
    Json rows = sums.take_rows();
    if (exit_code == kExitOk || !rows.empty()) print_rows("du", options.pool, std::move(rows));
  }
  return exit_code;
}

}  // namespace

void add_du(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("du", "Show how much room directories of a pool take");
  command->set_help_flag("--help", "Print this help message and exit");  // -h is du's own
  command->add_option("POOL", options->pool, "Pool file or poolset file")->required();
  command->add_option("PATH", options->paths, "Where to begin (default /)");
  command->add_flag("-s,--summarize", options->summary, "Only what is given, not each directory below");
  command->add_flag("-h,--human-readable", options->human, "Sizes for reading, like 1.0 GiB; else in KiB");
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)");
  command->footer(
      "Counts the blocks of files, of directories and of attributes; a file of several names once.\n\n"
      "Example:\n  pmfs du -sh /dev/shm/demo.pool /photos");
  command->callback([options, &exit_code] { exit_code = du(*options); });
}

}  // namespace pmfs::tools
