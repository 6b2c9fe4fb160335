// dirindex: whole workloads with the directory index on and off, as "directory index for PMFS" measured them.
//
// A load is a tree of files, most of them made beforehand ("pre-allocation"), and then a mix of reads, writes,
// creations and removals. The shapes are those of filebench's fileserver, webserver and webproxy, and the paper's six
// of its own: {narrow, middle, everything in one directory} x {small, large files}. Sizes follow a gamma distribution,
// as there. Index and scan get the same operations on the same names and sizes, each on a fresh pool.
//
// Flushes are write-backs of metadata: the lines of file data are the same for both, and would hide what an index
// costs.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <memory>
#include <random>

#include "test/bench/bench.h"
#include "tools/throw_away_pool.h"

namespace pmfs::bench {

namespace {

constexpr std::string_view kFigure = "dirindex";
constexpr u64 kEverything = ~u64{0};
constexpr double kMegabyte = 1024.0 * 1024.0;

struct Settings {
  u64 files = 0, loops = 0;  // 0: by --quick
  unsigned rounds = 0;
  double preallocated = 0.8;
  u64 narrow = 20, middle = 1000;
  u64 small = 4096, large = 32768, web = 16384, server = 32768;
  std::vector<std::string> loads;
};

enum class Mix { kFileServer, kWebServer, kWebProxy, kMixed };

/// What the paper says: the value with the index divided by the one without.
struct Published {
  std::optional<double> prealloc, bandwidth, fences, flushes;
};

struct Load {
  std::string name;
  Mix mix;
  u64 width;  ///< names in a directory
  u64 mean_bytes;
  Published published;
};

std::vector<Load> loads(const Settings& s) {
  // Figures 3 and 4 of the paper; of figure 2 its text gives only the worst load, the fourth.
  return {{"fileserver", Mix::kFileServer, s.narrow, s.server, {1.0, 1.01, {}, {}}},
          {"webserver", Mix::kWebServer, s.narrow, s.web, {1.0, 1.015, {}, {}}},
          {"webproxy", Mix::kWebProxy, kEverything, s.web, {0.083, 1.253, {}, {}}},
          {"custom1", Mix::kMixed, s.narrow, s.small, {}},
          {"custom2", Mix::kMixed, s.middle, s.small, {}},
          {"custom3", Mix::kMixed, kEverything, s.small, {0.081, 1.273, {}, {}}},
          {"custom4", Mix::kMixed, s.narrow, s.large, {{}, {}, 1.096, 1.070}},
          {"custom5", Mix::kMixed, s.middle, s.large, {}},
          {"custom6", Mix::kMixed, kEverything, s.large, {0.072, 1.155, {}, {}}}};
}

const Credentials kWho = Credentials::root();

/// One load running on one pool.
class Run {
 public:
  Run(const Load& load, const Settings& settings, Filesystem& fs)
      : load_(load),
        settings_(settings),
        fs_(fs),
        size_(1.5, static_cast<double>(load.mean_bytes) / 1.5),
        buffer_(load.mean_bytes * 8, std::byte{0x5a}) {}

  void preallocate() {
    make_directories();
    const auto count = static_cast<u64>(static_cast<double>(settings_.files) * settings_.preallocated);
    for (u64 i = 0; i < settings_.files; ++i) (i < count ? there_ : missing_).push_back(i);
    for (const u64 file : there_) write_new(file);
    append("/log", load_.mean_bytes);
  }

  /// @return bytes read and written.
  u64 work() {
    const u64 before = moved_;
    for (u64 i = 0; i < settings_.loops; ++i) {
      switch (load_.mix) {
        case Mix::kFileServer:
          create();
          append(path(pick()), load_.mean_bytes / 8);
          read(path(pick()));
          remove();
          must(fs_.stat(path(pick()), kWho));
          break;
        case Mix::kWebServer:
          for (int k = 0; k < 10; ++k) read(path(pick()));
          append("/log", 16384);
          break;
        case Mix::kWebProxy:
          remove();
          create();
          for (int k = 0; k < 5; ++k) read(path(pick()));
          append("/log", 16384);
          break;
        case Mix::kMixed:
          create();
          read(path(pick()));
          append(path(pick()), load_.mean_bytes / 4);
          read(path(pick()));
          remove();
          break;
      }
    }
    return moved_ - before;
  }

 private:
  // Directories hold `width` names each, files or directories, so all files lie at the same depth.
  std::string directory(u64 number) const {
    std::string out;
    for (u64 count = directories_; count > 1; count = (count + load_.width - 1) / load_.width, number /= load_.width)
      out.insert(0, fmt::format("/d{}", number % load_.width));
    return out;
  }
  std::string path(u64 file) const { return fmt::format("{}/f{:07}", directory(file / load_.width), file); }

  void make_directories() {
    directories_ = load_.width >= settings_.files ? 1 : (settings_.files + load_.width - 1) / load_.width;
    for (u64 i = 0; i < directories_; ++i) {
      const std::string whole = directory(i);
      for (std::size_t end = whole.find('/', 1); !whole.empty(); end = whole.find('/', end + 1)) {
        const std::string part = whole.substr(0, end);
        if (!fs_.stat(part, kWho).ok()) must(fs_.mkdir(part, 0755, kWho));
        if (end == std::string::npos) break;
      }
    }
  }

  u64 pick() { return there_[random_() % there_.size()]; }
  std::span<std::byte> bytes(u64 count) { return std::span(buffer_).first(std::min<u64>(count, buffer_.size())); }

  void write_new(u64 file) {
    File out = must(fs_.open_file(path(file), O_CREAT | O_EXCL | O_WRONLY, 0644, kWho));
    moved_ += must(out.write(0, bytes(1 + static_cast<u64>(size_(random_)))));
    must(out.close());
  }
  void create() {
    if (missing_.empty()) return;
    const std::size_t at = random_() % missing_.size();
    const u64 file = missing_[at];
    missing_[at] = missing_.back();
    missing_.pop_back();
    write_new(file);
    there_.push_back(file);
  }
  void remove() {
    if (there_.size() < 2) return;
    const std::size_t at = random_() % there_.size();
    const u64 file = there_[at];
    there_[at] = there_.back();
    there_.pop_back();
    must(fs_.unlink(path(file), kWho));
    missing_.push_back(file);
  }
  void append(const std::string& to, u64 count) {
    File out = must(fs_.open_file(to, O_CREAT | O_WRONLY | O_APPEND, 0644, kWho));
    moved_ += must(out.write(0, bytes(count)));
    must(out.close());
  }
  void read(const std::string& from) {
    File in = must(fs_.open_file(from, O_RDONLY, 0, kWho));
    for (u64 off = 0;;) {
      const std::size_t n = must(in.read(off, buffer_));
      moved_ += n;
      off += n;
      if (n < buffer_.size()) break;
    }
    must(in.close());
  }

  const Load& load_;
  const Settings& settings_;
  Filesystem& fs_;
  std::mt19937_64 random_{20170501};
  std::gamma_distribution<double> size_;
  std::vector<std::byte> buffer_;
  std::vector<u64> there_, missing_;
  u64 directories_ = 1;
  u64 moved_ = 0;
};

void round(const Load& load, const Settings& settings, bool index, Context& context) {
  OpenOptions options;
  options.dir_index = index;
  const u64 pool = settings.files * (load.mean_bytes + 6144) / 10 * 12 + settings.loops * 16384 + (u64{64} << 20);
  Filesystem fs = tools::throw_away_pool(pool, context.target, options);
  Run run(load, settings, fs);
  const std::string name = load.name + (index ? "/index" : "/scan");
  const auto sample = [&](std::string_view metric, std::string_view unit, double value) {
    context.report.sample(kFigure, name, metric, unit, value);
  };
  sample("prealloc_ms", "ms", nanoseconds([&] { run.preallocate(); }) / 1e6);
  u64 moved = 0;
  const Cost cost = cost_of([&] { moved = run.work(); });
  const double megabytes = static_cast<double>(moved) / kMegabyte;
  sample("bandwidth", "MiB/s", megabytes / (cost.ns / 1e9));
  sample("fences_per_mb", "fences", static_cast<double>(cost.counters.fences) / megabytes);
  const double metadata =
      static_cast<double>(cost.counters.lines) - static_cast<double>(cost.counters.copied_bytes) / 64.0;
  sample("flushes_per_mb", "lines", metadata / megabytes);
  must(fs.close());
}

void run(Settings settings, Context& context) {
  const bool quick = context.options.quick;
  if (settings.files == 0) settings.files = quick ? 4000 : 100'000;
  if (settings.loops == 0) settings.loops = quick ? 1000 : 10'000;
  if (settings.rounds == 0) settings.rounds = quick ? 1 : 3;
  const std::vector<Load> all = loads(settings);
  std::vector<Case> cases;
  for (const Load& load : all) {
    if (!settings.loads.empty() &&
        std::find(settings.loads.begin(), settings.loads.end(), load.name) == settings.loads.end())
      continue;
    for (const bool index : {false, true})
      cases.push_back({[&, index] { round(load, settings, index, context); }, settings.rounds});
    const Published& said = load.published;
    const auto compare = [&](std::string_view metric, std::optional<double> published) {
      context.report.compare(kFigure, load.name + "/index", metric, load.name + "/scan", published);
    };
    compare("prealloc_ms", said.prealloc);
    compare("bandwidth", said.bandwidth);
    compare("fences_per_mb", said.fences);
    compare("flushes_per_mb", said.flushes);
  }
  alternate(cases);
}

}  // namespace

Bench dirindex(CLI::App& app) {
  auto settings = std::make_shared<Settings>();
  CLI::App* const command = app.add_subcommand("dirindex", "The paper's loads, with the directory index and by scan");
  std::vector<std::string> names;
  for (const Load& load : loads(*settings)) names.push_back(load.name);
  const auto bytes = CLI::AsSizeValue(false);
  const auto some = CLI::Range(u64{1}, u64{1} << 30);
  command->add_option("--loads", settings->loads, "Which ones")->delimiter(',')->check(CLI::IsMember(names));
  command->add_option("--files", settings->files, "Files in all (100000)")->check(CLI::Range(u64{10}, u64{10'000'000}));
  command->add_option("--preallocated", settings->preallocated, "Share of them made beforehand (0.8)")
      ->check(CLI::Range(0.1, 1.0));
  command->add_option("--loops", settings->loops, "How often each load goes through its mix (10000)")->check(some);
  command->add_option("--rounds", settings->rounds, "Rounds of each case (3)")->check(CLI::Range(1u, 1000u));
  command->add_option("--narrow", settings->narrow, "Names in a narrow directory (20)")
      ->check(CLI::Range(2u, 1u << 30));
  command->add_option("--middle", settings->middle, "Names in a middle one (1000)")->check(CLI::Range(2u, 1u << 30));
  const auto mean = [&](const char* option, u64& value, const char* what) {
    command->add_option(option, value, what)->transform(bytes)->check(some);
  };
  mean("--small", settings->small, "Mean size of small files (4K)");
  mean("--large", settings->large, "Mean size of large files (32K)");
  mean("--web", settings->web, "Mean size of the web loads' files (16K)");
  mean("--server", settings->server, "Mean size of fileserver's files (32K; filebench has 128K, which needs 16 GB)");
  command->footer("Example:\n  pmfs bench dirindex --loads webproxy,custom3 --rounds 5");
  return {command, [settings](Context& context) { run(*settings, context); }};
}

}  // namespace pmfs::bench
