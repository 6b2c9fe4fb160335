// pmfs tree: a tree of a pool, drawn as tree(1) does.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "commands.h"
#include "json_out.h"
#include "report.h"
#include "walk.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string path = "/";
  u32 levels = ~u32{0};
  bool all = false;
  bool json = false;
};

/// What the lines are drawn with.
struct Strokes {
  const char* branch;
  const char* last_branch;
  const char* pass;
  const char* space = "    ";
};

Strokes strokes_of_locale() {
  std::string locale;
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = getenv(variable);
    if (!locale.empty() || value == nullptr) continue;
    locale = value;
  }
  const bool utf8 = locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  return utf8 ? Strokes{"├── ", "└── ", "│   "} : Strokes{"|-- ", "`-- ", "|   "};
}

class Drawing {
 public:
  Drawing(Filesystem& fs, const Options& options) : fs_(fs), options_(options) {}

  bool enter(const Met& met) {
    const bool directory = met.attributes.type() == FileType::kDirectory;
    if (met.depth > 0) ++(directory ? directories_ : others_);
    if (options_.json) {
      rows_.push_back(row_of(fs_, met));
    } else {
      line(met);
    }
    return met.depth < options_.levels;
  }

  void finish() {
    if (options_.json) {
      print_rows("tree", options_.pool, std::move(rows_));
    } else {
      fmt::print("\n{} {}, {} {}\n", directories_, directories_ == 1 ? "directory" : "directories", others_,
                 others_ == 1 ? "file" : "files");
    }
  }

 private:
  void line(const Met& met) {
    const auto shown = [&](std::string_view name) { return terminal_ ? printable(name) : std::string(name); };
    if (met.depth == 0) {
      fmt::print("{}", shown(met.path));
    } else {
      // One piece for each directory above: whether more will come in it, below this line.
      open_.resize(met.depth);
      open_[met.depth - 1] = !met.last;
      for (u32 level = 0; level + 1 < met.depth; ++level)
        fmt::print("{}", open_[level] ? strokes_.pass : strokes_.space);
      fmt::print("{}{}", met.last ? strokes_.last_branch : strokes_.branch, shown(met.name));
    }
    if (met.attributes.type() == FileType::kSymlink) {
      const Result<std::string> target = fs_.readlink(At::inode(met.attributes.ino), Credentials::root());
      if (target.ok()) fmt::print(" -> {}", shown(*target));
    }
    fmt::print("\n");
  }

  Filesystem& fs_;
  const Options& options_;
  const bool terminal_ = isatty(STDOUT_FILENO) == 1;
  const Strokes strokes_ = strokes_of_locale();
  std::vector<bool> open_;
  Json rows_ = Json::array();
  u64 directories_ = 0, others_ = 0;
};

int tree(const Options& options) {
  return look_at_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    const Result<Attributes> top = fs.stat(options.path, Credentials::root());
    if (!top.ok()) return failures.add(options.path, top.error());
    if (top->type() != FileType::kDirectory) return failures.add(options.path, Error{Errc::kNotDirectory, ""});
    Drawing drawing(fs, options);
    Walk on;
    on.enter = [&](const Met& met) { return drawing.enter(met); };
    if (!options.all) on.is_shown = [](std::string_view name) { return name[0] != '.'; };
    walk(fs, options.path, *top, failures, on);
    drawing.finish();
  });
}

}  // namespace

void add_tree(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("tree", "Draw a tree of a pool");
  command->add_option("POOL", options->pool, "Pool file or poolset file")->required();
  command->add_option("PATH", options->path, "Directory in the pool (default /)");
  command->add_flag("-a", options->all, "Also names that begin with a dot");
  command->add_option("-L,--level", options->levels, "No deeper than this")->check(CLI::PositiveNumber);
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)");
  command->footer(
      "The directory itself is not counted. Symbolic links below it are not followed.\n\n"
      "Example:\n  pmfs tree -L 2 /dev/shm/demo.pool /photos");
  command->callback([options, &exit_code] { exit_code = tree(*options); });
}

}  // namespace pmfs::tools
