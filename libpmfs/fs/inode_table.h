// Inodes in DRAM: who is locked, who holds what, which slots are free; and the growing inode file.
//
// What it owns: one InodeState for each inode in use by somebody now (and some that were lately), the free slots, and
// the inode file's own lock.
//   I1  An InodeState exists while anybody has an InodeRef to it, holds or pins its inode, or its last change is not
//       retired (R3).
//   I2  An inode whose last name is gone is free on the medium at once. Its slot and blocks stay out of reach here
//   until
//       the last hold goes; then they enter the quarantine. That stores nothing in the pool.
//   I3  `dead` is set under the exclusive lock; whoever gets the lock afterwards answers kStale.
//   I4  Slots of a grown inode file are handed out only after the commit that grew it.
//   I5  A slot is not handed out again while anybody has an InodeRef to it: he found it by its name, and must find it
//   dead.
//   I6  The memory of a state stays one as long as the table: it may become another inode's, and then its version
//       changes. So peek() needs neither lock nor reference. Who asks the version, then whose it is, then reads, then
//       asks the version again, has read of that inode.
// LOCK order: rename mutex, inode locks in inode order, inode file lock (a new inode's lock is only tried: nobody waits
// for it), then the table's and the allocator's own mutexes
// (held for a few instructions, never while another is waited for). DESIGN.md "LOCKS".
#pragma once

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/commit.h"
#include "base/quarantine.h"
#include "fs/extent_map.h"
#include "fs/format.h"
#include "pmfs/pmfs.hpp"

namespace pmfs {

class InodeTable;

/// Words that say what a directory is and where its leaves are. The others change with each entry: readers of entries
/// need not start again for them.
inline constexpr u64 kShapeWords =
    1u << offsetof(media::Inode, state_gen) / 8 | 1u << offsetof(media::Inode, mode_links) / 8 |
    1u << offsetof(media::Inode, uid_gid) / 8 | 1u << offsetof(media::Inode, map_root) / 8 |
    1u << offsetof(media::Inode, parent) / 8 | 1u << offsetof(media::Inode, rdev_index) / 8;

/// The DRAM side of an inode. Members are guarded by `lock` unless stated.
struct alignas(kLineBytes) InodeState {
  // The first line is what readers without locks need. Whose it is changes only while nobody refers to it.
  Version version;               // of all words of the inode
  Version shape;                 // of those that look-ups in a directory need: kShapeWords
  std::atomic<i64> atime_ns{0};  // a newer access time, not yet in the inode; 0: none. Set under the shared lock
  InodeNo ino{};                 // kNoInode: nobody's
  media::Inode* media = nullptr;

  alignas(kLineBytes) std::shared_mutex lock;
  ChangeMark last;          // the commit that changed it last
  bool dead = false;        // freed, and nobody holds it: only the number is left
  bool times_lazy = false;  // times were stored without a record and not flushed
  ChangeMark atime_logged;  // the commit that last logged the atime word

  // Directories: where a new entry will probably fit, if there is no index. Which index root was looked at and found
  // good, and which one found damaged (0: none): set under the shared lock too.
  u64 hint_logical = 0;
  std::atomic<u64> index_good{0};
  std::atomic<u64> index_damaged{0};
  std::atomic<u64> rebuilds{0};    // how often entries were moved to other leaves by the making of an index
  bool index_lacks_space = false;  // a rebuild found no blocks; it is not tried again until the directory changes hands

  // Guarded by the table's shard mutex.
  u32 refs = 0;            // InodeRefs
  u64 handles = 0;         // open files and streams
  u64 pins = 0;            // look-up counts of a bridge
  bool unlinked = false;   // free on the medium, held here
  bool linkable = false;   // nameless, and may get a name. Changed under the exclusive lock, too
  bool asked_for = false;  // since the last look for states to drop: what is in use stays, with what it knows

  /// A new life of the same inode number: only the commit that changed its slot last still counts.
  void begin_life();
  /// Forgets all of one inode and begins with another, or with none. REQUIRES: the shard mutex; nobody refers to it.
  void become(InodeNo now, media::Inode* inode);
};

/// A counted reference to an InodeState. Holds no lock.
class InodeRef {
 public:
  InodeRef() = default;
  InodeRef(InodeTable* table, InodeState* state) : table_(table), state_(state) {}
  InodeRef(InodeRef&& other) noexcept : table_(other.table_), state_(std::exchange(other.state_, nullptr)) {}
  InodeRef& operator=(InodeRef&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(state_, other.state_);
    return *this;
  }
  ~InodeRef();
  InodeState* operator->() const { return state_; }
  InodeState& operator*() const { return *state_; }
  explicit operator bool() const { return state_ != nullptr; }
  InodeNo ino() const { return state_->ino; }
  media::Inode& media() const { return *state_->media; }

 private:
  InodeTable* table_ = nullptr;
  InodeState* state_ = nullptr;
};

/// A free slot taken for a new inode, locked exclusively. Given back when dropped, unless kept.
class NewInode {
 public:
  NewInode(NewInode&&) = default;
  NewInode& operator=(NewInode&&) = delete;
  ~NewInode();
  const InodeRef& ref() const { return ref_; }
  /// Whether the inode file grows for it: then the commit given to take_slot() must run.
  bool grows() const { return growth_.owns_lock(); }
  /// The commit has run: the slot is in use, and those of a grown inode file may be handed out. What growing the inode
  /// file's map freed is added to `freed`.
  void keep(Freed& freed);

 private:
  friend class InodeTable;
  NewInode(InodeTable& table, InodeRef ref) : table_(&table), ref_(std::move(ref)) {}
  InodeTable* table_;
  InodeRef ref_;
  std::unique_lock<std::mutex> growth_;                 // held while the inode file grows in this commit
  u64 new_first_ = 0, new_blocks_ = 0, new_block_ = 0;  // the grown part
  std::vector<BlockRun> old_nodes_;                     // of its map
};

class InodeTable {
 public:
  InodeTable(Persist& persist, Lanes& lanes, media::Superblock& superblock, const ExtentMap& maps);
  ~InodeTable();

  /// Learns the inode file's blocks. First of all, while nobody else is here. @error kCorrupt, kNoMemory.
  Result<void> load();
  /// Puts a slot on the free list. While the state is rebuilt, and from the quarantine.
  void add_free_slot(u64 slot);
  /// The saved map's part about slots, a bit for each, set: not free. While nobody else is here.
  u64 saved_words() const { return (slots() + 63) / 64; }
  std::vector<u64> save_free_slots() const;
  /// @param words  saved_words() of them. Bits behind the last slot are ignored.
  void load_free_slots(std::span<const u64> words);
  u64 slots() const { return slots_.load(std::memory_order_acquire); }
  u64 free_slots() const { return free_count_.load(std::memory_order_relaxed); }
  /// REQUIRES: slot < slots().
  media::Inode& slot(u64 slot) const;

  /// The state of an inode by number, whether live or not. @error kStale: no such slot.
  Result<InodeRef> get(InodeNo ino);

  /// The state of an inode that somebody asked for lately, without a reference; null: get() it. For readers by I6:
  ///   if the version is not changing, and is_of() says it is that inode's, and then all is read, and the version is
  ///   the same.
  const InodeState* peek(InodeNo ino) const { return place(ino).newest.load(std::memory_order_acquire); }
  static bool is_of(const InodeState& state, InodeNo ino);
  /// Goes ahead of those who will look at an inode soon: first what says where it lies, then its lines and its state's.
  /// REQUIRES: a number that was an inode's at some time.
  void prefetch_place(InodeNo ino) const {
    __builtin_prefetch(&place(ino));
    __builtin_prefetch(&block_word(to_u64(ino) - 1));
  }
  void prefetch(InodeNo ino) const {
    const auto* const at = reinterpret_cast<const std::byte*>(&slot(to_u64(ino) - 1));
    __builtin_prefetch(at);
    __builtin_prefetch(at + kLineBytes);
    __builtin_prefetch(peek(ino));  // null does no harm
  }
  /// Runs `look(inode)` if nobody has that inode in use; nobody can come to while it runs, so all of the inode is one
  /// change's, and durable. `look` must be short. @return false: somebody has, or it is time to get() it, so that an
  /// inode that is looked at often can be peeked at.
  template <class Look>
  bool look_if_idle(InodeNo ino, Look&& look) const {
    constexpr u32 kLooks = 16;
    Shard& home = shard(ino);
    std::lock_guard lock(home.mutex);
    if (++home.idle_looks % kLooks == 0) return false;
    if (place(ino).states != 0 && home.states.count(to_u64(ino)) != 0) return false;
    look(slot(to_u64(ino) - 1));
    return true;
  }

  /// Takes a free slot for a new inode; if there is none, grows the inode file as a part of `commit`.
  /// @error kNoSpace. kCorrupt: a slot that was called free is not; it is not offered again.
  Result<NewInode> take_slot(Commit& commit, BlockHold& hold);

  // Holds. REQUIRES: the caller has the inode's lock, at least shared, and found it not dead.
  void add_handle(InodeState& state);
  void add_pin(InodeState& state);
  void drop_handle(const InodeRef& ref);
  /// @return false: fewer than `count` pins are there; none was dropped.
  bool drop_pins(const InodeRef& ref, u64 count);
  void drop_all_pins();
  bool anything_held() const;
  /// What is held now. Looks at every state, a shard at a time: for people and tests.
  HeldInodes held() const;

  /// The last name is gone. REQUIRES: the exclusive lock, and the commit has run. If nobody holds the inode it is dead
  /// now, and what it held goes to `freed`.
  void unlinked(const InodeRef& ref, Freed& freed);
  /// A new inode that has no name: it gets its first handle, and goes with the last. REQUIRES: the exclusive lock.
  void add_nameless(InodeState& state, bool linkable);
  /// It has got a name. REQUIRES: the exclusive lock, and the commit has run.
  void named(const InodeRef& ref);
  /// Whether somebody holds it.
  bool held(const InodeState& state) const;

  /// Gets freed inodes of last holds. Set once, before use.
  /// @param other_blocks  gives the blocks of an inode outside its map: a directory's index, attributes.
  void set_quarantine(Quarantine* quarantine, std::function<std::vector<BlockRun>(const InodeRef&)> other_blocks) {
    quarantine_ = quarantine;
    other_blocks_ = std::move(other_blocks);
  }
  /// For each state that exists now, without its lock.
  std::vector<InodeRef> all();

 private:
  friend class InodeRef;
  friend class NewInode;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<u64, std::unique_ptr<InodeState>> states;
    std::vector<std::unique_ptr<InodeState>> spare;  // nobody's (I6)
    std::size_t trim_at = 0;  // the bucket where trim() goes on
    u32 idle_looks = 0;
  };
  static constexpr u32 kShards = 64;
  static constexpr std::size_t kStatesKept = 1024;  // per shard; more only while they are in use
  static constexpr u32 kChunks = 32;
  // Four places for each state that is kept, so that most inodes without one have a place that says so: in the table of
  // states it would take some reads of memory to see.
  static constexpr u64 kPlaces = 4 * kShards * kStatesKept;
  static_assert(kPlaces % kShards == 0, "inodes of one place are of one shard");
  struct Place {
    std::atomic<InodeState*> newest;  // of those that share it
    u32 states;                       // how many exist. Guarded by the shard's mutex
  };

  Place& place(InodeNo ino) const { return places_[to_u64(ino) % kPlaces]; }
  Shard& shard(InodeNo ino) const { return shards_[to_u64(ino) % kShards]; }
  void release(InodeState* state);
  InodeState& state_of(Shard& home, InodeNo ino, media::Inode* inode);
  void forget(Shard& home, u64 number);
  bool only_reference(const InodeRef& ref) const;
  void trim(Shard& shard);
  void bury(const InodeRef& ref);
  void reclaim(const InodeRef& ref, Freed& freed);
  void set_block(u64 index, u64 block);
  const std::atomic<u64>& block_word(u64 slot) const;
  std::optional<u64> pop_free_slot();
  Result<void> grow(Commit& commit, BlockHold& hold, NewInode& fresh);

  Persist& persist_;
  Lanes& lanes_;
  media::Superblock& superblock_;
  const ExtentMap& maps_;
  Quarantine* quarantine_ = nullptr;
  std::function<std::vector<BlockRun>(const InodeRef&)> other_blocks_;
  mutable std::array<Shard, kShards> shards_;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<Place[], Free> places_;  // memory that is zero without being touched: pools may be many

  // Blocks of the inode file, by index: chunk k holds 64 << k of them, so that growing moves nothing.
  std::array<std::atomic<std::atomic<u64>*>, kChunks> chunks_{};
  std::atomic<u64> slots_{0};

  std::mutex grow_mutex_;  // the inode file's lock
  ChangeMark grow_last_;   // guarded by it
  struct FreeSlots {
    std::mutex mutex;
    std::vector<u64> slots;
  };
  std::array<FreeSlots, 8> free_;
  std::atomic<u64> free_count_{0};
};

}  // namespace pmfs
