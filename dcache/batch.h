// Many paths in one call, in any order.
//
//   B1  Each result is exact as that of a single call; its instants lie within the batch's call.
//   B2  The directory that a path's last component stands in is walked to once for all paths that share it: a table on
//       the side leads from the prefix's hash, and its text, to the directory.
//   B3  Paths are taken in groups: first every path of a group is cut and its directory found, and the place of its
//   last
//       component in the table of dentries is asked for; then they are looked up. So the waits for memory overlap.
#pragma once

#include <memory>

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
  };
  struct Pending {
    BatchItem* item;
    Dir* dir;  // null: to be walked alone
    Component last;
    bool trailing_slash;
  };

  void resolve_alone(InodeNo start, BatchItem& item);
  bool prepare_known(const BatchItem& item, Pending& pending);
  void prepare(InodeNo start, BatchItem& item, Pending& pending);
  void finish(InodeNo start, Pending& pending);

  LookupSource& source_;
  DentryCache* cache_;
  Resolver* resolver_;
  ThreadBlock* counts_;
  const Searcher& who_;
  u32 memo_mask_ = 0;
  std::unique_ptr<Memo[]> memo_;  // written as far as it is used
};

}  // namespace pmfs::dcache
