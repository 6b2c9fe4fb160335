// pmfs grow: makes a pool larger.
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
  std::string size;
  bool json = false;
};

int grow(const Options& options) {
  const Result<GrowReport> grown =
      Filesystem::grow(options.pool, parse_size(options.size).value_or(0), {.busy_wait_ms = kBusyWaitMs});
  if (!grown.ok()) {
    report_pool(options.pool, grown.error());
    return kExitFailure;
  }
  if (options.json) {
    Json object = json_object("grow");
    add_bytes(object, "pool", options.pool);
    object["size_bytes_before"] = grown->bytes_before;
    object["size_bytes"] = grown->bytes_after;
    object["blocks_added"] = grown->blocks_added;
    print_json(object);
  } else if (grown->blocks_added == 0) {
    fmt::print("{}: has {} ({} bytes) already, nothing to do\n", printable(options.pool), size_text(grown->bytes_after),
               grown->bytes_after);
  } else {
    fmt::print("{}: {} ({} bytes), {} more for files\n", printable(options.pool), size_text(grown->bytes_after),
               grown->bytes_after, size_text(grown->blocks_added * kBlockBytes));
  }
  return kExitOk;
}

}  // namespace

void add_grow(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("grow", "Make a pool larger that is not mounted");
  command->add_option("POOL", options->pool, "Pool file, or poolset file: its last part gets longer")->required();
  command
      ->add_option("--size", options->size,
                   "What it is to have afterwards, all parts together, e.g. 2G; K, M, G, T are powers of 1024")
      ->required()
      ->check([](const std::string& text) {
        return parse_size(text) ? std::string{} : "'" + text + "' is not a size; write 64M or 1G";
      });
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)");
  command->footer(
      "A device has its size and cannot grow. If the command is interrupted, run it again.\n"
      "Example:\n  pmfs grow /dev/shm/demo.pool --size 2G");
  command->callback([options, &exit_code] { exit_code = grow(*options); });
}

}  // namespace pmfs::tools
