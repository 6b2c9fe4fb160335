#include "dcache/pivot_pool.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace pmfs::dcache {

namespace {

// Components in the order of their bytes, a path before what lies below it.
bool ascending(std::string_view a, std::string_view b) {
  const std::size_t least = std::min(a.size(), b.size());
  const auto [x, y] = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(least), b.begin());
  if (x == a.begin() + static_cast<std::ptrdiff_t>(least)) return a.size() < b.size();
  const auto rank = [](char c) { return c == '/' ? 0 : 1 + int{static_cast<u8>(c)}; };
  return rank(*x) < rank(*y);
}

u32 shared_components(const Pivot& a, const Pivot& b) {
  u32 shared = 0;
  const u32 least = std::min(a.depth, b.depth);
  const u32 equal = equal_bytes(a.path(), b.path(), std::min(a.length, b.length));
  while (shared < least && a.component(shared).end <= equal && a.component(shared).end == b.component(shared).end)
    ++shared;
  return shared;
}

bool same_text(const Pivot& pivot, std::string_view text) {
  return pivot.length >= text.size() &&
         equal_bytes(pivot.path(), text.data(), static_cast<u32>(text.size())) == text.size();
}

}  // namespace

// --- Finding ---------------------------------------------------------------------------------------------------------

// One pass. `matched` components of the path are those of the pivot looked at last; a pivot that shares more than that
// with its predecessor differs from the path where the predecessor did, one that shares less ends the search.
u32 PivotPool::find_in_list(const PathScan& scan, u32 most, u32& best) const {
  const char* const text = scan.name(0).data();
  const std::string_view whole = scan.text_to(most - 1);
  u32 matched = 0, found = 0;
  bool any = false;
  for (u32 i = __atomic_load_n(&first_, __ATOMIC_ACQUIRE); i < disabled_from_.load(std::memory_order_acquire);) {
    const Pivot& pivot = *order_[i];
    const u32 overlap = __atomic_load_n(&pivot.overlap, __ATOMIC_RELAXED);
    if (any && overlap < matched) break;
    if (!any || overlap == matched) {
      const u32 from = matched == 0 ? 0 : pivot.component(matched - 1).end;
      const u32 room = static_cast<u32>(std::min<std::size_t>(pivot.length, whole.size())) - from;
      const u32 equal = from + equal_bytes(pivot.path() + from, text + from, room);
      const u32 deepest = std::min(pivot.depth, most);
      while (matched < deepest && pivot.component(matched).end <= equal &&
             scan.end_of(matched) == text + pivot.component(matched).end)
        ++matched;
      if (matched > found && is_true(i)) {
        found = matched;
        best = i;
        if (found == most) break;
      }
    }
    any = true;
    i = __atomic_load_n(&pivot.next, __ATOMIC_ACQUIRE);
  }
  return found;
}

const PivotPool::PrefixEntry* PivotPool::probe(u64 hash) const {
  const std::size_t mask = prefixes_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const PrefixEntry& entry = prefixes_[at];
    if (entry.hash == hash) return &entry;
    if (entry.hash == 0) return nullptr;
  }
}

// All prefixes of a pivot are in the table: so if a prefix is not, no longer one is, and the longest is found by
// halving.
u32 PivotPool::find_by_hash(const PathScan& scan, u32 most, u32& pivot) const {
  if (prefixes_.empty()) return 0;
  u32 depth = most;
  const PrefixEntry* entry = scan.asked(most) ? nullptr : probe(scan.prefix(most - 1));
  if (entry == nullptr) {
    u32 low = 0, high = most - 1;  // what has been found, and what may still be
    while (low < high) {
      const u32 middle = low == 0 ? 1 : low + (high - low + 1) / 2;
      if (const PrefixEntry* const there = probe(scan.prefix(middle - 1)); there != nullptr) {
        low = middle;
        entry = there;
      } else {
        high = middle - 1;
      }
    }
    depth = low;
  }
  while (depth > 0) {
    const std::string_view text = scan.text_to(depth - 1);
    if (entry->depth == depth && same_text(*order_[entry->pivot], text) &&
        order_[entry->pivot]->component(depth - 1).end == text.size() && is_true(entry->pivot)) {
      pivot = entry->pivot;
      return depth;
    }
    if (--depth == 0) break;
    entry = probe(scan.prefix(depth - 1));
    if (entry == nullptr) break;
  }
  return 0;
}

Prefix PivotPool::find(const PathScan& scan, u32 most, const Searcher& who) const {
  u32 best = 0;
  const u32 depth = hashed_ ? find_by_hash(scan, most, best) : find_in_list(scan, most, best);
  return depth == 0 ? Prefix{} : answer(best, depth, who);
}

Prefix PivotPool::find_whole(PathScan& scan, const Searcher& who) const {
  if (prefixes_.empty()) return {};
  const PrefixEntry* const entry = probe(scan.uncut_hash());
  if (entry == nullptr) return {};
  const Pivot& pivot = *order_[entry->pivot];
  const std::string_view text = scan.uncut();
  if (pivot.component(entry->depth - 1).end != text.size() || !same_text(pivot, text)) return {};
  Prefix prefix = answer(entry->pivot, entry->depth, who);
  if (prefix.components == 0 && entry->depth == pivot.depth) prefix.untrue = &pivot;
  return prefix;
}

Prefix PivotPool::answer(u32 number, u32 depth, const Searcher& who) const {
  const Pivot& pivot = *order_[number];
  const u64 seen = changes_.load(std::memory_order_acquire);
  if ((seen & 1) != 0 || !is_true(number)) return {};
  Prefix prefix;
  prefix.components = depth;
  // Rolls up when the pivot lies deeper.
  prefix.dentry = pivot.component(depth - 1).dentry.load(std::memory_order_acquire);
  prefix.denied = !pivot.rules.may_pass(depth, who);
  const bool serves = number < disabled_from_.load(std::memory_order_acquire);
  return serves && changes_.load(std::memory_order_acquire) == seen ? prefix : Prefix{};  // K2: this is the instant
}

// --- Building --------------------------------------------------------------------------------------------------------

void PivotPool::reserve(u64 pivots) {
  order_.reserve(pivots);
  unfinished_.reserve(pivots);
  if (chain_ == nullptr) chain_ = std::make_unique<Chain>();
}

bool PivotPool::add(Dentry& target, u32 heat) {
  if (!chain_->build(cache_, target)) return false;
  take_way(make_pivot(*chain_, heat), *chain_);
  return true;
}

Pivot& PivotPool::make_pivot(const Chain& chain, u32 heat) {
  auto pivot = std::make_unique<Pivot>();
  pivot->depth = chain.depth;
  pivot->length = chain.length;
  pivot->heat = heat;
  char* path = pivot->short_path;
  if (chain.length > Pivot::kPath) {
    pivot->long_path = std::make_unique<char[]>(chain.length);
    path = pivot->long_path.get();
  }
  std::memcpy(path, chain.path, chain.length);
  if (chain.depth > Pivot::kComponents) pivot->more = std::make_unique<Pivot::More>();
  for (u32 i = 0; i < chain.depth; ++i) {
    pivot->component(i).end = chain.ends[i];
    pivot->component(i).depth = i + 1;
  }
  unfinished_.push_back(pivot.get());
  order_.push_back(std::move(pivot));
  return *order_.back();
}

void PivotPool::take_way(Pivot& pivot, const Chain& chain) {
  for (u32 i = 0; i < chain.depth; ++i) {
    pivot.component(i).dentry.store(chain.dentries[i], std::memory_order_release);
    cache_.pin(*chain.dentries[i]);
  }
  pivot.rules.become(chain.rules);
  pivot.pinned = true;
}

void PivotPool::finish() {
  std::sort(order_.begin(), order_.end(), [](const auto& a, const auto& b) { return ascending(a->text(), b->text()); });
  const auto count = static_cast<u32>(order_.size());
  u64 components = 0;
  for (u32 i = 0; i < count; ++i) {
    Pivot& pivot = *order_[i];
    pivot.overlap = i == 0 ? 0 : shared_components(*order_[i - 1], pivot);
    pivot.next = i + 1 == count ? Pivot::kEnd : i + 1;
    pivot.number = i;
    components += pivot.depth - pivot.overlap;
  }
  first_ = count == 0 ? Pivot::kEnd : 0;
  untrue_ = std::make_unique<std::atomic<u64>[]>((count + 63) / 64);
  if (hashed_ && count != 0) {
    prefixes_.assign(std::bit_ceil(components * 2 + 2), PrefixEntry{});
    for (u32 i = 0; i < count; ++i) {
      PathScan scan({order_[i]->path(), order_[i]->length}, cache_.keys());
      scan.next();
      for (u32 depth = 1; depth <= order_[i]->depth; ++depth) {
        const u64 hash = scan.prefix(depth - 1);
        std::size_t at = hash & (prefixes_.size() - 1);
        while (prefixes_[at].hash != 0 && prefixes_[at].hash != hash) at = (at + 1) & (prefixes_.size() - 1);
        if (prefixes_[at].hash == 0) prefixes_[at] = {hash, i, depth & 0xff, 0};
        prefixes_[at].behind = (i - prefixes_[at].pivot) & 0xffffff;  // kMost
      }
    }
  }
  disabled_from_.store(count, std::memory_order_release);
}

void PivotPool::unpin(Pivot& pivot) {
  if (!pivot.pinned) return;
  pivot.pinned = false;
  for (u32 i = 0; i < pivot.depth; ++i) cache_.unpin(*pivot.component(i).dentry.load(std::memory_order_relaxed));
}

void PivotPool::clean() {
  for (const auto& pivot : order_) unpin(*pivot);
  unfinished_.clear();
  overtaken_ = false;
  order_.clear();
  prefixes_.clear();
  first_ = Pivot::kEnd;
  disabled_from_.store(0, std::memory_order_relaxed);
}

// --- Invalidation ----------------------------------------------------------------------------------------------------

template <class Change>
void PivotPool::change(Change&& change) {
  changes_.fetch_add(1, std::memory_order_acq_rel);
  change();
  changes_.fetch_add(1, std::memory_order_release);
}

// @return how many of them were true. REQUIRES: in change(), or nobody finds in this pool yet.
u64 PivotPool::set_untrue(u32 from, u32 to) {
  u64 count = 0;
  for (u32 at = from; at < to;) {
    const u32 end = std::min(to, (at / 64 + 1) * 64);
    const u64 bits = (~u64{0} >> (64 - (end - at))) << at % 64;
    std::atomic<u64>& word = untrue_[at / 64];
    const u64 before = word.load(std::memory_order_relaxed);
    word.store(before | bits, std::memory_order_release);
    count += static_cast<u64>(std::popcount(bits & ~before));
    at = end;
  }
  return count;
}

// Which pivots are `path` or below it: they stand together, from the first to one behind the last. By the table it
// takes two looks; halving reads a dozen pivots that no look-up has read lately.
std::pair<u32, u32> PivotPool::below(std::string_view path) const {
  const auto starts = [&](const Pivot& pivot) {
    return pivot.text().starts_with(path) && (pivot.length == path.size() || pivot.path()[path.size()] == '/');
  };
  if (!prefixes_.empty()) {
    PathScan scan(path, cache_.keys());
    const PrefixEntry* const entry = probe(scan.prefix(scan.next() - 1));
    if (entry != nullptr && starts(*order_[entry->pivot])) return {entry->pivot, entry->pivot + entry->behind + 1};
  }
  const auto first = std::partition_point(order_.begin(), order_.end(),
                                          [&](const auto& pivot) { return ascending(pivot->text(), path); });
  const auto end = std::partition_point(first, order_.end(), [&](const auto& pivot) { return starts(*pivot); });
  return {static_cast<u32>(first - order_.begin()), static_cast<u32>(end - order_.begin())};
}

u64 PivotPool::invalidate(Dentry* place) {
  const auto count = static_cast<u32>(order_.size());
  u32 from = 0, to = count;
  if (place != nullptr) {
    // Its path is that of any pivot that has it for a component, and those are found by the path that it has now.
    Chain chain;
    if (!chain.build_path(cache_, *place)) return 0;
    std::tie(from, to) = below({chain.path, chain.length});
  }
  if (from == to) return 0;
  disabled_from_.store(from, std::memory_order_release);  // one store: this one and all behind it
  u64 invalid = 0;
  change([&] { invalid = set_untrue(from, to); });
  disabled_from_.store(count, std::memory_order_release);  // those that are not concerned serve again
  return invalid;
}

void PivotPool::invalidate_unfinished(Dentry* place) {
  for (Pivot* const pivot : unfinished_) {
    bool concerned = place == nullptr;
    for (u32 i = 0; i < pivot->depth && !concerned; ++i)
      concerned = pivot->component(i).dentry.load(std::memory_order_relaxed) == place;
    pivot->overtaken = pivot->overtaken || concerned;
    overtaken_ = overtaken_ || concerned;
  }
}

void PivotPool::settle() {
  if (!overtaken_) return;
  for (const Pivot* const pivot : unfinished_)
    if (pivot->overtaken) set_untrue(pivot->number, pivot->number + 1);
}

bool PivotPool::make_true(const Pivot& which, Dentry& target) {
  // Of a pool that serves no more: the number alone may be another's.
  if (which.number >= order_.size() || order_[which.number].get() != &which || is_true(which.number)) return false;
  Pivot& pivot = *order_[which.number];
  // The target may have got there by another way since it was found.
  if (!chain_->build(cache_, target) || chain_->depth != pivot.depth ||
      std::string_view(chain_->path, chain_->length) != pivot.text())
    return false;
  change([&] {
    unpin(pivot);
    take_way(pivot, *chain_);
    untrue_[which.number / 64].fetch_and(~(u64{1} << which.number % 64), std::memory_order_release);
  });
  return true;
}

void PivotPool::remove_invalid() {
  u32* link = &first_;
  u32 overlap = Pivot::kEnd;  // what the one to come shares with the last one that stays
  while (*link != Pivot::kEnd) {
    const u32 number = *link;
    Pivot& pivot = *order_[number];
    overlap = std::min(overlap, pivot.overlap);
    if (!is_true(number)) {
      __atomic_store_n(link, pivot.next, __ATOMIC_RELEASE);
      unpin(pivot);
      continue;
    }
    __atomic_store_n(&pivot.overlap, overlap, __ATOMIC_RELAXED);
    overlap = Pivot::kEnd;
    link = &pivot.next;
  }
}

u64 PivotPool::paths_not_in(const PivotPool& other) const {
  u64 news = 0, at = 0;
  for (const auto& pivot : order_) {
    while (at < other.size() && ascending(other[at].text(), pivot->text())) ++at;
    if (at == other.size() || other[at].text() != pivot->text() || (!hashed_ && !other.is_true(at))) news += 1;
  }
  return news;
}

}  // namespace pmfs::dcache
