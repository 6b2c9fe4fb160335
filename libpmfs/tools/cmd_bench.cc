// pmfs bench: hands its words over to pmfs-bench, a program of its own: what measures time is no part of this one.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "commands.h"
#include "report.h"

namespace pmfs::tools {

namespace {

/// The program beside this one, else where it is installed; empty: nowhere.
std::string bench_program() {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return {};
  for (const auto& folder : {here, here / PMFS_LIBEXEC}) {
    const std::string program = (folder / "pmfs-bench").string();
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

int bench(const std::vector<std::string>& words) {
  std::string program = bench_program();
  if (program.empty()) {
    report_text("bench", "pmfs-bench is neither beside this program nor in " PMFS_LIBEXEC " from here; install it");
    return kExitFailure;
  }
  std::vector<char*> arguments{program.data()};
  std::vector<std::string> own = words;
  for (std::string& word : own) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  report_errno(program, "cannot run it", errno);
  return kExitFailure;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("bench", "Measure time: pmfs bench --help lists what there is");
  command->set_help_flag();  // --help is the program's
  command->prefix_command();
  command->callback([command, &exit_code] { exit_code = bench(command->remaining()); });
}

}  // namespace pmfs::tools
