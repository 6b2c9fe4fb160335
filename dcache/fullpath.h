// The rival: a table from whole canonical paths to dentries. A look-up is one hash over the path and one probe.
//
//   F1  An entry is made under the cache's mutex, from the way that the dentry has then, with the permissions on it.
//   F2  Whatever changes the path to a dentry, or a permission on that way, first takes out the entries of everything
//       below: the price of a rename or chmod of a directory is proportional to what is cached there. (The paper's
//       rival raises a version in each dentry below; here that version is the entry's `alive`.)
//   F3  An entry that is alive after it was read was true at that instant.
// For that every Dir has a list of its children here, linked through them. Nothing else needs it, and it exists only
// under this resolver.
// Source: Tsai et al., How to Get More Value From Your File System Directory Cache (SOSP 2015), as Stage Lookup
// compares itself with it.
#pragma once

#include "dcache/chain.h"
#include "dcache/resolver.h"

namespace pmfs::dcache {

struct alignas(64) PathEntry {
  static constexpr std::size_t kText = 32;

  RcuNode node;
  u64 hash;  ///< of the whole path
  Dentry* dentry;
  u32 length;  ///< of the path
  u32 depth;
  std::atomic<u32> alive;
  u32 open_to;  ///< as in SearchRules
  u32 rules;    ///< 0 or 1: what the directories that are not open ask, if they all ask the same
  u32 mode, uid, gid;
  Slot more;  ///< where the path goes on
  Slot slot;
  char text[kText];
  RcuHead head;
};
static_assert(sizeof(PathEntry) == kSlotBytes);

struct FullpathStatistics {
  u64 entries = 0;
  u64 invalidations = 0;  ///< changes that had to look below
  u64 visited = 0;        ///< dentries they looked at
};

class FullpathResolver final : public Resolver {
 public:
  /// @return null: no memory. @param most  entries, to size the table's address space.
  static std::unique_ptr<FullpathResolver> make(DentryCache& cache, u64 most);
  ~FullpathResolver() override;

  Prefix whole(PathScan& scan, const Searcher& who, ThreadBlock& counts) override;
  Prefix begin(const PathScan& scan, u32 most, const Searcher& who, ThreadBlock& counts) override;
  void arrived(u32 count, u32 skipped, const Pivot* untrue, Dentry& target, ThreadBlock& counts) override;
  void added(Dentry& dentry) override;
  void leaves(Dentry& dentry) override;
  void changes_below(Dentry* place) override;

  bool should_maintain() const { return paths_->should_resize(); }
  void maintain() { paths_->resize(); }
  FullpathStatistics statistics() const;

 private:
  struct Key {
    u64 hash;
    const Arena* arena;
    std::string_view text;
  };
  struct SamePath {
    static bool equal(const RcuNode* node, const Key& key);
  };

  FullpathResolver(DentryCache& cache, std::unique_ptr<RcuTable> paths) : cache_(cache), paths_(std::move(paths)) {}

  Prefix find(u64 hash, std::string_view text, const Searcher& who, ThreadBlock& counts) const;
  void insert(Dentry& target);
  void drop_entry(Dentry& dentry);
  void drop_below(Dir& top);
  static void run_free_entry(RcuHead* head, void* cache);

  DentryCache& cache_;
  std::unique_ptr<RcuTable> paths_;
  FullpathStatistics statistics_;  // under the cache's mutex
  Chain chain_;                    // the same
};

}  // namespace pmfs::dcache
