// pmfs info: facts about a pool.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "json_out.h"
#include "open_pool.h"
#include "report.h"
#include "size_text.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  bool json = false;
};

const char* short_name(Durability durability) {
  switch (durability) {
    case Durability::kPersistent:
      return "persistent";
    case Durability::kVolatile:
      return "volatile";
    case Durability::kFileBacked:
      return "file-backed";
    case Durability::kRelaxed:
      return "relaxed";
    case Durability::kPrivate:
      return "private";
  }
  return "unknown";
}

void print_text(const PoolInfo& info) {
  const SpaceInfo& space = info.space;
  fmt::print("pool        {}\n", printable(info.path));
  fmt::print("label       {}\n", info.label.empty() ? "(none)" : printable(info.label));
  fmt::print("uuid        {}\n", info.uuid);
  fmt::print("format      version {}, features compat {:#x}, ro_compat {:#x}, incompat {:#x}\n", info.format_version,
             info.compat, info.ro_compat, info.incompat);
  fmt::print("size        {} ({} bytes)\n", size_text(info.pool_bytes), info.pool_bytes);
  fmt::print("durability  {}: {}\n", short_name(info.durability), describe(info.durability));
  fmt::print("epoch       {}{}\n", info.epoch, info.recovered ? ", with operations to undo after a crash" : "");
  fmt::print("lanes       {}\n", info.lanes);
  fmt::print("blocks      {} of {} bytes, {} free, {} available ({})\n", space.blocks, space.block_bytes,
             space.blocks_free, space.blocks_avail, size_text(space.blocks_avail * space.block_bytes));
  fmt::print("inodes      {} in use, {} free\n", info.files, space.inodes_free);
  for (const RegionInfo& region : info.regions) {
    fmt::print("region      {} at byte {}\n", size_text(region.length_bytes), region.off);
  }
}

void print_object(const std::string& pool, const PoolInfo& info) {
  const SpaceInfo& space = info.space;
  Json object = json_object("info");
  add_bytes(object, "pool", pool);
  add_bytes(object, "label", info.label);
  object["uuid"] = info.uuid;
  object["format_version"] = info.format_version;
  object["compat"] = info.compat;
  object["ro_compat"] = info.ro_compat;
  object["incompat"] = info.incompat;
  object["size_bytes"] = info.pool_bytes;
  object["durability"] = short_name(info.durability);
  object["durability_text"] = describe(info.durability);
  object["epoch"] = info.epoch;
  object["recovered"] = info.recovered;
  object["saved_map_used"] = info.saved_map_used;
  object["lanes"] = info.lanes;
  object["block_bytes"] = space.block_bytes;
  object["blocks"] = space.blocks;
  object["blocks_free"] = space.blocks_free;
  object["blocks_avail"] = space.blocks_avail;
  object["inodes"] = space.inodes;
  object["inodes_used"] = info.files;
  object["inodes_free"] = space.inodes_free;
  Json rows = Json::array();
  for (const RegionInfo& region : info.regions) {
    rows.push_back({{"region_off", region.off}, {"region_bytes", region.length_bytes}});
  }
  object["rows"] = std::move(rows);
  print_json(object);
}

int info(const Options& options) {
  std::optional<Filesystem> fs = open_for_reading(options.pool);
  if (!fs) return kExitFailure;
  const PoolInfo facts = fs->info();
  if (options.json) {
    print_object(options.pool, facts);
  } else {
    print_text(facts);
  }
  return close_pool(*fs, options.pool, kExitOk);
}

}  // namespace

void add_info(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("info", "Show facts about a pool: size, label, durability, space");
  command->add_option("POOL", options->pool, "Pool file, device DAX, or poolset file")->required();
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)");
  command->footer("Example:\n  pmfs info /dev/shm/demo.pool");
  command->callback([options, &exit_code] { exit_code = info(*options); });
}

}  // namespace pmfs::tools
