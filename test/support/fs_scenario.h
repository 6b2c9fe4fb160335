// Scenarios of file system operations, run once and then crashed everywhere.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <functional>

#include "test/support/sim_fs.h"

namespace pmfs::test {

/// Does operations, and knows what the promise allows a crash in each of them. What must succeed throws if it does not.
class User {
 public:
  User(Filesystem& fs, Memory memory) : fs_(&fs), memory_(memory) {}

  Allowance create(const std::string& path, u32 mode = 0644, u64 rdev = 0);
  Allowance mkdir(const std::string& path, u32 mode = 0755);
  Allowance symlink(const std::string& target, const std::string& path);
  Allowance link(const std::string& from, const std::string& to);
  Allowance unlink(const std::string& path);
  Allowance rmdir(const std::string& path);
  Allowance rename(const std::string& from, const std::string& to, unsigned flags = 0);
  Allowance write(const std::string& path, u64 off, std::span<const std::byte> bytes, u32 uid = 0);
  Allowance read(const std::string& path);
  Allowance set(const std::string& path, const SetAttributes& change);
  Allowance truncate(const std::string& path, u64 size);
  Allowance chmod(const std::string& path, u32 mode);
  Allowance chown(const std::string& path, u32 uid, u32 gid);
  Allowance utimens(const std::string& path, i64 atime_ns, i64 mtime_ns);
  Allowance set_xattr(const std::string& path, const std::string& name, u64 bytes);
  Allowance remove_xattr(const std::string& path, const std::string& name);
  Allowance set_acl(const std::string& path, AclKind kind, const Acl& acl);
  Allowance allocate(const std::string& path, int mode, u64 off, u64 len, u32 uid = 0);
  Allowance copy(const std::string& from, u64 from_off, const std::string& to, u64 to_off, u64 len);
  /// Makes a file without a name and keeps it open; the last one is written to and named by the next two.
  Allowance tmpfile(const std::string& dir, int more_flags = 0);
  Allowance write_tmpfile(u64 off, std::span<const std::byte> bytes);
  Allowance link_tmpfile(const std::string& to);
  Allowance fsync(const std::string& path);
  Allowance sync();

  /// Opens and keeps open.
  void hold(const std::string& path);
  void let_go() { held_.clear(); }
  bool holds_any() const { return !held_.empty(); }

  /// One random operation on what is there; one that the file system refuses changes nothing, and is fine too.
  Allowance anything(Prng& prng);

  Filesystem& fs() { return *fs_; }
  Memory memory() const { return memory_; }
  const std::string& last() const { return last_; }  // what anything() did

 private:
  template <class Call>
  Allowance settling(std::initializer_list<std::string> paths, Call&& call);

  Filesystem* fs_;
  Memory memory_;
  std::vector<File> held_;
  std::string last_;
};

/// A list that names so many users.
Acl some_acl(u32 users);

using Step = std::function<Allowance(User&)>;

/// The same step, done by another thread (1, 2 or 3): so it uses another lane. Only one thread moves at a time.
Step on_thread(ThreadId thread, Step step);

struct Scenario {
  std::string group;
  std::string name;
  std::function<void(User&)> prepare = [](User&) {};
  std::vector<Step> steps = {};
  u64 pool_bytes = SimFs::kSmall;
  OpenOptions open = SimFs::quiet();
  u64 seed = 1;
};

/// What a scenario did, and what could be seen before it and after each step. A crash of it needs nothing else.
struct Ran {
  Trace trace;
  Layout layout;
  std::vector<SeenTree> trees;
  std::vector<Allowance> allowances;
  std::vector<std::string> failures;  // of the live file system
};

struct ScenarioOptions {
  u64 bound = 4096;
  u32 recovery_once_in = 40;
  u32 use_once_in = 400;
  bool kills = true;
  u32 kill_points = 12;
  u32 follow_up_once_in = 0;  // images after which life goes on: recovered, some more operations, crashed again
  bool collapse = true;       // false: every word by itself
  std::vector<LeftOut> left_out = {};
  std::set<Rule> switched_off = {};
  u32 stop_after_failures = 3;
};

/// CI form, or the long form if PMFS_LONG is set in the environment.
bool long_form();
ScenarioOptions usual_options();

Ran run(const Scenario& scenario, const std::set<Rule>& switched_off = {});
/// The scenario's steps on a world that is there already (its preparation is not done).
Ran run_in(SimFs& world, const Scenario& scenario);
Report crash(const Scenario& scenario, const Ran& ran, const ScenarioOptions& options);

/// Both. Everything wrong is in the report, also what the live file system showed wrongly.
Report explore(const Scenario& scenario, const ScenarioOptions& options = usual_options());

}  // namespace pmfs::test
