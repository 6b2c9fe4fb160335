#include "fuse_bridge/statistics.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>
#include <vector>

namespace pmfs::bridge {

namespace {

class Rows {
 public:
  explicit Rows(mounted::StatisticsReply& reply) : reply_(reply) {}
  void add(std::string_view group, std::string_view name, u64 value) {
    if (reply_.counts == std::size(reply_.rows)) return;
    mounted::NamedCount& row = reply_.rows[reply_.counts++];
    std::string whole(group);
    whole += '.';
    whole += name;
    std::memcpy(row.name, whole.data(), std::min(whole.size(), sizeof row.name));
    row.value = value;
  }

 private:
  mounted::StatisticsReply& reply_;
};

std::string lower(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

mounted::StatisticsReply statistics_of(Bridge& bridge) {
  mounted::StatisticsReply reply;
  Rows rows(reply);
  const CountsReply requests = bridge.counts();
  for (std::size_t i = 0; i < kRequestKinds; ++i) rows.add("requests", lower(kRequestNames[i]), requests.counts[i]);

  rows.add("transport", "io_uring", bridge.uses_uring() ? 1 : 0);

  const Counters cost = process_counters();
  rows.add("persist", "flushes", cost.flushes);
  rows.add("persist", "lines", cost.lines);
  rows.add("persist", "fences", cost.fences);
  rows.add("persist", "copied_bytes", cost.copied_bytes);
  rows.add("persist", "msyncs", cost.msyncs);
  rows.add("persist", "pmemobj_fences", cost.pmemobj_fences);

  if (const Result<SpaceInfo> space = bridge.fs().space(); space.ok()) {
    rows.add("space", "block_bytes", space->block_bytes);
    rows.add("space", "blocks", space->blocks);
    rows.add("space", "blocks_free", space->blocks_free);
    rows.add("space", "blocks_avail", space->blocks_avail);
    rows.add("space", "inodes", space->inodes);
    rows.add("space", "inodes_free", space->inodes_free);
  }

  const HeldInodes held = bridge.fs().held_inodes();
  rows.add("held", "states", held.states);
  rows.add("held", "handles", held.handles);
  rows.add("held", "pins", held.pins);
  rows.add("held", "nameless", held.nameless);

  const LookupStatistics paths = bridge.fs().lookup_statistics();
  rows.add("dcache", "lookups", paths.lookups);
  rows.add("dcache", "hits", paths.hits);
  rows.add("dcache", "misses", paths.misses);
  rows.add("dcache", "negative", paths.negative);
  rows.add("dcache", "skipped", paths.skipped);
  rows.add("dcache", "pivot_hits", paths.pivot_hits);
  rows.add("dcache", "shared", paths.shared);
  rows.add("dcache", "retries", paths.retries);
  rows.add("dcache", "bytes", paths.bytes);
  rows.add("dcache", "bytes_limit", paths.bytes_limit);
  rows.add("dcache", "entries", paths.entries);
  rows.add("dcache", "negative_entries", paths.negative_entries);
  rows.add("dcache", "directories", paths.directories);
  rows.add("dcache", "evictions", paths.evictions);
  rows.add("pivots", "serving", paths.pivots);
  rows.add("pivots", "candidates", paths.candidates);
  rows.add("pivots", "periods", paths.periods);
  rows.add("pivots", "swaps", paths.swaps);
  rows.add("pivots", "skipped_swaps", paths.skipped_swaps);
  rows.add("pivots", "invalidations", paths.invalidations);
  rows.add("pivots", "invalidated", paths.invalidated_pivots);
  rows.add("pivots", "revived", paths.revived_pivots);
  rows.add("pivots", "period_ms", paths.pivot_period_ms);
  rows.add("pivots", "threshold", paths.pivot_threshold);
  return reply;
}

mounted::PivotsReply pivots_of(Bridge& bridge) {
  mounted::PivotsReply reply;
  std::vector<PivotInfo> pivots = bridge.fs().pivots();
  std::stable_sort(pivots.begin(), pivots.end(),
                   [](const PivotInfo& a, const PivotInfo& b) { return a.heat > b.heat; });
  for (const PivotInfo& pivot : pivots) {
    if (reply.count == std::size(reply.rows)) break;
    mounted::PivotRow& row = reply.rows[reply.count++];
    row.heat = pivot.heat;
    row.overlap = pivot.overlap;
    const std::size_t length = std::min(pivot.path.size(), sizeof row.path);
    std::memcpy(row.path, pivot.path.data() + pivot.path.size() - length, length);
  }
  return reply;
}

}  // namespace pmfs::bridge
