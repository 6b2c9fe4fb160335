#include "base/fork.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <utility>

#include "base/rcu.h"

namespace pmfs {

namespace internal {
constinit std::atomic<u64> fork_generation_{0};
}

namespace {

// Constant-initialised, so both work before and after any static constructor, and the handlers may run at any time.
constinit std::mutex hold_mutex;
constinit ForkWatch* first_watch = nullptr;  // guarded by hold_mutex

}  // namespace

struct ForkHandlers {
  // RCU's locks after ours: whoever opens or closes may wait for a grace period.
  static void prepare() {
    hold_mutex.lock();
    rcu_before_fork();
  }

  static void parent() {
    rcu_after_fork(false);
    hold_mutex.unlock();
  }

  // The child has one thread, this one, which took hold_mutex in prepare(). Only system calls and plain stores here,
  // and liburcu's own handler, so that its exit code finds its locks free; no call of ours gets there in a child.
  static void child() {
    for (ForkWatch* watch = first_watch; watch != nullptr;) {
      for (const int fd : watch->fds_) ::close(fd);
      if (watch->bytes_ != 0) {
        // MAP_FIXED over the inherited mapping: it is there, since watch and unwatch exclude forks. Should this fail
        // (out of memory), the mapping stays, and with it the lock until the child execs or exits.
        constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
        [[maybe_unused]] void* const at = ::mmap(watch->base_, watch->bytes_, PROT_NONE, kFlags, -1, 0);
      }
      ForkWatch* const next = watch->next_;
      watch->next_ = nullptr;
      watch->link_ = nullptr;
      watch = next;
    }
    first_watch = nullptr;
    internal::fork_generation_.fetch_add(1, std::memory_order_relaxed);
    rcu_after_fork(true);
    hold_mutex.unlock();
  }
};

namespace {

// Registered when the library is loaded: before anything can be watched.
[[maybe_unused]] const int registered =
    ::pthread_atfork(ForkHandlers::prepare, ForkHandlers::parent, ForkHandlers::child);

}  // namespace

ForkHold::ForkHold() { hold_mutex.lock(); }

ForkHold::~ForkHold() { hold_mutex.unlock(); }

ForkWatch::~ForkWatch() {
  if (link_ == nullptr) return;
  const ForkHold hold;
  unwatch(hold);
}

void ForkWatch::watch(const ForkHold&, void* base, std::size_t bytes, std::vector<int> fds) {
  base_ = base;
  bytes_ = bytes;
  fds_ = std::move(fds);
  next_ = first_watch;
  if (next_ != nullptr) next_->link_ = &next_;
  link_ = &first_watch;
  first_watch = this;
}

void ForkWatch::unwatch(const ForkHold&) {
  if (link_ == nullptr) return;
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  next_ = nullptr;
  link_ = nullptr;
}

}  // namespace pmfs
