// The cache as the file system sees it: paths go in, inode numbers come out; changes are told.
//
// Options choose the resolver and the memory. Without memory (bytes = 0) every step asks the file system: the same
// walk, no cache. A thread, started by the first call that needs it, ends the pivots' periods and resizes tables.
//   G1  Exact: each component's step takes effect at one instant within the call, instants in path order; components
//       that were skipped share one. A call that begins after a change has returned sees it.
//   G2  Nothing here is in a forked child's reach: the file system refuses before it calls (base/fork.h), and the child
//       forgets the object without destroying it.
// Thread rules: all functions from any thread.
#pragma once

#include <condition_variable>
#include <thread>

#include "dcache/fullpath.h"
#include "dcache/path_walk.h"
#include "dcache/stage.h"

namespace pmfs::dcache {

enum class ResolverKind : u8 { kWalk, kStage, kFullpath };

struct CacheOptions {
  u64 bytes = 0;  ///< bound on memory; 0: no cache
  ResolverKind resolver = ResolverKind::kStage;
  StageOptions stage;
};

struct CacheStatistics {
  u64 lookups = 0, steps = 0, misses = 0, negatives = 0, skipped = 0, pivot_hits = 0, whole_hits = 0, retries = 0,
      shared = 0;
  CacheSizes sizes;
  StageStatistics stage;
  FullpathStatistics fullpath;
};

/// A path of a batch, and what came of it.
struct BatchItem {
  std::string_view path;
  bool follow = true;
  Errc error{};  ///< 0: found
  const char* what = "";
  Found found;
  std::size_t number = 0;  ///< the caller's
};

class PathCache {
 public:
  PathCache(LookupSource& source, const CacheOptions& options) : source_(source), options_(options) {}
  ~PathCache();
  PathCache(const PathCache&) = delete;
  PathCache& operator=(const PathCache&) = delete;

  /// Makes the cache. While nobody else is here. @error kNoMemory: then it goes on without a cache.
  Result<void> start(u64 root_generation);

  /// @param start  where a relative path begins; not looked up, so nothing above it is checked.
  /// @param path   1 to kPathMax bytes, no zero byte.
  /// @error        kNotFound, kNotDirectory, kAccess, kLoop, kNameTooLong, kStale, kCorrupt.
  Result<Found> resolve(InodeNo start, std::string_view path, const Searcher& who, bool follow_last);
  Result<FoundParent> resolve_parent(InodeNo start, std::string_view path, const Searcher& who);
  Result<Found> resolve_each(InodeNo start, std::string_view path, const Searcher& who, bool follow_last,
                             const std::function<void(const Passed&)>& passed);
  /// Each item as resolve(); prefixes that paths share are walked once. Items have 1 to kPathMax bytes of path.
  void resolve_batch(InodeNo start, std::span<BatchItem> items, const Searcher& who);

  /// From now on every step asks the file system: what is cached may not be what the medium has.
  void bypass() { bypassed_.store(true, std::memory_order_relaxed); }

  /// Changes, as in dentry_cache.h. Nothing happens without a cache.
  DentryCache* changed() { return cache_.get(); }

  CacheStatistics statistics() const;
  std::vector<PivotFacts> pivots() const;
  /// Ends a pivot period now, and does what the thread would do. For tests and tools. REQUIRES: no lock.
  void maintain_now();
  /// Takes the samples of what was looked up, as the thread does some times in each period. For tests and tools.
  void drain_now();
  void set_period_ms(u32 period_ms);
  const CacheOptions& options() const { return options_; }
  DentryCache* cache() const { return cache_.get(); }

 private:
  ThreadBlock* counts();
  PathWalk walk(const Searcher& who);
  void want_thread();
  void serve();
  void maintain();

  LookupSource& source_;
  const CacheOptions options_;
  std::unique_ptr<DentryCache> cache_;
  std::unique_ptr<Resolver> resolver_;
  StageResolver* stage_ = nullptr;        // resolver_, if it is that
  FullpathResolver* fullpath_ = nullptr;  // resolver_, if it is that
  std::mutex period_mutex_;               // one end of a period at a time

  std::atomic<bool> bypassed_{false};
  std::atomic<bool> thread_wanted_{false};
  std::mutex thread_mutex_;
  std::condition_variable wake_;
  bool work_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace pmfs::dcache
