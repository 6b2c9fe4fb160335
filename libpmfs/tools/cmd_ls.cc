// pmfs ls: lists what is in a pool, as ls(1) does in the C locale when its output is no terminal: a line for each name.
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
#include "pool_work.h"
#include "report.h"
#include "size_text.h"
#include "walk.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::vector<std::string> paths;
  bool with_details = false;
  bool one_per_line = false;  ///< as always
  bool all = false, almost_all = false;
  bool directories_themselves = false, recursive = false;
  bool inodes = false, human = false, numeric = false, full_time = false;
  bool by_time = false, by_size = false, unsorted = false, reverse = false;
  bool use_access = false, use_change = false;
  bool json = false;

  i64 time_of(const Attributes& a) const { return use_access ? a.atime_ns : use_change ? a.ctime_ns : a.mtime_ns; }
};

struct Row {
  std::string name;
  Attributes attributes;
  std::string target;    ///< of a symbolic link
  bool has_acl = false;  ///< one that says more than the mode; known with -l
};

Result<Row> row_for(Filesystem& fs, std::string name, const Attributes& attributes, const Options& options) {
  Row row{std::move(name), attributes, {}};
  const At at = At::inode(attributes.ino);
  if (attributes.type() == FileType::kSymlink) {
    PMFS_ASSIGN(row.target, fs.readlink(at, Credentials::root()));
  } else if (options.with_details) {
    constexpr std::size_t kOfMode = 3;
    PMFS_ASSIGN(const Acl access, fs.get_acl(at, AclKind::kAccess, Credentials::root()));
    PMFS_ASSIGN(const Acl defaults, fs.get_acl(at, AclKind::kDefault, Credentials::root()));
    row.has_acl = access.size() > kOfMode || !defaults.empty();
  }
  return row;
}

void sort_rows(const Options& options, std::vector<Row>& rows) {
  if (options.unsorted) return;
  const bool by_time = options.by_time || (!options.with_details && (options.use_access || options.use_change));
  const auto before = [&](const Row& a, const Row& b) {
    const Attributes &x = a.attributes, &y = b.attributes;
    if (options.by_size) {
      if (x.size_bytes != y.size_bytes) return x.size_bytes > y.size_bytes;
    } else if (by_time) {
      const i64 s = options.time_of(x), t = options.time_of(y);
      if (s != t) return s > t;
    }
    return a.name < b.name;
  };
  std::sort(rows.begin(), rows.end(),
            [&](const Row& a, const Row& b) { return options.reverse ? before(b, a) : before(a, b); });
}

Result<std::vector<Row>> list_directory(Filesystem& fs, InodeNo ino, const Options& options) {
  std::vector<Row> rows;
  PMFS_ASSIGN(Dir dir, fs.open_dir(At::inode(ino), Credentials::root()));
  DirEntry entry;
  for (u64 cookie = 0;; cookie = entry.cookie) {
    PMFS_ASSIGN(const bool more, dir.read(cookie, entry));
    if (!more) break;
    const bool dot = entry.view() == "." || entry.view() == "..";
    if (entry.name[0] == '.' && !options.all && (dot || !options.almost_all)) continue;
    PMFS_ASSIGN(const Attributes attributes, fs.stat(At::inode(entry.ino), Credentials::root(), Follow::kNo));
    PMFS_ASSIGN(Row row, row_for(fs, std::string(entry.view()), attributes, options));
    rows.push_back(std::move(row));
  }
  PMFS_TRY(dir.close());
  sort_rows(options, rows);
  return rows;
}

/// What a path that was given stands for: with -l or -d a symbolic link itself, else the directory that it leads to.
Result<Attributes> look_at(Filesystem& fs, const std::string& path, const Options& options) {
  if (!options.with_details && !options.directories_themselves) {
    const Result<Attributes> behind = fs.stat(path, Credentials::root(), Follow::kYes);
    if (behind.ok() && behind->type() == FileType::kDirectory) return *behind;
  }
  return look(fs, path);
}

/// A name for whoever reads: as it is, but on a terminal with control characters made visible.
std::string shown(const std::string& name) {
  static const bool terminal = isatty(STDOUT_FILENO) == 1;
  return terminal ? printable(name) : name;
}

std::size_t digits(u64 number) { return fmt::formatted_size("{}", number); }

/// The columns of -l and -i, as wide as the widest row needs them.
class Columns {
 public:
  Columns(const Options& options, const std::vector<Row>& rows) : options_(options) {
    struct timespec now {};
    clock_gettime(CLOCK_REALTIME, &now);
    now_ns_ = i64{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    std::size_t minor_width = 0, major_width = 0;
    for (const Row& row : rows) {
      const Attributes& a = row.attributes;
      acls_ = acls_ || row.has_acl;
      inode_ = std::max(inode_, digits(to_u64(a.ino)));
      links_ = std::max(links_, digits(a.links));
      user_ = std::max(user_, name_of(a.uid, user_name).size());
      group_ = std::max(group_, name_of(a.gid, group_name).size());
      if (is_device(a)) {
        major_width = std::max(major_width, digits(major(a.rdev)));
        minor_width = std::max(minor_width, digits(minor(a.rdev)));
        size_ = std::max(size_, major_width + 2 + minor_width);
      } else {
        size_ = std::max(size_, size(a).size());
      }
    }
    minor_ = minor_width;
  }

  void print(const Row& row) const {
    const Attributes& a = row.attributes;
    if (options_.inodes) fmt::print("{:>{}} ", to_u64(a.ino), inode_);
    if (options_.with_details) {
      fmt::print("{}{} {:>{}} {} {} {:>{}} {} ", mode_text(a.mode),
                 !acls_        ? ""
                 : row.has_acl ? "+"
                               : " ",
                 a.links, links_, owner(a.uid, user_name, user_), owner(a.gid, group_name, group_), size(a), size_,
                 time(a));
    }
    fmt::print("{}", shown(row.name));
    if (options_.with_details && a.type() == FileType::kSymlink) fmt::print(" -> {}", shown(row.target));
    fmt::print("\n");
  }

 private:
  using NameOf = std::string (*)(u32);

  static bool is_device(const Attributes& a) {
    return a.type() == FileType::kCharDevice || a.type() == FileType::kBlockDevice;
  }
  std::string name_of(u32 id, NameOf name) const { return options_.numeric ? std::to_string(id) : name(id); }
  /// Names stand on the left, numbers on the right.
  std::string owner(u32 id, NameOf name, std::size_t width) const {
    const std::string text = name_of(id, name);
    return text == std::to_string(id) ? fmt::format("{:>{}}", text, width) : fmt::format("{:<{}}", text, width);
  }
  std::string size(const Attributes& a) const {
    if (is_device(a)) return fmt::format("{}, {:>{}}", major(a.rdev), minor(a.rdev), minor_);
    return options_.human ? short_size_text(a.size_bytes) : std::to_string(a.size_bytes);
  }
  std::string time(const Attributes& a) const {
    return options_.full_time ? long_time(options_.time_of(a)) : short_time(options_.time_of(a), now_ns_);
  }

  const Options& options_;
  i64 now_ns_ = 0;
  bool acls_ = false;  ///< there is a column for them
  std::size_t inode_ = 0, links_ = 0, user_ = 0, group_ = 0, size_ = 0, minor_ = 0;
};

/// Prints directories, each under its path if there are several.
class Lister {
 public:
  Lister(Filesystem& fs, const Options& options, Failures& failures, bool with_header)
      : fs_(fs), options_(options), failures_(failures), header_(with_header || options.recursive) {}

  /// @param behind  something was printed before.
  void directory(const std::string& path, InodeNo ino, bool behind) {
    const Result<std::vector<Row>> rows = list_directory(fs_, ino, options_);
    if (!rows.ok()) return failures_.add(path, rows.error());
    if (header_) fmt::print("{}{}:\n", behind ? "\n" : "", shown(path));
    if (options_.with_details) {
      u64 blocks_512 = 0;
      for (const Row& row : *rows) blocks_512 += row.attributes.blocks_512;
      fmt::print("total {}\n",
                 options_.human ? short_size_text(blocks_512 * 512) : std::to_string((blocks_512 + 1) / 2));
    }
    const Columns columns(options_, *rows);
    for (const Row& row : *rows) columns.print(row);
    if (!options_.recursive) return;
    for (const Row& row : *rows) {
      if (row.attributes.type() != FileType::kDirectory || !is_plain_name(row.name)) continue;
      directory(join(path, row.name), row.attributes.ino, true);
    }
  }

 private:
  Filesystem& fs_;
  const Options& options_;
  Failures& failures_;
  const bool header_;
};

void print_lists(Filesystem& fs, const Options& options, Failures& failures) {
  std::vector<Row> all, objects, directories;
  for (const std::string& path : options.paths) {
    const Result<Attributes> found = look_at(fs, path, options);
    Result<Row> row = found.ok() ? row_for(fs, path, *found, options) : Result<Row>(found.error());
    if (!row.ok()) {
      failures.add(path, row.error());
      continue;
    }
    all.push_back(*row);
    if (found->type() == FileType::kDirectory && !options.directories_themselves) {
      directories.push_back(std::move(*row));
    } else {
      objects.push_back(std::move(*row));
    }
  }
  sort_rows(options, objects);
  sort_rows(options, directories);
  const Columns columns(options, all);  // as wide as the directories' own rows would need them
  for (const Row& row : objects) columns.print(row);
  Lister lister(fs, options, failures, options.paths.size() > 1);
  bool behind = !objects.empty();
  for (const Row& row : directories) {
    lister.directory(row.name, row.attributes.ino, behind);
    behind = true;
  }
}

Result<void> print_object(Filesystem& fs, const Options& options) {
  const std::string& path = options.paths.front();
  PMFS_ASSIGN(const Attributes found, look_at(fs, path, options));
  std::vector<Row> rows;
  if (found.type() == FileType::kDirectory && !options.directories_themselves) {
    PMFS_ASSIGN(rows, list_directory(fs, found.ino, options));
  } else {
    PMFS_ASSIGN(Row row, row_for(fs, path, found, options));
    rows.push_back(std::move(row));
  }
  Json object = json_object("ls");
  add_bytes(object, "pool", options.pool);
  add_bytes(object, "path", path);
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
  return {};
}

int ls(const Options& options) {
  return look_at_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    if (!options.json) return print_lists(fs, options, failures);
    const Result<void> printed = print_object(fs, options);
    if (!printed.ok()) failures.add(options.paths.front(), printed.error());
  });
}

}  // namespace

void add_ls(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("ls", "List directories of a pool");
  command->set_help_flag("--help", "Print this help message and exit");  // -h is ls's own
  command->add_option("POOL", options->pool, "Pool file or poolset file")->required();
  command->add_option("PATH", options->paths, "Directories or files in the pool (default /)");
  command->add_flag("-l", options->with_details, "Modes, links, owners, sizes and times");
  command->add_flag("-1", options->one_per_line, "One name a line, as always");
  command->add_flag("-a,--all", options->all, "Also names that begin with a dot");
  command->add_flag("-A,--almost-all", options->almost_all, "The same without . and ..");
  command->add_flag("-d,--directory", options->directories_themselves, "Directories themselves, not what is in them");
  CLI::Option* recursive = command->add_flag("-R,--recursive", options->recursive, "Also what is in directories below");
  command->add_flag("-i,--inode", options->inodes, "Inode numbers");
  command->add_flag("-h,--human-readable", options->human, "With -l: sizes like 1.5K, 234M");
  command->add_flag("-n,--numeric-uid-gid", options->numeric, "As -l, with owners as numbers");
  command->add_flag("--full-time", options->full_time, "As -l, with times to the nanosecond");
  command->add_flag("-t", options->by_time, "Newest first");
  command->add_flag("-S", options->by_size, "Largest first");
  command->add_flag("-U", options->unsorted, "In the order of the directory");
  command->add_flag("-r,--reverse", options->reverse, "The other way round");
  command->add_flag("-u", options->use_access, "Times of access instead of modification");
  command->add_flag("-c", options->use_change, "Times of change instead of modification");
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)")->excludes(recursive);
  command->footer(
      "As ls(1) in the C locale; there are no columns, colours and quotes: one name a line, with control characters as "
      "\\ooo on a terminal.\n\n"
      "Example:\n  pmfs ls -l /dev/shm/demo.pool /photos");
  command->callback([options, &exit_code] {
    if (options->paths.empty()) options->paths.emplace_back("/");
    if (options->json && options->paths.size() > 1) throw CLI::ValidationError("--json", "takes one PATH");
    options->with_details = options->with_details || options->numeric || options->full_time;
    exit_code = ls(*options);
  });
}

}  // namespace pmfs::tools
