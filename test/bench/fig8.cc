// fig8: a trace of look-ups (io_trace.h), replayed by each resolver. After figure 8 of the Stage Lookup paper.
//
//   walk, stage/list, stage/hashed, fullpath   the trace; the cache is empty at the start
//   mixP/...                                   P % of renames and chmods of directories between the requests, as many
//                                              of each; a directory is renamed and at once renamed back
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "test/bench/bench.h"
#include "test/bench/io_trace.h"
#include "test/support/prng.h"
#include "tools/kept_pool.h"
#include "tools/resolvers.h"

namespace pmfs::bench {

namespace {

using tools::KeptPool;
using tools::NamedResolver;
using tools::resolvers;

constexpr std::string_view kFigure = "fig8";
const Credentials kWho{.uid = 1000, .gid = 1000};
// Published: stage 29.6 % below walk and 21.3 % below fullpath; so fullpath is at 0.704 / 0.787 of walk.
constexpr double kStage = 1 - 0.296;
constexpr double kFullpath = kStage / (1 - 0.213);

struct Settings {
  std::string requests;
  std::vector<std::string> only;
  bool open = false;
};

/// Renames and chmods of directories, drawn at random.
class Changes {
 public:
  explicit Changes(const IoTrace& trace) : dirs_(trace.dirs) {}

  /// Two changes: a rename there and back, or two chmods.
  void two(Filesystem& fs) {
    const std::string& dir = dirs_[random_.below(dirs_.size())];
    if ((pairs_++ & 1) == 0) {
      const std::string away = dir + ".moved";
      must(fs.rename(dir, away, 0, Credentials::root()));
      must(fs.rename(away, dir, 0, Credentials::root()));
    } else {
      SetAttributes narrow, wide;
      narrow.mode = 0711;
      wide.mode = 0755;
      must(fs.set_attributes(dir, narrow, Credentials::root()));
      must(fs.set_attributes(dir, wide, Credentials::root()));
    }
  }

 private:
  const std::vector<std::string>& dirs_;
  test::Prng random_{8};
  u64 pairs_ = 0;
};

class Replay {
 public:
  Replay(Context& context, const Settings& settings)
      : report_(context.report),
        open_(settings.open),
        trace_(io_trace(
            parse_count(settings.requests.empty() ? (context.options.quick ? "130k" : "13M") : settings.requests))),
        pool_(context.target, u64{32} << 20) {
    Filesystem fs = pool_.open({});
    for (const std::string& dir : trace_.dirs) must(fs.mkdir(dir, 0755, Credentials::root()));
    for (const std::string& file : trace_.files) must(fs.mknod(file, S_IFREG | 0644, 0, Credentials::root()));
    must(fs.close());
  }

  void shape() {
    report_.sample(kFigure, "trace", "requests", "requests", static_cast<double>(trace_.requests.size()));
    report_.sample(kFigure, "trace", "components", "components", static_cast<double>(trace_.components));
    report_.sample(kFigure, "trace", "dentries", "dentries", static_cast<double>(trace_.dentries));
    for (const auto& [metric, published] : {std::pair("requests", 13e6), {"components", 89e6}, {"dentries", 235.0}})
      report_.compare(kFigure, "trace", metric, "", published);
  }

  /// @param every  two changes after so many requests; 0: none.
  void round(const std::string& case_name, const OpenOptions& options, u64 every) {
    Filesystem fs = pool_.open(options);
    Changes changes(trace_);
    const double ns = processor_nanoseconds([&] {
      u64 left = every;
      for (const u16 file : trace_.requests) {
        const std::string& path = trace_.files[file];
        if (open_) {
          must(must(fs.open_file(path, O_RDONLY, 0, kWho)).close());
        } else {
          must(fs.stat(path, kWho));
        }
        if (every != 0 && --left == 0) {
          changes.two(fs);
          left = every;
        }
      }
    });
    const LookupStatistics seen = fs.lookup_statistics();
    must(fs.close());
    const auto requests = static_cast<double>(trace_.requests.size());
    report_.sample(kFigure, case_name, "total_ms", "ms", ns / 1e6);
    report_.sample(kFigure, case_name, "request_ns", "ns", ns / requests);
    report_.sample(kFigure, case_name, "skipped_per_request", "components",
                   static_cast<double>(seen.skipped) / requests);
  }

 private:
  Report& report_;
  const bool open_;
  const IoTrace trace_;
  const KeptPool pool_;
};

void run(Context& context, const Settings& settings) {
  Replay replay(context, settings);
  replay.shape();
  std::vector<Case> cases;
  const unsigned rounds = 3;
  struct Mix {
    std::string prefix;
    u64 every;
  };
  const auto wanted = [&](const std::string& name) {
    return settings.only.empty() || std::find(settings.only.begin(), settings.only.end(), name) != settings.only.end();
  };
  const Mix mixes[] = {{"", 0}, {"mix0.1/", 2000}, {"mix1/", 200}, {"mix10/", 20}};
  for (const Mix& mix : mixes) {
    for (const NamedResolver& one : resolvers()) {
      const std::string name = mix.prefix + one.name;
      if (!wanted(name)) continue;
      cases.push_back({[=, &replay] { replay.round(name, one.options, mix.every); }, rounds});
    }
  }
  alternate(cases);
  for (const Mix& mix : mixes) {
    for (const NamedResolver& one : resolvers()) {
      if (one.name == "walk" || !wanted(mix.prefix + one.name) || !wanted(mix.prefix + "walk")) continue;
      std::optional<double> published;
      if (mix.every == 0) published = one.name == "fullpath" ? kFullpath : kStage;
      for (const char* metric : {"total_ms", "request_ns"})
        context.report.compare(kFigure, mix.prefix + one.name, metric, mix.prefix + "walk", published);
    }
  }
}

}  // namespace

Bench fig8(CLI::App& app) {
  auto settings = std::make_shared<Settings>();
  CLI::App* const command = app.add_subcommand("fig8", "Replay a trace of an I/O forwarding node, by each resolver");
  command->add_option("--requests", settings->requests, "How many, like 130k; multiples of 13 keep the shape exact")
      ->check([](const std::string& text) { return wrong_count(text, 5000); });
  command->add_option("--only", settings->only, "Only these cases, like mix1/walk");
  command->add_flag("--open", settings->open, "Requests are open and close, as the paper replays; not stat");
  command->footer("Example:\n  pmfs bench fig8 --requests 1300k --json");
  return {command, [settings](Context& context) { run(context, *settings); }};
}

}  // namespace pmfs::bench
