// Simulated persistent memory: plain memory whose every store, flush and fence is seen, remembered and checked.
//
// What it owns: the memory, its persistency model, the trace of events, and the rules that a test has switched off.
//   S1  A change of the memory that was not announced by the time of the next event is reported by problem(): at a
//       store or flush the lines it touches are compared, at fences, marks and check_now() the whole memory.
//       In a build with PMFS_TRACE_STORES (clang's -fsanitize-coverage=trace-stores) the compiler itself also tells of
//       every plain or atomic store of the library, so that a store of the value that was there already must be
//       announced too.
//   S2  A trace is the model at its start and the events since: whatever a power cut, or a killed process, could have
//       left at any moment follows from it afterwards, with the program no longer running.
// Thread rules: the hook's functions from any thread; everything else from one thread at a time, with no other running.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/memory.h"
#include "base/simulate.h"
#include "test/support/persistency_model.h"

namespace pmfs::test {

/// What a mark says. Where an operation begins or returns, what a crash may show changes.
enum class MarkKind : u8 { kBegin, kReturn, kNote };

/// One thing that happened to the memory, in order.
struct Event {
  enum class Kind : u8 { kStore, kFlush, kFence, kPoint, kMark };
  Kind kind{};
  ThreadId thread = 0;
  Order why{};  // of a flush or fence
  u64 off = 0;  // of a store or flush
  u64 bytes = 0;
  u32 first_word = 0;  // of a store: the words it changed, in Trace::words
  u32 word_count = 0;
  const char* name = "";  // of a point
  MarkKind mark_kind{};
  u32 mark = 0;  // of a mark: the operation's number, or what else the test meant
};

struct Trace {
  PersistencyModel start;
  std::vector<Event> events;
  std::vector<WordValue> words;

  /// Lets `event` happen in `model`.
  void apply(const Event& event, PersistencyModel& model) const;
};

/// Flushes and fences that shall not happen: of one tag all, or the one with this number (from 0) in the trace.
struct LeftOut {
  static constexpr u32 kAll = ~u32{0};
  Order why{};
  u32 occurrence = kAll;
};

/// Says for each flush and fence in turn whether it is left out.
class Omissions {
 public:
  Omissions() = default;
  explicit Omissions(std::vector<LeftOut> which) : which_(std::move(which)), seen_(which_.size()) {}
  bool leaves_out(const Event& event);

 private:
  std::vector<LeftOut> which_;
  std::vector<u32> seen_;
};

/// The simulated thread that the calling thread plays, for as long as this object lives. Otherwise it plays thread 0.
class ActAs {
 public:
  explicit ActAs(ThreadId thread);
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;
  static ThreadId current();

 private:
  ThreadId before_;
};

/// Plain memory with lines where lines should be. Zeroed.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(u64 size_bytes);
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  u64 size() const { return size_; }
  std::span<const std::byte> span() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  u64 size_;
  std::unique_ptr<std::byte[], Free> bytes_;
};

class SimMemory : public SimHook {
 public:
  explicit SimMemory(u64 size_bytes);
  ~SimMemory() override;
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;

  /// What the library works on.
  Memory memory() { return {buffer_.data(), buffer_.size(), Durability::kPersistent}; }

  /// Takes on contents, all of them durable; or a model with what is open in it, as the next process would find it.
  void load(std::span<const std::byte> contents);
  void load(PersistencyModel model);
  /// Everything becomes durable as it is.
  void settle() { model_.settle(); }

  const PersistencyModel& model() const { return model_; }

  /// From here on events are kept, until end_trace() gives them. Otherwise they only move the model.
  void begin_trace();
  Trace end_trace();
  /// A place in the trace that means something to the test.
  void mark(MarkKind kind, u32 what);

  // --- Faults -------------------------------------------------------------------------------------------------------
  // (A flush or fence is left out when the trace is walked: crash_states.h. The program cannot notice.)
  void switch_off(std::set<Rule> rules) { off_ = std::move(rules); }
  const std::set<Rule>& switched_off() const { return off_; }
  /// Called behind each event, by the thread that caused it, with nothing locked: a test may hold it there, or throw
  /// (which ends the operation as if its thread had died; what the operation holds is then never given back).
  void on_event(std::function<void(const Event&)> fn) { on_event_ = std::move(fn); }

  /// Compares the whole memory with what was announced. Returns problem().
  const std::string& check_now();
  /// The first thing that was wrong with the program's stores; empty if nothing was.
  const std::string& problem() const { return problem_; }

  /// Stores that the compiler told of, in all traces so far; 0 unless built with PMFS_TRACE_STORES.
  static u64 traced_stores();
  /// The compiler's word that something was stored.
  static void saw_store(const void* at, u32 bytes);

  // --- SimHook ------------------------------------------------------------------------------------------------------
  void stored(const void* at, std::size_t bytes) override;
  bool flushing(const void* at, std::size_t bytes, Order why) override;
  bool fencing(Order why) override;
  bool rule(Rule which) override { return !off_.contains(which); }
  void point(const char* name) override;

 private:
  u64 off_of(const void* at, u64 bytes) const;
  void compare(u64 begin, u64 end, u64 announced_begin, u64 announced_end, const char* when);
  void compare_all(const char* when);
  void announce_traced(u64 off, u64 bytes);
  void report_traced(const char* when);
  Event& add(Event event);
  void happened(const Event& event);

  AlignedBuffer buffer_;
  PersistencyModel model_;
  std::mutex mutex_;
  bool tracing_ = false;
  Trace trace_;
  std::set<Rule> off_;
  std::function<void(const Event&)> on_event_;
  std::string problem_;
  Event scratch_;
};

}  // namespace pmfs::test
