#include "base/rcu.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "base/assert.h"

namespace pmfs {

#if PMFS_TSAN_BUILD
namespace internal {
char rcu_grace;
}
#endif

void rcu_synchronize() {
  ::urcu_bp_synchronize_rcu();
#if PMFS_TSAN_BUILD
  rcu_see(&internal::rcu_grace);
#endif
}

void rcu_before_fork() { ::urcu_bp_before_fork(); }

void rcu_after_fork(bool child) {
  if (child) {
    ::urcu_bp_after_fork_child();
  } else {
    ::urcu_bp_after_fork_parent();
  }
}

// --- Deferred work ---------------------------------------------------------------------------------------------------

namespace {
// A grace period is waited for when this much work has come together, or when the first of it is this old.
constexpr u64 kEnough = 64;
constexpr std::chrono::milliseconds kOldEnough{5};
}  // namespace

RcuDefer::~RcuDefer() {
  {
    std::unique_lock lock(mutex_);
    ending_ = true;
    wake_.notify_one();
    if (!thread_.joinable()) run_all(lock);
  }
  if (thread_.joinable()) thread_.join();
}

void RcuDefer::defer(RcuHead& head, void (*run)(RcuHead*, void*), u64 bytes) {
  head.run = run;
  head.bytes = bytes;
  std::lock_guard lock(mutex_);
  PMFS_ASSERT(!ending_);
  head.next = first_;
  first_ = &head;
  deferred_ += 1;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  waiting_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (...) {
      return;  // no thread to be had: the work waits for the next call, for barrier() or for the end
    }
  }
  if (head.next == nullptr || waiting() == kEnough) wake_.notify_one();
}

void RcuDefer::barrier() {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) return run_all(lock);
  const u64 until = deferred_;
  hurry_ = true;
  wake_.notify_one();
  done_.wait(lock, [&] { return run_ >= until; });
}

void RcuDefer::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return first_ != nullptr || ending_; });
    if (first_ == nullptr) return;
    wake_.wait_for(lock, kOldEnough, [this] { return hurry_ || ending_ || waiting() >= kEnough; });
    run_all(lock);
    done_.notify_all();
  }
}

// Waits for a grace period and runs what was there at the call. Without the lock meanwhile: new work may come.
void RcuDefer::run_all(std::unique_lock<std::mutex>& lock) {
  RcuHead* work = std::exchange(first_, nullptr);
  const u64 upto = deferred_;
  hurry_ = false;
  if (work == nullptr) return;
  lock.unlock();
  rcu_synchronize();
  u64 bytes = 0, count = 0;
  while (work != nullptr) {
    RcuHead* const head = work;
    work = head->next;  // before it runs: the head may be freed
    bytes += head->bytes;
    count += 1;
    head->run(head, context_);
  }
  waiting_.fetch_sub(count, std::memory_order_relaxed);
  waiting_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  lock.lock();
  run_ = upto;
}

// --- The table -------------------------------------------------------------------------------------------------------

namespace {
constexpr u64 kFewest = 64;
}

std::unique_ptr<RcuTable> RcuTable::make(u64 most) {
  most = std::max(std::bit_ceil(most), kFewest);
  // Neither counting nor resizing by itself: both would cost the callers, and resizing needs a thread of liburcu's.
  ::cds_lfht* const table = ::_cds_lfht_new(kFewest, kFewest, most, 0, &::cds_lfht_mm_mmap, &::urcu_bp_flavor, nullptr);
  if (table == nullptr) return nullptr;
  return std::unique_ptr<RcuTable>(new RcuTable(table, kFewest, most));
}

RcuTable::~RcuTable() {
  {
    const RcuReadGuard reading;
    ::cds_lfht_iter iter;
    ::cds_lfht_first(table_, &iter);
    while (iter.node != nullptr) {
      RcuNode* const node = iter.node;
      ::cds_lfht_next(table_, &iter);
      ::cds_lfht_del(table_, node);
    }
  }
  const int failed = ::cds_lfht_destroy(table_, nullptr);
  PMFS_ASSERT(failed == 0);
}

bool RcuTable::remove(RcuNode* node) {
  if (::cds_lfht_del(table_, node) != 0) return false;
  count_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool RcuTable::should_resize() const {
  const u64 have = buckets(), nodes = count();
  return (nodes > 2 * have && have < most_) || (nodes < have / 4 && have > kFewest);
}

void RcuTable::resize() {
  const u64 suits = std::clamp(std::bit_ceil(std::max<u64>(count(), 1)), kFewest, most_);
  if (suits == buckets()) return;
  ::cds_lfht_resize(table_, suits);
  buckets_.store(suits, std::memory_order_relaxed);
}

}  // namespace pmfs
