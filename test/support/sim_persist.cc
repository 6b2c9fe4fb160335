#include "test/support/sim_persist.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/assert.h"
#include "test/support/text.h"

namespace pmfs::test {

namespace {
constexpr u64 kLine = 64;
thread_local ThreadId acting_as = 0;

// What the compiler told of and nobody announced yet.
struct TracedStore {
  u64 off;
  u32 bytes;
};
thread_local std::vector<TracedStore> traced_stores_pending;
std::atomic<SimMemory*> traced_memory{nullptr};
std::atomic<u64> traced_stores_seen{0};
}  // namespace

// --- Small parts -----------------------------------------------------------------------------------------------------

void Trace::apply(const Event& event, PersistencyModel& model) const {
  switch (event.kind) {
    case Event::Kind::kStore:
      for (u32 i = 0; i < event.word_count; ++i) model.store(words[event.first_word + i]);
      return;
    case Event::Kind::kFlush: model.flush(event.thread, event.off, event.bytes, event.why); return;
    case Event::Kind::kFence: model.fence(event.thread); return;
    case Event::Kind::kPoint:
    case Event::Kind::kMark: return;
  }
}

bool Omissions::leaves_out(const Event& event) {
  if (event.kind != Event::Kind::kFlush && event.kind != Event::Kind::kFence) return false;
  bool out = false;
  for (std::size_t i = 0; i < which_.size(); ++i) {
    if (event.why != which_[i].why) continue;
    const u32 number = seen_[i]++;
    out |= which_[i].occurrence == LeftOut::kAll || which_[i].occurrence == number;
  }
  return out;
}

ActAs::ActAs(ThreadId thread) : before_(acting_as) { acting_as = thread; }
ActAs::~ActAs() { acting_as = before_; }
ThreadId ActAs::current() { return acting_as; }

void AlignedBuffer::Free::operator()(std::byte* p) const { std::free(p); }

AlignedBuffer::AlignedBuffer(u64 size_bytes) : size_(size_bytes) {
  constexpr u64 kAlignment = 4096;
  PMFS_ASSERT(size_bytes % kAlignment == 0);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size_bytes));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, size_bytes);
  bytes_.reset(memory);
}

// --- SimMemory -------------------------------------------------------------------------------------------------------

SimMemory::SimMemory(u64 size_bytes) : buffer_(size_bytes), model_(buffer_.span()) {
  sim_add(this, buffer_.data(), buffer_.size());
}
SimMemory::~SimMemory() {
  SimMemory* self = this;
  traced_memory.compare_exchange_strong(self, nullptr);
  sim_remove(this);
}

void SimMemory::load(std::span<const std::byte> contents) {
  PMFS_ASSERT(contents.size() == buffer_.size());
  load(PersistencyModel(contents));
}

void SimMemory::load(PersistencyModel model) {
  PMFS_ASSERT(model.contents().size_bytes() == buffer_.size());
  model_ = std::move(model);
  std::memcpy(buffer_.data(), model_.contents().data(), buffer_.size());
  problem_.clear();
}

void SimMemory::begin_trace() {
  compare_all("before the trace");
  model_.clear_durable_log();
  trace_ = Trace{};
  trace_.start = model_;
  tracing_ = true;
  traced_stores_pending.clear();
  traced_memory = this;
}

Trace SimMemory::end_trace() {
  traced_memory = nullptr;
  compare_all("at the end of the trace");
  report_traced("the end of the trace");
  tracing_ = false;
  return std::move(trace_);
}

void SimMemory::mark(MarkKind kind, u32 what) {
  Event event;
  {
    std::lock_guard lock(mutex_);
    compare_all("at a mark");
    report_traced("a mark");
    event = add({.kind = Event::Kind::kMark, .mark_kind = kind, .mark = what});
  }
  if (on_event_) on_event_(event);
}

const std::string& SimMemory::check_now() {
  std::lock_guard lock(mutex_);
  compare_all("when asked");
  return problem_;
}

u64 SimMemory::off_of(const void* at, u64 bytes) const {
  const u64 off = static_cast<u64>(static_cast<const std::byte*>(at) - buffer_.data());
  PMFS_ASSERT(off <= buffer_.size() && bytes <= buffer_.size() - off);
  return off;
}

// Whether [begin, end) is as announced, but for [announced_begin, announced_end). A change that nobody announced is
// reported once, and then taken for granted, so that what follows makes sense.
void SimMemory::compare(u64 begin, u64 end, u64 announced_begin, u64 announced_end, const char* when) {
  const auto* known = reinterpret_cast<const std::byte*>(model_.contents().data());
  const std::byte* real = buffer_.data();
  if (std::memcmp(real + begin, known + begin, end - begin) == 0) return;
  for (u64 off = begin; off < end; ++off) {
    if (real[off] == known[off] || (off >= announced_begin && off < announced_end)) continue;
    if (problem_.empty())
      problem_ = text("unannounced store at offset ", hex(off), " (line ", hex(off / kLine * kLine), "), seen ", when);
    const u64 word = off / 8;
    u64 value;
    std::memcpy(&value, real + word * 8, 8);
    model_.store({static_cast<u32>(word), value});
  }
}

u64 SimMemory::traced_stores() { return traced_stores_seen; }

void SimMemory::saw_store(const void* at, u32 bytes) {
  SimMemory* memory = traced_memory.load(std::memory_order_acquire);
  if (memory == nullptr) return;
  const std::byte* base = memory->buffer_.data();
  const auto* place = static_cast<const std::byte*>(at);
  if (place < base || place >= base + memory->buffer_.size()) return;
  traced_stores_seen.fetch_add(1, std::memory_order_relaxed);
  traced_stores_pending.push_back({static_cast<u64>(place - base), bytes});
}

void SimMemory::announce_traced(u64 off, u64 bytes) {
  std::erase_if(traced_stores_pending,
                [&](const TracedStore& s) { return s.off >= off && s.off + s.bytes <= off + bytes; });
}

void SimMemory::report_traced(const char* when) {
  if (!traced_stores_pending.empty() && problem_.empty())
    problem_ = text("the compiler told of a store at offset ", hex(traced_stores_pending.front().off),
                    " that was not announced before ", when);
  traced_stores_pending.clear();
}

void SimMemory::compare_all(const char* when) { compare(0, buffer_.size(), 0, 0, when); }

Event& SimMemory::add(Event event) {
  event.thread = ActAs::current();
  if (tracing_) {
    trace_.events.push_back(event);
    return trace_.events.back();
  }
  scratch_ = event;
  return scratch_;
}

void SimMemory::stored(const void* at, std::size_t bytes) {
  if (bytes == 0) return;
  Event event;
  {
    std::lock_guard lock(mutex_);
    const u64 off = off_of(at, bytes);
    compare(off / kLine * kLine, (off + bytes - 1) / kLine * kLine + kLine, off, off + bytes, "at a store beside it");
    announce_traced(off, bytes);
    event = {.kind = Event::Kind::kStore, .off = off, .bytes = bytes};
    event.first_word = static_cast<u32>(trace_.words.size());
    for (u64 word = off / 8; word <= (off + bytes - 1) / 8; ++word) {
      u64 value;
      std::memcpy(&value, buffer_.data() + word * 8, 8);
      if (value == model_.now(static_cast<u32>(word))) continue;
      const WordValue to{static_cast<u32>(word), value};
      model_.store(to);
      if (tracing_) trace_.words.push_back(to);
      ++event.word_count;
    }
    event = add(event);
  }
  if (on_event_) on_event_(event);
}

bool SimMemory::flushing(const void* at, std::size_t bytes, Order why) {
  Event event;
  {
    std::lock_guard lock(mutex_);
    const u64 off = off_of(at, bytes);
    compare(off / kLine * kLine, (off + bytes - 1) / kLine * kLine + kLine, 0, 0, order_name(why));
    report_traced(order_name(why));
    event = add({.kind = Event::Kind::kFlush, .why = why, .off = off, .bytes = bytes});
    model_.flush(event.thread, off, bytes, why);
  }
  if (on_event_) on_event_(event);
  return true;
}

bool SimMemory::fencing(Order why) {
  Event event;
  {
    std::lock_guard lock(mutex_);
    compare_all(order_name(why));
    report_traced(order_name(why));
    event = add({.kind = Event::Kind::kFence, .why = why});
    model_.fence(event.thread);
  }
  if (on_event_) on_event_(event);
  return true;
}

void SimMemory::point(const char* name) {
  Event event;
  {
    std::lock_guard lock(mutex_);
    event = add({.kind = Event::Kind::kPoint, .name = name});
  }
  if (on_event_) on_event_(event);
}

}  // namespace pmfs::test

// Called by code compiled with -fsanitize-coverage=trace-stores.
extern "C" {
void __sanitizer_cov_store1(const void* at) { pmfs::test::SimMemory::saw_store(at, 1); }
void __sanitizer_cov_store2(const void* at) { pmfs::test::SimMemory::saw_store(at, 2); }
void __sanitizer_cov_store4(const void* at) { pmfs::test::SimMemory::saw_store(at, 4); }
void __sanitizer_cov_store8(const void* at) { pmfs::test::SimMemory::saw_store(at, 8); }
void __sanitizer_cov_store16(const void* at) { pmfs::test::SimMemory::saw_store(at, 16); }
}
