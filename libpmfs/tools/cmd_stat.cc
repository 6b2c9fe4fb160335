// pmfs stat: what the file system knows about one object, as stat(1) shows it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "host_paths.h"
#include "json_out.h"
#include "pool_work.h"
#include "report.h"
#include "stat_format.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::vector<std::string> objects;  ///< paths in the pool
  std::string format;
  bool follow = false;
  bool json = false;
  bool batch = false;
  HostPathsOptions paths;  ///< with batch
};

Result<Described> look(Filesystem& fs, const std::string& path, Follow follow) {
  Described found{path, {}, {}};
  PMFS_ASSIGN(found.attributes, fs.stat(path, Credentials::root(), follow));
  if (found.attributes.type() == FileType::kSymlink) {
    PMFS_ASSIGN(found.target, fs.readlink(At::inode(found.attributes.ino), Credentials::root()));
  }
  return found;
}

void print_object(const Options& options, const Described& found) {
  Json object = json_object("stat");
  add_bytes(object, "pool", options.pool);
  add_bytes(object, "path", found.path);
  add_attributes(object, found.attributes);
  if (found.attributes.type() == FileType::kSymlink) add_bytes(object, "target", found.target);
  print_json(object);
}

int stat_paths(const Options& options) {
  return look_at_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    for_each_path(options.objects, failures, [&](const std::string& path) -> Result<void> {
      PMFS_ASSIGN(const Described found, look(fs, path, options.follow ? Follow::kYes : Follow::kNo));
      if (options.json) {
        print_object(options, found);
      } else if (options.format.empty()) {
        fmt::print("{}", stat_text(found));
      } else {
        fmt::print("{}\n", stat_text(found, options.format));
      }
      return {};
    });
  });
}

int stat_host_paths(Options& options) {
  options.paths.command = "stat";
  options.paths.json = options.json;
  options.paths.attributes = true;
  const Follow follow = options.follow ? Follow::kYes : Follow::kNo;
  return answer_host_paths(
      options.paths, [&](mounted::Client& client, auto paths, auto rows) { client.resolve(paths, rows, follow); });
}

}  // namespace

void add_stat(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("stat", "Show everything about objects of a pool");
  CLI::Option* pool = command->add_option("POOL", options->pool, "Pool file or poolset file");
  CLI::Option* path = command->add_option("PATH", options->objects, "Paths in the pool")->needs(pool);
  CLI::Option* batch = command->add_flag("--batch", options->batch, "Take ordinary host paths from stdin; no POOL");
  batch->excludes(pool)->excludes(path);
  command->add_flag("-0,--null", options->paths.zero, "Paths on stdin end with a NUL byte")->needs(batch);
  command->add_flag("-L", options->follow, "Follow a symbolic link");
  CLI::Option* format = command->add_option("-c,--format", options->format, "This instead, as of stat(1): '%a %s %n'");
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)")->excludes(format);
  format->excludes(batch);
  command->footer(
      "A pool that is not mounted has no device number and no mount point: ? stands in their places.\n"
      "Example:\n  pmfs stat /dev/shm/demo.pool /photos/cat.jpg\n"
      "  find /mnt/pmfs -print0 | pmfs stat --batch -0 --json");
  command->callback([options, path, &exit_code] {
    if (!options->batch && path->empty()) throw CLI::RequiredError("POOL and PATH, or --batch,");
    if (options->json && options->objects.size() > 1) throw CLI::ValidationError("--json", "takes one PATH");
    exit_code = options->batch ? stat_host_paths(*options) : stat_paths(*options);
  });
}

}  // namespace pmfs::tools
