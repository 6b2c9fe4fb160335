// Executed `sfence` instructions, counted exactly: a child process runs the cases on a pool of its own, and this process,
// its tracer, single-steps each measured call and looks at every instruction.
//
// A fence that the library asks for is one sfence, but libpmem's streaming copies execute some of their own, which order
// nothing for the library. Only the processor sees both.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "count_bench.h"

namespace pmfs::tools {

/// By row; for a case with a baseline, the baseline's counts are at the same index.
struct TracedRow {
  std::vector<i64> run;
  std::vector<i64> baseline;
};

class SfenceTracer {
 public:
  /// Forks the child and stops it. REQUIRES: no pool was opened in this process yet, and it has one thread.
  SfenceTracer(const std::vector<CaseGroup>& groups, unsigned runs, unsigned warm_up);
  /// Ends the child.
  ~SfenceTracer();
  SfenceTracer(const SfenceTracer&) = delete;
  SfenceTracer& operator=(const SfenceTracer&) = delete;

  /// Runs the child to its end. @return rows by number; empty where that was impossible, and why() says why.
  std::vector<TracedRow> finish();
  const std::string& why() const { return why_; }

 private:
  pid_t child_ = -1;
  std::string why_;
};

}  // namespace pmfs::tools
