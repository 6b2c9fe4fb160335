// fig7: stat and open of a path of eight components, by each resolver. After figure 7 of the Stage Lookup paper:
// latency over the number of pivots P and the length S of stage two, the components behind the pivot.
//
//   walk, fullpath       the rivals
//   stage/pP/sS          the paper's list of P pivots, each an ancestor S components above what is asked for; S = 8:
//   none is hashed/pP/sS         the same, P pivots found by hash; 16 paths are hot kernel/tmpfs         the kernel's
//   own, on a tree of the same shape
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "fs/filesystem_impl.h"
#include "test/bench/bench.h"
#include "tools/throw_away_pool.h"

namespace pmfs::bench {

namespace {

constexpr std::string_view kFigure = "fig7";
constexpr unsigned kDepth = 8;
constexpr unsigned kAbove = 3;  // components of the folder that a tree on tmpfs stands in
constexpr double kPublished = 1 - 0.469;
const Credentials kWho{.uid = 1000, .gid = 1000};

/// The path of tree `i`, `depth` components of it.
std::string path_in(unsigned i, unsigned depth) {
  std::string path = fmt::format("/tree{:04}", i);
  for (unsigned k = 1; k < depth; ++k) path += fmt::format("/component{}", k);
  return path;
}

/// Something nobody asks for while time is measured, eight components deep, 64 of them in each directory.
std::string other_path(unsigned i, unsigned depth = kDepth) {
  std::string path = fmt::format("/other{:04}", i / 64);
  for (unsigned k = 1; k < depth; ++k)
    path += k + 1 == kDepth ? fmt::format("/file{}", i % 64) : fmt::format("/component{}", k);
  return path;
}

class LibraryCase {
 public:
  /// @param trees      as many paths are asked for in turn.
  /// @param stage_two  so many components are behind the pivot; kDepth: no pivot applies.
  LibraryCase(Context& context, std::string name, OpenOptions options, unsigned trees, unsigned stage_two)
      : report_(context.report), name_(std::move(name)), looks_(context.options.quick ? 20'000 : 200'000) {
    options.pivots_adaptive = false;
    options.pivot_period_ms = 3'600'000;  // pivots stay what they are while time is measured
    fs_ = tools::throw_away_pool(u64{32} << 20, context.target, options);
    const Credentials root = Credentials::root();
    std::vector<std::string> pivots;
    for (unsigned i = 0; i < trees; ++i) {
      for (unsigned depth = 1; depth < kDepth; ++depth) must(fs_.mkdir(path_in(i, depth), 0755, root));
      paths_.push_back(path_in(i, kDepth));
      must(fs_.mknod(paths_.back(), S_IFREG | 0644, 0, root));
      if (stage_two < kDepth) pivots.push_back(path_in(i, kDepth - stage_two));
    }
    if (options.resolver == OpenOptions::Resolver::kStage) make_pivots(std::move(pivots), options.pivots);
    for (const std::string& path : paths_) must(fs_.stat(path, kWho));
  }

  void round() {
    const double stats = nanoseconds([&] { look_ups(); });
    report_.sample(kFigure, name_, "stat_ns", "ns", stats / static_cast<double>(looks_));
    if (name_ == "walk") {
      const std::string above = path_in(0, kAbove);
      const double shorter = nanoseconds([&] {
        for (std::size_t i = 0; i < looks_; ++i) must(fs_.stat(above, kWho));
      });
      report_.sample(kFigure, name_, "component_ns", "ns",
                     (stats - shorter) / static_cast<double>(looks_) / (kDepth - kAbove));
    }
    const std::size_t opens = looks_ / 4;
    const double opened = nanoseconds([&] {
      for (std::size_t i = 0, at = 0; i < opens; ++i, at = at + 1 == paths_.size() ? 0 : at + 1)
        must(must(fs_.open_file(paths_[at], O_RDONLY, 0, kWho)).close());
    });
    report_.sample(kFigure, name_, "open_ns", "ns", opened / static_cast<double>(opens));
  }

  void close() { must(fs_.close()); }

 private:
  // Fills the pool: with these, and with others.
  void make_pivots(std::vector<std::string> pivots, unsigned count) {
    for (unsigned i = 0; pivots.size() < count; ++i) {
      for (unsigned depth = 1; i % 64 == 0 && depth < kDepth; ++depth)
        must(fs_.mkdir(other_path(i, depth), 0755, Credentials::root()));
      pivots.push_back(other_path(i));
      must(fs_.mknod(pivots.back(), S_IFREG | 0644, 0, Credentials::root()));
    }
    constexpr std::size_t kAtOnce = 128;
    dcache::PathCache& cache = volume_of(fs_).paths;
    for (std::size_t from = 0; from < pivots.size(); from += kAtOnce) {
      for (int looks = 0; looks < 4; ++looks)
        for (std::size_t i = from; i < std::min(pivots.size(), from + kAtOnce); ++i) must(fs_.stat(pivots[i], kWho));
      cache.drain_now();
    }
    cache.maintain_now();
    if (const u64 made = fs_.lookup_statistics().pivots; made != pivots.size())
      throw std::runtime_error(fmt::format("{}: {} pivots instead of {}", name_, made, pivots.size()));
  }

  // A function of its own, for callgrind to be switched on in.
  __attribute__((noinline)) void look_ups() {
    for (std::size_t i = 0, at = 0; i < looks_; ++i, at = at + 1 == paths_.size() ? 0 : at + 1)
      must(fs_.stat(paths_[at], kWho));
  }

  Report& report_;
  const std::string name_;
  const std::size_t looks_;
  Filesystem fs_;
  std::vector<std::string> paths_;
};

/// A tree of the same shape on tmpfs.
class KernelCase {
 public:
  explicit KernelCase(Context& context) : report_(context.report), looks_(context.options.quick ? 20'000 : 200'000) {
    std::string folder = "/dev/shm/pmfs-bench-fig7.XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error(folder + ": cannot be made");
    folder_ = folder;
    path_ = folder_ + path_in(0, kDepth - kAbove);
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    const int fd = ::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0) throw std::runtime_error(path_ + ": cannot be made");
    ::close(fd);
  }
  ~KernelCase() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  void round() {
    struct stat found {};
    const double stats = nanoseconds([&] {
      for (std::size_t i = 0; i < looks_; ++i)
        if (::stat(path_.c_str(), &found) != 0) throw std::runtime_error("stat has failed");
    });
    report_.sample(kFigure, "kernel/tmpfs", "stat_ns", "ns", stats / static_cast<double>(looks_));
    const double shorter = nanoseconds([&] {
      for (std::size_t i = 0; i < looks_; ++i)
        if (::stat(folder_.c_str(), &found) != 0) throw std::runtime_error("stat has failed");
    });
    report_.sample(kFigure, "kernel/tmpfs", "component_ns", "ns",
                   (stats - shorter) / static_cast<double>(looks_) / (kDepth - kAbove));
    const double opened = nanoseconds([&] {
      for (std::size_t i = 0; i < looks_ / 4; ++i) ::close(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    });
    report_.sample(kFigure, "kernel/tmpfs", "open_ns", "ns", opened / static_cast<double>(looks_ / 4));
  }

 private:
  Report& report_;
  const std::size_t looks_;
  std::string folder_, path_;
};

void run(Context& context, const std::vector<std::string>& only) {
  std::vector<std::unique_ptr<LibraryCase>> kept;
  std::vector<Case> cases;
  const unsigned rounds = context.options.quick ? 3 : 9;
  const auto wanted = [&](const std::string& name) {
    return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
  };
  const auto add = [&](const std::string& name, const OpenOptions& options, unsigned trees, unsigned stage_two) {
    if (!wanted(name)) return;
    kept.push_back(std::make_unique<LibraryCase>(context, name, options, trees, stage_two));
    cases.push_back({[one = kept.back().get()] { one->round(); }, rounds});
  };
  OpenOptions walk;
  walk.resolver = OpenOptions::Resolver::kWalk;
  add("walk", walk, 16, kDepth);
  OpenOptions fullpath;
  fullpath.resolver = OpenOptions::Resolver::kFullpath;
  add("fullpath", fullpath, 16, kDepth);
  for (const unsigned pivots : {1u, 2u, 4u, 8u, 16u}) {
    OpenOptions listed;
    listed.pivots = pivots;
    listed.pivots_hashed = false;
    for (unsigned s = 0; s <= kDepth; ++s) {
      if (only.empty() && context.options.quick && s != 0 && s != 4 && s != kDepth) continue;
      add(fmt::format("stage/p{}/s{}", pivots, s), listed, pivots, s);
    }
  }
  for (const unsigned pivots : {16u, 256u, 4096u}) {
    OpenOptions hashed;
    hashed.pivots = pivots;
    hashed.dcache_bytes = u64{256} << 20;
    for (unsigned s = 0; s <= kDepth; ++s) {
      if (only.empty() && context.options.quick && s != 0 && s != 4 && s != kDepth) continue;
      add(fmt::format("hashed/p{}/s{}", pivots, s), hashed, 16, s);
    }
  }
  KernelCase kernel(context);
  if (wanted("kernel/tmpfs")) cases.push_back({[&] { kernel.round(); }, rounds});
  context.report.compare(kFigure, "walk", "component_ns", "kernel/tmpfs");
  for (const char* metric : {"stat_ns", "open_ns"}) {
    context.report.compare(kFigure, "fullpath", metric, "walk");
    context.report.compare(kFigure, "walk", metric, "kernel/tmpfs");
    for (unsigned s = 0; s <= kDepth; ++s) {
      for (const unsigned pivots : {1u, 2u, 4u, 8u, 16u})
        context.report.compare(kFigure, fmt::format("stage/p{}/s{}", pivots, s), metric, "walk",
                               pivots == 16 && s == 0 ? std::optional(kPublished) : std::nullopt);
      for (const unsigned pivots : {16u, 256u, 4096u})
        context.report.compare(kFigure, fmt::format("hashed/p{}/s{}", pivots, s), metric, "walk");
    }
  }
  alternate(cases);
  for (const auto& one : kept) one->close();
}

}  // namespace

Bench fig7(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("fig7", "Look paths of eight components up, by each resolver");
  const auto only = std::make_shared<std::vector<std::string>>();
  command->add_option("--only", *only, "Only these cases, e.g. walk hashed/p16/s0")->type_name("CASE");
  command->footer("Example:\n  pmfs bench fig7 --quick --json");
  return {command, [only](Context& context) { run(context, *only); }};
}

}  // namespace pmfs::bench
