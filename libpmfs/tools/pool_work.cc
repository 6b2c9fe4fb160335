#include "pool_work.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>

#include "open_pool.h"
#include "report.h"

namespace pmfs::tools {

namespace {

int work_on(std::optional<Filesystem> fs, const std::string& pool, const PoolWork& work) {
  if (!fs) return kExitFailure;
  Failures failures(pool);
  work(*fs, failures);
  return close_pool(*fs, pool, failures.any() ? kExitFailure : kExitOk);
}

}  // namespace

void Failures::add(std::string_view path, const Error& error) {
  report(pool_ + ": " + std::string(path), error);
  any_ = true;
  stopped_ = stopped_ || error.code == Errc::kNoSpace || error.code == Errc::kIo || error.code == Errc::kReadOnly ||
             error.code == Errc::kNoMemory;
}

void Failures::add(std::string_view path, std::string_view text) {
  report_text(pool_ + ": " + std::string(path), text);
  any_ = true;
}

int look_at_pool(const std::string& pool, const PoolWork& work) { return work_on(open_for_reading(pool), pool, work); }

int change_pool(const std::string& pool, const PoolWork& work) { return work_on(open_for_writing(pool), pool, work); }

void for_each_path(const std::vector<std::string>& paths, Failures& failures,
                   const std::function<Result<void>(const std::string&)>& each) {
  for (const std::string& path : paths) {
    const Result<void> done = each(path);
    if (!done.ok()) failures.add(path, done.error());
    if (failures.stopped()) return;
  }
}

Credentials creator_credentials() {
  Credentials who = operator_credentials();
  who.umask = umask(0);
  umask(who.umask);
  return who;
}

void add_pool_and_paths(CLI::App& command, std::string& pool, std::vector<std::string>& paths, const char* what) {
  command.add_option("POOL", pool, "Pool file, device DAX, or poolset file")->required();
  command.add_option("PATH", paths, what)->required();
}

void add_sources_and_destination(CLI::App& command, std::string& pool, std::vector<std::string>& paths, bool& as_name) {
  command.add_option("POOL", pool, "Pool file, device DAX, or poolset file")->required();
  command.add_option("PATH", paths, "SOURCE... DESTINATION: a new name, or a directory that the sources go into")
      ->required()
      ->expected(2, CLI::detail::expected_max_vector_size);
  command.add_flag("-T,--no-target-directory", as_name, "DESTINATION is the new name, even if a directory has it");
}

std::string without_end_slashes(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path);
}

std::string last_name(std::string_view path) {
  const std::string plain = without_end_slashes(path);
  return plain == "/" ? plain : plain.substr(plain.rfind('/') + 1);
}

std::string parent_of(std::string_view path) {
  const std::string plain = without_end_slashes(path);
  const std::size_t slash = plain.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : plain.substr(0, slash);
}

std::string join(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (path.empty() || path.back() != '/') path += '/';
  return path += name;
}

Result<Attributes> look(Filesystem& fs, std::string_view path) {
  const std::string plain = without_end_slashes(path);
  PMFS_ASSIGN(const Attributes found, fs.stat(plain, Credentials::root(), Follow::kNo));
  if (plain.size() != path.size() && found.type() != FileType::kDirectory) return Error{Errc::kNotDirectory, ""};
  return found;
}

Result<Attributes> make_directories(Filesystem& fs, const std::string& path, u32 mode, const Credentials& who,
                                    bool& made) {
  Credentials above = who;
  above.umask &= ~u32{0300};
  made = false;
  const std::size_t length = without_end_slashes(path).size();
  for (std::size_t end = 0; end < length;) {
    const std::size_t begin = path.find_first_not_of('/', end);
    if (begin == std::string::npos) break;
    end = std::min(path.find('/', begin), length);
    const bool last = end == length;
    const Result<Attributes> step =
        fs.mkdir(std::string_view(path).substr(0, end), last ? mode : 0777, last ? who : above);
    made = step.ok();
    if (!step.ok() && step.error().code != Errc::kExists) return step.error();
  }
  PMFS_ASSIGN(Attributes found, fs.stat(path.empty() ? "/" : path, Credentials::root()));
  if (found.type() != FileType::kDirectory) return Error{Errc::kNotDirectory, ""};
  return found;
}

namespace {

/// Whether sources go into `path`, under their own last names.
/// @error  kNotDirectory: several sources, and it is no directory.
Result<bool> is_directory_for(Filesystem& fs, const std::string& path, std::size_t sources, bool as_name) {
  bool directory = false;
  if (!as_name) {
    const Result<Attributes> found = fs.stat(path, Credentials::root());
    if (!found.ok() && found.error().code != Errc::kNotFound) return found.error();
    directory = found.ok() && found->type() == FileType::kDirectory;
    if (!found.ok() && sources > 1) return found.error();
  }
  if (sources > 1 && !directory) return Error{Errc::kNotDirectory, "several things go into a directory only"};
  return directory;
}

}  // namespace

void each_to_destination(Filesystem& fs, const std::vector<std::string>& paths, bool as_name, Failures& failures,
                         const std::function<Result<void>(const std::string& from, const std::string& to)>& each) {
  const std::string& to = paths.back();
  const Result<bool> into = is_directory_for(fs, to, paths.size() - 1, as_name);
  if (!into.ok()) return failures.add(to, into.error());
  for_each_path({paths.begin(), paths.end() - 1}, failures,
                [&](const std::string& source) { return each(source, *into ? join(to, last_name(source)) : to); });
}

}  // namespace pmfs::tools
