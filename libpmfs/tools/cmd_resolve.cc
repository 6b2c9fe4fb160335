// pmfs resolve, pmfs create --batch: many ordinary paths through a mount at once.
#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "host_paths.h"
#include "report.h"

namespace pmfs::tools {

namespace {

struct Options {
  HostPathsOptions paths;
  bool no_follow = false;
  bool batch = false;
  std::string mode = "0666";
};

void add_input_options(CLI::App& command, HostPathsOptions& options) {
  command.add_flag("-0,--null", options.zero, "Paths end with a NUL byte, not with a newline");
  command.add_flag("--json", options.json, "Print one JSON object with a row for each path (fields: JSON.md)");
}

}  // namespace

void add_resolve(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  options->paths.command = "resolve";
  CLI::App* command = app.add_subcommand("resolve", "Say what ordinary paths on stdin lead to, many in one request");
  add_input_options(*command, options->paths);
  command->add_flag("-P,--no-follow", options->no_follow, "Do not follow a symbolic link as the last component");
  command->footer(
      "A line for each path: inode, generation, mode, path. Paths in a pmfs mount are answered some hundred\n"
      "a request, all others by a system call each. Exit code 1 if any path failed.\n\n"
      "Example:\n  find /mnt/pmfs -name '*.jpg' -print0 | pmfs resolve -0 --json");
  command->callback([options, &exit_code] {
    const Follow follow = options->no_follow ? Follow::kNo : Follow::kYes;
    exit_code = answer_host_paths(
        options->paths, [&](mounted::Client& client, auto paths, auto rows) { client.resolve(paths, rows, follow); });
  });
}

void add_create(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  options->paths.command = "create";
  CLI::App* command =
      app.add_subcommand("create", "Create empty files at ordinary paths on stdin, many in one request");
  command->add_flag("--batch", options->batch, "Take the paths from stdin")->required();
  add_input_options(*command, options->paths);
  command->add_option("-m,--mode", options->mode, "Permission bits in octal, less the umask")->capture_default_str();
  command->footer(
      "What exists already is an error of that path, as with O_CREAT | O_EXCL. Exit code 1 if any failed.\n\n"
      "Example:\n  seq -f /mnt/pmfs/inbox/%g 1000 | pmfs create --batch");
  command->callback([options, &exit_code] {
    std::size_t used = 0;
    unsigned long mode = 010000;
    try {
      mode = std::stoul(options->mode, &used, 8);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != options->mode.size() || mode > 07777) {
      report_text("--mode " + options->mode, "not permission bits in octal, as 0644");
      exit_code = kExitUsage;
      return;
    }
    exit_code = answer_host_paths(options->paths, [&](mounted::Client& client, auto paths, auto rows) {
      client.create(paths, static_cast<u32>(mode), rows);
    });
  });
}

}  // namespace pmfs::tools
