// pmfs count: what each operation costs in flushes and fences, measured now, on this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>

#include "commands.h"
#include "count_bench.h"
#include "count_steps.h"
#include "json_out.h"
#include "report.h"

namespace pmfs::tools {

namespace {

constexpr unsigned kWarmUp = 3;

struct Options {
  unsigned runs = 101;
  unsigned sfence_runs = 3;  ///< few: every instruction is interrupted, and the counts hardly vary
  bool json = false;
};

struct Cost {
  i64 fences = 0, flushes = 0, lines = 0, pmemobj = 0;
};

struct Row {
  std::vector<Cost> run;
  std::vector<Cost> baseline;
};

/// Reads the library's counters on both sides of a call.
class CountingMeter final : public Meter {
 public:
  explicit CountingMeter(std::vector<Row>& rows) : rows_(rows) {}

  void begin(std::size_t row, Part part) override {
    if (rows_.size() <= row) rows_.resize(row + 1);
    costs_ = part == Part::kRun ? &rows_[row].run : &rows_[row].baseline;
    before_ = thread_counters();
  }

  void end() override {
    const Counters spent = thread_counters() - before_;
    costs_->push_back({static_cast<i64>(spent.fences), static_cast<i64>(spent.flushes), static_cast<i64>(spent.lines),
                       static_cast<i64>(spent.pmemobj_flushes + spent.pmemobj_fences)});
  }

  void discard() override { costs_->pop_back(); }

 private:
  std::vector<Row>& rows_;
  std::vector<Cost>* costs_ = nullptr;
  Counters before_;
};

struct Spread {
  i64 min = 0, median = 0, max = 0;
};

Spread spread(std::vector<i64> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[(values.size() - 1) / 2], values.back()};
}

std::vector<i64> less(std::vector<i64> values, const std::vector<i64>& baseline) {
  for (std::size_t i = 0; i < std::min(values.size(), baseline.size()); ++i) values[i] -= baseline[i];
  return values;
}

std::vector<i64> column(const std::vector<Cost>& costs, i64 Cost::*field) {
  std::vector<i64> values;
  for (const Cost& cost : costs) values.push_back(cost.*field);
  return values;
}

Spread spread(const Row& row, i64 Cost::*field) {
  return spread(less(column(row.run, field), column(row.baseline, field)));
}

/// One line of the report.
struct ReportRow {
  std::string op, variant;
  std::size_t n = 0;
  Spread fences, flushes, lines;
  std::optional<Spread> sfence, pmemobj;
};

std::vector<ReportRow> report_rows(const std::vector<CaseGroup>& groups, const std::vector<Row>& counted,
                                   const std::vector<SteppedRow>& stepped) {
  std::vector<ReportRow> out;
  std::size_t index = 0;
  for (const CaseGroup& group : groups) {
    for (const Case& item : group.cases) {
      const Row& row = counted.at(index);
      ReportRow line{item.op,
                     item.variant,
                     row.run.size(),
                     spread(row, &Cost::fences),
                     spread(row, &Cost::flushes),
                     spread(row, &Cost::lines),
                     {},
                     {}};
      if (counting_pmemobj()) line.pmemobj = spread(row, &Cost::pmemobj);
      if (index < stepped.size() && !stepped[index].run.empty()) {
        line.sfence = spread(less(stepped[index].run, stepped[index].baseline));
      }
      out.push_back(std::move(line));
      ++index;
    }
  }
  return out;
}

// --- Both forms
// -----------------------------------------------------------------------------------------------------------

std::string text(const std::optional<Spread>& spread) {
  if (!spread) return "-";
  if (spread->min == spread->max) return fmt::format("{}", spread->median);
  return fmt::format("{} [{}..{}]", spread->median, spread->min, spread->max);
}

void print_text(const std::vector<ReportRow>& rows, unsigned runs, const std::string& why_no_sfence) {
  std::vector<std::vector<std::string>> cells{{"op", "variant", "fences", "sfence", "flushes", "lines", "pmemobj"}};
  for (const ReportRow& row : rows) {
    cells.push_back({row.op, row.variant, text(row.fences), text(row.sfence), text(row.flushes), text(row.lines),
                     text(row.pmemobj)});
  }
  std::vector<std::size_t> width(cells[0].size(), 0);
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  }
  for (const auto& line : cells) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i) fmt::print("{:<{}}  ", line[i], width[i]);
    fmt::print("{}\n", line.back());
  }
  fmt::print(
      "\nOne call each: the median of {} runs, and [least..most] where they differ.\n"
      "fences   ordering points the library asked for       sfence  sfence instructions executed\n"
      "flushes  write-back requests, of `lines` cache lines  pmemobj libpmemobj's own flushes and fences\n",
      runs);
  if (!why_no_sfence.empty()) fmt::print("sfence is \"-\": {}\n", why_no_sfence);
}

Json json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"min", spread->min}, {"median", spread->median}, {"max", spread->max}};
}

void print_object(const std::vector<ReportRow>& rows, const std::string& why_no_sfence) {
  Json object = json_object("count");
  object["sfence_missing"] = why_no_sfence.empty() ? Json(nullptr) : Json(why_no_sfence);
  Json out = Json::array();
  for (const ReportRow& row : rows) {
    out.push_back({{"op", row.op},
                   {"variant", row.variant},
                   {"n", row.n},
                   {"fences", json(row.fences)},
                   {"flushes", json(row.flushes)},
                   {"lines", json(row.lines)},
                   {"sfence", json(row.sfence)},
                   {"pmemobj", json(row.pmemobj)}});
  }
  object["rows"] = std::move(out);
  print_json(object);
}

int count(const Options& options) {
  const std::vector<CaseGroup> groups = all_cases();
  std::string why_no_sfence = options.sfence_runs == 0 ? "not asked for (--sfence-runs 0)" : "";
  std::vector<Row> counted;
  std::vector<SteppedRow> stepped;
  try {
    // First, because its process is forked before a pool is opened here.
    if (options.sfence_runs != 0) stepped = count_sfences(groups, options.sfence_runs, kWarmUp, why_no_sfence);
    CountingMeter meter(counted);
    run_cases(groups, options.runs, kWarmUp, meter);
  } catch (const std::runtime_error& error) {
    report_text("count", error.what());
    return kExitFailure;
  }
  const std::vector<ReportRow> rows = report_rows(groups, counted, stepped);
  if (options.json) {
    print_object(rows, why_no_sfence);
  } else {
    print_text(rows, options.runs, why_no_sfence);
  }
  return kExitOk;
}

}  // namespace

std::vector<CaseGroup> all_cases() {
  // The first pool fits a container's usual 64 MiB of /dev/shm; the second is small because it is filled.
  std::vector<CaseGroup> groups{{u64{48} << 20, {}}, {u64{16} << 20, {}}};
  add_looking_cases(groups[0].cases);
  add_tree_cases(groups[0].cases);
  add_file_cases(groups[0].cases);
  add_space_cases(groups[0].cases);
  add_drain_cases(groups[1].cases);
  return groups;
}

void add_count(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "count", "Count flushes and fences of each operation, on a throw-away pool; takes no pool and touches none");
  command->add_option("--runs", options->runs, "Runs of each case (default 101)")->check(CLI::Range(1u, 100'000u));
  command
      ->add_option("--sfence-runs", options->sfence_runs,
                   "Further runs, each instruction of which is looked at to count "
                   "sfence (default 3; 0 for none)")
      ->check(CLI::Range(0u, 1000u));
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)");
  command->footer("Example:\n  pmfs count | grep create");
  command->callback([options, &exit_code] { exit_code = count(*options); });
}

}  // namespace pmfs::tools
