#include "walk.h"

#include <algorithm>
#include <unordered_set>

namespace pmfs::tools {

namespace {

struct Entry {
  std::string name;
  InodeNo ino{};
};

/// A directory that the walk is in.
struct Level {
  Met directory;
  std::size_t path_length = 0;
  std::string name;
  std::vector<Entry> entries;
  std::size_t next = 0;
};

class Walker {
 public:
  Walker(Filesystem& fs, std::string_view top_path, Failures& failures, const Walk& on)
      : fs_(fs), path_(top_path), failures_(failures), on_(on) {}

  void run(const Attributes& top) {
    meet(last_name(path_), top, kNoInode, true);
    while (!levels_.empty() && !failures_.stopped()) {
      Level& level = levels_.back();
      path_.resize(level.path_length);
      if (level.next == level.entries.size()) {
        leave(level);
        levels_.pop_back();
        continue;
      }
      const Entry entry = std::move(level.entries[level.next++]);
      const bool last = level.next == level.entries.size();
      const InodeNo dir = level.directory.attributes.ino;
      if (path_.empty() || path_.back() != '/') path_ += '/';
      path_ += entry.name;
      const Result<Attributes> found = fs_.stat(At::inode(entry.ino), Credentials::root(), Follow::kNo);
      if (!found.ok()) {
        failures_.add(path_, found.error());
      } else {
        meet(entry.name, *found, dir, last);
      }
    }
  }

 private:
  void meet(const std::string& name, const Attributes& attributes, InodeNo dir, bool last) {
    const Met met{path_, name, dir, static_cast<u32>(levels_.size()), last, attributes};
    const bool directory = attributes.type() == FileType::kDirectory;
    // Two ways into one directory: a damaged pool, in which a walk may not end.
    if (directory && !entered_.insert(to_u64(attributes.ino)).second) {
      return failures_.add(path_, Error{Errc::kCorrupt, "a directory that has two names"});
    }
    if (!on_.enter(met) || !directory || failures_.stopped()) return;
    Level level{met, path_.size(), name, {}, 0};
    if (const Result<void> read = read_names(attributes.ino, level.entries); !read.ok()) {
      failures_.add(path_, read.error());
    }
    levels_.push_back(std::move(level));
  }

  void leave(Level& level) {
    if (!on_.leave) return;
    level.directory.path = path_;
    level.directory.name = level.name;
    on_.leave(level.directory);
  }

  Result<void> read_names(InodeNo ino, std::vector<Entry>& entries) {
    PMFS_ASSIGN(Dir dir, fs_.open_dir(At::inode(ino), Credentials::root()));
    DirEntry found;
    for (u64 cookie = 0;; cookie = found.cookie) {
      PMFS_ASSIGN(const bool more, dir.read(cookie, found));
      if (!more) break;
      if (found.view() == "." || found.view() == "..") continue;
      if (on_.is_shown && !on_.is_shown(found.view())) continue;
      if (is_plain_name(found.view())) {
        entries.push_back({std::string(found.view()), found.ino});
      } else {
        failures_.add(join(path_, found.view()), Error{Errc::kCorrupt, "a name that cannot be a file's name"});
      }
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return dir.close();
  }

  Filesystem& fs_;
  std::string path_;  ///< of the object at hand
  Failures& failures_;
  const Walk& on_;
  std::vector<Level> levels_;
  std::unordered_set<u64> entered_;
};

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

void walk(Filesystem& fs, std::string_view top_path, const Attributes& top, Failures& failures, const Walk& on) {
  Walker(fs, top_path, failures, on).run(top);
}

Json row_of(Filesystem& fs, const Met& met) {
  Json row;
  add_bytes(row, "path", met.path);
  add_attributes(row, met.attributes);
  if (met.attributes.type() != FileType::kSymlink) return row;
  const Result<std::string> target = fs.readlink(At::inode(met.attributes.ino), Credentials::root());
  if (target.ok()) add_bytes(row, "target", *target);
  return row;
}

void print_rows(std::string_view command, const std::string& pool, Json rows) {
  Json object = json_object(command);
  add_bytes(object, "pool", pool);
  object["rows"] = std::move(rows);
  print_json(object);
}

}  // namespace pmfs::tools
