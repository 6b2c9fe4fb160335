// The pivot pool: pivots in ascending order, each with its overlap, and beside the list a table of all their prefixes.
//
//   K1  After finish() nothing in a pool changes but `disabled_from`, `removed` flags and the list's links, until it is
//       cleaned behind a grace period.
//   K2  A pivot that is below disabled_from and not removed is true now: what would make it untrue sets one of them
//       before it is visible. So who reads pivot, path and permissions and then finds it valid saw all of it at the
//       instant of that last look.
//   K3  Components are pinned while their pivot is in the list.
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

  /// Makes invalid what has `place` for a component, or everything (null). Call before the change is visible.
  /// @return how many pivots became invalid.
  u64 invalidate(Dentry* place);
  /// Takes the invalid ones out of the list, and unpins their components.
  void remove_invalid();

  u64 size() const { return order_.size(); }
  const Pivot& operator[](u64 i) const { return *order_[i]; }
  /// How many of its pivots are none of the other's.
  u64 paths_not_in(const PivotPool& other) const;

 private:
  struct PrefixEntry {
    u64 hash;  ///< 0: free
    u32 pivot;
    u32 depth;
  };

  u32 find_in_list(const PathScan& scan, u32 most, u32& pivot) const;
  u32 find_by_hash(const PathScan& scan, u32 most, u32& pivot) const;
  const PrefixEntry* probe(u64 hash) const;
  Prefix answer(u32 pivot, u32 depth, const Searcher& who) const;
  bool valid(u32 pivot) const {
    return !order_[pivot]->removed.load(std::memory_order_acquire) &&
           pivot < disabled_from_.load(std::memory_order_acquire);
  }
  void unpin(Pivot& pivot);

  DentryCache& cache_;
  const bool hashed_;
  std::vector<std::unique_ptr<Pivot>> order_;
  std::vector<PrefixEntry> prefixes_;  // open addressing, at most half full
  u32 first_ = Pivot::kEnd;            // the list's header
  std::atomic<u32> disabled_from_{0};
  std::unique_ptr<Chain> chain_;
};

}  // namespace pmfs::dcache
