// fig9: what a rename and a chmod of a directory cost, over what lies below it in the cache. After figure 9 of the
// Stage Lookup paper.
//
//   levelL/...   a directory at level L of a tree of six levels: one directory at level 1, ten in each below it down to
//                level 5, where each has one file of 4 KiB; 21,111 nodes
//   wide/...     a directory at level 1 with a million files below it, in folders of a thousand
// Before each single measurement all nodes are looked up, so that all are in the cache; among them the stage's pivots
// have been chosen. One call is measured, and undone before the next.
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <memory>

#include "fs/filesystem_impl.h"
#include "test/bench/bench.h"
#include "tools/kept_pool.h"
#include "tools/resolvers.h"

namespace pmfs::bench {

namespace {

using tools::KeptPool;
using tools::NamedResolver;
using tools::resolvers;

constexpr std::string_view kFigure = "fig9";
constexpr unsigned kLevels = 6;
constexpr unsigned kPerDir = 10;
constexpr u64 kPerFolder = 1000;
const Credentials kWho{.uid = 1000, .gid = 1000};
const Credentials kRoot = Credentials::root();
// Published for the directory of level 1, "up to".
constexpr double kFullpathRename = 48.8;
constexpr double kFullpathChmod = 94.9;

struct Settings {
  std::string nodes;
};

/// A file system, its nodes, and how to look at all of them.
class Tree {
 public:
  Tree(Context& context, const NamedResolver& resolver, u64 pool_bytes)
      : report_(context.report), name_(resolver.name), pool_(context.target, pool_bytes) {
    OpenOptions options = resolver.options;
    options.pivots_adaptive = false;
    options.pivot_period_ms = 3'600'000;  // no period ends while time is measured
    fs_ = pool_.open(options);
  }
  virtual ~Tree() = default;
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  /// One sample of each metric for each place.
  virtual void round() = 0;
  void close() { must(fs_.close()); }

 protected:
  virtual void look_at_all() = 0;

  /// Twice, as what was looked up once becomes no pivot; then pivots are chosen.
  void warm() {
    look_at_all();
    look_at_all();
    volume_of(fs_).paths.maintain_now();
  }

  void measure(const std::string& place, const std::string& dir) {
    const std::string away = dir + "x";
    warm();
    const double renamed = processor_nanoseconds([&] { must(fs_.rename(dir, away, 0, kRoot)); });
    must(fs_.rename(away, dir, 0, kRoot));
    report_.sample(kFigure, place + "/" + name_, "rename_ns", "ns", renamed);

    SetAttributes narrow, wide;
    narrow.mode = 0711;
    wide.mode = 0755;
    warm();
    const double changed = processor_nanoseconds([&] { must(fs_.set_attributes(dir, narrow, kRoot)); });
    must(fs_.set_attributes(dir, wide, kRoot));
    report_.sample(kFigure, place + "/" + name_, "chmod_ns", "ns", changed);
  }

  void look_at(const std::string& path) { must(fs_.stat(path, kWho)); }

  Report& report_;
  const std::string name_;
  const KeptPool pool_;
  Filesystem fs_;
};

class SixLevels final : public Tree {
 public:
  SixLevels(Context& context, const NamedResolver& resolver) : Tree(context, resolver, u64{192} << 20) {
    make("/d0", 1);
  }
  void round() override {
    std::string dir;
    for (unsigned level = 1; level < kLevels; ++level) {
      dir += "/d0";
      measure(fmt::format("level{}", level), dir);
    }
  }

 private:
  void make(const std::string& path, unsigned level) {
    nodes_.push_back(path);
    if (level == kLevels) {
      static constexpr std::array<std::byte, 4096> kData{};
      const Attributes made = must(fs_.mknod(path, S_IFREG | 0644, 0, kRoot));
      must(fs_.write(made.ino, 0, kData, kRoot));
      return;
    }
    must(fs_.mkdir(path, 0755, kRoot));
    const unsigned below = level + 1 == kLevels ? 1 : kPerDir;
    for (unsigned i = 0; i < below; ++i) make(fmt::format("{}/d{}", path, i), level + 1);
  }
  void look_at_all() override {
    for (const std::string& path : nodes_) look_at(path);
  }

  std::vector<std::string> nodes_;
};

class Wide final : public Tree {
 public:
  Wide(Context& context, const NamedResolver& resolver, u64 nodes)
      : Tree(context, resolver, nodes * 600 + (u64{64} << 20)), nodes_(nodes) {
    must(fs_.mkdir("/wide", 0755, kRoot));
    for (u64 i = 0; i < nodes_; ++i) {
      if (i % kPerFolder == 0) must(fs_.mkdir(folder(i), 0755, kRoot));
      must(fs_.mknod(file(i), S_IFREG | 0644, 0, kRoot));
    }
  }
  void round() override {
    measure("wide", "/wide");
    const LookupStatistics now = fs_.lookup_statistics();
    report_.sample(kFigure, "wide/" + name_, "cached", "names", static_cast<double>(now.entries));
  }

 private:
  static std::string folder(u64 i) { return fmt::format("/wide/folder{}", i / kPerFolder); }
  static std::string file(u64 i) { return fmt::format("{}/file{}", folder(i), i % kPerFolder); }
  void look_at_all() override {
    for (u64 i = 0; i < nodes_; ++i) look_at(file(i));
  }

  const u64 nodes_;
};

void compare(Report& report, const std::string& place, const std::string& resolver, bool published) {
  if (resolver == "walk") return;
  const bool fullpath = resolver == "fullpath" && published;
  report.compare(kFigure, place + "/" + resolver, "rename_ns", place + "/walk",
                 fullpath ? std::optional(kFullpathRename) : std::nullopt);
  report.compare(kFigure, place + "/" + resolver, "chmod_ns", place + "/walk",
                 fullpath ? std::optional(kFullpathChmod) : std::nullopt);
}

void run(Context& context, const Settings& settings) {
  const bool quick = context.options.quick;
  const u64 nodes = parse_count(settings.nodes.empty() ? (quick ? "5k" : "1M") : settings.nodes);
  const auto run_all = [&](auto make, unsigned rounds, const std::vector<NamedResolver>& all) {
    std::vector<std::unique_ptr<Tree>> trees;
    std::vector<Case> cases;
    for (const NamedResolver& one : all) {
      trees.push_back(make(one));
      cases.push_back({[tree = trees.back().get()] { tree->round(); }, rounds});
    }
    alternate(cases);
    for (const auto& tree : trees) tree->close();
  };
  const std::vector<NamedResolver> all = resolvers(std::max(u64{64} << 20, nodes * 400));
  run_all([&](const NamedResolver& one) { return std::make_unique<SixLevels>(context, one); }, quick ? 3 : 15, all);
  run_all([&](const NamedResolver& one) { return std::make_unique<Wide>(context, one, nodes); }, quick ? 3 : 7, all);
  for (const NamedResolver& one : all) {
    for (unsigned level = 1; level < kLevels; ++level)
      compare(context.report, fmt::format("level{}", level), one.name, level == 1);
    compare(context.report, "wide", one.name, false);
  }
}

}  // namespace

Bench fig9(CLI::App& app) {
  auto settings = std::make_shared<Settings>();
  CLI::App* const command =
      app.add_subcommand("fig9", "Rename and chmod directories with much below them in the cache");
  command->add_option("--nodes", settings->nodes, "How many files below the wide directory, like 1M")
      ->check([](const std::string& text) { return wrong_count(text, 1); });
  command->footer("Example:\n  pmfs bench fig9 --nodes 100k --json");
  return {command, [settings](Context& context) { run(context, *settings); }};
}

}  // namespace pmfs::bench
