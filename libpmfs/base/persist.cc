// Which way bytes take, and what is counted. The instructions themselves are in persist_pmem.cc.
#include "base/persist.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/assert.h"
#include "base/persist_pmem.h"

namespace pmfs {

// --- Counters --------------------------------------------------------------------------------------------------------

Counters& Counters::operator+=(const Counters& o) {
  flushes += o.flushes, lines += o.lines, fences += o.fences, copies += o.copies, copied_bytes += o.copied_bytes;
  msyncs += o.msyncs, pmemobj_flushes += o.pmemobj_flushes, pmemobj_lines += o.pmemobj_lines;
  pmemobj_fences += o.pmemobj_fences;
  return *this;
}

Counters Counters::operator-(const Counters& o) const {
  Counters d = *this;
  d.flushes -= o.flushes, d.lines -= o.lines, d.fences -= o.fences, d.copies -= o.copies;
  d.copied_bytes -= o.copied_bytes, d.msyncs -= o.msyncs, d.pmemobj_flushes -= o.pmemobj_flushes;
  d.pmemobj_lines -= o.pmemobj_lines, d.pmemobj_fences -= o.pmemobj_fences;
  return d;
}

namespace {

struct ThreadCounts;

// All threads' counters, so that a process total can be given. Leaked on purpose: threads may end after main() does.
struct Registry {
  std::mutex mutex;
  std::vector<ThreadCounts*> threads;
  Counters ended;
};
Registry& registry() {
  static Registry* all = new Registry;
  return *all;
}

// One word each, written by its thread alone and read by process_counters() without a lock: relaxed atomics by the
// __atomic builtins, which cost no more than plain words here.
struct ThreadCounts {
  Counters counts;
  ThreadCounts() {
    std::lock_guard lock(registry().mutex);
    registry().threads.push_back(this);
  }
  ~ThreadCounts() {
    std::lock_guard lock(registry().mutex);
    registry().ended += counts;
    std::erase(registry().threads, this);
  }
};

ThreadCounts& here() {
  thread_local ThreadCounts counts;
  return counts;
}

void add(u64& counter, u64 n) { __atomic_store_n(&counter, counter + n, __ATOMIC_RELAXED); }

Counters read_counts(const Counters& from) {
  Counters to;
  const auto* a = reinterpret_cast<const u64*>(&from);
  auto* b = reinterpret_cast<u64*>(&to);
  static_assert(sizeof(Counters) % sizeof(u64) == 0);
  for (std::size_t i = 0; i < sizeof(Counters) / sizeof(u64); ++i) b[i] = __atomic_load_n(&a[i], __ATOMIC_RELAXED);
  return to;
}

u64 lines_of(const void* at, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(at) / kLineBytes;
  const auto last = (reinterpret_cast<std::uintptr_t>(at) + bytes - 1) / kLineBytes;
  return last - first + 1;
}

std::atomic<bool> interposed{false};

}  // namespace

Counters thread_counters() { return here().counts; }

Counters process_counters() {
  std::lock_guard lock(registry().mutex);
  Counters sum = registry().ended;
  for (const ThreadCounts* t : registry().threads) sum += read_counts(t->counts);
  return sum;
}

bool counting_pmemobj() { return interposed.load(std::memory_order_relaxed); }

void count_pmemobj(u64 flushes, u64 lines, u64 fences) {
  interposed.store(true, std::memory_order_relaxed);
  Counters& c = here().counts;
  add(c.pmemobj_flushes, flushes);
  add(c.pmemobj_lines, lines);
  add(c.pmemobj_fences, fences);
}

// --- Order names -----------------------------------------------------------------------------------------------------

const char* order_name(Order why) {
  switch (why) {
#define X(tag, reason) \
  case Order::tag: return #tag;
    PMFS_ORDERS(X)
#undef X
  }
  return "?";
}

const char* order_reason(Order why) {
  switch (why) {
#define X(tag, reason) \
  case Order::tag: return reason;
    PMFS_ORDERS(X)
#undef X
  }
  return "?";
}

// --- Simulation ------------------------------------------------------------------------------------------------------

#if PMFS_SIMULATE
namespace {
struct SimRange {
  SimHook* hook;
  const std::byte* base;
  u64 size_bytes;
};
std::mutex sim_mutex;
std::vector<SimRange> sim_ranges;
}  // namespace

void sim_add(SimHook* hook, const void* base, u64 size_bytes) {
  std::lock_guard lock(sim_mutex);
  sim_ranges.push_back({hook, static_cast<const std::byte*>(base), size_bytes});
}
void sim_remove(SimHook* hook) {
  std::lock_guard lock(sim_mutex);
  std::erase_if(sim_ranges, [&](const SimRange& r) { return r.hook == hook; });
}
SimHook* sim_find(const void* base) {
  std::lock_guard lock(sim_mutex);
  for (const SimRange& r : sim_ranges)
    if (base >= r.base && base < r.base + r.size_bytes) return r.hook;
  return nullptr;
}
#endif

// --- Pages to be synced, for file-backed pools
// -------------------------------------------------------------------------

namespace {

// Pages that this thread flushed and has not yet synced, of whichever pools it works on.
struct PendingPage {
  u64 pool_id;
  std::uintptr_t page;
};
thread_local std::vector<PendingPage> pending_pages;
std::atomic<u64> next_pool_id{1};

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kForgetAbove = 4096;  // entries of other (perhaps closed) pools kept at most; see sync_pages()

}  // namespace

Persist::Persist(Memory memory)
    : memory_(memory), hook_(sim_find(memory.base)), id_(next_pool_id.fetch_add(1, std::memory_order_relaxed)) {}

Persist::~Persist() {
  std::erase_if(pending_pages, [&](const PendingPage& p) { return p.pool_id == id_; });
}

void Persist::flush_pages(const void* at, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(at) / kPageBytes;
  const auto last = (reinterpret_cast<std::uintptr_t>(at) + bytes - 1) / kPageBytes;
  for (auto page = first; page <= last; ++page) pending_pages.push_back({id_, page});
}

// One msync for each run of adjacent pages, however many flushes asked for them: on a file the cost is the system call.
void Persist::sync_pages() {
  std::vector<std::uintptr_t> pages;
  std::size_t others = 0;
  for (const PendingPage& p : pending_pages) {
    if (p.pool_id == id_)
      pages.push_back(p.page);
    else
      ++others;
  }
  // Pages of other pools wait for their own fence. A thread that left very many behind has stopped using those pools
  // (nothing is promised for a flush that its thread never fenced), so they need not be kept.
  std::erase_if(pending_pages, [&](const PendingPage& p) { return p.pool_id == id_ || others > kForgetAbove; });
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  for (std::size_t i = 0; i < pages.size();) {
    std::size_t j = i + 1;
    while (j < pages.size() && pages[j] == pages[j - 1] + 1) ++j;
    add(here().counts.msyncs, 1);
    if (::msync(reinterpret_cast<void*>(pages[i] * kPageBytes), (j - i) * kPageBytes, MS_SYNC) != 0)
      failed_.store(true, std::memory_order_relaxed);
    i = j;
  }
}

void Persist::write_back_all() {
  if (memory_.durability != Durability::kRelaxed) return;
  add(here().counts.msyncs, 1);
  if (::msync(memory_.base, memory_.size_bytes, MS_SYNC) != 0) failed_.store(true, std::memory_order_relaxed);
}

// --- The door
// ----------------------------------------------------------------------------------------------------------

void Persist::copy(void* to, const void* from, std::size_t bytes, Order why) {
  if (bytes == 0) return;
  Counters& c = here().counts;
  add(c.copies, 1);
  add(c.copied_bytes, bytes);
  if (memory_.durability == Durability::kPersistent || memory_.durability == Durability::kVolatile) {
    add(c.flushes, 1);
    add(c.lines, lines_of(to, bytes));
#if PMFS_SIMULATE
    if (hook_ != nullptr) {
      std::memcpy(to, from, bytes);
      hook_->stored(to, bytes);
      (void)hook_->flushing(to, bytes, why);
      return;
    }
#endif
    pmem_copy_nodrain(to, from, bytes);
    return;
  }
  write(to, from, bytes);
  flush(to, bytes, why);
}

void Persist::flush(const void* at, std::size_t bytes, [[maybe_unused]] Order why) {
  if (bytes == 0) return;
  Counters& c = here().counts;
  add(c.flushes, 1);
  add(c.lines, lines_of(at, bytes));
#if PMFS_SIMULATE
  if (hook_ != nullptr) {
    (void)hook_->flushing(at, bytes, why);
    return;
  }
#endif
  switch (memory_.durability) {
    case Durability::kPersistent:
    case Durability::kVolatile: pmem_flush_lines(at, bytes); return;
    case Durability::kFileBacked: flush_pages(at, bytes); return;
    case Durability::kRelaxed:  // written back by the kernel when it likes; Filesystem::sync() asks for all of it
    case Durability::kPrivate: return;
  }
}

void Persist::fence([[maybe_unused]] Order why) {
  add(here().counts.fences, 1);
#if PMFS_SIMULATE
  if (hook_ != nullptr) {
    (void)hook_->fencing(why);
    return;
  }
#endif
  switch (memory_.durability) {
    case Durability::kPersistent:
    case Durability::kVolatile: pmem_fence(); return;
    case Durability::kFileBacked: sync_pages(); return;
    case Durability::kRelaxed:
    case Durability::kPrivate: return;
  }
}

}  // namespace pmfs
