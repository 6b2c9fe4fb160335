// The only door to durability: stores into the pool, flushes, fences, and their counters.
//
// What it owns: the way bytes reach the medium for one open pool, and the calling thread's counts.
//   P1  Every byte of the pool that the library changes is changed by store(), write(), zero() or copy().
//   P2  flush() starts write-back of lines; it orders nothing. fence() makes durable, before any later store of this
//       thread can be, every line that this thread flushed before.
//   P3  Only aligned 8-byte words are stored untorn. Nothing relies on the order of stores within a line (R5).
// Thread rules: all functions from any thread.
// Sources: Intel SDM vol. 1 "persistent memory"; libpmem(7); msync(2) for file-backed pools.
#pragma once

#include <atomic>
#include <cstring>

#include "base/le.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/simulate.h"
#include "pmfs/counters.h"
#include "pmfs/result.h"

namespace pmfs {

inline constexpr std::size_t kLineBytes = 64;

class Persist {
 public:
  explicit Persist(Memory memory);
  ~Persist();
  Persist(const Persist&) = delete;
  Persist& operator=(const Persist&) = delete;

  const Memory& memory() const { return memory_; }

  /// One untorn store of a live word.
  void store(Le64& word, u64 value) {
    word.set(value);
    announce(&word, sizeof(word));
  }
  /// Bytes that nothing points to yet, through the cache. Flush them afterwards.
  void write(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    announce(to, bytes);
  }
  void zero(void* to, std::size_t bytes) {
    std::memset(to, 0, bytes);
    announce(to, bytes);
  }
  /// File data: stored and flushed, past the cache when that is faster. Durable after the next fence().
  void copy(void* to, const void* from, std::size_t bytes, Order why);

  /// Starts write-back of every line touching [at, at+bytes).
  void flush(const void* at, std::size_t bytes, Order why);
  /// Makes everything this thread flushed durable.
  void fence(Order why);

  /// Durability::kRelaxed: writes the whole pool back now. Elsewhere nothing: there all is durable already.
  void write_back_all();

  /// Whether a write-back has failed. Set for ever by the first failure; changes are then refused.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

  /// Whether `rule` is in force: always, except in a test that shows why it must be.
  bool rule([[maybe_unused]] Rule which) const {
#if PMFS_SIMULATE
    return hook_ == nullptr || hook_->rule(which);
#else
    return true;
#endif
  }
  /// A named place where a test may stop the thread.
  void point([[maybe_unused]] const char* name) const {
#if PMFS_SIMULATE
    if (hook_ != nullptr) hook_->point(name);
#endif
  }

 private:
  void announce([[maybe_unused]] const void* at, [[maybe_unused]] std::size_t bytes) {
#if PMFS_SIMULATE
    if (hook_ != nullptr) hook_->stored(at, bytes);
#endif
  }
  void flush_pages(const void* at, std::size_t bytes);
  void sync_pages();

  Memory memory_;
  SimHook* hook_ = nullptr;
  u64 id_ = 0;  // names this object in the threads' lists of pages to be synced
  std::atomic<bool> failed_{false};
};

}  // namespace pmfs
