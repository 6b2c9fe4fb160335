// A pivot: a popular place, its path, and the dentry of each of its components, so that a walk can begin at it or roll
// up to any of its ancestors. Source: Stage Lookup, section III (pivots, figure 5).
#pragma once

#include <atomic>
#include <memory>

#include "dcache/chain.h"

namespace pmfs::dcache {

struct PivotComponent {
  std::atomic<Dentry*> dentry;
  u32 end;    ///< where it ends in the pivot's path
  u32 depth;  ///< 1: right below the root
};

struct Pivot {
  static constexpr u32 kComponents = 8;      ///< in the pivot itself; deeper ones go on in `more`
  static constexpr std::size_t kPath = 208;  ///< in the pivot itself; longer ones lie apart
  struct More {
    PivotComponent components[Chain::kMost - kComponents];
  };

  u32 overlap = 0;                   ///< components shared with the pivot before it in the list
  u32 depth = 0;                     ///< components
  u32 length = 0;                    ///< of the path, which begins with the first component's name
  u32 next = 0;                      ///< in the list, by number; kEnd: none
  u32 heat = 0;                      ///< what it had when it became a pivot
  u32 number = 0;                    ///< in its pool
  // Guarded by the cache's mutex.
  bool pinned = false;     ///< its components are
  bool overtaken = false;  ///< a component of it has changed before its pool was finished
  PivotComponent components[kComponents];
  std::unique_ptr<More> more;
  SearchRules rules;
  std::unique_ptr<char[]> long_path;
  char short_path[kPath];

  static constexpr u32 kEnd = ~u32{0};

  const char* path() const { return long_path != nullptr ? long_path.get() : short_path; }
  std::string_view text() const { return {path(), length}; }
  const PivotComponent& component(u32 i) const {
    return i < kComponents ? components[i] : more->components[i - kComponents];
  }
  PivotComponent& component(u32 i) { return i < kComponents ? components[i] : more->components[i - kComponents]; }
};

}  // namespace pmfs::dcache
