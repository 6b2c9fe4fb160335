// lookups: what finding names costs through a mount. Two mounts of the same program: one as it is by default, and
// "native", with entry, attribute and negative timeouts 0, so that each walk asks for every component, as FUSE does
// when names have expired.
//
//   create_depths_1_10   LOOKUPs of creating one file (O_EXCL) behind 1, 2, ... 10 directories. fresh: newly mounted.
//                        warm: the directories are known. Lookupplus: 65 natively, 20 with its patched kernel.
//   cold_stat_depth10    a path of ten directories and a file; ioctl1, ioctl64: paths in one request.
//   cold_create_depth10  creating there; batch: 64 in one request.
// Client and server share one CPU: what is measured is work, not waking another CPU.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "pmfs/mounted.hpp"
#include "test/bench/bench.h"
#include "test/bench/mounted_pool.h"

namespace pmfs::bench {

namespace {

constexpr std::string_view kFigure = "lookups";
constexpr unsigned kDepth = 10;
constexpr std::size_t kBatch = 64;

/// The directory behind `depth` others, as d1/d2/...
std::string dir_at(const std::string& root, unsigned depth) {
  std::string path = root;
  for (unsigned i = 1; i <= depth; ++i) path += fmt::format("/d{}", i);
  return path;
}

void create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) throw std::runtime_error(path + ": cannot be created");
  ::close(fd);
}

void use_one_cpu() {
  cpu_set_t all;
  cpu_set_t one;
  CPU_ZERO(&one);
  if (::sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_SET(cpu, &one);
    (void)::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

class Lookups {
 public:
  explicit Lookups(Context& context)
      : report_(context.report),
        looks_(context.options.quick ? 64 : 512),
        ours_(context.target, ""),
        native_(context.target, "entry_timeout=0,attr_timeout=0,negative_timeout=0") {
    for (MountedPool* mount : {&ours_, &native_}) {
      for (unsigned depth = 1; depth <= kDepth; ++depth)
        if (::mkdir(dir_at(mount->dir(), depth).c_str(), 0755) != 0) throw std::runtime_error("mkdir has failed");
      for (std::size_t i = 0; i < kBatch; ++i) create(file(*mount, i));
    }
  }

  void count_lookups() {
    ours_.remount();
    sample("create_depths_1_10/fresh", "LOOKUP", "requests", static_cast<double>(creates(ours_)));
    sample("create_depths_1_10/warm", "LOOKUP", "requests", static_cast<double>(creates(ours_)));
    sample("create_depths_1_10/native", "LOOKUP", "requests", static_cast<double>(creates(native_)));
  }

  void stat_native() {
    struct stat found {};
    const double ns = nanoseconds([&] {
      for (std::size_t i = 0; i < looks_; ++i)
        if (::stat(file(native_, i % kBatch).c_str(), &found) != 0) throw std::runtime_error("stat has failed");
    });
    sample("cold_stat_depth10/native", "us", "us", ns / 1000 / static_cast<double>(looks_));
  }
  void stat_ioctl(std::size_t paths) {
    std::vector<std::string> asked;
    for (std::size_t i = 0; i < paths; ++i) asked.push_back(file(ours_, i));
    std::vector<mounted::Row> rows(paths);
    const double ns = nanoseconds([&] {
      for (std::size_t i = 0; i < looks_; i += paths) client_.resolve(asked, rows);
    });
    for (const mounted::Row& row : rows) require(row);
    sample(fmt::format("cold_stat_depth10/ioctl{}", paths), "us", "us", ns / 1000 / static_cast<double>(looks_));
  }

  void create_native() {
    const double ns = nanoseconds([&] {
      for (std::size_t i = 0; i < looks_; ++i) create(new_file(native_));
    });
    sample("cold_create_depth10/native", "us", "us", ns / 1000 / static_cast<double>(looks_));
  }
  void create_batch() {
    double ns = 0;
    std::vector<mounted::Row> rows(kBatch);
    for (std::size_t i = 0; i < looks_; i += kBatch) {
      std::vector<std::string> asked;
      for (std::size_t k = 0; k < kBatch; ++k) asked.push_back(new_file(ours_));
      ns += nanoseconds([&] { client_.create(asked, 0644, rows); });
      for (const mounted::Row& row : rows) require(row);
    }
    sample("cold_create_depth10/batch", "us", "us", ns / 1000 / static_cast<double>(looks_));
  }

 private:
  void sample(std::string_view case_name, std::string_view metric, std::string_view unit, double value) {
    report_.sample(kFigure, case_name, metric, unit, value);
  }
  static void require(const mounted::Row& row) {
    if (row.error != 0 || !row.batched) throw std::runtime_error("the mount has not answered a batch");
  }
  static std::string file(const MountedPool& mount, std::size_t i) {
    return fmt::format("{}/f{}", dir_at(mount.dir(), kDepth), i);
  }
  std::string new_file(const MountedPool& mount) { return fmt::format("{}/n{}", dir_at(mount.dir(), kDepth), ++made_); }
  unsigned long long creates(const MountedPool& mount) {
    const auto before = mount.lookups();
    const auto own = mount.lookups() - before;  // of asking
    const auto from = mount.lookups();
    for (unsigned depth = 1; depth <= kDepth; ++depth)
      create(fmt::format("{}/c{}", dir_at(mount.dir(), depth), ++made_));
    return mount.lookups() - from - own;
  }

  Report& report_;
  const std::size_t looks_;
  MountedPool ours_, native_;
  mounted::Client client_;
  u64 made_ = 0;
};

void run(Context& context) {
  use_one_cpu();
  Lookups bench(context);
  Report& report = context.report;
  report.compare(kFigure, "create_depths_1_10/fresh", "LOOKUP", "create_depths_1_10/native", 20.0 / 65.0);
  report.compare(kFigure, "create_depths_1_10/warm", "LOOKUP", "create_depths_1_10/native");
  for (const char* name : {"cold_stat_depth10/ioctl1", "cold_stat_depth10/ioctl64"})
    report.compare(kFigure, name, "us", "cold_stat_depth10/native");
  report.compare(kFigure, "cold_create_depth10/batch", "us", "cold_create_depth10/native", 0.32);
  const unsigned rounds = context.options.quick ? 3 : 15;
  alternate({{[&] { bench.count_lookups(); }, 1},
             {[&] { bench.stat_native(); }, rounds},
             {[&] { bench.stat_ioctl(1); }, rounds},
             {[&] { bench.stat_ioctl(kBatch); }, rounds},
             {[&] { bench.create_native(); }, rounds},
             {[&] { bench.create_batch(); }, rounds}});
}

}  // namespace

Bench lookups(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("lookups", "Find and create names through a mount, one by one and in batches");
  command->footer("Needs /dev/fuse.\nExample:\n  pmfs bench lookups --json");
  return {command, [](Context& context) { run(context); }};
}

}  // namespace pmfs::bench
