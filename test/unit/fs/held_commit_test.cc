// A thread that is held up inside its commit, lane and directory lock in hand, stops nobody in another directory, and
// no reader of its own; and nobody sees what it has not made durable (R6).
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

// Holds the first thread that comes to one of a commit's fences after arm(), until let_go().
class HoldOneCommit final : public SimHook {
 public:
  explicit HoldOneCommit(const Memory& memory, Order fence = Order::kFence1) : fence_(fence) {
    sim_add(this, memory.base, memory.size_bytes);
  }
  ~HoldOneCommit() override { sim_remove(this); }
  void stored(const void*, std::size_t) override {}
  bool flushing(const void*, std::size_t, Order) override { return true; }
  bool fencing(Order why) override {
    std::unique_lock lock(mutex_);
    if (why != fence_ || state_ != State::kArmed) return true;
    state_ = State::kHeld;
    changed_.notify_all();
    changed_.wait(lock, [&] { return state_ == State::kLetGo; });
    return true;
  }
  bool rule(Rule which) override { return which != left_out; }
  std::optional<Rule> left_out;
  void arm() { set(State::kArmed); }
  void wait_until_held() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state_ == State::kHeld; });
  }
  void let_go() { set(State::kLetGo); }

 private:
  enum class State { kIdle, kArmed, kHeld, kLetGo };
  void set(State state) {
    std::lock_guard lock(mutex_);
    state_ = state;
    changed_.notify_all();
  }
  const Order fence_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
};

}  // namespace

TEST_CASE("threads: one held inside its directory's commit stops no create, look-up or removal elsewhere",
          "[unit][fs]") {
  std::optional<HoldOneCommit> holder;  // goes last: closing still tells it
  MemoryFs fs(u64{16} << 20);
  HoldOneCommit& hold = holder.emplace(fs.memory());
  fs.reopen();  // the file system finds its hook when it is opened
  must(fs->mkdir("/held", 0755, kRoot));
  must(fs->mkdir("/free", 0755, kRoot));

  hold.arm();
  bool made = false;
  std::thread held([&] { made = fs->mknod("/held/x", 0644, 0, kRoot).ok(); });
  hold.wait_until_held();
  for (int i = 0; i < 100; ++i) {
    const std::string path = "/free/" + std::to_string(i);
    must(fs->mknod(path, 0644, 0, kRoot));
    must(fs->stat(path, kRoot));
    if (i % 2 == 0) must(fs->unlink(path, kRoot));
  }
  must(fs->rename("/free/1", "/free/one", 0, kRoot));
  CHECK_FALSE(made);  // still held
  hold.let_go();
  held.join();
  CHECK(made);
  must(fs->stat("/held/x", kRoot));
  fs.require_clean();
}

TEST_CASE("readers: a commit that is prepared stops no look-up and no listing in its own directory", "[unit][fs]") {
  for (const int names : {3, 300}) {  // one leaf, and many
    std::optional<HoldOneCommit> holder;  // goes last: closing still tells it
    MemoryFs fs(u64{16} << 20);
    HoldOneCommit& hold = holder.emplace(fs.memory());
    fs.reopen();
    must(fs->mkdir("/held", 0755, kRoot));
    for (int i = 0; i < names; ++i) must(fs->mknod("/held/" + std::to_string(i), 0644, 0, kRoot));
    hold.arm();
    bool made = false;
    std::thread held([&] { made = fs->mknod("/held/x", 0644, 0, kRoot).ok(); });
    hold.wait_until_held();  // it has the directory's exclusive lock: whoever waits for that waits for ever
    for (int i = 0; i < names; ++i) CHECK(fs->stat("/held/" + std::to_string(i), kRoot).ok());
    CHECK(code_of(fs->stat("/held/x", kRoot)) == Errc::kNotFound);
    CHECK(must(fs->stat("/held", kRoot)).links == 2);
    CHECK_FALSE(made);
    hold.let_go();
    held.join();
    CHECK(made);
    must(fs->stat("/held/x", kRoot));
  }
}

TEST_CASE("readers: a listing goes on beside a prepared commit", "[unit][fs]") {
  std::optional<HoldOneCommit> holder;  // goes last: closing still tells it
  MemoryFs fs(u64{16} << 20);
  HoldOneCommit& hold = holder.emplace(fs.memory());
  fs.reopen();
  must(fs->mkdir("/held", 0755, kRoot));
  for (int i = 0; i < 300; ++i) must(fs->mknod("/held/" + std::to_string(i), 0644, 0, kRoot));
  Dir dir = must(fs->open_dir("/held", kRoot));
  hold.arm();
  std::thread held([&] { (void)fs->unlink("/held/7", kRoot); });
  hold.wait_until_held();
  DirEntry entry;
  int listed = 0;
  for (u64 cookie = 0; must(dir.read(cookie, entry)); cookie = entry.cookie) ++listed;
  CHECK(listed == 302);
  hold.let_go();
  held.join();
  must(dir.close());
}

TEST_CASE("readers: what is in place and not yet durable is waited for, not seen", "[unit][fs]") {
  std::optional<HoldOneCommit> holder;  // goes last: closing still tells it
  MemoryFs fs(u64{16} << 20);
  HoldOneCommit& hold = holder.emplace(fs.memory(), Order::kFence2);
  fs.reopen();
  must(fs->mkdir("/held", 0755, kRoot));
  hold.arm();
  std::thread held([&] { (void)fs->mknod("/held/x", 0644, 0, kRoot); });
  hold.wait_until_held();
  std::atomic<bool> answered{false};
  bool found = false;
  std::thread reader([&] {
    found = fs->stat("/held/x", kRoot).ok();
    answered = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // long enough to catch one that does not wait
  CHECK_FALSE(answered);
  hold.let_go();
  held.join();
  reader.join();
  CHECK(found);
}

TEST_CASE("readers: permission that is given and not yet durable is not used", "[unit][fs]") {
  std::optional<HoldOneCommit> holder;  // goes last: closing still tells it
  MemoryFs fs(u64{16} << 20);
  HoldOneCommit& hold = holder.emplace(fs.memory(), Order::kFence2);
  fs.reopen();
  must(fs->mkdir("/held", 0700, kRoot));
  must(fs->mknod("/held/x", 0644, 0, kRoot));
  Credentials user;
  user.uid = user.gid = 1000;
  CHECK(code_of(fs->stat("/held/x", user)) == Errc::kAccess);
  hold.arm();
  SetAttributes open_to_all;
  open_to_all.mode = 0755;
  std::thread held([&] { (void)fs->set_attributes("/held", open_to_all, kRoot); });
  hold.wait_until_held();
  std::atomic<bool> answered{false};
  std::atomic<bool> found{false};
  std::thread reader([&] {
    found = fs->stat("/held/x", user).ok();
    answered = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK((!answered || !found));  // it waits, or says what was durable before
  hold.let_go();
  held.join();
  reader.join();
  CHECK(fs->stat("/held/x", user).ok());
}

TEST_CASE("readers: without the versions, what is not yet durable is seen", "[unit][fs][mutation]") {
  std::optional<HoldOneCommit> holder;  // goes last: closing still tells it
  MemoryFs fs(u64{16} << 20);
  HoldOneCommit& hold = holder.emplace(fs.memory(), Order::kFence2);
  hold.left_out = Rule::kHideUntilDurable;
  fs.reopen();
  must(fs->mkdir("/held", 0755, kRoot));
  hold.arm();
  std::thread held([&] { (void)fs->mknod("/held/x", 0644, 0, kRoot); });
  hold.wait_until_held();
  CHECK(fs->stat("/held/x", kRoot).ok());  // a crash now would take it away again
  hold.let_go();
  held.join();
}
