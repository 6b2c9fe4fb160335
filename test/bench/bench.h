// What all benches of pmfs-bench share: samples, rows, rounds.
//
// A bench has cases; a case has metrics; each round of a case gives one sample of each. Rounds of all cases alternate
// in one run, so that whatever slows the machine for a while slows all of them, and a row's value is the median of its
// samples. Nothing here passes or fails: the numbers are for people, and for tests that look at counts.
#pragma once

#include <time.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "pmfs/pmfs.hpp"

namespace pmfs::bench {

/// What the command line says to every bench.
struct Options {
  bool quick = false;
  bool json = false;
  std::string plot;                  ///< file to draw; empty: none
  std::vector<std::string> targets;  ///< folders to make throw-away pools in; empty: one, wherever there is room
};

/// One figure of the report. --json prints exactly these.
struct Row {
  std::string id;  ///< FIGURE/CASE/METRIC, and "@TARGET" behind it if there is more than one target
  std::string figure, case_name, metric;
  double value = 0;  ///< the median
  std::string unit;
  std::string base_id;              ///< the row that `ratio` compares with; empty: none
  std::optional<double> ratio;      ///< value / value of the base
  std::optional<double> published;  ///< what the paper says `ratio` is; without a base: what it says `value` is
};

class Report {
 public:
  /// @param target  behind the ids of what is sampled from now on; empty: nothing.
  void set_target(const std::string& target) { target_ = target; }
  void sample(std::string_view figure, std::string_view case_name, std::string_view metric, std::string_view unit,
              double value);
  /// The row shows its ratio to the same metric of another case of the same figure. Neither needs to exist.
  void compare(std::string_view figure, std::string_view case_name, std::string_view metric, std::string_view base_case,
               std::optional<double> published = {});
  /// In the order of their first samples.
  std::vector<Row> rows() const;

 private:
  struct Series {
    Row row;
    std::vector<double> samples;
  };
  std::string id(std::string_view figure, std::string_view case_name, std::string_view metric) const;
  Series& series(std::string_view figure, std::string_view case_name, std::string_view metric);
  std::vector<Series> series_;
  std::string target_;
};

/// What a bench is run with.
struct Context {
  const Options& options;
  Report& report;
  std::string target;  ///< folder for throw-away pools; empty: any
};

/// One bench: its subcommand, and what to do if that was given.
struct Bench {
  CLI::App* command;
  std::function<void(Context&)> run;
};
Bench batch(CLI::App& app);
Bench dirindex(CLI::App& app);
Bench dirscale(CLI::App& app);
Bench fig7(CLI::App& app);
Bench fig8(CLI::App& app);
Bench fig9(CLI::App& app);
Bench lookups(CLI::App& app);

/// A case and how many rounds of it there are.
struct Case {
  std::function<void()> round;
  unsigned rounds = 1;
};
/// Runs all rounds, one of each case in turn, every second time in the opposite order.
void alternate(const std::vector<Case>& cases);

/// Nanoseconds of wall-clock time that `body` takes.
template <class Body>
double nanoseconds(Body&& body) {
  const auto before = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - before).count();
}

/// Nanoseconds of processor time that `body` takes of this thread: what others do on the machine hardly shows, nor what
/// `body` waits for. Asking costs some 200 ns, which are in it.
template <class Body>
double processor_nanoseconds(Body&& body) {
  const auto now = [] {
    timespec at{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return static_cast<double>(at.tv_sec) * 1e9 + static_cast<double>(at.tv_nsec);
  };
  const double before = now();
  body();
  return now() - before;
}

/// What an operation costs: the time and the counters around it.
struct Cost {
  double ns = 0;
  Counters counters;
};
template <class Body>
Cost cost_of(Body&& body) {
  Cost cost;
  const Counters before = thread_counters();
  cost.ns = nanoseconds(body);
  cost.counters = thread_counters() - before;
  return cost;
}

/// The value of a result; a failure ends the bench, with its reason.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(std::string(describe(result.error().code)) + ": " + result.error().what);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// A number as people write it: "10k", "1M", "12345". Powers of 1000. Throws CLI::ValidationError.
u64 parse_count(const std::string& text);
/// For CLI::Option::check(): why `text` is no count of at least `least`; empty if it is one.
std::string wrong_count(const std::string& text, u64 least);

void print_text(const std::vector<Row>& rows);
void print_json(const std::vector<Row>& rows);
/// Draws the rows with gnuplot, a panel for each figure and metric. The name's end decides the kind: svg, png or pdf.
/// Throws std::runtime_error: no gnuplot, unknown kind, or gnuplot failed.
void plot(const std::vector<Row>& rows, const std::string& file);

}  // namespace pmfs::bench
