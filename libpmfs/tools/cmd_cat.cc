// pmfs cat: a file of the pool to standard output.
#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "file_copy.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string path;
};

}  // namespace

void add_cat(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("cat", "Write a file of a pool to standard output");
  command->add_option("POOL", options->pool, "Pool file or poolset file")->required();
  command->add_option("PATH", options->path, "File in the pool")->required();
  command->footer("Example:\n  pmfs cat /dev/shm/demo.pool /notes.txt");
  command->callback([options, &exit_code] { exit_code = get_file(options->pool, options->path, "-"); });
}

}  // namespace pmfs::tools
