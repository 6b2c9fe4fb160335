// The way from the root to a dentry: its canonical path, the dentry of each component, and what the directories on the
// way ask of who passes.
#pragma once

#include "dcache/dentry_cache.h"

namespace pmfs::dcache {

/// What all directories above some component ask. Equal words are kept once, so most ways have one or two rules.
struct SearchRules {
  static constexpr u32 kMost = 4;
  struct Rule {
    u32 mode, uid, gid;
    u32 from;  ///< needed by who passes more components than this
  };
  Rule rules[kMost];
  u32 count = 0;
  u32 open_to = 0;  ///< so many components are behind directories that everybody may search

  /// @return false: there is no room for another rule.
  bool add(u32 depth, u32 mode, u32 uid, u32 gid);
  /// Whether `who` may pass `components` of them.
  /// While another thread calls become(), some answer; the caller finds out by other means that it was none.
  bool may_pass(u32 components, const Searcher& who) const {
    if (components <= see(open_to) || who.may_all) return true;
    const u32 there = see(count);
    for (u32 i = 0; i < there && see(rules[i].from) < components; ++i)
      if (!may_search(see(rules[i].mode), see(rules[i].uid), see(rules[i].gid), who)) return false;
    return true;
  }
  /// Takes the words of another one, while others may read.
  void become(const SearchRules& other);

 private:
  // Acquire: what is read later is at least as new.
  static u32 see(const u32& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }
};

struct Chain {
  static constexpr u32 kMost = PathScan::kMost;
  u32 depth = 0;
  Dentry* dentries[kMost];
  u32 ends[kMost];  ///< where each component ends in `path`
  SearchRules rules;
  u32 length = 0;
  char path[kPathMax + 1];  ///< without a leading slash

  /// Fills it in. REQUIRES: the cache's mutex.
  /// @return false: not every directory up to the root is known, or one has an ACL, or it is deeper than kMost.
  bool build(const DentryCache& cache, Dentry& target);
  /// The same without the rules.
  bool build_path(const DentryCache& cache, Dentry& target);
};

/// Copies a dentry's name. @return its end.
char* copy_name(const Arena& arena, const Dentry& dentry, char* to);

}  // namespace pmfs::dcache
