// pmfs get: a file of the pool to a file of the host.
#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "file_copy.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string path;
  std::string host_file = "-";
};

}  // namespace

void add_get(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("get", "Copy one file out of a pool");
  command->add_option("POOL", options->pool, "Pool file or poolset file")->required();
  command->add_option("PATH", options->path, "File in the pool")->required();
  command->add_option("HOSTFILE", options->host_file, "Where to; - or nothing is standard output");
  command->footer("Example:\n  pmfs get /dev/shm/demo.pool /notes.txt notes-copy.txt");
  command->callback([options, &exit_code] { exit_code = get_file(options->pool, options->path, options->host_file); });
}

}  // namespace pmfs::tools
