// The pivot pool: pivots in ascending order, each with its overlap, and beside the list a table of all their prefixes.
//
//   K1  After finish() the paths in a pool stay what they are until it is cleaned, behind a grace period. What changes
//       is `disabled_from`, which pivots are untrue, an untrue one's dentries and rules, and the list's links. Which
//       are untrue is a bit for each: a change may concern all of them, and writes few lines.
//   K2  A pivot below disabled_from that is not untrue is true now: what would make it untrue says so before it is
//       visible. `changes_` is odd while that changes, or dentries and rules do. So who reads `changes_`, all he needs,
//       and then the same even `changes_` saw all of it at the instant of that last look.
//   K3  Components are pinned while their pivot is in the list; with the table, until it is made true with others, or
//       cleaned. So what a pivot points to is a dentry, though perhaps one that has left the cache.
// Two ways to find the best pivot: the paper's, one pass over the list in which the path is compared once; and by the
// hash of each prefix of the path, which costs the same for sixteen pivots and for thousands.
// Thread rules: find in a read section; everything else under the cache's mutex.
// Source: Stage Lookup, sections III.B and III.D. The hashed form is not in the paper.
#pragma once

#include <vector>

#include "dcache/pivot.h"
#include "dcache/resolver.h"

namespace pmfs::dcache {

class PivotPool {
 public:
  static constexpr u32 kMost = 1u << 20;  ///< pivots

  /// @param hashed  find by prefix hash; else by the list.
  explicit PivotPool(DentryCache& cache, bool hashed) : cache_(cache), hashed_(hashed) {}
  PivotPool(const PivotPool&) = delete;
  PivotPool& operator=(const PivotPool&) = delete;

  /// @return how much of the path a pivot makes unnecessary. REQUIRES: finished.
  Prefix find(const PathScan& scan, u32 most, const Searcher& who) const;
  /// The same for all of a path that is not cut yet, by its hash alone.
  Prefix find_whole(PathScan& scan, const Searcher& who) const;

  // --- Building: only while nobody finds in it. ---
  void reserve(u64 pivots);
  /// Adds the way to `target`, and pins its components. @return false: it cannot be a pivot, see Chain::build.
  bool add(Dentry& target, u32 heat);
  /// Sorts, links and hashes.
  void finish();
  /// Unpins everything and empties it.
  void clean();

  // --- Invalidation ---

  /// Makes untrue what has `place` for a component, or everything (null). Call before the change is visible.
  /// @return how many pivots became so.
  u64 invalidate(Dentry* place);
  /// The same for a pool that is being built, whose pivots are in no order yet. settle() makes them untrue.
  void invalidate_unfinished(Dentry* place);
  void settle();
  /// Takes the untrue ones out of the list.
  void remove_invalid();
  /// Makes an untrue one true again, if it is this pool's and its path leads to `target` now. @return whether it does.
  bool make_true(const Pivot& pivot, Dentry& target);

  u64 size() const { return order_.size(); }
  const Pivot& operator[](u64 i) const { return *order_[i]; }
  bool is_true(u64 i) const { return (untrue_[i / 64].load(std::memory_order_acquire) >> i % 64 & 1) == 0; }
  /// How many of its pivots are none of the other's. In a list, an untrue one is none.
  u64 paths_not_in(const PivotPool& other) const;

 private:
  struct PrefixEntry {
    u64 hash;   ///< 0: free
    u32 pivot;  ///< the first with that prefix
    u32 depth : 8;
    u32 behind : 24;  ///< how many that have it, too, stand behind
  };

  u32 find_in_list(const PathScan& scan, u32 most, u32& pivot) const;
  u32 find_by_hash(const PathScan& scan, u32 most, u32& pivot) const;
  const PrefixEntry* probe(u64 hash) const;
  std::pair<u32, u32> below(std::string_view path) const;
  Prefix answer(u32 pivot, u32 depth, const Searcher& who) const;
  template <class Change>
  void change(Change&& change);
  u64 set_untrue(u32 from, u32 to);
  Pivot& make_pivot(const Chain& chain, u32 heat);
  void take_way(Pivot& pivot, const Chain& chain);
  void unpin(Pivot& pivot);

  DentryCache& cache_;
  const bool hashed_;
  std::vector<std::unique_ptr<Pivot>> order_;
  std::vector<Pivot*> unfinished_;      // the same in the order in which they came, while the pool is built
  bool overtaken_ = false;              // some of these are
  std::unique_ptr<std::atomic<u64>[]> untrue_;  // a bit for each pivot: a component of it has changed
  std::atomic<u64> changes_{0};                 // odd: pivots are changing
  std::vector<PrefixEntry> prefixes_;  // open addressing, at most half full
  u32 first_ = Pivot::kEnd;            // the list's header
  std::atomic<u32> disabled_from_{0};
  std::unique_ptr<Chain> chain_;
};

}  // namespace pmfs::dcache
