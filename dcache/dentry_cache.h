// The dentry cache: names of directories, and what they lead to, present or absent.
//
// What it owns: the table of dentries, the table of Dirs, the arena both lie in, and what waits for a grace period.
//   C1  What is in the tables is true, or becomes so before the change that made it untrue returns. A name is put in
//       under the shared lock of its directory (lookup.h, L4), a change is told under the exclusive lock.
//   C2  A look-up that finds what it needs stores to nothing here.
//   C3  Changes are one after the other, under `mutex_`. It is held for a few hundred instructions, and nothing is
//   waited
//       for meanwhile, with one exception: under the fullpath resolver a change visits all that lies below.
//   C4  Memory: arena and tables stay within the bound, what waits for a grace period included. When there is no room
//       and nothing can go, what was found is not remembered.
//   C5  Eviction takes a dentry that no other has for its parent, no pivot or candidate pins, and whose mark is 0. What
//       was looked up since the hand last passed has a mark.
// Thread rules: find functions in a read section; changes where they say; all from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "dcache/arena.h"
#include "dcache/statistics.h"

namespace pmfs::dcache {

/// Who wants to know what changes: a resolver. All functions are called under the cache's mutex.
class CacheWatcher {
 public:
  virtual ~CacheWatcher() = default;
  /// A dentry has come.
  virtual void added(Dentry&) {}
  /// A dentry is about to leave, the change or the eviction that takes it not yet visible.
  virtual void leaves(Dentry&) {}
  /// The path to everything below, or a permission on the way there, is about to change. `place` is null: of the root.
  virtual void changes_below(Dentry* place) { (void)place; }
  /// It was the target of a look-up.
  virtual void looked_up(Dentry&) {}
};

struct CacheSizes {
  u64 bytes = 0;  ///< in use now: arena and tables
  u64 limit = 0;
  u64 positive = 0;
  u64 negative = 0;
  u64 directories = 0;
  u64 evictions = 0;
  u64 deferred = 0;  ///< slots that wait for a grace period
  u64 not_remembered = 0;
};

class DentryCache {
 public:
  /// @param bytes  the bound on memory; at least 64 KiB.
  /// @return       null: no memory.
  static std::unique_ptr<DentryCache> make(u64 bytes, u64 root_generation);
  ~DentryCache();
  DentryCache(const DentryCache&) = delete;
  DentryCache& operator=(const DentryCache&) = delete;

  /// Set once, before use.
  void watch(CacheWatcher* watcher) { watcher_ = watcher; }

  const HashKeys& keys() const { return keys_; }
  Dir* root() const { return root_; }
  ThreadBlocks& threads() { return threads_; }

  // --- Finding. REQUIRES: a read section. ---

  /// @return null: not known.
  Dentry* find(const Dir* dir, const Component& c) const {
    const Key key{dir, &c};
    RcuNode* const node = names_->find<SameName>(table_hash(c, dir->seed), key);
    return reinterpret_cast<Dentry*>(node);
  }
  Dir* find_dir(InodeNo ino) const;
  /// Goes ahead of find(): see RcuTable::Ahead.
  void start_ahead(RcuTable::Ahead& ahead, const Dir* dir, const Component& c) const {
    ahead.start(*names_, table_hash(c, dir->seed));
  }

  // --- Remembering what was read. REQUIRES: the directory's lock, at least shared; a read section. ---

  /// Puts in what `answer` says: the directory itself, and under `c` what it leads to. @param c  null: only the former.
  /// @return the directory; null: not remembered.
  Dir* remember(const Answer& answer, const Component* c);

  // --- Changes. REQUIRES: the exclusive locks of all inodes named; the change is durable; no read section. ---

  void name_added(InodeNo dir, std::string_view name, const Target& target);
  /// @param target  what it led to; a directory exists no more.
  void name_removed(InodeNo dir, std::string_view name, const Target& target);
  /// @param victim    what was at the new name and has lost it; null: nothing was. A directory exists no more, unless
  /// @param exchange  it now has the old name.
  void renamed(InodeNo from, std::string_view from_name, const Target& moved, InodeNo to, std::string_view to_name,
               const Target* victim, bool exchange);
  void permission_changed(InodeNo dir, const Permission& now);

  // --- For resolvers ---

  std::mutex& mutex() { return mutex_; }
  Arena& arena() const { return *arena_; }
  RcuDefer& defer() { return defer_; }
  /// Takes or gives back a pin. REQUIRES: the mutex.
  void pin(Dentry& dentry) { dentry.links.pins += 1; }
  void unpin(Dentry& dentry);
  /// Whether a pair of slot and serial still means a dentry that is in the table. REQUIRES: the mutex.
  Dentry* still_there(Slot slot, u32 serial) const;
  /// A slot for a resolver's own use, after eviction if need be; 0: none. REQUIRES: the mutex.
  Slot take_slot(SlotKind kind);

  /// Frees what has left its table, behind a grace period: `run`, which gets this cache, takes the mutex and calls
  /// free_now(). REQUIRES of both: the mutex.
  void free_later(RcuHead& head, void (*run)(RcuHead*, void*)) {
    deferred_ += 1;
    defer_.defer(head, run, kSlotBytes);
  }
  void free_now(Slot slot, Slot more);

  /// Takes the samples of all threads: what was looked up is marked, and the watcher told. REQUIRES: the mutex.
  void drain_samples();

  /// Whether tables should be resized, and doing it. One caller at a time; waits for a grace period (rcu.h, U3).
  bool should_maintain() const { return names_->should_resize() || dirs_->should_resize(); }
  void maintain();
  /// Called when should_maintain() becomes true, here or in the resolver. Set once, before use.
  void on_maintenance(std::function<void()> wake) { wake_ = std::move(wake); }
  void ask_for_maintenance() {
    if (wake_) wake_();
  }

  CacheSizes sizes() const;

 private:
  static constexpr u8 kHot = 3;

  struct Key {
    const Dir* dir;
    const Component* name;
  };
  struct SameName {
    static bool equal(const RcuNode* node, const Key& key);
  };
  struct SameIno {
    static bool equal(const RcuNode* node, const InodeNo& ino);
  };
  class Changing;

  DentryCache(std::unique_ptr<Arena> arena, std::unique_ptr<RcuTable> names, std::unique_ptr<RcuTable> dirs, u64 limit);

  Dir* dir_for(InodeNo ino, u64 generation);
  void learn_permission(Dir& dir, const Permission& now);
  Dentry* add(Dir& dir, const Component& c, const Target* target);
  void take_out(Dentry& dentry);
  void take_out_name(Dir& dir, const Component& c);
  void unlist(Dir& dir);
  void drop_child(Dir& dir);
  void leave(Dentry& dentry);
  void free_dir(Dir& dir);
  void evict(u64 want);
  bool evict_one(Slot slot);
  bool make_room(u64 slots);
  static void run_free_dentry(RcuHead* head, void* cache);
  static void run_free_dir(RcuHead* head, void* cache);

  const u64 limit_;
  HashKeys keys_;
  std::unique_ptr<Arena> arena_;  // guarded by mutex_; before the tables, which are ended first
  std::unique_ptr<RcuTable> names_;
  std::unique_ptr<RcuTable> dirs_;
  Dir* root_ = nullptr;
  CacheWatcher* watcher_ = nullptr;
  std::function<void()> wake_;

  mutable std::mutex mutex_;
  Slot hand_ = 1;  // guarded by mutex_, as the rest
  u64 positive_ = 0, negative_ = 0, directories_ = 0, evictions_ = 0, deferred_ = 0, not_remembered_ = 0;
  u64 seeds_ = 0;

  ThreadBlocks threads_;
  RcuDefer defer_{this};  // last: its end runs what waits
};

}  // namespace pmfs::dcache
