// Counting what one call costs: the bench that the cases of `pmfs count` run on.
//
// A case is one kind of call in one situation. It is prepared, run and tidied many times; only the run is measured.
// There are two meters: one reads the library's counters around the call; the other single-steps the call and counts
// the `sfence` instructions it executes (count_steps.h).
//   Nothing here looks at a clock, so the figures do not depend on the machine or its load.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

class Bench;

struct Case {
  using Step = std::function<void(Bench&)>;

  std::string op;
  std::string variant;
  Step setup = {};    ///< once, before the first run
  Step prepare = {};  ///< before each run
  Step run;           ///< the measured call, and nothing else
  /// After each run: whether it was what the case is about. A run that was not is not counted, and another one made.
  /// Not together with a baseline.
  std::function<bool(Bench&)> keep = {};
  Step tidy = {};  ///< after each run
  Step baseline =
      {};  ///< measured too, after run; its cost is subtracted, so that what remains is what run had in addition
};

/// A throw-away pool and the cases that need one of that size.
struct CaseGroup {
  u64 pool_bytes = 0;
  std::vector<Case> cases;
};

enum class Part : bool { kRun, kBaseline };

/// Told when a measured call begins and ends.
class Meter {
 public:
  virtual ~Meter() = default;
  virtual void begin(std::size_t row, Part part) = 0;
  virtual void end() = 0;
  /// Takes the call that ended last back.
  virtual void discard() = 0;
};

/// What a case works on. Directories and names are fresh for every case; the buffers hold nothing of interest.
class Bench {
 public:
  Filesystem fs;
  InodeNo dir{};        ///< this case's own directory ...
  InodeNo other{};      ///< ... and a second one
  unsigned number = 0;  ///< of the run within its case
  std::string name;     ///< differs in every run
  std::string name2;
  InodeNo ino{};  ///< for cases to keep something between their steps
  u64 off = 0;
  File file;
  File file2;
  std::optional<Dir> stream;
  DirEntry entry;
  std::vector<std::byte> buffer = std::vector<std::byte>(std::size_t{1} << 20, std::byte{0x5a});

  At here() const { return {dir, name}; }
  At here2() const { return {dir, name2}; }
  At there() const { return {other, name}; }
  std::span<std::byte> bytes(std::size_t count) { return std::span(buffer).first(count); }

  // Steps that many cases need; a failure ends the whole command.
  InodeNo make_file(const At& at, std::size_t bytes_long = 0);
  InodeNo make_directory(const At& at);
  void append(InodeNo into, u64 at, std::size_t bytes_long);
  /// Fills a directory with names that no run uses.
  void populate(InodeNo into, unsigned entries);
  /// Removes a tree.
  void remove(InodeNo parent, const std::string& what);
};

/// The value of a result; a failure ends the command, with its reason.
template <class T>
T must(Result<T> result);
void must(const Result<void>& result);
[[noreturn]] void fail(const Error& error);

template <class T>
T must(Result<T> result) {
  if (!result.ok()) fail(result.error());
  return std::move(*result);
}

/// All cases, in the order of the report.
std::vector<CaseGroup> all_cases();
void add_looking_cases(std::vector<Case>& cases);  ///< lookup, stat, readdir, read, close
void add_tree_cases(std::vector<Case>& cases);     ///< create ... rename_exchange
void add_file_cases(std::vector<Case>& cases);     ///< append_4k ... fsync
void add_space_cases(std::vector<Case>& cases);    ///< fallocate ... tmpfile_link
void add_drain_cases(std::vector<Case>& cases);    ///< drain; they need a small pool of their own

/// Runs every case `runs` times, after `warm_up` more that the meter does not see. Rows are numbered as in all_cases().
/// Pools are made in memory (/dev/shm) if there is room, else in TMPDIR or /tmp; no name of them is left.
/// Throws std::runtime_error when something fails.
void run_cases(const std::vector<CaseGroup>& groups, unsigned runs, unsigned warm_up, Meter& meter);

}  // namespace pmfs::tools
