// pmfs dump: the structures on the medium as stable text, for diff and for bug reports.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "open_pool.h"
#include "report.h"

namespace pmfs::tools {

namespace {

int dump_pool(const std::string& pool) {
  std::optional<Filesystem> fs = open_privately(pool);
  if (!fs) return kExitFailure;
  const Result<void> dumped = dump(*fs, [](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
  });
  if (!dumped.ok()) report(pool, dumped.error());
  return close_pool(*fs, pool, dumped.ok() ? kExitOk : kExitFailure);
}

}  // namespace

void add_dump(CLI::App& app, int& exit_code) {
  auto pool = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("dump", "Print the structures of a pool as stable, readable text");
  command->add_option("POOL", *pool, "Pool file or poolset file")->required();
  command->footer("Example:\n  pmfs dump /dev/shm/demo.pool | less");
  command->callback([pool, &exit_code] { exit_code = dump_pool(*pool); });
}

}  // namespace pmfs::tools
