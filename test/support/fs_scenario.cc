#include "test/support/fs_scenario.h"

#include <linux/falloc.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "test/support/text.h"

namespace pmfs::test {

namespace {
const Credentials kRoot = Credentials::root();
}

// --- User
// --------------------------------------------------------------------------------------------------------------

// What a logged change of these paths' inodes says about their lazy times: they are durable behind it. A call that had
// nothing to do, without a fence, says nothing.
template <class Call>
Allowance User::settling(std::initializer_list<std::string> paths, Call&& call) {
  Allowance allowance;
  for (const std::string& path : paths) {
    const auto attributes = fs_->stat(path, kRoot, Follow::kNo);
    if (attributes.ok()) allowance.times_settled.push_back(attributes->ino);
  }
  const u64 fences = thread_counters().fences;
  call();
  return thread_counters().fences == fences ? Allowance{} : allowance;
}

Allowance User::create(const std::string& path, u32 mode, u64 rdev) {
  must(fs_->mknod(path, mode, rdev, kRoot), "mknod");
  return {};
}
Allowance User::mkdir(const std::string& path, u32 mode) {
  must(fs_->mkdir(path, mode, kRoot), "mkdir");
  return {};
}
Allowance User::symlink(const std::string& target, const std::string& path) {
  must(fs_->symlink(target, path, kRoot), "symlink");
  return {};
}
Allowance User::link(const std::string& from, const std::string& to) {
  return settling({from}, [&] { must(fs_->link(from, to, kRoot), "link"); });
}
Allowance User::unlink(const std::string& path) {
  return settling({path}, [&] { must(fs_->unlink(path, kRoot), "unlink"); });
}
Allowance User::rmdir(const std::string& path) {
  must(fs_->rmdir(path, kRoot), "rmdir");
  return {};
}
Allowance User::rename(const std::string& from, const std::string& to, unsigned flags) {
  return settling({from, to}, [&] { must(fs_->rename(from, to, flags, kRoot), "rename"); });
}

Allowance User::write(const std::string& path, u64 off, std::span<const std::byte> bytes, u32 uid) {
  Credentials who;
  who.uid = uid;
  who.checked_elsewhere = true;
  const Attributes before = must(fs_->stat(path, kRoot), "stat");
  const u64 fences = thread_counters().fences;
  Allowance allowance;
  const auto written = fs_->write(before.ino, off, bytes, who);
  const bool lazy = thread_counters().fences - fences == 1;
  must(written, "write");
  allowance.mixed_ino = before.ino;
  allowance.mixed_off = off;
  allowance.mixed_len = bytes.size();
  if (off >= before.size_bytes) allowance.mixed_ino = kNoInode;
  (lazy ? allowance.times_lazy : allowance.times_settled).push_back(before.ino);
  return allowance;
}

Allowance User::read(const std::string& path) {
  Allowance allowance;
  auto file = must(fs_->open_file(path, O_RDONLY, 0, kRoot), "open");
  std::byte one[1];
  must(file.read(0, one), "read");
  allowance.times_lazy.push_back(file.ino());
  return allowance;
}

Allowance User::set(const std::string& path, const SetAttributes& change) {
  return settling({path}, [&] { must(fs_->set_attributes(path, change, kRoot, Follow::kNo), "set attributes"); });
}
Allowance User::truncate(const std::string& path, u64 size) {
  SetAttributes change;
  change.size_bytes = size;
  return set(path, change);
}
Allowance User::chmod(const std::string& path, u32 mode) {
  SetAttributes change;
  change.mode = mode;
  return set(path, change);
}
Allowance User::chown(const std::string& path, u32 uid, u32 gid) {
  SetAttributes change;
  change.uid = uid;
  change.gid = gid;
  return set(path, change);
}
Allowance User::utimens(const std::string& path, i64 atime_ns, i64 mtime_ns) {
  SetAttributes change;
  change.atime_ns = atime_ns;
  change.mtime_ns = mtime_ns;
  return set(path, change);
}

Allowance User::set_xattr(const std::string& path, const std::string& name, u64 bytes) {
  return settling({path}, [&] {
    must(fs_->set_xattr(path, name, some_bytes(bytes, bytes + name.size()), 0, kRoot, Follow::kNo), "setxattr");
  });
}
Allowance User::remove_xattr(const std::string& path, const std::string& name) {
  return settling({path}, [&] { must(fs_->remove_xattr(path, name, kRoot, Follow::kNo), "removexattr"); });
}
Allowance User::set_acl(const std::string& path, AclKind kind, const Acl& acl) {
  return settling({path}, [&] { must(fs_->set_acl(path, kind, acl, kRoot), "set ACL"); });
}

Allowance User::allocate(const std::string& path, int mode, u64 off, u64 len, u32 uid) {
  Credentials who;
  who.uid = uid;
  const InodeNo ino = must(fs_->stat(path, kRoot), "stat").ino;
  return settling({path}, [&] { must(fs_->allocate(ino, mode, off, len, who), "allocate"); });
}

Allowance User::copy(const std::string& from, u64 from_off, const std::string& to, u64 to_off, u64 len) {
  const InodeNo source = must(fs_->stat(from, kRoot), "stat").ino;
  const Attributes before = must(fs_->stat(to, kRoot), "stat");
  const u64 fences = thread_counters().fences;
  const auto copied = fs_->copy_range(source, from_off, before.ino, to_off, len, kRoot);
  const bool lazy = thread_counters().fences - fences == 1;
  must(copied, "copy");
  Allowance allowance;
  if (*copied == 0) return allowance;  // the source ends before: nothing was changed, and no time settled
  allowance.mixed_ino = to_off >= before.size_bytes ? kNoInode : before.ino;
  allowance.mixed_off = to_off;
  allowance.mixed_len = len;
  (lazy ? allowance.times_lazy : allowance.times_settled).push_back(before.ino);
  return allowance;
}

Allowance User::tmpfile(const std::string& dir, int more_flags) {
  held_.push_back(must(fs_->open_file(dir, O_TMPFILE | O_RDWR | more_flags, 0640, kRoot), "tmpfile"));
  return {};
}
Allowance User::write_tmpfile(u64 off, std::span<const std::byte> bytes) {
  must(held_.back().write(off, bytes), "write");
  return {};
}
Allowance User::link_tmpfile(const std::string& to) {
  must(fs_->link(At::inode(held_.back().ino()), to, kRoot), "link");
  return {};
}

Allowance User::fsync(const std::string& path) {
  const InodeNo ino = must(fs_->stat(path, kRoot), "stat").ino;
  must(fs_->sync(ino), "fsync");
  Allowance allowance;
  allowance.times_settled.push_back(ino);
  allowance.times_lazy = allowance.times_settled;  // an access time kept in DRAM is stored here
  return allowance;
}
Allowance User::sync() {
  SeenTree tree;
  Allowance allowance;
  if (see(*fs_, tree).empty())
    for (const SeenNode& node : tree.nodes) allowance.times_settled.push_back(node.attributes.ino);
  allowance.times_lazy = allowance.times_settled;
  must(fs_->sync(), "sync");
  return allowance;
}

void User::hold(const std::string& path) { held_.push_back(must(fs_->open_file(path, O_RDWR, 0, kRoot), "open")); }

Allowance User::anything(Prng& prng) {
  SeenTree tree;
  if (std::string wrong = see(*fs_, tree); !wrong.empty())
    throw std::runtime_error("looking at the live tree: " + wrong);
  std::vector<std::string> files, dirs, all;
  for (const SeenNode& node : tree.nodes) {
    if (node.attributes.type() == FileType::kRegular) files.push_back(node.path);
    if (node.attributes.type() == FileType::kDirectory) dirs.push_back(node.path);
    if (node.path != "/") all.push_back(node.path);
  }
  const auto one_of = [&](const std::vector<std::string>& from) {
    return from.empty() ? std::string("/none") : from[prng.below(from.size())];
  };
  const auto new_name = [&] {
    const std::string dir = one_of(dirs);
    std::string name = text("n", prng.below(12));
    if (prng.once_in(6)) name += std::string(1 + prng.below(240), 'x');
    return text(dir == "/" ? "" : dir, "/", name);
  };
  const auto size = [&] { return prng.coin() ? prng.below(200) : prng.below(12000); };
  const auto say = [&](const auto&... parts) { last_ = text(parts...); };
  try {
    switch (prng.below(23)) {
      case 0:
      case 1: {
        const std::string path = new_name();
        say("create ", path);
        return create(path, prng.coin() ? 0644 : 04755);
      }
      case 2: {
        const std::string path = new_name();
        say("mkdir ", path);
        return mkdir(path);
      }
      case 3: {
        const std::string path = new_name(), target(1 + prng.below(prng.coin() ? 100 : 900), 't');
        say("symlink ", target.size(), " ", path);
        return symlink(target, path);
      }
      case 4: {
        const std::string from = one_of(files), to = new_name();
        say("link ", from, " ", to);
        return link(from, to);
      }
      case 5:
      case 6: {
        const std::string path = one_of(all);
        say("remove ", path);
        const SeenNode* node = tree.at(path);
        return node != nullptr && node->attributes.type() == FileType::kDirectory ? rmdir(path) : unlink(path);
      }
      case 7:
      case 8: {
        const std::string from = one_of(all), to = prng.coin() ? new_name() : one_of(all);
        const unsigned flags = prng.once_in(4) ? RENAME_EXCHANGE : prng.once_in(4) ? RENAME_WHITEOUT : 0;
        say("rename ", from, " ", to, " ", flags);
        return rename(from, to, flags);
      }
      case 9:
      case 10:
      case 11: {
        const std::string path = one_of(files);
        const SeenNode* node = tree.at(path);
        const u64 old = node == nullptr ? 0 : node->attributes.size_bytes;
        const u64 off = prng.coin() ? old : prng.below(old + 5000), len = 1 + size();
        say("write ", path, " ", off, " ", len);
        return write(path, off, some_bytes(len, prng.next()), prng.coin() ? 0 : 1000);
      }
      case 12: {
        const std::string path = one_of(files);
        const u64 to = size();
        say("truncate ", path, " ", to);
        return truncate(path, to);
      }
      case 13: {
        const std::string path = one_of(all);
        const u32 mode = static_cast<u32>(prng.below(07777));
        say("chmod ", path);
        return chmod(path, mode);
      }
      case 14: {
        const std::string path = one_of(all);
        say("chown ", path);
        return chown(path, static_cast<u32>(prng.below(9)), static_cast<u32>(prng.below(9)));
      }
      case 15: {
        const std::string path = one_of(all);
        say("utimens ", path);
        return utimens(path, static_cast<i64>(prng.below(1000)), static_cast<i64>(prng.below(1000)));
      }
      case 21: {
        const std::string path = one_of(files);
        constexpr int kModes[] = {0,
                                  FALLOC_FL_KEEP_SIZE,
                                  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  FALLOC_FL_ZERO_RANGE,
                                  FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
                                  FALLOC_FL_COLLAPSE_RANGE,
                                  FALLOC_FL_INSERT_RANGE};
        const int mode = kModes[prng.below(std::size(kModes))];
        const bool blocks = mode == FALLOC_FL_COLLAPSE_RANGE || mode == FALLOC_FL_INSERT_RANGE;
        const u64 unit = blocks ? kBlockBytes : 1;
        const u64 off = blocks ? prng.below(3) * unit : prng.below(14000), len = blocks ? unit : 1 + prng.below(9000);
        say("allocate ", path, " ", mode, " ", off, " ", len);
        return allocate(path, mode, off, len);
      }
      case 22: {
        const std::string from = one_of(files), to = one_of(files);
        const u64 off = prng.below(9000), to_off = prng.below(12000), len = 1 + size();
        say("copy ", from, " ", off, " ", to, " ", to_off, " ", len);
        return copy(from, off, to, to_off, len);
      }
      case 16: {
        const std::string path = one_of(files);
        say("fsync ", path);
        return fsync(path);
      }
      case 17: {
        const std::string path = one_of(all), name = text("trusted.", prng.below(3));
        const u64 bytes = prng.coin() ? prng.below(90) : prng.below(9000);
        say("setxattr ", path, " ", name, " ", bytes);
        return set_xattr(path, name, bytes);
      }
      case 18: {
        const std::string path = one_of(all), name = text("trusted.", prng.below(3));
        say("removexattr ", path, " ", name);
        return remove_xattr(path, name);
      }
      case 19: {
        const AclKind kind = prng.coin() ? AclKind::kAccess : AclKind::kDefault;
        const std::string path = one_of(kind == AclKind::kAccess ? files : dirs);
        const Acl acl = prng.once_in(3) ? Acl() : some_acl(static_cast<u32>(1 + prng.below(40)));
        say("set ACL ", path, " ", acl.size());
        return set_acl(path, kind, acl);
      }
      default: {
        const std::string path = one_of(files);
        say("read ", path);
        return read(path);
      }
    }
  } catch (const std::runtime_error& refused) {
    last_ += text(" (", refused.what(), ")");
    return {};
  }
}

Acl some_acl(u32 users) {
  Acl acl{{AclTag::kUserObj, 7, 0}, {AclTag::kGroupObj, 5, 0}, {AclTag::kMask, 7, 0}, {AclTag::kOther, 1, 0}};
  for (u32 i = 0; i < users; ++i) acl.push_back({AclTag::kUser, i % 8, 1000 + i});
  return acl;
}

// --- Scenarios
// -----------------------------------------------------------------------------------------------------------

bool long_form() { return std::getenv("PMFS_LONG") != nullptr; }

ScenarioOptions usual_options() {
  ScenarioOptions options;
  if (long_form()) {
    options.bound = 40000;
    options.recovery_once_in = 10;
    options.use_once_in = 100;
    options.kill_points = 0;  // all
    options.follow_up_once_in = 60;
  } else {
    options.follow_up_once_in = 400;
  }
  return options;
}

namespace {

// A thread that does one thing after another, and keeps its lane from one to the next.
class Worker {
 public:
  explicit Worker(ThreadId number) : thread_([this, number] { live(number); }) {}
  ~Worker() {
    work([] { return false; });
    thread_.join();
  }
  // Lets the thread do something, and waits. What it throws is thrown here.
  void work(std::function<bool()> task) {
    std::unique_lock lock(mutex_);
    task_ = std::move(task);
    changed_.notify_all();
    changed_.wait(lock, [&] { return task_ == nullptr; });
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  void live(ThreadId number) {
    const ActAs me(number);
    for (bool going = true; going;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return task_ != nullptr; });
      try {
        going = task_();
      } catch (...) {
        thrown_ = std::current_exception();
      }
      task_ = nullptr;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<bool()> task_;
  std::exception_ptr thrown_;
  std::thread thread_;
};

constexpr ThreadId kWorkers = 3;
std::array<std::unique_ptr<Worker>, kWorkers>& workers() {
  static std::array<std::unique_ptr<Worker>, kWorkers> all;
  return all;
}

// Lets steps happen, seeing the tree before and after each. What counts is what a user sees; if he holds something that
// a crash would free, what the next open would see.
void run_steps(SimFs& world, User& user, const std::vector<Step>& steps, const std::string& name, Ran& ran) {
  bool lazy = false;
  const auto failed = [&](const std::string& why) { ran.failures.push_back(text(name, ": ", why)); };
  const auto look = [&] {
    const bool open = world.fs().is_open();
    SeenTree live;
    if (open) {
      if (std::string wrong = see(world.fs(), live); !wrong.empty()) failed("live: " + wrong);
      if (std::string wrong = findings(world.fs()); !wrong.empty()) failed("live check: " + wrong);
    }
    ImageMemory copy(world.memory().model().contents());
    FsSubject subject;
    std::string wrong = subject.open(copy.memory());
    if (wrong.empty()) wrong = subject.look();
    if (!wrong.empty()) {
      failed("live memory, opened: " + wrong);
    } else if (open && !user.holds_any() && !lazy && subject.fingerprint() != live.fingerprint) {
      failed("what the live file system shows is not what is in its memory:\n" + to_text(live) + "  in memory:\n" +
             subject.explain());
    }
    ran.trees.push_back(open && !user.holds_any() ? std::move(live) : subject.seen());
    subject.drop();
  };
  look();
  world.memory().begin_trace();
  for (u32 i = 0; i < steps.size(); ++i) {
    world.memory().mark(MarkKind::kBegin, i);
    ran.allowances.push_back(steps[i](user));
    world.memory().mark(MarkKind::kReturn, i);
    lazy |= !ran.allowances.back().times_lazy.empty();
    look();
  }
  ran.trace = world.memory().end_trace();
  ran.layout = world.layout();
  if (!world.memory().problem().empty()) failed(world.memory().problem());
}

// Life goes on after a crash: the image is opened, random operations follow (the same thread, so the same lane), and
// all of them are crashed again.
Report go_on(std::span<const std::byte> image, const std::string& name, u64 seed, const std::set<Rule>& switched_off) {
  SimFs world(image, SimFs::quiet(), switched_off);
  User user(world.fs(), world.memory().memory());
  Prng prng(seed);
  std::string did;
  const std::vector<Step> steps(3, [&](User& u) {
    const Allowance allowance = u.anything(prng);
    did += u.last() + "; ";
    return allowance;
  });
  Ran ran;
  run_steps(world, user, steps, name, ran);
  ExploreOptions explore;
  explore.name = name + ", then " + did;
  explore.seed = seed;
  explore.bound = 60;
  explore.layout = ran.layout;
  explore.switched_off = switched_off;
  explore.recovery_once_in = 100;
  explore.use_once_in = 0;
  FsSubject subject;
  TreeJudge judge(std::move(ran.trees), std::move(ran.allowances));
  Report report = Explorer(subject, explore).explore(ran.trace, judge);
  report.failures.insert(report.failures.end(), ran.failures.begin(), ran.failures.end());
  return report;
}

}  // namespace

Step on_thread(ThreadId thread, Step step) {
  return [=](User& user) {
    std::unique_ptr<Worker>& worker = workers().at(thread - 1u);
    if (worker == nullptr) worker = std::make_unique<Worker>(thread);
    Allowance allowance;
    worker->work([&] {
      allowance = step(user);
      return true;
    });
    return allowance;
  };
}

Ran run(const Scenario& scenario, const std::set<Rule>& switched_off) {
  for (auto& worker : workers()) worker.reset();
  SimFs world(scenario.pool_bytes, scenario.open, switched_off);
  User user(world.fs(), world.memory().memory());
  scenario.prepare(user);
  Ran ran;
  run_steps(world, user, scenario.steps, scenario.name, ran);
  user.let_go();
  return ran;
}

Ran run_in(SimFs& world, const Scenario& scenario) {
  User user(world.fs(), world.memory().memory());
  Ran ran;
  run_steps(world, user, scenario.steps, scenario.name, ran);
  user.let_go();
  return ran;
}

Report crash(const Scenario& scenario, const Ran& ran, const ScenarioOptions& options) {
  ExploreOptions explore;
  explore.name = scenario.name;
  explore.seed = scenario.seed;
  explore.bound = options.bound;
  explore.layout = ran.layout;
  explore.collapse = options.collapse;
  explore.left_out = options.left_out;
  explore.switched_off = options.switched_off;
  explore.recovery_once_in = options.recovery_once_in;
  explore.use_once_in = options.use_once_in;
  explore.kill_points = options.kill_points;
  explore.stop_after_failures = options.stop_after_failures;
  Report later;
  u64 crashes = 0;
  if (options.follow_up_once_in != 0) {
    explore.sample_once_in = options.follow_up_once_in;
    explore.on_sample = [&](std::span<const std::byte> image) {
      if (later.clean())
        later += go_on(image, scenario.name + ", crashed", mix(scenario.seed) + ++crashes, options.switched_off);
    };
  }
  FsSubject subject;
  TreeJudge judge(ran.trees, ran.allowances);
  Report report = Explorer(subject, explore).explore(ran.trace, judge);
  report.followed_states = later.all_states();
  report.failures.insert(report.failures.end(), later.failures.begin(), later.failures.end());
  if (options.kills && report.clean()) {
    std::vector<Allowance> allowances = ran.allowances;
    for (Allowance& one : allowances) one.closes = false;  // the next process has opened the pool: its map is used up
    TreeJudge again(ran.trees, std::move(allowances));
    report += Explorer(subject, explore).explore_kills(ran.trace, again);
  }
  return report;
}

Report explore(const Scenario& scenario, const ScenarioOptions& options) {
  const Ran ran = run(scenario, options.switched_off);
  Report report = crash(scenario, ran, options);
  report.failures.insert(report.failures.begin(), ran.failures.begin(), ran.failures.end());
  return report;
}

}  // namespace pmfs::test
