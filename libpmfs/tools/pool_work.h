// What the commands share that work on paths of an unmounted pool: opening it, saying what failed and going on with the
// next path, and where things go that are given a destination. Each call into the library is a commit of its own; so a
// command that is killed leaves the steps done that it had come to, and a consistent pool.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pmfs/pmfs.hpp"

namespace CLI {
class App;
}

namespace pmfs::tools {

/// Says what failed, and remembers that something did.
class Failures {
 public:
  explicit Failures(const std::string& pool) : pool_(pool) {}

  void add(std::string_view path, const Error& error);
  void add(std::string_view path, std::string_view text);
  bool any() const { return any_; }
  /// Nothing more can be stored, or the pool turned read-only: trying other paths is useless.
  bool stopped() const { return stopped_; }

 private:
  const std::string& pool_;
  bool any_ = false;
  bool stopped_ = false;
};

using PoolWork = std::function<void(Filesystem&, Failures&)>;

/// Opens the pool, for looking or for changing, does the work, closes. @return the exit code.
int look_at_pool(const std::string& pool, const PoolWork& work);
int change_pool(const std::string& pool, const PoolWork& work);

/// Runs `each` on one path after the other, until nothing more can be stored; what it returns as an error is said.
void for_each_path(const std::vector<std::string>& paths, Failures& failures,
                   const std::function<Result<void>(const std::string&)>& each);

/// operator_credentials(), with this process's umask.
Credentials creator_credentials();

/// Adds the options POOL and PATH..., which most of the commands begin with.
void add_pool_and_paths(CLI::App& command, std::string& pool, std::vector<std::string>& paths, const char* what);

/// Adds POOL, SOURCE... DESTINATION, both in `paths`, and -T.
void add_sources_and_destination(CLI::App& command, std::string& pool, std::vector<std::string>& paths, bool& as_name);

/// "/a/b//" -> "/a/b"; "/" stays.
std::string without_end_slashes(std::string_view path);
/// The last component of a path, "/" of the root.
std::string last_name(std::string_view path);
/// The directory that the last component lies in: "/a/b" -> "/a", "b" -> "/".
std::string parent_of(std::string_view path);
std::string join(std::string_view directory, std::string_view name);

/// What the last component itself is, no symbolic link followed.
/// @error  kNotDirectory: slashes follow the name of something else. Otherwise as stat().
Result<Attributes> look(Filesystem& fs, std::string_view path);

/// Makes the directory `path` and what is missing above it.
/// @param mode  of the last one, as of mkdir(); those above get 0777 less who.umask, and write and search for the
/// owner.
/// @param made  whether the last one was missing.
Result<Attributes> make_directories(Filesystem& fs, const std::string& path, u32 mode, const Credentials& who,
                                    bool& made);

/// SOURCE... DESTINATION of mv, cp and ln: runs `each` on every source and the name that it goes to, as
/// for_each_path(). That is the last path itself, or a name in it, if it is a directory.
/// @param as_name  -T: never into it, even if it is a directory.
void each_to_destination(Filesystem& fs, const std::vector<std::string>& paths, bool as_name, Failures& failures,
                         const std::function<Result<void>(const std::string& from, const std::string& to)>& each);

}  // namespace pmfs::tools
