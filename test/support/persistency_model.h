// What a power cut may leave: the persistency model of the simulator.
//
//   M1  Every aligned 8-byte word persists on its own. Since a word was last known to be durable it may be found at any
//       value it has had since: stores to a line are not assumed to reach the medium in order. (x86 promises more; the
//       protocol may not rely on it, R5, and libpmem's non-temporal copies do not give it.)
//   M2  flush(T) captures, for every word of the lines touched, the value it has at that moment. fence(T) makes the
//       captures of thread T durable: from then on the word has that value or a later one. Nothing else makes anything
//       durable; a flush that is never fenced by its own thread may or may not have happened.
//   M3  All threads see one memory (x86 is coherent): contents() is what a process would read, also a process that
//       opens the memory after another one was killed.
// Thread rules: none; the caller serialises.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/order.h"

namespace pmfs::test {

/// A simulated thread. Only its number matters.
using ThreadId = u8;

/// An aligned word, by number (offset / 8), and a value for it.
struct WordValue {
  u32 word = 0;
  u64 value = 0;
  friend bool operator==(const WordValue&, const WordValue&) = default;
};

/// A word that is not known to be durable at its present value.
struct OpenWord {
  struct Version {
    u64 stamp;  // grows with every store anywhere; 0 for the value that is durable
    u64 value;
  };
  std::vector<Version> versions;    // [0] is durable, the last is what a process reads
  std::optional<Order> flushed_as;  // the tag of the last flush since the last store
};

class PersistencyModel {
 public:
  PersistencyModel() = default;
  /// Everything in `contents` is durable.
  explicit PersistencyModel(std::span<const std::byte> contents);

  void store(WordValue to);
  void flush(ThreadId thread, u64 off, u64 bytes, Order why);
  /// A flush that a test left out: only its tag is noted, which says what kind of word this is.
  void note_flush(u64 off, u64 bytes, Order why);
  void fence(ThreadId thread);
  /// The process dies: what its threads had flushed and not fenced stays undecided.
  void forget_threads() { captured_.clear(); }
  /// The power fails with this outcome, or all caches are written back: everything is durable as it is.
  void settle();

  u64 now(u32 word) const { return contents_[word]; }
  std::span<const u64> contents() const { return contents_; }
  /// What the medium holds at least: contents() with every open word at its durable value.
  std::vector<u64> durable_contents() const;
  const std::unordered_map<u32, OpenWord>& open() const { return open_; }

  /// Every value that became durable, in order, since the last clear.
  const std::vector<WordValue>& durable_log() const { return durable_log_; }
  void clear_durable_log() { durable_log_.clear(); }

 private:
  struct Capture {
    u32 word;
    u64 stamp;
  };
  std::vector<u64> contents_;
  std::unordered_map<u32, OpenWord> open_;
  std::unordered_map<ThreadId, std::vector<Capture>> captured_;
  std::vector<WordValue> durable_log_;
  u64 next_stamp_ = 1;
};

}  // namespace pmfs::test
