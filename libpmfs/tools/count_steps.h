// Executed `sfence` instructions, counted exactly: each measured call runs with the processor's trap flag set, so that
// the process is interrupted after every instruction and looks at the next one.
//
// A fence that the library asks for is one sfence, but a streaming copy of libpmem may execute some of its own, which
// order nothing for the library. Only the processor sees both.
//   This happens in a child process with a pool of its own: a trap in a place where signals are blocked would end it.
//   The traps stay within that process (no tracer, so no permission is needed, and no change of process for each step).
#pragma once

#include <string>
#include <vector>

#include "count_bench.h"

namespace pmfs::tools {

/// By row; for a case with a baseline, the baseline's counts are at the same index.
struct SteppedRow {
  std::vector<i64> run;
  std::vector<i64> baseline;
};

/// Runs all cases in a child process, step by step. REQUIRES: no pool was opened in this process yet, and it has one
/// thread.
/// @return rows by number; empty where that was impossible, and `why` says why.
std::vector<SteppedRow> count_sfences(const std::vector<CaseGroup>& groups, unsigned runs, unsigned warm_up,
                                      std::string& why);

}  // namespace pmfs::tools
