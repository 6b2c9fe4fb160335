// The one door to liburcu: read sections, grace periods, deferred work, and the lock-free hash table.
//
//   U1  The flavour is urcu-bp: any thread may open a read section, nobody registers anything. A read section costs
//       two stores to a line of the thread's own, which another thread reads only to end a grace period.
//   U2  What a read section may have seen is reused only by work that was deferred after it was made unreachable.
//   U3  Nobody waits for a grace period (rcu_synchronize, RcuDefer::barrier) in a read section, or with a lock that a
//       read section or deferred work waits for.
//   U4  A forked child has none of this: base/fork.cc keeps liburcu's own locks whole across fork(), and every call of
//       a file system that was opened before returns in the child before it gets here. RcuDefer's thread is not in
//       the child; what it had not yet run is never run there.
// ThreadSanitizer does not see into liburcu, whose ordering is made of assembly and of volatile stores: rcu_publish and
// rcu_see say what it cannot see. Publishing comes before the look-up that finds it, the end of a read section before
// work that was deferred.
// Thread rules: every function from any thread.
// Source: McKenney, Slingwine: Read-Copy Update (1998); Shalev, Shavit: Split-Ordered Lists (2006), liburcu's table.
#pragma once

#include <urcu/rculfhash.h>
#include <urcu/urcu-bp.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "pmfs/types.h"

#if defined(__SANITIZE_THREAD__)
#define PMFS_TSAN_BUILD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PMFS_TSAN_BUILD 1
#endif
#endif
#ifndef PMFS_TSAN_BUILD
#define PMFS_TSAN_BUILD 0
#endif

#if PMFS_TSAN_BUILD
#include <sanitizer/tsan_interface.h>
#else
#include <urcu/static/urcu-bp.h>  // its read sections are inline functions of under ten lines (LGPL 2.1, section 5)
#endif

namespace pmfs {

#if PMFS_TSAN_BUILD
inline void rcu_publish(const void* what) { __tsan_release(const_cast<void*>(what)); }
inline void rcu_see(const void* what) { __tsan_acquire(const_cast<void*>(what)); }
namespace internal {
extern char rcu_grace;  ///< stands for the order between the ends of read sections and grace periods
}
#else
inline void rcu_publish(const void*) {}
inline void rcu_see(const void*) {}
#endif

/// A read section, as long as it lives: what it finds by RCU stays what it is until then. May be nested.
/// Cost: no shared store, no waiting. Concurrency: any thread. Durability: none.
class RcuReadGuard {
 public:
#if PMFS_TSAN_BUILD
  RcuReadGuard() { ::urcu_bp_read_lock(); }
  ~RcuReadGuard() {
    rcu_publish(&internal::rcu_grace);
    ::urcu_bp_read_unlock();
  }
#else
  RcuReadGuard() { ::_urcu_bp_read_lock(); }
  ~RcuReadGuard() { ::_urcu_bp_read_unlock(); }
#endif
  RcuReadGuard(const RcuReadGuard&) = delete;
  RcuReadGuard& operator=(const RcuReadGuard&) = delete;
};

/// Returns when every read section that was open at the call has ended. REQUIRES: U3.
void rcu_synchronize();

/// For base/fork.cc alone: keeps liburcu's locks out of the hands of threads that a child does not have.
void rcu_before_fork();
void rcu_after_fork(bool child);

/// Work that waits for a grace period; part of the object it is about. RcuDefer fills it in.
struct RcuHead {
  RcuHead* next;
  void (*run)(RcuHead*, void* context);
  u64 bytes;
};

/// Runs work after a grace period, in a thread of its own that the first call starts and the destructor ends.
/// Should no thread be had, work waits for barrier() or the destructor.
class RcuDefer {
 public:
  /// @param context  given to every piece of work.
  explicit RcuDefer(void* context) : context_(context) {}
  /// Runs everything that waits, then ends the thread. REQUIRES: nobody calls any more; U3.
  ~RcuDefer();
  RcuDefer(const RcuDefer&) = delete;
  RcuDefer& operator=(const RcuDefer&) = delete;

  /// Runs `run(&head, context)` some time after the read sections that are open now have ended. Never waits for that,
  /// so it may be called in a read section and with locks held.
  /// @param bytes  memory that it will give back, for waiting_bytes().
  void defer(RcuHead& head, void (*run)(RcuHead*, void* context), u64 bytes);

  /// Returns when all that was deferred before has run. REQUIRES: U3.
  void barrier();

  /// What waits now: deferred, not yet run.
  u64 waiting() const { return waiting_.load(std::memory_order_relaxed); }
  u64 waiting_bytes() const { return waiting_bytes_.load(std::memory_order_relaxed); }

 private:
  void serve();
  void run_all(std::unique_lock<std::mutex>& lock);

  void* context_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  RcuHead* first_ = nullptr;  // guarded by mutex_, as the rest
  u64 deferred_ = 0;          // how many ever
  u64 run_ = 0;               // how many have run
  bool hurry_ = false;
  bool ending_ = false;
  std::thread thread_;
  std::atomic<u64> waiting_{0};
  std::atomic<u64> waiting_bytes_{0};
};

/// A place in an RcuTable; part of the object that is in the table.
using RcuNode = ::cds_lfht_node;

/// liburcu's hash table. It is resized only by resize(), so that no look-up and no insertion pays for it.
/// A Match says which object is meant: static bool Match::equal(const RcuNode*, const Key&).
class RcuTable {
 public:
  /// @param most  buckets that it may ever have; only address space is taken for them.
  /// @return      null: no memory.
  static std::unique_ptr<RcuTable> make(u64 most);
  /// REQUIRES: nobody else uses it. What is still in it is taken out, not freed.
  ~RcuTable();
  RcuTable(const RcuTable&) = delete;
  RcuTable& operator=(const RcuTable&) = delete;

  /// @return the node that matches, or null. REQUIRES: a read section.
  template <class Match, class Key>
  RcuNode* find(u64 hash, const Key& key) const {
    ::cds_lfht_iter iter;
    ::cds_lfht_lookup(table_, hash, &matches<Match, Key>, &key, &iter);
    return iter.node;
  }

  /// Adds a node unless one that matches is there.
  /// @return null: added; else the one that is there. REQUIRES: a read section.
  template <class Match, class Key>
  RcuNode* add(u64 hash, const Key& key, RcuNode* node) {
    rcu_publish(node);
    RcuNode* const there = ::cds_lfht_add_unique(table_, hash, &matches<Match, Key>, &key, node);
    if (there != node) return there;
    count_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }

  /// Takes a node out. @return whether this call did it. REQUIRES: a read section; the node was in this table.
  bool remove(RcuNode* node);

  /// How many nodes are in it; exact when nobody changes it.
  u64 count() const { return count_.load(std::memory_order_relaxed); }
  u64 buckets() const { return buckets_.load(std::memory_order_relaxed); }
  u64 bytes() const { return buckets() * sizeof(RcuNode); }
  /// Whether it has more or fewer buckets than suits its count (a load of 0.5 to 2).
  bool should_resize() const;
  /// Gives it the number of buckets that suits its count. One caller at a time. REQUIRES: U3.
  void resize();

  /// Goes ahead of find(hash), a step a call, and starts to load what the next step will read: first the bucket, then a
  /// node and another. So the waits of many look-ups overlap. REQUIRES of all: one read section.
  class Ahead {
   public:
    void start(const RcuTable& table, u64 hash) {
      const u64 index = hash & (table.buckets_.load(std::memory_order_relaxed) - 1);
      node_ = ::cds_lfht_mm_mmap.bucket_at(table.table_, index);
      __builtin_prefetch(node_);
    }
    /// @param bytes  how much of the object that the node begins will be read.
    void step(std::size_t bytes) {
      const auto next = reinterpret_cast<std::uintptr_t>(__atomic_load_n(&node_->next, __ATOMIC_RELAXED)) & ~kFlags;
      if (next == 0) return;  // the table's end
      node_ = reinterpret_cast<const RcuNode*>(next);
      rcu_see(node_);
      for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(reinterpret_cast<const char*>(next) + at);
    }

   private:
    static constexpr std::uintptr_t kFlags = alignof(RcuNode) - 1;  // liburcu's, in a link's low bits
    const RcuNode* node_ = nullptr;
  };

 private:
  template <class Match, class Key>
  static int matches(RcuNode* node, const void* key) {
    rcu_see(node);
    return Match::equal(node, *static_cast<const Key*>(key)) ? 1 : 0;
  }

  RcuTable(::cds_lfht* table, u64 buckets, u64 most) : table_(table), most_(most), buckets_(buckets) {}

  ::cds_lfht* table_;
  u64 most_;
  alignas(64) std::atomic<u64> buckets_;  // of a line that look-ups only read
  alignas(64) std::atomic<u64> count_{0};
};

}  // namespace pmfs
