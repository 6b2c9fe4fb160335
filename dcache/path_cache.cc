#include "dcache/path_cache.h"

#include <chrono>

#include "dcache/batch.h"

namespace pmfs::dcache {

Result<void> PathCache::start(u64 root_generation) {
  if (options_.bytes == 0) return {};
  auto cache = DentryCache::make(options_.bytes, root_generation);
  if (cache == nullptr) return Error{Errc::kNoMemory, "no memory for the dentry cache", 0};
  switch (options_.resolver) {
    case ResolverKind::kWalk: resolver_ = std::make_unique<WalkResolver>(); break;
    case ResolverKind::kStage: {
      StageOptions stage = options_.stage;
      // Pivots pin dentries: what they pin stays a small part of the cache.
      stage.pivots = static_cast<u32>(std::min<u64>(stage.pivots, options_.bytes / (16 * 1024)));
      auto made = std::make_unique<StageResolver>(*cache, stage);
      stage_ = made.get();
      resolver_ = std::move(made);
      break;
    }
    case ResolverKind::kFullpath: {
      auto made = FullpathResolver::make(*cache, options_.bytes / kSlotBytes);
      if (made == nullptr) return Error{Errc::kNoMemory, "no memory for the table of paths", 0};
      fullpath_ = made.get();
      resolver_ = std::move(made);
      break;
    }
  }
  cache->watch(resolver_.get());
  cache->on_maintenance([this] { want_thread(); });
  cache_ = std::move(cache);
  return {};
}

PathCache::~PathCache() {
  {
    std::lock_guard lock(thread_mutex_);
    ending_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  if (cache_ == nullptr) return;
  cache_->watch(nullptr);
  resolver_.reset();  // before what it points into
}

ThreadBlock* PathCache::counts() {
  if (stage_ != nullptr && !thread_wanted_.load(std::memory_order_relaxed)) want_thread();
  return &cache_->threads().here();
}

// --- Look-ups --------------------------------------------------------------------------------------------------------

PathWalk PathCache::walk(const Searcher& who) {
  if (cache_ == nullptr || bypassed_.load(std::memory_order_relaxed)) [[unlikely]]
    return {source_, nullptr, nullptr, nullptr, who};
  return {source_, cache_.get(), resolver_.get(), counts(), who};
}

Result<Found> PathCache::resolve(InodeNo start, std::string_view path, const Searcher& who, bool follow_last) {
  const RcuReadGuard reading;
  return walk(who).resolve(start, path, follow_last);
}

Result<FoundParent> PathCache::resolve_parent(InodeNo start, std::string_view path, const Searcher& who) {
  const RcuReadGuard reading;
  return walk(who).resolve_parent(start, path);
}

Result<Found> PathCache::resolve_each(InodeNo start, std::string_view path, const Searcher& who, bool follow_last,
                                      const std::function<void(const Passed&)>& passed) {
  const RcuReadGuard reading;
  return walk(who).resolve_each(start, path, follow_last, passed);
}

void PathCache::resolve_batch(InodeNo start, std::span<BatchItem> items, const Searcher& who) {
  if (cache_ == nullptr || bypassed_.load(std::memory_order_relaxed)) {
    BatchWalk(source_, nullptr, nullptr, nullptr, who).resolve(start, items);
  } else {
    BatchWalk(source_, cache_.get(), resolver_.get(), counts(), who).resolve(start, items);
  }
}

// --- The thread ------------------------------------------------------------------------------------------------------

void PathCache::want_thread() {
  thread_wanted_.store(true, std::memory_order_relaxed);
  std::lock_guard lock(thread_mutex_);
  if (ending_) return;
  work_ = true;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (...) {
      return;  // without it pivots stay as they are and tables as large as they are: slower, not wrong
    }
  }
  wake_.notify_one();
}

void PathCache::serve() {
  using std::chrono::steady_clock;
  constexpr u32 kDrains = 16;  // in one period: a thread's block has room for a part of what it may look up
  std::unique_lock lock(thread_mutex_);
  u32 drains = 0;
  while (!ending_) {
    const auto asked = [this] { return ending_ || work_; };
    bool early = true;
    if (stage_ == nullptr) {
      wake_.wait(lock, asked);
    } else {
      const auto pause = std::chrono::microseconds(u64{stage_->period_ms()} * 1000 / kDrains);
      early = wake_.wait_until(lock, steady_clock::now() + pause, asked);
    }
    if (ending_) return;
    work_ = false;
    lock.unlock();
    maintain();
    if (!early && stage_ != nullptr) {
      if (++drains < kDrains) {
        drain_now();
      } else {
        drains = 0;
        std::lock_guard one(period_mutex_);
        stage_->end_period();
      }
    }
    lock.lock();
  }
}

void PathCache::drain_now() {
  if (cache_ == nullptr) return;
  std::lock_guard lock(cache_->mutex());
  cache_->drain_samples();
}

void PathCache::maintain() {
  std::lock_guard one(period_mutex_);
  cache_->maintain();
  if (fullpath_ != nullptr && fullpath_->should_maintain()) fullpath_->maintain();
}

void PathCache::maintain_now() {
  if (cache_ == nullptr) return;
  maintain();
  if (stage_ == nullptr) return;
  std::lock_guard one(period_mutex_);
  stage_->end_period();
}

void PathCache::set_period_ms(u32 period_ms) {
  if (stage_ != nullptr) stage_->set_period_ms(period_ms);
}

// --- Statistics ------------------------------------------------------------------------------------------------------

CacheStatistics PathCache::statistics() const {
  CacheStatistics s;
  if (cache_ == nullptr) return s;
  const ThreadBlocks& threads = cache_->threads();
  s.lookups = threads.sum(Count::kLookups);
  s.steps = threads.sum(Count::kSteps);
  s.misses = threads.sum(Count::kMisses);
  s.negatives = threads.sum(Count::kNegatives);
  s.skipped = threads.sum(Count::kSkipped);
  s.pivot_hits = threads.sum(Count::kPivotHits);
  s.whole_hits = threads.sum(Count::kWholeHits);
  s.retries = threads.sum(Count::kRetries);
  s.shared = threads.sum(Count::kShared);
  s.sizes = cache_->sizes();
  if (stage_ != nullptr) s.stage = stage_->statistics();
  if (fullpath_ != nullptr) s.fullpath = fullpath_->statistics();
  return s;
}

std::vector<PivotFacts> PathCache::pivots() const {
  return stage_ != nullptr ? stage_->pivots() : std::vector<PivotFacts>();
}

}  // namespace pmfs::dcache
