#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "commands.h"
#include "fuse_bridge/mount.h"

namespace pmfs::tools {

namespace {

struct UmountCommand {
  std::string dir;
  bool lazy = false;
};

}  // namespace

void add_umount(CLI::App& app, int& exit_code) {
  const auto command = std::make_shared<UmountCommand>();
  CLI::App* const sub = app.add_subcommand("umount", "Unmount a pool and wait until it is closed");
  sub->add_option("DIR", command->dir, "Where it is mounted")->required();
  sub->add_flag("-l,--lazy", command->lazy, "Detach now, also when busy, and do not wait");
  sub->footer("Example:\n  pmfs umount /mnt/demo");
  sub->callback([command, &exit_code] { exit_code = bridge::unmount(command->dir, command->lazy); });
}

}  // namespace pmfs::tools
