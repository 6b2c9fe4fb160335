// pmfs stat: what the file system knows about one object, as stat(1) shows it.
#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "host_paths.h"
#include "json_out.h"
#include "mode_text.h"
#include "open_pool.h"
#include "report.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string path;
  bool follow = false;
  bool json = false;
  bool batch = false;
  HostPathsOptions paths;  ///< with batch
};

struct Found {
  Attributes attributes;
  std::string target;  ///< of a symbolic link
};

Result<Found> look(Filesystem& fs, const Options& options) {
  Found found;
  PMFS_ASSIGN(found.attributes,
              fs.stat(options.path, Credentials::root(), options.follow ? Follow::kYes : Follow::kNo));
  if (found.attributes.type() == FileType::kSymlink) {
    PMFS_ASSIGN(found.target, fs.readlink(At::inode(found.attributes.ino), Credentials::root()));
  }
  return found;
}

void print_text(const Options& options, const Found& found) {
  const Attributes& a = found.attributes;
  const bool link = a.type() == FileType::kSymlink;
  const bool device = a.type() == FileType::kCharDevice || a.type() == FileType::kBlockDevice;
  fmt::print("  File: {}{}{}\n", printable(options.path), link ? " -> " : "", printable(found.target));
  fmt::print("  Size: {:<15} Blocks: {:<10} IO Block: {:<6} {}\n", a.size_bytes, a.blocks_512, kBlockBytes,
             type_text(a));
  fmt::print(" Inode: {:<15} Links: {:<11} Generation: {:#x}", to_u64(a.ino), a.links, a.generation);
  if (device) fmt::print("  Device type: {},{}", major(a.rdev), minor(a.rdev));
  fmt::print("\nAccess: ({:04o}/{})  Uid: ({:>5}/{:>8})   Gid: ({:>5}/{:>8})\n", a.mode & 07777u, mode_text(a.mode),
             a.uid, user_name(a.uid), a.gid, group_name(a.gid));
  fmt::print("Access: {}\nModify: {}\nChange: {}\n Birth: {}\n", long_time(a.atime_ns), long_time(a.mtime_ns),
             long_time(a.ctime_ns), long_time(a.birth_ns));
}

void print_object(const Options& options, const Found& found) {
  Json object = json_object("stat");
  add_bytes(object, "pool", options.pool);
  add_bytes(object, "path", options.path);
  add_attributes(object, found.attributes);
  if (found.attributes.type() == FileType::kSymlink) add_bytes(object, "target", found.target);
  print_json(object);
}

int stat_path(const Options& options) {
  std::optional<Filesystem> fs = open_for_reading(options.pool);
  if (!fs) return kExitFailure;
  const Result<Found> found = look(*fs, options);
  if (!found.ok()) {
    report(options.pool + ": " + options.path, found.error());
  } else if (options.json) {
    print_object(options, *found);
  } else {
    print_text(options, *found);
  }
  return close_pool(*fs, options.pool, found.ok() ? kExitOk : kExitFailure);
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
  CLI::App* command = app.add_subcommand("stat", "Show everything about one object of a pool");
  CLI::Option* pool = command->add_option("POOL", options->pool, "Pool file or poolset file");
  CLI::Option* path = command->add_option("PATH", options->path, "Path in the pool")->needs(pool);
  CLI::Option* batch = command->add_flag("--batch", options->batch, "Take ordinary host paths from stdin; no POOL");
  batch->excludes(pool)->excludes(path);
  command->add_flag("-0,--null", options->paths.zero, "Paths on stdin end with a NUL byte")->needs(batch);
  command->add_flag("-L", options->follow, "Follow a symbolic link");
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)");
  command->footer(
      "Example:\n  pmfs stat /dev/shm/demo.pool /photos/cat.jpg\n"
      "  find /mnt/pmfs -print0 | pmfs stat --batch -0 --json");
  command->callback([options, path, &exit_code] {
    if (!options->batch && path->empty()) throw CLI::RequiredError("POOL and PATH, or --batch,");
    exit_code = options->batch ? stat_host_paths(*options) : stat_path(*options);
  });
}

}  // namespace pmfs::tools
