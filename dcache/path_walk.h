// One path, walked component by component from where the resolver says, through the cache and past it.
//
//   W1  Each step (may the directory be searched, what does the name lead to) is made at one instant: under the
//       directory's sequence when the cache knows it, otherwise under the directory's lock. Instants are in path order.
//   W2  A step under the sequence is tried at most kTries times; then the file system is asked, under the lock.
//   W3  Symbolic links are followed as Linux does: 40 in one path, the last one if asked or if a slash follows.
// Source: POSIX.1-2017 4.13 Pathname Resolution; path_resolution(7).
#pragma once

#include <string>

#include "dcache/resolver.h"

namespace pmfs::dcache {

/// What a path leads to.
struct Found {
  InodeNo ino{};
  u64 generation = 0;
  u32 type = 0;  ///< S_IFMT bits
};

/// The directory of a path's last component, and that component.
struct FoundParent {
  InodeNo ino{};
  u64 generation = 0;
  std::string name;                ///< "." and ".." as given; empty: the path is the root itself
  bool must_be_directory = false;  ///< a slash follows the name
};

/// One component of a path: what resolve_components() reports.
struct Passed {
  std::string_view name;  ///< of a followed symbolic link's target: empty
  Found found;
};

class PathWalk {
 public:
  /// @param cache, resolver  null: every step asks the file system.
  PathWalk(LookupSource& source, DentryCache* cache, Resolver* resolver, ThreadBlock* counts, const Searcher& who)
      : source_(source), cache_(cache), resolver_(resolver), counts_(counts), who_(who) {}

  /// REQUIRES of all: a read section; 1 to kPathMax bytes of path without a zero byte.
  /// @param start  where a relative path begins.
  /// @error        kNotFound, kNotDirectory, kAccess, kLoop, kNameTooLong, kStale, kCorrupt.
  Result<Found> resolve(InodeNo start, std::string_view path, bool follow_last);
  Result<FoundParent> resolve_parent(InodeNo start, std::string_view path);
  /// As resolve(), and calls `passed` for each component as it is passed, links' targets included.
  Result<Found> resolve_each(InodeNo start, std::string_view path, bool follow_last,
                             const std::function<void(const Passed&)>& passed);

  static const HashKeys& keys_of(const DentryCache* cache);

 private:
  friend class BatchWalk;
  static constexpr int kTries = 3;
  static constexpr int kMaxLinks = 40;
  static constexpr int kGone = 16;  // how often a component is looked up again because what it led to was gone

  enum class Quick { kHit, kDenied, kAsk };
  // Where the walk stands. `dir` is null when the cache does not know it.
  struct Place {
    Dir* dir = nullptr;
    InodeNo ino{};
    u64 generation = 0;
  };
  // What a step led to. `dentry` is null when it is not in the cache.
  struct Reached {
    Dentry* dentry = nullptr;
    Dir* dir = nullptr;
    Target target;
  };

  Quick quick_step(const Dir& dir, const Component& c, Dentry*& out);
  Quick quick_up(const Dir& dir, bool to_parent, Dir*& out);
  Result<Place> place_of(InodeNo ino, bool start);
  Result<void> check_search(const Answer& answer) const;
  Result<Reached> step(const PathScan& scan, u32 at);
  Result<Reached> step_dots(bool to_parent);
  Result<Reached> ask(const Component& c);
  Result<void> check_beneath(std::string_view target) const;
  Result<void> follow(const Reached& link, const char* rest, const char* rest_end);
  Result<Found> known(const Prefix& all);
  Result<Found> run(InodeNo start, std::string_view path, bool follow_last, FoundParent* parent,
                    const std::function<void(const Passed&)>* passed);
  Place root() const;

  LookupSource& source_;
  DentryCache* cache_;
  Resolver* resolver_;
  ThreadBlock* counts_;
  const Searcher& who_;
  Place place_;
  InodeNo start_{};
  int links_ = 0;
  std::string text_;  // of the path with links followed; unused while there was none
};

inline PathWalk::Quick PathWalk::quick_step(const Dir& dir, const Component& c, Dentry*& out) {
  for (int tries = 0; tries < kTries; ++tries) {
    const u32 sequence = dir.sequence.load(std::memory_order_acquire);
    if ((sequence & 1) != 0) continue;
    const u32 mode = dir.mode.load(std::memory_order_acquire);
    if ((mode & (Dir::kUnknown | Dir::kRemoved | Dir::kHasAcl)) != 0) [[unlikely]]
      return Quick::kAsk;
    const bool allowed =
        may_search(mode, dir.uid.load(std::memory_order_acquire), dir.gid.load(std::memory_order_acquire), who_);
    out = cache_->find(&dir, c);
    // What was read stands before this load: acquire loads, and a call that the compiler does not see through.
    if (dir.sequence.load(std::memory_order_acquire) != sequence) [[unlikely]] {
      counts_->count(Count::kRetries);
      continue;
    }
    if (!allowed) return Quick::kDenied;
    return out != nullptr ? Quick::kHit : Quick::kAsk;
  }
  return Quick::kAsk;
}

}  // namespace pmfs::dcache
