// The C interface: what a file system holds, what looking up in it has cost, and whether it is consistent.
#include <algorithm>
#include <iterator>

#include "c_api/convert.h"

using namespace pmfs;
using namespace pmfs::c_api;

namespace {

// @param to  as long as any list gets; what does not fit is added to the last place.
template <std::size_t kLength>
void copy_list(const std::vector<u64>& from, std::uint64_t (&to)[kLength]) {
  for (std::size_t i = 0; i < from.size(); ++i) to[std::min(i, kLength - 1)] += from[i];
}

}  // namespace

int pmfs_check(pmfs_t* fs, pmfs_check_counts* counts,
               void (*finding)(void* context, const char* code, const char* text), void* context) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    PMFS_TRY(fillable(counts, Given::kMay));
    PMFS_ASSIGN(const CheckReport report, check(*open));
    if (finding != nullptr)
      for (const Finding& one : report.findings) finding(context, one.code.c_str(), one.text.c_str());
    pmfs_check_counts to{};
    to.findings = report.findings.size();
    to.inodes = report.inodes;
    to.directories = report.directories;
    to.entries = report.entries;
    to.blocks_used = report.blocks_used;
    to.blocks_free = report.blocks_free;
    to.lanes_undone = report.lanes_undone;
    put(to, counts);
    return {};
  });
}

int pmfs_get_survey(pmfs_t* fs, pmfs_survey* found) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    PMFS_TRY(fillable(found));
    PMFS_ASSIGN(const Survey now, survey(*open));
    pmfs_survey to{};
    to.regular_files = now.regular_files;
    to.directories = now.directories;
    to.symlinks = now.symlinks;
    to.special_files = now.special_files;
    to.extents = now.extents;
    to.most_extents = now.most_extents;
    to.fragmented_files = now.fragmented_files;
    to.unwritten_blocks = now.unwritten_blocks;
    to.map_nodes = now.map_nodes;
    to.index_nodes = now.index_nodes;
    to.with_xattrs = now.with_xattrs;
    to.with_acls = now.with_acls;
    to.attribute_blocks = now.attribute_blocks;
    to.indexes_stale = now.indexes_stale;
    to.indexes_damaged = now.indexes_damaged;
    to.free_runs = now.free_runs;
    to.longest_free_run = now.longest_free_run;
    copy_list(now.directories_by_depth, to.directories_by_depth);
    copy_list(now.free_blocks_by_run, to.free_blocks_by_run);
    put(to, found);
    return {};
  });
}

int pmfs_dump(pmfs_t* fs, void (*line)(void* context, const char* text, std::size_t bytes), void* context) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    if (line == nullptr) return invalid("there is nobody to give the lines to");
    return dump(*open, [&](std::string_view text) { line(context, text.data(), text.size()); });
  });
}

int pmfs_get_lookup_statistics(pmfs_t* fs, pmfs_lookup_statistics* counts) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    PMFS_TRY(fillable(counts));
    PMFS_TRY(open->space());  // lookup_statistics() itself has no errors
    const LookupStatistics now = open->lookup_statistics();
    pmfs_lookup_statistics to{};
    to.lookups = now.lookups;
    to.hits = now.hits;
    to.misses = now.misses;
    to.negative = now.negative;
    to.skipped = now.skipped;
    to.pivot_hits = now.pivot_hits;
    to.whole_hits = now.whole_hits;
    to.shared = now.shared;
    to.retries = now.retries;
    to.bytes = now.bytes;
    to.bytes_limit = now.bytes_limit;
    to.entries = now.entries;
    to.negative_entries = now.negative_entries;
    to.directories = now.directories;
    to.evictions = now.evictions;
    to.pivots = now.pivots;
    to.candidates = now.candidates;
    to.periods = now.periods;
    to.swaps = now.swaps;
    to.skipped_swaps = now.skipped_swaps;
    to.invalidations = now.invalidations;
    to.invalidated_pivots = now.invalidated_pivots;
    to.revived_pivots = now.revived_pivots;
    to.pivot_period_ms = now.pivot_period_ms;
    to.pivot_threshold = now.pivot_threshold;
    put(to, counts);
    return {};
  });
}

int pmfs_pivots(pmfs_t* fs, void (*pivot)(void* context, const char* path, std::uint32_t heat), void* context) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    PMFS_TRY(open->space());  // pivots() itself has no errors
    if (pivot == nullptr) return invalid("there is nobody to give the pivots to");
    for (const PivotInfo& one : open->pivots()) pivot(context, one.path.c_str(), one.heat);
    return {};
  });
}

int pmfs_set_pivot_period(pmfs_t* fs, std::uint32_t period_ms) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    PMFS_TRY(open->space());  // set_pivot_period() itself has no errors
    if (period_ms == 0) return invalid("a period has at least a millisecond");
    open->set_pivot_period(period_ms);
    return {};
  });
}
