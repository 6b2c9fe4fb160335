// Many paths in one call, in any order.
//
//   B1  Each result is exact as that of a single call; its instants lie within the batch's call.
//   B2  A directory is walked to once for all paths that go through it: a table on the side leads from a prefix's hash,
//       and its text, to the directory.
//   B3  Paths are taken in groups, and all of a group make their next step together: for each, the lines that finding
//       the component reads are asked for one after the other, and only then is it found. So the waits for memory
//       overlap. Not even pivots save more. The first groups are small: they find what the others share.
//   B4  What is not a plain path of known names (links, dots, what is not cached, what is denied) is walked alone.
#pragma once

#include <memory>
#include <optional>

#include "dcache/path_cache.h"

namespace pmfs::dcache {

class BatchWalk {
 public:
  BatchWalk(LookupSource& source, DentryCache* cache, Resolver* resolver, ThreadBlock* counts, const Searcher& who)
      : source_(source), cache_(cache), resolver_(resolver), counts_(counts), who_(who) {}

  void resolve(InodeNo start, std::span<BatchItem> items);

 private:
  static constexpr u32 kGroup = 16;
  static constexpr u32 kMemo = 1024;      // prefixes remembered at most; a power of two
  static constexpr std::size_t kFew = 3;  // so many paths have next to nothing to share

  struct Memo {
    u64 prefix;
    std::string_view text;  // canonical
    Dir* dir;
    u32 components;
    bool relative;  // to the start, and that is not the root
  };
  // A path on its way.
  struct Pending {
    BatchItem* item;
    Dir* dir;  // where it stands; null: to be walked alone
    Component next;
    u32 left;  // components behind `next`
    bool trailing_slash;
    RcuTable::Ahead ahead;  // of the look-up of `next`
  };

  void resolve_alone(InodeNo start, BatchItem& item);
  void resolve_group(InodeNo start, std::span<BatchItem> items);
  bool relative(const BatchItem& item) const { return item.path[0] != '/' && start_ != cache_->root(); }
  Dir* remembered(u64 prefix, std::string_view text, bool relative);
  bool prepare_known(const BatchItem& item, Pending& pending);
  void prepare(BatchItem& item, Pending& pending, std::optional<PathScan>& scanned);
  void step(Pending& pending, const PathScan& scan);
  void finish(InodeNo start, Pending& pending);

  LookupSource& source_;
  DentryCache* cache_;
  Resolver* resolver_;
  ThreadBlock* counts_;
  const Searcher& who_;
  Dir* start_ = nullptr;  // of relative paths; null: not known
  u32 memo_mask_ = 0;
  std::unique_ptr<Memo[]> memo_;  // written as far as it is used
  std::optional<PathScan>* scans_ = nullptr;  // of the group's paths
};

}  // namespace pmfs::dcache
