#include "dcache/stage.h"

#include <algorithm>

namespace pmfs::dcache {

namespace {
constexpr u32 kShortest = 10, kLongest = 60000;  // ms, of an adaptive period
constexpr u32 kMostThreshold = 64;
}  // namespace

StageResolver::StageResolver(DentryCache& cache, const StageOptions& options)
    : cache_(cache), options_(options), candidates_(cache, std::min(options.pivots, PivotPool::kMost)) {
  for (auto& pool : pools_) pool = std::make_unique<PivotPool>(cache, options.hashed);
  serving_.store(pools_[0].get(), std::memory_order_release);
  waiting_ = pools_[1].get();
  candidates_.set_threshold(options.threshold);
  // An adaptive period begins short, so that the first pivots are there soon.
  period_ms_ = options.adaptive ? std::min(kShortest, options.period_ms) : options.period_ms;
  removal_.stage = this;
}

StageResolver::~StageResolver() {
  cache_.defer().barrier();  // a removal may be under way
  std::lock_guard lock(cache_.mutex());
  candidates_.clear();
  for (auto& pool : pools_) pool->clean();
}

// --- Look-ups --------------------------------------------------------------------------------------------------------

namespace {

void count_hit(const Prefix& prefix, bool whole, ThreadBlock& counts) {
  counts.count(Count::kPivotHits);
  counts.count(Count::kSkipped, prefix.components);
  if (whole) counts.count(Count::kWholeHits);
}

}  // namespace

Prefix StageResolver::whole(PathScan& scan, const Searcher& who, ThreadBlock& counts) {
  if (!options_.hashed) return {};  // the paper's list compares components
  const Prefix prefix = serving_.load(std::memory_order_acquire)->find_whole(scan, who);
  if (prefix.components != 0) count_hit(prefix, true, counts);
  return prefix;
}

Prefix StageResolver::begin(const PathScan& scan, u32 most, const Searcher& who, ThreadBlock& counts) {
  const PivotPool& pool = *serving_.load(std::memory_order_acquire);
  if (most == 0 || pool.size() == 0) return {};
  const Prefix prefix = pool.find(scan, most, who);
  if (prefix.components != 0) count_hit(prefix, prefix.components == scan.count(), counts);
  return prefix;
}

void StageResolver::arrived(u32, u32, const Pivot* untrue, Dentry& target, ThreadBlock& counts) {
  if (untrue != nullptr) [[unlikely]]
    make_true(*untrue, target);
  if (!options_.heat_inline) {
    counts.sample(target.slot, target.serial);
    return;
  }
  std::lock_guard lock(cache_.mutex());
  if (target.alive == 0) return;
  cache_.arena().info(target.slot).mark = 3;
  candidates_.looked_up(target);
}

void StageResolver::make_true(const Pivot& pivot, Dentry& target) {
  std::lock_guard lock(cache_.mutex());
  if (target.alive == 0 || target.negative()) return;
  if (serving_.load(std::memory_order_relaxed)->make_true(pivot, target)) statistics_.revived += 1;
}

// --- Changes ---------------------------------------------------------------------------------------------------------

void StageResolver::leaves(Dentry& dentry) {
  candidates_.remove(dentry);
  if (dentry.links.pins != 0) invalidate(&dentry);
}

void StageResolver::changes_below(Dentry* place) {
  if (place == nullptr || place->links.pins != 0) invalidate(place);
}

void StageResolver::invalidate(Dentry* place) {
  PivotPool& serving = *serving_.load(std::memory_order_relaxed);
  if (place == nullptr && serving.size() == 0 && !building_) return;
  const u64 invalid = serving.invalidate(place);
  statistics_.invalidations += 1;
  statistics_.invalidated += invalid;
  if (options_.hashed) {
    waiting_->invalidate_unfinished(place);
    return;
  }
  waiting_valid_ = false;
  invalidated_ = true;
  if (invalid == 0 || removal_.under_way) return;  // the one under way takes these along
  removal_.under_way = true;
  cache_.defer().defer(removal_.head, run_removal, 0);
}

void StageResolver::run_removal(RcuHead* head, void*) {
  StageResolver& stage = *reinterpret_cast<Removal*>(head)->stage;
  std::lock_guard lock(stage.cache_.mutex());
  stage.removal_.under_way = false;
  stage.serving_.load(std::memory_order_relaxed)->remove_invalid();
}

// --- The end of a period ---------------------------------------------------------------------------------------------

// Candidates are taken in pieces, so that changes need not wait long.
void StageResolver::fill_waiting() {
  std::vector<std::pair<Slot, u32>> chosen;
  {
    std::lock_guard lock(cache_.mutex());
    chosen.reserve(candidates_.size());
    candidates_.each([&](Dentry& d) {
      if (d.links.heat_version == candidates_.version() && d.links.heat > 1) chosen.emplace_back(d.slot, d.serial);
    });
    waiting_->reserve(chosen.size());
  }
  constexpr std::size_t kPiece = 32;
  for (std::size_t at = 0; at < chosen.size(); at += kPiece) {
    std::lock_guard lock(cache_.mutex());
    if (!waiting_valid_) break;
    for (std::size_t i = at; i < std::min(at + kPiece, chosen.size()); ++i)
      if (Dentry* const d = cache_.still_there(chosen[i].first, chosen[i].second); d != nullptr)
        waiting_->add(*d, d->links.heat);
  }
  waiting_->finish();  // nobody else looks at it: changes only need to know that it is being built
}

bool StageResolver::end_period() {
  {
    std::lock_guard lock(cache_.mutex());
    cache_.drain_samples();
    statistics_.periods += 1;
    building_ = true;
    waiting_valid_ = true;
    invalidated_ = false;
  }
  bool filled = true;
  try {
    fill_waiting();
  } catch (...) {
    filled = false;  // no memory: the serving pool goes on
  }
  bool swapped = false;
  PivotPool* old = waiting_;
  {
    std::lock_guard lock(cache_.mutex());
    building_ = false;
    if (filled) waiting_->settle();
    PivotPool* const serving = serving_.load(std::memory_order_relaxed);
    u64 news = 0;
    // With nothing looked up twice in this period the pivots stay: an idle time makes nothing less popular.
    if (!waiting_valid_) {
      statistics_.skipped_swaps += 1;
    } else if (filled && waiting_->size() != 0) {
      news = waiting_->paths_not_in(*serving);  // S4: with the table an untrue one comes back by itself
      if (news != 0 || waiting_->size() != serving->size()) {
        serving_.store(waiting_, std::memory_order_release);
        waiting_ = old = serving;
        statistics_.swaps += 1;
        swapped = true;
      }
    }
    candidates_.next_version();
    candidates_.clear();  // all of them are overdue
    adapt(invalidated_ || news * 4 > serving->size());
  }
  if (swapped) rcu_synchronize();
  std::lock_guard lock(cache_.mutex());
  old->clean();
  return swapped;
}

// What stays the same is looked at less often. A set that keeps replacing candidates gets a higher threshold, one that
// does not a lower one.
void StageResolver::adapt(bool much_changed) {
  if (!options_.adaptive) return;
  const u32 period = period_ms();
  period_ms_.store(std::clamp(much_changed ? period / 2 : period * 2, std::min(kShortest, options_.period_ms),
                              std::max(options_.period_ms, kShortest)),
                   std::memory_order_relaxed);
  const u64 replaced = candidates_.replaced() - replaced_before_;
  replaced_before_ = candidates_.replaced();
  const u32 threshold = candidates_.threshold();
  if (replaced > candidates_.capacity()) {
    candidates_.set_threshold(std::min(threshold * 2 + 1, kMostThreshold));
  } else if (replaced < candidates_.capacity() / 4 && threshold > options_.threshold) {
    candidates_.set_threshold(threshold / 2);
  }
}

void StageResolver::set_period_ms(u32 period_ms) {
  period_ms_.store(std::clamp(period_ms, u32{1}, kLongest), std::memory_order_relaxed);
}

StageStatistics StageResolver::statistics() const {
  std::lock_guard lock(cache_.mutex());
  StageStatistics s = statistics_;
  s.pivots = serving_.load(std::memory_order_relaxed)->size();
  s.candidates = candidates_.size();
  s.period_ms = period_ms();
  s.threshold = candidates_.threshold();
  return s;
}

std::vector<PivotFacts> StageResolver::pivots() const {
  std::lock_guard lock(cache_.mutex());
  const PivotPool& pool = *serving_.load(std::memory_order_relaxed);
  std::vector<PivotFacts> list;
  for (u64 i = 0; i < pool.size(); ++i)
    if (pool.is_true(i)) list.push_back({"/" + std::string(pool[i].text()), pool[i].heat, pool[i].overlap});
  return list;
}

}  // namespace pmfs::dcache
