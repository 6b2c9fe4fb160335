// batch: many paths in one call, against a call for each.
//
//   warm/N/RESOLVER/single, batch    N paths of eight components, drawn at random from 4096 files in 64 directories
//   names/N/RESOLVER/single, batch   N of 4 million files in 4096 directories of 3 components, all in the cache and
//   most
//                                    of them in no processor's
//   threads/1, threads/2             single calls by one thread and by two, each with paths of its own
//   nopivot/walk, stage              single calls on paths that no pivot applies to, pivots being there
// Attributes are included everywhere. A sample is the time of one path.
#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <thread>

#include "fs/filesystem_impl.h"
#include "test/bench/bench.h"
#include "test/support/prng.h"
#include "tools/kept_pool.h"
#include "tools/resolvers.h"

namespace pmfs::bench {

namespace {

using tools::KeptPool;
using tools::NamedResolver;
using tools::resolvers;

constexpr std::string_view kFigure = "batch";
constexpr unsigned kFiles = 4096;
constexpr unsigned kDirs = 64;
const Credentials kWho{.uid = 1000, .gid = 1000};
const Credentials kRoot = Credentials::root();

struct Settings {
  std::string names;
  std::string only;
};

/// File i of the warm tree: eight components, in directory i % kDirs.
std::string warm_dir(unsigned dir, unsigned depth) {
  static constexpr const char* kNames[] = {"home", "project", "year2020", "group", "user", "run"};
  std::string path;
  for (unsigned k = 0; k < depth && k < 6; ++k) path += fmt::format("/{}{}", kNames[k], k < 4 ? 0 : dir / 8);
  if (depth == 7) path += fmt::format("/part{}", dir);
  return path;
}
std::string warm_file(unsigned i) { return fmt::format("{}/file{:05}", warm_dir(i % kDirs, 7), i); }

std::string deep_dir(u64 i) { return fmt::format("/left{:02}/right{:02}", i % 4096 / 64, i % 64); }
std::string deep_file(u64 i) { return fmt::format("{}/name{:07}", deep_dir(i), i); }

/// What is asked for, and room for the answers.
struct Questions {
  std::vector<std::string> text;
  std::vector<std::string_view> paths;
  std::vector<Resolved> answers;

  void add(std::string path) { text.push_back(std::move(path)); }
  void ready() {
    paths.assign(text.begin(), text.end());
    answers.resize(text.size());
  }
};

void require_found(const Questions& asked) {
  for (const Resolved& one : asked.answers)
    if (one.error) throw std::runtime_error(std::string("a path of a batch: ") + describe(*one.error));
}

void by_single_calls(Filesystem& fs, const Questions& asked) {
  for (const std::string_view path : asked.paths) must(fs.stat(path, kWho));
}

void by_batch(Filesystem& fs, Questions& asked, std::size_t at_a_time) {
  for (std::size_t i = 0; i < asked.paths.size(); i += at_a_time) {
    const std::size_t count = std::min(at_a_time, asked.paths.size() - i);
    must(fs.resolve(std::span(asked.paths).subspan(i, count), std::span(asked.answers).subspan(i, count), kWho));
  }
}

OpenOptions quiet(OpenOptions options) {
  options.pivots_adaptive = false;
  options.pivot_period_ms = 3'600'000;  // pivots stay what they are while time is measured
  return options;
}

constexpr std::size_t kSizes[] = {1, 16, 64, 256, 1000, 4096};

/// Batches and single calls of one resolver.
class Versus {
 public:
  Versus(Context& context, std::string prefix, Filesystem& fs)
      : report_(context.report), prefix_(std::move(prefix)), fs_(fs) {}

  void round(std::size_t size, Questions& asked, const std::string& resolver) {
    const std::string name = fmt::format("{}/{}/{}/", prefix_, size, resolver);
    const auto paths = static_cast<double>(asked.paths.size());
    report_.sample(kFigure, name + "single", "path_ns", "ns",
                   processor_nanoseconds([&] { by_single_calls(fs_, asked); }) / paths);
    report_.sample(kFigure, name + "batch", "path_ns", "ns",
                   processor_nanoseconds([&] { by_batch(fs_, asked, size); }) / paths);
    report_.compare(kFigure, name + "batch", "path_ns", name + "single");
    require_found(asked);
  }

 private:
  Report& report_;
  const std::string prefix_;
  Filesystem& fs_;
};

class Warm {
 public:
  Warm(Context& context, const NamedResolver& resolver)
      : name_(resolver.name),
        pool_(context.target, u64{64} << 20),
        fs_(pool_.open(quiet(resolver.options))),
        versus_(context, "warm", fs_) {
    for (unsigned dir = 0; dir < kDirs; ++dir)
      for (unsigned depth = 1; depth <= 7; ++depth)
        if (!fs_.stat(warm_dir(dir, depth), kRoot).ok()) must(fs_.mkdir(warm_dir(dir, depth), 0755, kRoot));
    test::Prng random(1);
    for (unsigned i = 0; i < kFiles; ++i) {
      must(fs_.mknod(warm_file(i), S_IFREG | 0644, 0, kRoot));
      files_.push_back(warm_file(i));
    }
    for (std::size_t i = files_.size(); i > 1; --i) std::swap(files_[i - 1], files_[random.below(i)]);
    for (int period = 0; period < 4; ++period) {
      for (int times = 0; times < 3; ++times)
        for (const std::string& path : files_) must(fs_.stat(path, kWho));
      volume_of(fs_).paths.maintain_now();
    }
    for (const std::size_t size : kSizes) {
      Questions& asked = questions_.emplace_back();
      for (std::size_t i = 0; i < kFiles; ++i) asked.add(files_[size < kFiles ? random.below(size) : i]);
      asked.ready();
    }
  }
  void round() {
    for (std::size_t i = 0; i < std::size(kSizes); ++i) versus_.round(kSizes[i], questions_[i], name_);
  }
  void close() { must(fs_.close()); }

 private:
  const std::string name_;
  const KeptPool pool_;
  Filesystem fs_;
  Versus versus_;
  std::vector<std::string> files_;
  std::vector<Questions> questions_;
};

/// Millions of names in the cache, asked for in random order.
void run_names(Context& context, u64 names) {
  const KeptPool pool(context.target, names * 600 + (u64{128} << 20));
  {
    Filesystem fs = pool.open(resolvers()[0].options);
    for (u64 i = 0; i < std::min<u64>(names, 4096); ++i) {
      if (i % 64 == 0) must(fs.mkdir(deep_dir(i).substr(0, 7), 0755, kRoot));
      must(fs.mkdir(deep_dir(i), 0755, kRoot));
    }
    for (u64 i = 0; i < names; ++i) must(fs.mknod(deep_file(i), S_IFREG | 0644, 0, kRoot));
    must(fs.close());
  }
  for (const NamedResolver& one : resolvers(std::max(u64{64} << 20, names * 500))) {
    Filesystem fs = pool.open(quiet(one.options));
    Versus versus(context, "names", fs);
    for (u64 i = 0; i < names; ++i) must(fs.stat(deep_file(i), kWho));
    volume_of(fs).paths.maintain_now();
    context.report.sample(kFigure, "names/" + one.name, "cached", "names",
                          static_cast<double>(fs.lookup_statistics().entries));
    test::Prng random(2);
    for (unsigned round = 0; round < (context.options.quick ? 1u : 5u); ++round)
      for (const std::size_t size : kSizes) {
        Questions asked;  // new ones each time: none of it is in the processor's cache
        const std::size_t count = std::max<std::size_t>(size, context.options.quick ? 4000 : 64'000) / size * size;
        for (std::size_t i = 0; i < count; ++i) asked.add(deep_file(random.below(names)));
        asked.ready();
        versus.round(size, asked, one.name);
      }
    must(fs.close());
  }
}

/// Single calls by several threads, each on files of its own.
class Threads {
 public:
  explicit Threads(Context& context)
      : report_(context.report),
        looks_(context.options.quick ? 50'000 : 1'000'000),
        pool_(context.target, u64{64} << 20),
        fs_(pool_.open({})) {
    for (unsigned t = 0; t < 2; ++t) {
      std::string path;
      for (unsigned k = 0; k < 7; ++k) must(fs_.mkdir(path += fmt::format("/thread{}level{}", t, k), 0755, kRoot));
      for (unsigned i = 0; i < 16; ++i) {
        paths_[t].push_back(fmt::format("{}/file{}", path, i));
        must(fs_.mknod(paths_[t].back(), S_IFREG | 0644, 0, kRoot));
      }
    }
  }
  void round(unsigned threads) {
    std::atomic<unsigned> ready{0};
    const auto wait_for_all = [&] {
      ++ready;
      while (ready.load() < threads) {
      }
    };
    std::vector<std::thread> others;
    for (unsigned t = 1; t < threads; ++t)
      others.emplace_back([&, t] {
        look(t, 1000);
        wait_for_all();
        look(t, looks_);
      });
    look(0, 1000);
    wait_for_all();
    const double whole = nanoseconds([&] {
      look(0, looks_);
      for (std::thread& thread : others) thread.join();
    });
    report_.sample(kFigure, fmt::format("threads/{}", threads), "paths_per_us", "paths/us",
                   static_cast<double>(looks_) * threads * 1000 / whole);
  }
  void close() { must(fs_.close()); }

 private:
  void look(unsigned t, u64 looks) {
    for (u64 i = 0; i < looks; ++i) must(fs_.stat(paths_[t][i % paths_[t].size()], kWho));
  }

  Report& report_;
  const u64 looks_;
  const KeptPool pool_;
  Filesystem fs_;
  std::vector<std::string> paths_[2];
};

/// Paths of eight components beside those that pivots were chosen for.
class NoPivot {
 public:
  NoPivot(Context& context, std::string name, const OpenOptions& options)
      : report_(context.report),
        name_(std::move(name)),
        looks_(context.options.quick ? 20'000 : 500'000),
        pool_(context.target, u64{64} << 20),
        fs_(pool_.open(quiet(options))) {
    for (unsigned tree = 0; tree < 32; ++tree) {
      std::string path;
      for (unsigned k = 0; k < 7; ++k) must(fs_.mkdir(path += fmt::format("/tree{:02}level{}", tree, k), 0755, kRoot));
      must(fs_.mknod(path += "/file", S_IFREG | 0644, 0, kRoot));
      paths_[tree % 2].push_back(path);
    }
    for (int period = 0; period < 4; ++period) {
      for (int times = 0; times < 20; ++times)
        for (const std::string& path : paths_[0]) must(fs_.stat(path, kWho));
      volume_of(fs_).paths.maintain_now();
    }
    for (const std::string& path : paths_[1]) must(fs_.stat(path, kWho));
  }
  void round() {
    const u64 before = fs_.lookup_statistics().pivot_hits;
    const double ns = processor_nanoseconds([&] { look_ups(); });
    if (fs_.lookup_statistics().pivot_hits != before) throw std::runtime_error("a pivot applied");
    report_.sample(kFigure, name_, "path_ns", "ns", ns / static_cast<double>(looks_));
  }
  void close() { must(fs_.close()); }

 private:
  __attribute__((noinline)) void look_ups() {  // by this name callgrind finds it
    for (u64 i = 0, at = 0; i < looks_; ++i, at = at + 1 == paths_[1].size() ? 0 : at + 1)
      must(fs_.stat(paths_[1][at], kWho));
  }

  Report& report_;
  const std::string name_;
  const u64 looks_;
  const KeptPool pool_;
  Filesystem fs_;
  std::vector<std::string> paths_[2];  // popular ones; those asked for
};

void run(Context& context, const Settings& settings) {
  const bool quick = context.options.quick;
  const auto wanted = [&](std::string_view kind) { return settings.only.empty() || settings.only == kind; };
  Report& report = context.report;
  if (wanted("warm")) {
    std::vector<Case> cases;
    std::vector<std::unique_ptr<Warm>> trees;
    for (const NamedResolver& one : resolvers()) {
      trees.push_back(std::make_unique<Warm>(context, one));
      cases.push_back({[tree = trees.back().get()] { tree->round(); }, quick ? 3u : 25u});
    }
    alternate(cases);
    for (const auto& tree : trees) tree->close();
  }

  std::vector<Case> cases;
  const unsigned rounds = quick ? 3 : 9;
  std::vector<std::unique_ptr<NoPivot>> beside;
  for (const NamedResolver& one : resolvers()) {
    const std::string name = "nopivot/" + one.name;
    if (one.name == "fullpath" || !(wanted("nopivot") || wanted(name))) continue;
    beside.push_back(std::make_unique<NoPivot>(context, name, one.options));
    cases.push_back({[tree = beside.back().get()] { tree->round(); }, rounds});
  }
  std::optional<Threads> threads;
  if (wanted("threads")) {
    threads.emplace(context);
    for (const unsigned count : {1u, 2u}) cases.push_back({[&, count] { threads->round(count); }, rounds});
  }
  alternate(cases);
  for (const auto& tree : beside) tree->close();
  if (threads) threads->close();
  report.compare(kFigure, "nopivot/stage/list", "path_ns", "nopivot/walk");
  report.compare(kFigure, "nopivot/stage/hashed", "path_ns", "nopivot/walk");
  report.compare(kFigure, "threads/2", "paths_per_us", "threads/1");

  if (wanted("names"))
    run_names(context, parse_count(settings.names.empty() ? (quick ? "100k" : "4M") : settings.names));
}

}  // namespace

Bench batch(CLI::App& app) {
  auto settings = std::make_shared<Settings>();
  CLI::App* const command = app.add_subcommand("batch", "Look many paths up in one call, and one by one");
  command->add_option("--names", settings->names, "How many names are in the cache in the cases `names`, like 4M")
      ->check([](const std::string& text) { return wrong_count(text, 4096); });
  command->add_option("--only", settings->only, "Only the cases of one kind")
      ->check(CLI::IsMember(
          {"warm", "nopivot", "nopivot/walk", "nopivot/stage/list", "nopivot/stage/hashed", "threads", "names"}));
  command->footer("Example:\n  pmfs bench batch --names 1M --json");
  return {command, [settings](Context& context) { run(context, *settings); }};
}

}  // namespace pmfs::bench
