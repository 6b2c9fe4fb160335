// pmfs info: facts about a pool.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "commands.h"
#include "info_mount.h"
#include "json_out.h"
#include "open_pool.h"
#include "report.h"
#include "size_text.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  bool json = false;
  InfoMountOptions mount;  ///< instead of a pool
};

const char* short_name(Durability durability) {
  switch (durability) {
    case Durability::kPersistent: return "persistent";
    case Durability::kVolatile: return "volatile";
    case Durability::kFileBacked: return "file-backed";
    case Durability::kRelaxed: return "relaxed";
    case Durability::kPrivate: return "private";
  }
  return "unknown";
}

/// "1:3 2:18": what there is at each step of a list, empty steps left out.
std::string steps_text(const std::vector<u64>& steps, const std::function<std::string(std::size_t)>& name) {
  std::string text;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i] != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", steps[i], name(i));
  return text.empty() ? "none" : text;
}

void print_survey(const Survey& survey, u64 block_bytes) {
  fmt::print("files       {} regular, {} directories, {} symbolic links, {} special\n", survey.regular_files,
             survey.directories, survey.symlinks, survey.special_files);
  fmt::print("extents     {} of regular files, {} files in more than one, at most {} in one file\n", survey.extents,
             survey.fragmented_files, survey.most_extents);
  fmt::print("nodes       {} of file maps, {} of directory indexes\n", survey.map_nodes, survey.index_nodes);
  fmt::print("attributes  extended ones of {} files, ACLs of {}; {} blocks\n", survey.with_xattrs, survey.with_acls,
             survey.attribute_blocks);
  fmt::print("indexes     directories by levels: {}; stale {}, damaged {}\n",
             steps_text(survey.directories_by_depth,
                        [](std::size_t levels) { return levels == 0 ? "without" : fmt::format("of {}", levels); }),
             survey.indexes_stale, survey.indexes_damaged);
  fmt::print("free runs   {}, the longest {}\n", survey.free_runs, size_text(survey.longest_free_run * block_bytes));
  for (std::size_t k = 0; k < survey.free_blocks_by_run.size(); ++k) {
    if (survey.free_blocks_by_run[k] == 0) continue;
    fmt::print("            {:>10} in runs of {} and more\n", size_text(survey.free_blocks_by_run[k] * block_bytes),
               size_text(block_bytes << k));
  }
}

void print_text(const PoolInfo& info) {
  const SpaceInfo& space = info.space;
  fmt::print("pool        {}\n", printable(info.path));
  fmt::print("label       {}\n", info.label.empty() ? "(none)" : printable(info.label));
  fmt::print("uuid        {}\n", info.uuid);
  fmt::print("format      version {}, features compat {:#x}, ro_compat {:#x}, incompat {:#x}\n", info.format_version,
             info.compat, info.ro_compat, info.incompat);
  fmt::print("size        {} ({} bytes)\n", size_text(info.pool_bytes), info.pool_bytes);
  fmt::print("durability  {}\n", describe(info.medium));
  fmt::print("epoch       {}{}\n", info.epoch, info.recovered ? ", with operations to undo after a crash" : "");
  fmt::print("lanes       {}\n", info.lanes);
  fmt::print("blocks      {} of {} bytes, {} free, {} available ({})\n", space.blocks, space.block_bytes,
             space.blocks_free, space.blocks_avail, size_text(space.blocks_avail * space.block_bytes));
  fmt::print("inodes      {} in use, {} free\n", info.files, space.inodes_free);
  for (const RegionInfo& region : info.regions) {
    fmt::print("region      {} at byte {}\n", size_text(region.length_bytes), region.off);
  }
}

void print_object(const std::string& pool, const PoolInfo& info, const Survey& survey) {
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
  object["medium"] = short_name(info.medium);
  object["medium_text"] = describe(info.medium);
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
  object["regular_files"] = survey.regular_files;
  object["directories"] = survey.directories;
  object["symlinks"] = survey.symlinks;
  object["special_files"] = survey.special_files;
  object["extents"] = survey.extents;
  object["most_extents"] = survey.most_extents;
  object["fragmented_files"] = survey.fragmented_files;
  object["unwritten_blocks"] = survey.unwritten_blocks;
  object["map_nodes"] = survey.map_nodes;
  object["index_nodes"] = survey.index_nodes;
  object["with_xattrs"] = survey.with_xattrs;
  object["with_acls"] = survey.with_acls;
  object["attribute_blocks"] = survey.attribute_blocks;
  object["indexes_stale"] = survey.indexes_stale;
  object["indexes_damaged"] = survey.indexes_damaged;
  object["directories_by_depth"] = survey.directories_by_depth;
  object["free_runs"] = survey.free_runs;
  object["longest_free_run"] = survey.longest_free_run;
  object["free_blocks_by_run"] = survey.free_blocks_by_run;
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
  const Result<Survey> found = survey(*fs);
  if (!found.ok()) {
    report(options.pool, found.error());
    (void)fs->close();
    return kExitFailure;
  }
  if (options.json) {
    print_object(options.pool, facts, *found);
  } else {
    print_text(facts);
    print_survey(*found, facts.space.block_bytes);
  }
  return close_pool(*fs, options.pool, kExitOk);
}

}  // namespace

void add_info(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "info", "Show facts about a pool: size, label, durability, space, what is in it and how scattered");
  CLI::Option* pool = command->add_option("POOL", options->pool, "Pool file, device DAX, or poolset file");
  CLI::Option* mount =
      command->add_option("--mount", options->mount.dir, "A mounted pool instead: what it has counted");
  mount->excludes(pool);
  CLI::Option* json = command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)");
  command->add_flag("--watch", options->mount.watch, "A line a second, until interrupted")
      ->needs(mount)
      ->excludes(json);
  command->footer("Example:\n  pmfs info /dev/shm/demo.pool\n  pmfs info --mount /mnt/pmfs --json");
  command->callback([options, pool, mount, &exit_code] {
    if (pool->empty() && mount->empty()) throw CLI::RequiredError("POOL or --mount");
    options->mount.json = options->json;
    exit_code = pool->empty() ? info_mount(options->mount) : info(*options);
  });
}

}  // namespace pmfs::tools
