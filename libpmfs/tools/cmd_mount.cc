#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "fuse_bridge/mount.h"

namespace pmfs::tools {

namespace {

constexpr const char* kMountHelp =
    R"(Mount a pool with FUSE. Returns when the mount is served; the server goes on in the
background until `pmfs umount DIR`, `umount DIR` or SIGTERM.

Mount options (-o, separated by commas):
  ro, rw                   read-only: private pages, nothing reaches the pool
  noatime, relatime        access times never, or as a rule once a day (default)
  dir_index, nodir_index   use directory indexes (default), or scan directories
  resolver=walk|stage|fullpath  how paths in batches are found (stage: from popular places)
  durability=relaxed       a pool in an ordinary file: durable only at fsync and unmount
  uid=N, gid=N             show everything as that user's or group's; creating still records who did
  allow_other              other users may use the mount (always so for root's)
  suid, dev, noexec        set-id bits and device nodes have effect; nothing can be executed
  io_uring                 requests through io_uring (libfuse 3.18, and the kernel's fuse.enable_uring)
  entry_timeout=SECONDS    how long the kernel may trust names, attributes and the absence
  attr_timeout=SECONDS     of names. By default for ever, since nobody else writes.
  negative_timeout=SECONDS
Options for mount(8) and systemd (defaults, noauto, user, nofail, _netdev, x-*) are accepted and do nothing.)";

struct MountCommand {
  bridge::MountOptions options;
  std::vector<std::string> lists;
  std::string type;
};

int run(MountCommand& command) {
  for (const std::string& list : command.lists) {
    if (const std::string wrong = bridge::parse_mount_options(list, command.options); !wrong.empty()) {
      std::fprintf(stderr, "pmfs: mount: %s\n", wrong.c_str());
      return bridge::kExitUsage;
    }
  }
  return bridge::mount_pool(command.options);
}

}  // namespace

void add_mount(CLI::App& app, int& exit_code) {
  const auto command = std::make_shared<MountCommand>();
  CLI::App* const sub = app.add_subcommand("mount", "Mount a pool with FUSE");
  sub->description(kMountHelp);
  sub->add_option("POOL", command->options.pool, "The pool: a file, a device DAX or a poolset")->required();
  sub->add_option("DIR", command->options.dir, "The directory to mount it on")->required();
  sub->add_option("-o", command->lists, "Mount options")->type_name("OPTIONS")->allow_extra_args(false);
  sub->add_flag("--foreground", command->options.foreground, "Stay in the foreground, messages to stderr");
  sub->add_flag("--counts", command->options.print_counts,
                "With --foreground: say at the end which requests were answered")
      ->needs("--foreground");
  sub->footer("Example:\n  pmfs mount /dev/shm/demo.pool /mnt/demo");
  // What mount(8) hands on to a helper beside -o.
  sub->add_flag("-f", command->options.fake)->group("");
  sub->add_flag("-s", command->options.sloppy)->group("");
  sub->add_flag("-n,-v")->group("");
  sub->add_option("-t", command->type)->group("");
  sub->callback([command, &exit_code] { exit_code = run(*command); });
}

}  // namespace pmfs::tools
