// pmfs ls: lists a directory of a pool, as ls(1) does.
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "commands.h"
#include "json_out.h"
#include "mode_text.h"
#include "open_pool.h"
#include "report.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string path = "/";
  bool with_details = false;
  bool all = false;
  bool json = false;
};

struct Row {
  std::string name;
  Attributes attributes;
  std::string target;  ///< of a symbolic link
};

Result<std::string> target_of(Filesystem& fs, const Attributes& attributes) {
  if (attributes.type() != FileType::kSymlink) return std::string{};
  return fs.readlink(At::inode(attributes.ino), Credentials::root());
}

Result<void> list_directory(Filesystem& fs, InodeNo ino, bool all, std::vector<Row>& rows) {
  PMFS_ASSIGN(Dir dir, fs.open_dir(At::inode(ino), Credentials::root()));
  DirEntry entry;
  for (u64 cookie = 0;; cookie = entry.cookie) {
    PMFS_ASSIGN(const bool more, dir.read(cookie, entry));
    if (!more) break;
    if (!all && entry.name[0] == '.') continue;
    PMFS_ASSIGN(Attributes attributes, fs.stat(At::inode(entry.ino), Credentials::root(), Follow::kNo));
    PMFS_ASSIGN(std::string target, target_of(fs, attributes));
    rows.push_back({std::string(entry.view()), attributes, std::move(target)});
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
  return dir.close();
}

/// The rows for `path`: the entries of a directory, else the one object. With -l a symbolic link shows itself.
Result<std::vector<Row>> list(Filesystem& fs, const Options& options, bool& is_directory) {
  const Follow follow = options.with_details ? Follow::kNo : Follow::kYes;
  PMFS_ASSIGN(Attributes attributes, fs.stat(options.path, Credentials::root(), follow));
  std::vector<Row> rows;
  is_directory = attributes.type() == FileType::kDirectory;
  if (is_directory) {
    PMFS_TRY(list_directory(fs, attributes.ino, options.all, rows));
  } else {
    PMFS_ASSIGN(std::string target, target_of(fs, attributes));
    rows.push_back({options.path, attributes, std::move(target)});
  }
  return rows;
}

std::string size_column(const Attributes& attributes) {
  const bool device = attributes.type() == FileType::kCharDevice || attributes.type() == FileType::kBlockDevice;
  if (!device) return fmt::format("{}", attributes.size_bytes);
  return fmt::format("{}, {}", major(attributes.rdev), minor(attributes.rdev));
}

void print_details(const std::vector<Row>& rows, bool is_directory) {
  if (is_directory) {
    u64 blocks_512 = 0;
    for (const Row& row : rows) blocks_512 += row.attributes.blocks_512;
    fmt::print("total {}\n", blocks_512 / 2);
  }
  std::size_t links_width = 0, user_width = 0, group_width = 0, size_width = 0;
  for (const Row& row : rows) {
    links_width = std::max(links_width, fmt::formatted_size("{}", row.attributes.links));
    user_width = std::max(user_width, user_name(row.attributes.uid).size());
    group_width = std::max(group_width, group_name(row.attributes.gid).size());
    size_width = std::max(size_width, size_column(row.attributes).size());
  }
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  const i64 now_ns = i64{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  for (const Row& row : rows) {
    const Attributes& a = row.attributes;
    fmt::print("{} {:>{}} {:<{}} {:<{}} {:>{}} {} {}", mode_text(a.mode), a.links, links_width, user_name(a.uid),
               user_width, group_name(a.gid), group_width, size_column(a), size_width, short_time(a.mtime_ns, now_ns),
               terminal ? printable(row.name) : row.name);
    if (a.type() == FileType::kSymlink) fmt::print(" -> {}", terminal ? printable(row.target) : row.target);
    fmt::print("\n");
  }
}

void print_names(const std::vector<Row>& rows) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  for (const Row& row : rows) fmt::print("{}\n", terminal ? printable(row.name) : row.name);
}

void print_object(const Options& options, const std::vector<Row>& rows) {
  Json object = json_object("ls");
  add_bytes(object, "pool", options.pool);
  add_bytes(object, "path", options.path);
  Json out = Json::array();
  for (const Row& row : rows) {
    Json item;
    add_bytes(item, "name", row.name);
    add_attributes(item, row.attributes);
    if (row.attributes.type() == FileType::kSymlink) add_bytes(item, "target", row.target);
    out.push_back(std::move(item));
  }
  object["rows"] = std::move(out);
  print_json(object);
}

int ls(const Options& options) {
  std::optional<Filesystem> fs = open_for_reading(options.pool);
  if (!fs) return kExitFailure;
  bool is_directory = false;
  const Result<std::vector<Row>> rows = list(*fs, options, is_directory);
  if (!rows.ok()) {
    report(options.pool + ": " + options.path, rows.error());
  } else if (options.json) {
    print_object(options, *rows);
  } else if (options.with_details) {
    print_details(*rows, is_directory);
  } else {
    print_names(*rows);
  }
  return close_pool(*fs, options.pool, rows.ok() ? kExitOk : kExitFailure);
}

}  // namespace

void add_ls(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("ls", "List a directory of a pool");
  command->add_option("POOL", options->pool, "Pool file or poolset file")->required();
  command->add_option("PATH", options->path, "Directory or file in the pool (default /)");
  command->add_flag("-l", options->with_details, "Modes, links, owners, sizes and times");
  command->add_flag("-a", options->all, "Also names that begin with a dot");
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)");
  command->footer("Example:\n  pmfs ls -l /dev/shm/demo.pool /photos");
  command->callback([options, &exit_code] { exit_code = ls(*options); });
}

}  // namespace pmfs::tools
