// A thread that is held up inside its commit, lane and directory lock in hand, stops nobody in another directory.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

// Holds the first thread that comes to a commit's first fence after arm(), until let_go().
class HoldOneCommit final : public SimHook {
 public:
  explicit HoldOneCommit(const Memory& memory) { sim_add(this, memory.base, memory.size_bytes); }
  ~HoldOneCommit() override { sim_remove(this); }
  void stored(const void*, std::size_t) override {}
  bool flushing(const void*, std::size_t, Order) override { return true; }
  bool fencing(Order) override { return true; }
  void point(const char* name) override {
    std::unique_lock lock(mutex_);
    if (std::string_view(name) != "commit.before_fence1" || state_ != State::kArmed) return;
    state_ = State::kHeld;
    changed_.notify_all();
    changed_.wait(lock, [&] { return state_ == State::kLetGo; });
  }
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
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
};

}  // namespace

TEST_CASE("threads: one held inside its directory's commit stops no create, look-up or removal elsewhere",
          "[unit][fs]") {
  MemoryFs fs(u64{16} << 20);
  HoldOneCommit hold(fs.memory());
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
