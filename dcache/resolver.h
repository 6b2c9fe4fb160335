// What the three resolvers have in common: each may know a whole prefix of a path, so that the walk begins behind it.
//   walk      knows none.
//   stage     knows pivots, and with each all of its ancestors (stage.h).
//   fullpath  knows whole paths (fullpath.h).
#pragma once

#include "dcache/dentry_cache.h"
#include "dcache/path_scan.h"

namespace pmfs::dcache {

struct Pivot;

/// A prefix that needs no walk.
struct Prefix {
  u32 components = 0;        ///< how many; 0: none, begin at the root
  Dentry* dentry = nullptr;  ///< the last of them; may be negative
  bool denied = false;       ///< one of the directories on the way may not be searched
  /// With components == 0: whole() knows the path, but not what it leads to now. arrived() gets it back.
  const Pivot* untrue = nullptr;
};

class Resolver : public CacheWatcher {
 public:
  /// The whole path, if it is known as it is written, all of it true at one instant of the call: then it need not even
  /// be cut into components. Asked first. REQUIRES: a read section. `scan` has cut nothing yet, and its path begins
  /// with a slash and has more than that.
  virtual Prefix whole(PathScan& scan, const Searcher& who, ThreadBlock& counts) = 0;

  /// The longest prefix it knows, of at most `most` components, all of it true at one instant of the call.
  /// REQUIRES: a read section. `scan` is canonical and begins at the root.
  virtual Prefix begin(const PathScan& scan, u32 most, const Searcher& who, ThreadBlock& counts) = 0;

  /// A look-up has found its target by canonical components alone, `count` of them from the root; `skipped` were known.
  /// @param untrue  what whole() said of the same path in this read section.
  /// REQUIRES: a read section.
  virtual void arrived(u32 count, u32 skipped, const Pivot* untrue, Dentry& target, ThreadBlock& counts) = 0;
};

class WalkResolver final : public Resolver {
 public:
  Prefix whole(PathScan&, const Searcher&, ThreadBlock&) override { return {}; }
  Prefix begin(const PathScan&, u32, const Searcher&, ThreadBlock&) override { return {}; }
  void arrived(u32, u32, const Pivot*, Dentry& target, ThreadBlock& counts) override {
    counts.sample(target.slot, target.serial);  // what is looked up stays in the cache
  }
};

}  // namespace pmfs::dcache
