#include "info_mount.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "json_out.h"
#include "pmfs/mounted.hpp"
#include "report.h"
#include "size_text.h"

namespace pmfs::tools {

namespace {

u64 value_of(const mounted::Statistics& statistics, std::string_view name) {
  for (const auto& [key, value] : statistics.counts)
    if (key == name) return value;
  return 0;
}

/// The sum of a group.
u64 sum_of(const mounted::Statistics& statistics, std::string_view group) {
  u64 sum = 0;
  for (const auto& [key, value] : statistics.counts)
    if (key.starts_with(group) && key[group.size()] == '.') sum += value;
  return sum;
}

void print_text(const mounted::Statistics& statistics) {
  std::string group;
  for (const auto& [key, value] : statistics.counts) {
    const std::size_t dot = key.find('.');
    if (key.substr(0, dot) != group) {
      group = key.substr(0, dot);
      fmt::print("{}\n", group);
    }
    if (value != 0 || group != "requests") fmt::print("  {:<20} {}\n", key.substr(dot + 1), value);
  }
  for (const PivotInfo& pivot : statistics.pivots) fmt::print("  {:<20} {}\n", pivot.heat, printable(pivot.path));
}

void print_object(const InfoMountOptions& options, const mounted::Statistics& statistics) {
  Json object = json_object("info");
  add_bytes(object, "mount", options.dir);
  for (const auto& [key, value] : statistics.counts) {
    const std::size_t dot = key.find('.');
    object[key.substr(0, dot)][key.substr(dot + 1)] = value;
  }
  Json rows = Json::array();
  for (const PivotInfo& pivot : statistics.pivots) {
    Json row;
    add_bytes(row, "path", pivot.path);
    row["heat"] = pivot.heat;
    row["overlap"] = pivot.overlap;
    rows.push_back(std::move(row));
  }
  object["pivots"]["rows"] = std::move(rows);
  print_json(object);
}

void print_line(const mounted::Statistics& now, const mounted::Statistics& before) {
  const auto per_second = [&](std::string_view name) { return value_of(now, name) - value_of(before, name); };
  fmt::print("{:>8} requests/s {:>8} lookups/s {:>8} fences/s {:>8} lines/s {:>8} free\n",
             sum_of(now, "requests") - sum_of(before, "requests"), per_second("requests.lookup"),
             per_second("persist.fences"), per_second("persist.lines"),
             size_text(value_of(now, "space.blocks_avail") * value_of(now, "space.block_bytes")));
  std::fflush(stdout);
}

}  // namespace

int info_mount(const InfoMountOptions& options) {
  Result<mounted::Statistics> statistics = mounted::statistics(options.dir);
  while (options.watch && statistics.ok()) {
    ::sleep(1);
    Result<mounted::Statistics> next = mounted::statistics(options.dir);
    if (next.ok()) print_line(*next, *statistics);
    statistics = std::move(next);
  }
  if (!statistics.ok()) {
    report(options.dir, statistics.error());
    return kExitFailure;
  }
  if (options.json) {
    print_object(options, *statistics);
  } else {
    print_text(*statistics);
  }
  return finish_stdout(kExitOk);
}

}  // namespace pmfs::tools
