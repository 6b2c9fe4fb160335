// Stage Lookup: stage one finds the best pivot for a path, stage two walks from there.
//
//   S1  Two pools take turns. One serves; the manager fills the other, then they change places, and the old one is
//       cleaned behind a grace period.
//   S2  A change that concerns a component of a pivot, in either pool, makes the pivots below it untrue before it is
//       visible. A change that concerns no component of a pivot touches neither pool.
//   S3  With the list, as in the paper: a change makes the waiting pool untrue as a whole, so there is no change of
//       places in that period; and untrue pivots leave the list, behind a grace period.
//   S4  With the table: untrue pivots stay where they are, and the next look-up of one that still finds something at
//       its path makes it true again.
// Heat: look-ups leave samples in their thread's own block, and the manager applies the paper's rule to each. With
// heat_inline the look-up applies it itself, as the paper has it: that writes shared memory.
// Source: Stage Lookup (NOTICE), section III. README.md compares part by part.
#pragma once

#include "dcache/candidate_set.h"
#include "dcache/pivot_pool.h"

namespace pmfs::dcache {

struct StageOptions {
  u32 pivots = 1024;         ///< how many at most
  bool hashed = true;        ///< find them by prefix hash; false: the paper's list
  bool heat_inline = false;  ///< the look-up counts heat itself
  bool adaptive = true;      ///< period and threshold follow what happens; false: they stay as set
  u32 period_ms = 2000;
  u32 threshold = 1;
};

struct PivotFacts {
  std::string path;
  u32 heat = 0;
  u32 overlap = 0;
};

struct StageStatistics {
  u64 pivots = 0;
  u64 candidates = 0;
  u64 swaps = 0;          ///< how often the pools changed places
  u64 skipped_swaps = 0;  ///< periods without, because of an invalidation
  u64 periods = 0;
  u64 invalidations = 0;  ///< changes that concerned a pivot
  u64 invalidated = 0;    ///< pivots that became untrue by them
  u64 revived = 0;        ///< pivots that became true again
  u32 period_ms = 0;
  u32 threshold = 0;
};

class StageResolver final : public Resolver {
 public:
  StageResolver(DentryCache& cache, const StageOptions& options);
  ~StageResolver() override;

  Prefix whole(PathScan& scan, const Searcher& who, ThreadBlock& counts) override;
  Prefix begin(const PathScan& scan, u32 most, const Searcher& who, ThreadBlock& counts) override;
  void arrived(u32 count, u32 skipped, const Pivot* untrue, Dentry& target, ThreadBlock& counts) override;
  void leaves(Dentry& dentry) override;
  void changes_below(Dentry* place) override;
  void looked_up(Dentry& dentry) override { candidates_.looked_up(dentry); }

  /// One period's end: candidates become pivots, the pools change places, a new round of heat begins.
  /// One caller at a time. REQUIRES: no read section, no lock (it waits for a grace period). @return whether they did.
  bool end_period();

  u32 period_ms() const { return period_ms_.load(std::memory_order_relaxed); }
  void set_period_ms(u32 period_ms);
  StageStatistics statistics() const;
  std::vector<PivotFacts> pivots() const;

 private:
  struct Removal {
    RcuHead head;
    StageResolver* stage;
    bool under_way = false;
  };
  static void run_removal(RcuHead* head, void* context);
  void invalidate(Dentry* place);
  void make_true(const Pivot& pivot, Dentry& target);
  void fill_waiting();
  void adapt(bool much_changed);

  DentryCache& cache_;
  const StageOptions options_;
  std::atomic<PivotPool*> serving_;
  std::unique_ptr<PivotPool> pools_[2];

  // Under the cache's mutex.
  CandidateSet candidates_;
  PivotPool* waiting_;
  bool building_ = false;      // the waiting pool is being filled
  bool waiting_valid_ = true;  // S3
  bool invalidated_ = false;   // in this period
  Removal removal_;
  StageStatistics statistics_;
  u64 replaced_before_ = 0;
  std::atomic<u32> period_ms_;
};

}  // namespace pmfs::dcache
