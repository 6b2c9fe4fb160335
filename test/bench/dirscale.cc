// dirscale: what one name costs in a directory of SIZE names, with the index and by scan.
//
// A round of a case makes a directory of its own: SIZE/2 names, unmeasured; then the other half, measured. So each leaf
// splits once on average during what is measured, whatever SIZE is: where the directory stands between two waves of
// splits does not show. Then come look-ups of names that are there and of names that are not, in an order unlike that
// of creation; a listing; and the removal of all names, in yet another order. There is no dentry cache.
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <memory>
#include <numeric>

#include "test/bench/bench.h"
#include "tools/throw_away_pool.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else  // then callgrind counts nothing here
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_DUMP_STATS_AT(name)
#endif

namespace pmfs::bench {

namespace {

constexpr std::string_view kFigure = "dirscale";
constexpr u64 kScanLimit = 100'000;  // beyond, a scan takes minutes and says nothing new
constexpr u64 kLookUps = 200'000;    // of each kind, in one round
constexpr u64 kScanLookUps = 500;
constexpr u64 kCounted = 20'000, kPieces = 10;  // operations of which callgrind counts the instructions (README.md)

struct Settings {
  std::vector<std::string> sizes;
  std::string only;
  bool check = false;
};

/// While it lives, callgrind --instr-atstart=no counts. Nothing without callgrind.
struct Counted {
  Counted() { CALLGRIND_START_INSTRUMENTATION; }
  ~Counted() { CALLGRIND_STOP_INSTRUMENTATION; }
};

/// Names of one length, a letter and ten digits: made at next to no cost, which would be measured too.
class Name {
 public:
  std::string_view operator()(char kind, u64 number) {
    text_[0] = kind;
    for (std::size_t i = text_.size(); --i > 0; number /= 10) text_[i] = static_cast<char>('0' + number % 10);
    return {text_.data(), text_.size()};
  }

 private:
  std::array<char, 11> text_{};
};

/// 0 .. count-1, each once, in no order that one could guess from the numbers.
class Shuffled {
 public:
  Shuffled(u64 count, u64 step) : count_(count), step_(step % count) {
    while (std::gcd(step_, count_) != 1) step_ = (step_ + 1) % count_;
  }
  u64 operator[](u64 i) const { return i % count_ * step_ % count_; }

 private:
  u64 count_, step_;  // below 2^32 each: the product does not overflow
};

const Credentials kWho = Credentials::root();

class ScaleCase {
 public:
  ScaleCase(Context& context, Filesystem& fs, std::string name, u64 size, bool scan, bool check)
      : report_(context.report),
        fs_(fs),
        name_(std::move(name)),
        size_(size),
        looks_(std::min(size, scan ? kScanLookUps : kLookUps)),
        check_(check) {}

  void round() {
    const std::string dir_name = fmt::format("{}-{}", name_.substr(0, name_.find('/')), size_);
    dir_ = must(fs_.mkdir({kRootIno, dir_name}, 0755, kWho)).ino;
    create(0, size_ / 2);
    const u64 created = size_ - size_ / 2;
    const Cost made = cost_of([&] { measured_creates(); });
    sample("create_ns", "ns", made.ns, created);
    sample("lines_per_create", "lines", static_cast<double>(made.counters.lines), created);
    sample("fences_per_create", "fences", static_cast<double>(made.counters.fences), created);
    const DirectoryInfo info = must(fs_.directory_info(At::inode(dir_), kWho));
    sample("index_levels", "levels", info.index_levels, 1);

    if (check_) check_all();
    const Shuffled order(size_, 2'654'435'761);
    sample("lookup_ns", "ns", nanoseconds([&] { look_ups(order); }), looks_);
    sample("miss_ns", "ns", nanoseconds([&] { misses(order); }), looks_);
    sample("list_ns", "ns", nanoseconds([&] { list(); }), size_);
    const Shuffled removal(size_, 3'266'489'917);
    const u64 timed = std::min(size_, looks_ * 10);
    sample("unlink_ns", "ns", nanoseconds([&] { unlink(removal, 0, timed); }), timed);
    unlink(removal, timed, size_);
    must(fs_.rmdir({kRootIno, dir_name}, kWho));
    if (check_) check_all();
  }

 private:
  void sample(std::string_view metric, std::string_view unit, double total, u64 operations) {
    report_.sample(kFigure, name_, metric, unit, total / static_cast<double>(operations));
  }
  void create(u64 from, u64 to) {
    for (u64 i = from; i < to; ++i) must(fs_.mknod({dir_, text_('f', i)}, S_IFREG | 0644, 0, kWho));
  }
  void check_all() {
    const CheckReport report = must(check(fs_));
    if (!report.clean()) throw std::runtime_error("check: " + report.findings.front().text);
  }
  // Some of the operations, spread evenly, are counted by callgrind.
  void measured_creates() {
    const u64 from = size_ / 2;
    for (u64 piece = 0; piece < kPieces; ++piece) {
      const u64 begin = from + (size_ - from) * piece / kPieces;
      const u64 end = from + (size_ - from) * (piece + 1) / kPieces;
      const u64 counted = std::min(end, begin + kCounted / kPieces);
      {
        const Counted here;
        create(begin, counted);
      }
      create(counted, end);
    }
    CALLGRIND_DUMP_STATS_AT("creates");
  }
  template <class Look>
  void looks(const char* what, Look&& look) {
    const u64 counted = std::min(looks_, kCounted);
    {
      const Counted here;
      for (u64 i = 0; i < counted; ++i) look(i);
    }
    CALLGRIND_DUMP_STATS_AT(what);
    (void)what;
    for (u64 i = counted; i < looks_; ++i) look(i);
  }
  void look_ups(const Shuffled& order) {
    looks("look-ups", [&](u64 i) { must(fs_.stat({dir_, text_('f', order[i])}, kWho)); });
  }
  void misses(const Shuffled& order) {
    looks("misses", [&](u64 i) {
      if (fs_.stat({dir_, text_('m', order[i])}, kWho).ok())
        throw std::runtime_error("a name was found that is not there");
    });
  }
  void list() {
    Dir listing = must(fs_.open_dir(At::inode(dir_), kWho));
    u64 seen = 0;
    for (u64 cookie = 0; must(listing.read(cookie, entry_)); ++seen) cookie = entry_.cookie;
    must(listing.close());
    if (seen != size_ + 2) throw std::runtime_error(fmt::format("a listing showed {} of {} names", seen, size_ + 2));
  }
  void unlink(const Shuffled& order, u64 from, u64 to) {
    for (u64 i = from; i < to; ++i) must(fs_.unlink({dir_, text_('f', order[i])}, kWho));
  }

  Report& report_;
  Filesystem& fs_;
  std::string name_;
  u64 size_, looks_;
  bool check_;
  InodeNo dir_{};
  Name text_;
  DirEntry entry_;
};

// An inode, and its share of a leaf that may be half full; and some for everything else.
u64 pool_bytes(u64 size) { return size * (256 + 220) * 5 / 4 + (u64{64} << 20); }

void run(const Settings& settings, Context& context) {
  std::vector<std::string> sizes = settings.sizes;
  if (sizes.empty())
    sizes = context.options.quick ? std::vector<std::string>{"1k", "10k"}
                                  : std::vector<std::string>{"1k", "10k", "100k", "1M"};
  u64 largest = 0, largest_scan = 0;
  for (const std::string& text : sizes) {
    const u64 size = parse_count(text);
    if (size > 4'000'000'000) throw std::runtime_error("a directory of at most 4000M names, please");
    largest = std::max(largest, size);
    if (size <= kScanLimit) largest_scan = std::max(largest_scan, size);
  }
  const bool index = settings.only != "scan", scan = settings.only != "index" && largest_scan != 0;

  OpenOptions indexed, scanned;
  scanned.dir_index = false;
  indexed.dcache_bytes = scanned.dcache_bytes = 0;  // the directory is measured, not the cache above it
  Filesystem indexed_fs, scanned_fs;
  if (index) indexed_fs = tools::throw_away_pool(pool_bytes(largest), context.target, indexed);
  if (scan) scanned_fs = tools::throw_away_pool(pool_bytes(largest_scan), context.target, scanned);

  std::vector<std::unique_ptr<ScaleCase>> kept;
  std::vector<Case> cases;
  const auto add = [&](Filesystem& fs, const std::string& name, u64 size, bool is_scan, unsigned rounds) {
    kept.push_back(std::make_unique<ScaleCase>(context, fs, name, size, is_scan, settings.check));
    cases.push_back({[one = kept.back().get()] { one->round(); }, rounds});
  };
  for (const std::string& text : sizes) {
    const u64 size = parse_count(text);
    if (index) add(indexed_fs, "index/" + text, size, false, context.options.quick ? 1 : size <= 100'000 ? 5 : 1);
    if (scan && size <= kScanLimit) {
      add(scanned_fs, "scan/" + text, size, true, context.options.quick || size > 10'000 ? 1 : 5);
      if (index) {
        // The paper: pre-allocation time of 100,000 files in one directory falls by 91.7 % (webproxy).
        context.report.compare(kFigure, "index/" + text, "create_ns", "scan/" + text,
                               size == 100'000 ? std::optional(0.083) : std::nullopt);
        for (const char* metric : {"lookup_ns", "miss_ns", "unlink_ns", "list_ns", "lines_per_create"})
          context.report.compare(kFigure, "index/" + text, metric, "scan/" + text);
      }
    }
  }
  alternate(cases);
  for (Filesystem* fs : {&indexed_fs, &scanned_fs})
    if (fs->is_open()) must(fs->close());
}

}  // namespace

Bench dirscale(CLI::App& app) {
  auto settings = std::make_shared<Settings>();
  CLI::App* const command =
      app.add_subcommand("dirscale", "Create, look up, list and remove in one directory of SIZE names");
  command->add_option("--sizes", settings->sizes, "How many names, like 1k,10k,1M (scan only up to 100k)")
      ->delimiter(',')
      ->check([](const std::string& text) { return wrong_count(text, 2); });
  command->add_option("--only", settings->only, "Only the cases of one kind")->check(CLI::IsMember({"index", "scan"}));
  command->add_flag("--check", settings->check, "Check the pool when a directory is full, and when it is gone");
  command->footer("Example:\n  pmfs bench dirscale --sizes 10k,1M,10M --only index");
  return {command, [settings](Context& context) { run(*settings, context); }};
}

}  // namespace pmfs::bench
