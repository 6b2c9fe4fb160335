// pmfs df: how much room is left in a pool.
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
  bool human = false;
  bool json = false;
};

/// Used of what can be used, rounded up, as df(1) does.
u64 percent(u64 used, u64 avail) { return used + avail == 0 ? 0 : (used * 100 + used + avail - 1) / (used + avail); }

int df(const Options& options) {
  std::optional<Filesystem> fs = open_for_reading(options.pool);
  if (!fs) return kExitFailure;
  const SpaceInfo space = fs->info().space;
  const u64 used = space.blocks - space.blocks_free;
  const u64 inodes_used = space.inodes - space.inodes_free;
  if (options.json) {
    Json object = json_object("df");
    add_bytes(object, "pool", options.pool);
    object["block_bytes"] = space.block_bytes;
    object["blocks"] = space.blocks;
    object["blocks_used"] = used;
    object["blocks_free"] = space.blocks_free;
    object["blocks_avail"] = space.blocks_avail;
    object["inodes"] = space.inodes;
    object["inodes_used"] = inodes_used;
    object["inodes_free"] = space.inodes_free;
    print_json(object);
  } else {
    const auto size = [&](u64 blocks) {
      return options.human ? size_text(blocks * space.block_bytes)
                           : fmt::format("{}", blocks * (space.block_bytes / 1024));
    };
    fmt::print("{:>14} {:>14} {:>14} {:>5} {:>12} {:>12}  {}\n", options.human ? "Size" : "1K-blocks", "Used", "Avail",
               "Use%", "Inodes used", "Inodes free", "Pool");
    fmt::print("{:>14} {:>14} {:>14} {:>4}% {:>12} {:>12}  {}\n", size(space.blocks), size(used),
               size(space.blocks_avail), percent(used, space.blocks_avail), inodes_used, space.inodes_free,
               printable(options.pool));
  }
  return close_pool(*fs, options.pool, kExitOk);
}

}  // namespace

void add_df(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("df", "Show how much room a pool has");
  command->set_help_flag("--help", "Print this help message and exit");  // -h is df's own
  command->add_option("POOL", options->pool, "Pool file, device DAX, or poolset file")->required();
  command->add_flag("-h,--human-readable", options->human, "Sizes for reading, like 1.0 GiB");
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)");
  command->footer(
      "What is available leaves out the reserve that lets files be deleted on a full pool.\n"
      "Example:\n  pmfs df -h /dev/shm/demo.pool");
  command->callback([options, &exit_code] { exit_code = df(*options); });
}

}  // namespace pmfs::tools
