// pmfs trace: replays a list of paths through each resolver, and compares.
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>

#include "commands.h"
#include "json_out.h"
#include "kept_pool.h"
#include "open_pool.h"
#include "report.h"
#include "resolvers.h"
#include "trace_file.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string file;
  std::string pool;  ///< empty: a throw-away one with the paths of the trace
  bool zero = false;
  bool json = false;
  u64 repeat = 1;
};

/// What one resolver's replay has come to.
struct Outcome {
  std::string resolver;
  u64 time_ns = 0;
  u64 failed = 0;
  LookupStatistics counts;  ///< of the replay alone
};

/// Of this thread: what others do on the machine hardly shows in it.
u64 processor_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<u64>(now.tv_sec) * 1'000'000'000 + static_cast<u64>(now.tv_nsec);
}

/// Whether a path of the trace cannot be made for a reason that its look-up meets, too.
bool is_its_own(Errc code) {
  return code == Errc::kExists || code == Errc::kNameTooLong || code == Errc::kInvalid || code == Errc::kNotFound ||
         code == Errc::kNotDirectory;
}

/// @return whether all that can be there is there; else it has been reported.
bool make_paths(Filesystem& fs, const Trace& trace) {
  const auto good = [](const std::string& path, const Result<Attributes>& made) {
    if (made.ok() || is_its_own(made.error().code)) return true;
    report(path, made.error());
    return false;
  };
  for (const std::string& dir : trace.dirs)
    if (!good(dir, fs.mkdir(dir, 0755, Credentials::root()))) return false;
  for (const std::string& leaf : trace.leaves)
    if (!good(leaf, fs.mknod(leaf, S_IFREG | 0644, 0, Credentials::root()))) return false;
  return true;
}

/// A throw-away pool with the paths of the trace; null: it has been reported. A directory takes an inode and a block,
/// and a share of its parent's.
std::unique_ptr<KeptPool> pool_of(const Trace& trace) {
  const u64 bytes = trace.dirs.size() * 8192 + trace.leaves.size() * 1024 + (u64{32} << 20);
  try {
    auto pool = std::make_unique<KeptPool>(std::string(), bytes / 4096 * 4096);
    Filesystem fs = pool->open({});
    if (!make_paths(fs, trace) || close_pool(fs, pool->path(), kExitOk) != kExitOk) return nullptr;
    return pool;
  } catch (const std::runtime_error& error) {
    report_text("trace", error.what());
    return nullptr;
  }
}

std::optional<Filesystem> open_with(const std::string& pool, OpenOptions options) {
  options.read_only = true;
  options.busy_wait_ms = kBusyWaitMs;
  Result<Filesystem> fs = Filesystem::open(pool, options);
  if (fs.ok()) return std::move(*fs);
  report_pool(pool, fs.error());
  return std::nullopt;
}

Outcome replay(Filesystem& fs, const Trace& trace, const Options& options, const std::string& resolver) {
  Outcome outcome;
  outcome.resolver = resolver;
  const LookupStatistics before = fs.lookup_statistics();
  const u64 began = processor_ns();
  for (u64 round = 0; round < options.repeat; ++round)
    for (const TraceLine& line : trace.lines)
      for (u64 i = 0; i < line.count; ++i)
        if (!fs.stat(At(kRootIno, line.path), Credentials::root()).ok()) outcome.failed += 1;
  outcome.time_ns = processor_ns() - began;
  outcome.counts = fs.lookup_statistics();
  for (u64 LookupStatistics::*field :
       {&LookupStatistics::lookups, &LookupStatistics::hits, &LookupStatistics::misses, &LookupStatistics::negative,
        &LookupStatistics::skipped, &LookupStatistics::pivot_hits, &LookupStatistics::whole_hits})
    outcome.counts.*field -= before.*field;
  return outcome;
}

double ratio(const Outcome& outcome, const Outcome& walk) {
  return walk.time_ns == 0 ? 0 : static_cast<double>(outcome.time_ns) / static_cast<double>(walk.time_ns);
}

void print_text(const Options& options, const Trace& trace, u64 requests, const std::vector<Outcome>& outcomes) {
  fmt::print("{} requests, {} components, {} distinct dentries\n", requests, options.repeat * trace.components,
             trace.dentries());
  fmt::print("{:<13} {:>10} {:>10} {:>6} {:>12} {:>9} {:>12} {:>10} {:>7} {:>6} {:>8}\n", "resolver", "ms",
             "ns/request", "ratio", "hits", "misses", "skipped", "from pivot", "pivots", "swaps", "failed");
  for (const Outcome& one : outcomes) {
    const LookupStatistics& counts = one.counts;
    const auto ns = static_cast<double>(one.time_ns);
    fmt::print("{:<13} {:>10.2f} {:>10.1f} {:>6.2f} {:>12} {:>9} {:>12} {:>10} {:>7} {:>6} {:>8}\n", one.resolver,
               ns / 1e6, ns / static_cast<double>(requests), ratio(one, outcomes[0]), counts.hits, counts.misses,
               counts.skipped, counts.pivot_hits, counts.pivots, counts.swaps, one.failed);
  }
}

void print_object(const Options& options, const Trace& trace, u64 requests, const std::vector<Outcome>& outcomes) {
  Json object = json_object("trace");
  if (!options.pool.empty()) add_bytes(object, "pool", options.pool);
  object["requests"] = requests;
  object["components"] = options.repeat * trace.components;
  object["dentries"] = trace.dentries();
  object["rows"] = Json::array();
  for (const Outcome& one : outcomes) {
    Json row;
    row["resolver"] = one.resolver;
    row["time_ns"] = one.time_ns;
    row["request_ns"] = static_cast<double>(one.time_ns) / static_cast<double>(requests);
    row["ratio"] = ratio(one, outcomes[0]);
    row["failed"] = one.failed;
    row["lookups"] = one.counts.lookups;
    row["hits"] = one.counts.hits;
    row["misses"] = one.counts.misses;
    row["negative"] = one.counts.negative;
    row["skipped"] = one.counts.skipped;
    row["pivot_hits"] = one.counts.pivot_hits;
    row["pivots"] = one.counts.pivots;
    row["swaps"] = one.counts.swaps;
    object["rows"].push_back(std::move(row));
  }
  print_json(object);
}

int trace(const Options& options) {
  const std::optional<Trace> trace = read_trace(options.file, options.zero ? '\0' : '\n');
  if (!trace) return kExitFailure;
  if (trace->requests == 0) {
    report_text(options.file, "there are no paths in it");
    return kExitFailure;
  }
  std::string pool = options.pool;
  std::unique_ptr<KeptPool> own;
  if (pool.empty()) {
    own = pool_of(*trace);
    if (own == nullptr) return kExitFailure;
    pool = own->path();
  }
  std::vector<Outcome> outcomes;
  for (const NamedResolver& one : resolvers()) {
    std::optional<Filesystem> fs = open_with(pool, one.options);
    if (!fs) return kExitFailure;
    outcomes.push_back(replay(*fs, *trace, options, one.name));
    if (close_pool(*fs, pool, kExitOk) != kExitOk) return kExitFailure;
  }
  const u64 requests = trace->requests * options.repeat;
  if (options.json) {
    print_object(options, *trace, requests, outcomes);
  } else {
    print_text(options, *trace, requests, outcomes);
  }
  return kExitOk;
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("trace", "Replay a list of paths through each resolver, and compare what looking up costs");
  command->add_option("FILE", options->file, "A path a line, or PATH<tab>COUNT; - is standard input")->required();
  command->add_option("POOL", options->pool, "Look the paths up in this pool; default: a throw-away one that has them");
  command->add_flag("-0,--null", options->zero, "Lines end with a NUL byte, not with a newline");
  command->add_option("--repeat", options->repeat, "Replay the whole trace so many times")
      ->check(CLI::Range(u64{1}, u64{1'000'000'000}))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object with a row for each resolver (fields: JSON.md)");
  command->footer(
      "Paths begin at the root of the pool, which is only read. Each replay begins with an empty cache; times are\n"
      "processor time. Resolvers: walk; stage/list, 16 pivots in a list as published; stage/hashed, the default of\n"
      "mounts; fullpath.\n\n"
      "Example:\n  find /mnt/pmfs -type f -printf '/%P\\n' | pmfs trace - --repeat 100");
  command->callback([options, &exit_code] { exit_code = trace(*options); });
}

}  // namespace pmfs::tools
