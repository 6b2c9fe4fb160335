// The candidate set: what may become a pivot at the end of the period, and the heat of what is looked up.
//
// Heat Counter: the target of a look-up gets one more; what was only passed gets nothing. A heat counts while its
// version is the global one, and begins anew otherwise. `least_popular_cand` is replaced by a target whose heat exceeds
// its heat by more than the threshold. When a candidate's own heat grows it is compared with least_popular_cand, and
// the loser is least_popular_cand from then on. So that one is not strictly the least popular, and finding it costs
// nothing. Thread rules: all under the cache's mutex. The set is linked through the dentries. Source: Stage Lookup,
// section III.C.
#pragma once

#include "dcache/dentry_cache.h"

namespace pmfs::dcache {

class CandidateSet {
 public:
  CandidateSet(DentryCache& cache, u32 capacity) : cache_(cache), capacity_(capacity) {}

  /// The rule above, for one look-up of `target`.
  void looked_up(Dentry& target);
  /// It leaves the table, or a new round begins: it is no candidate any more.
  void remove(Dentry& dentry);
  void clear();
  /// A new round: every heat begins anew. The overdue candidates go.
  void next_version() { version_ += 1; }

  u32 size() const { return size_; }
  u32 capacity() const { return capacity_; }
  void set_capacity(u32 capacity) { capacity_ = capacity; }
  u32 threshold() const { return threshold_; }
  void set_threshold(u32 threshold) { threshold_ = threshold; }
  u32 version() const { return version_; }
  u64 replaced() const { return replaced_; }  ///< how often, ever, a newcomer took a candidate's place
  Dentry* least_popular() const { return least_popular_cand_; }

  template <class Visit>
  void each(Visit&& visit) const {
    for (Slot slot = first_; slot != 0;) {
      Dentry* const dentry = cache_.arena().as<Dentry>(slot);
      slot = dentry->links.next;
      visit(*dentry);
    }
  }

 private:
  void insert(Dentry& dentry);

  DentryCache& cache_;
  u32 capacity_;
  u32 size_ = 0;
  u32 threshold_ = 1;
  u32 version_ = 1;
  u64 replaced_ = 0;
  Slot first_ = 0;
  Dentry* least_popular_cand_ = nullptr;
};

}  // namespace pmfs::dcache
