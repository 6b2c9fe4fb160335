#include "dcache/dentry_cache.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>

#include "base/assert.h"

namespace pmfs::dcache {

namespace {

constexpr u64 kLeastBytes = 64 * 1024;
// A slot, and its share of both tables at their sparsest (RcuTable: at least one node to two buckets after a resize).
constexpr u64 kBytesPerEntry = Arena::kBytesPerSlot + 2 * sizeof(RcuNode);

u64 random_word() {
  u64 word = 0;
  if (::getrandom(&word, sizeof(word), GRND_NONBLOCK) != sizeof(word))
    word = static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch().count());
  return word | 1;
}

Dir* dir_of_node(RcuNode* node) {
  return reinterpret_cast<Dir*>(reinterpret_cast<std::byte*>(node) - offsetof(Dir, node));
}
const Dir* dir_of_node(const RcuNode* node) { return dir_of_node(const_cast<RcuNode*>(node)); }

u64 hash_ino(InodeNo ino) { return fold(to_u64(ino), 0x9e3779b97f4a7c15); }

}  // namespace

// --- Matching --------------------------------------------------------------------------------------------------------

bool DentryCache::SameName::equal(const RcuNode* node, const Key& key) {
  const auto* const d = reinterpret_cast<const Dentry*>(node);
  const Component& c = *key.name;
  if (d->parent != key.dir || d->name_length != c.length) return false;
  if (load8(d->name) != c.first || load8(d->name + 8) != c.second) return false;
  if (c.length <= 16) return true;
  const std::size_t here = std::min<std::size_t>(c.length, kInlineName);
  if (std::memcmp(d->name + 16, c.text + 16, here - 16) != 0) return false;
  const char* rest = c.text + here;
  // The slots of a long name lie where the first one says; the dentry's own address gives the arena's base.
  const std::byte* const base = reinterpret_cast<const std::byte*>(d) - std::size_t{d->slot} * kSlotBytes;
  for (Slot slot = d->more; rest != c.end();) {
    const auto* const more = reinterpret_cast<const More*>(base + std::size_t{slot} * kSlotBytes);
    const std::size_t bytes = std::min<std::size_t>(static_cast<std::size_t>(c.end() - rest), kMoreBytes);
    if (std::memcmp(more->text, rest, bytes) != 0) return false;
    rest += bytes;
    slot = more->next;
  }
  return true;
}

bool DentryCache::SameIno::equal(const RcuNode* node, const InodeNo& ino) {
  return dir_of_node(node)->ino == to_u64(ino);
}

Dir* DentryCache::find_dir(InodeNo ino) const {
  RcuNode* const node = dirs_->find<SameIno>(hash_ino(ino), ino);
  return node == nullptr ? nullptr : dir_of_node(node);
}

// --- Making and ending -----------------------------------------------------------------------------------------------

std::unique_ptr<DentryCache> DentryCache::make(u64 bytes, u64 root_generation) {
  bytes = std::max(bytes, kLeastBytes);
  const u64 slots = std::min<u64>(bytes / kBytesPerEntry, 0xfffffff0);
  auto arena = Arena::make(slots);
  auto names = RcuTable::make(slots);
  auto dirs = RcuTable::make(slots);
  if (arena == nullptr || names == nullptr || dirs == nullptr) return nullptr;
  std::unique_ptr<DentryCache> cache(
      new (std::nothrow) DentryCache(std::move(arena), std::move(names), std::move(dirs), slots * kBytesPerEntry));
  if (cache == nullptr) return nullptr;
  const RcuReadGuard reading;
  std::lock_guard lock(cache->mutex_);
  cache->root_ = cache->dir_for(kRootIno, root_generation);
  if (cache->root_ == nullptr) return nullptr;
  cache->root_->held = 1;
  return cache;
}

DentryCache::DentryCache(std::unique_ptr<Arena> arena, std::unique_ptr<RcuTable> names, std::unique_ptr<RcuTable> dirs,
                         u64 limit)
    : limit_(limit),
      keys_{random_word(), random_word()},
      arena_(std::move(arena)),
      names_(std::move(names)),
      dirs_(std::move(dirs)) {}

DentryCache::~DentryCache() = default;

// --- Changing --------------------------------------------------------------------------------------------------------

// While it lives, readers of the directories it was given see that they change (dentry.h, D2), and making room does not
// evict them. (It may evict names in them: one that is not there is asked for.)
class DentryCache::Changing {
 public:
  Changing() = default;
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;
  void begin(Dir* dir) {
    if (dir == nullptr) return;
    for (u32 i = 0; i < count_; ++i)
      if (dirs_[i] == dir) return;
    // An exchange, so that no store of the change is seen before it, on any machine and by ThreadSanitizer.
    dir->sequence.fetch_add(1, std::memory_order_acq_rel);
    dir->held += 1;
    dirs_[count_++] = dir;
  }
  ~Changing() {
    for (u32 i = 0; i < count_; ++i) {
      dirs_[i]->sequence.fetch_add(1, std::memory_order_release);
      dirs_[i]->held -= 1;
    }
  }

 private:
  Dir* dirs_[4] = {};
  u32 count_ = 0;
};

void DentryCache::learn_permission(Dir& dir, const Permission& now) {
  // Release: a reader that sees one of them sees the sequence odd, or what it was raised to.
  dir.uid.store(now.uid, std::memory_order_release);
  dir.gid.store(now.gid, std::memory_order_release);
  const u32 flags = (now.has_acl ? Dir::kHasAcl : 0) | (dir.mode.load(std::memory_order_relaxed) & Dir::kRemoved);
  dir.mode.store((now.mode & 0xffff) | flags, std::memory_order_release);
}

// The Dir of an inode, made if need be. REQUIRES: the mutex.
Dir* DentryCache::dir_for(InodeNo ino, u64 generation) {
  if (Dir* const known = find_dir(ino); known != nullptr) return known->generation == generation ? known : nullptr;
  const Slot slot = take_slot(SlotKind::kDir);
  if (slot == 0) return nullptr;
  auto* const dir = new (arena_->at(slot)) Dir{};
  dir->mode.store(Dir::kUnknown, std::memory_order_relaxed);
  dir->ino = to_u64(ino);
  dir->generation = generation;
  dir->seed = fold(++seeds_ ^ keys_.low, keys_.high);
  dir->listed = 1;
  dirs_->add<SameIno>(hash_ino(ino), ino, &dir->node);
  directories_ += 1;
  return dir;
}

// REQUIRES: the mutex, and a hold on `dir`; nothing has that name.
Dentry* DentryCache::add(Dir& dir, const Component& c, const Target* target) {
  Dir* target_dir = nullptr;
  const u32 more =
      c.length <= kInlineName ? 0 : static_cast<u32>((c.length - kInlineName + kMoreBytes - 1) / kMoreBytes);
  if (!make_room(2 + more)) {
    not_remembered_ += 1;
    return nullptr;
  }
  if (target != nullptr && target->type == kTypeDirectory) {
    target_dir = dir_for(target->ino, target->generation);
    if (target_dir == nullptr) return nullptr;
    if (Dentry* const old = target_dir->place.load(std::memory_order_relaxed); old != nullptr) take_out(*old);
  }
  const Slot slot = arena_->take(SlotKind::kDentry);
  auto* const d = new (arena_->at(slot)) Dentry{};
  d->parent = &dir;
  d->dir = target_dir;
  d->slot = slot;
  d->serial = arena_->info(slot).serial;
  d->name_length = static_cast<u8>(c.length);
  d->alive = 1;
  if (target != nullptr) {
    d->ino = to_u64(target->ino);
    d->generation = target->generation;
    d->type = static_cast<u8>(target->type >> 12);
  }
  std::memcpy(d->name, c.text, std::min<std::size_t>(c.length, kInlineName));
  Slot* link = &d->more;
  for (std::size_t at = kInlineName; at < c.length; at += kMoreBytes) {
    *link = arena_->take(SlotKind::kMore);
    auto* const piece = new (arena_->at(*link)) More{};
    std::memcpy(piece->text, c.text + at, std::min<std::size_t>(c.length - at, kMoreBytes));
    link = &piece->next;
  }
  const Key key{&dir, &c};
  RcuNode* const there = names_->add<SameName>(table_hash(c, dir.seed), key, &d->node);
  PMFS_ASSERT(there == nullptr);
  arena_->info(slot).mark = 1;
  dir.children += 1;
  (target == nullptr ? negative_ : positive_) += 1;
  if (target_dir != nullptr) target_dir->place.store(d, std::memory_order_release);
  if (watcher_ != nullptr) watcher_->added(*d);
  if (should_maintain()) ask_for_maintenance();
  return d;
}

// Takes a dentry out of the table. It is freed when no pin and no reader has it.
void DentryCache::take_out(Dentry& d) {
  if (watcher_ != nullptr) watcher_->leaves(d);
  const bool removed = names_->remove(&d.node);
  PMFS_ASSERT(removed);
  d.alive = 0;
  (d.negative() ? negative_ : positive_) -= 1;
  if (d.dir != nullptr && d.dir->place.load(std::memory_order_relaxed) == &d)
    d.dir->place.store(nullptr, std::memory_order_release);
  drop_child(*d.parent);
  if (d.links.pins == 0) leave(d);
}

void DentryCache::unpin(Dentry& d) {
  PMFS_ASSERT(d.links.pins > 0);
  d.links.pins -= 1;
  if (d.links.pins == 0 && d.alive == 0) leave(d);
}

void DentryCache::leave(Dentry& d) {
  arena_->info(d.slot).leaving = 1;
  free_later(d.head, run_free_dentry);
}

void DentryCache::run_free_dentry(RcuHead* head, void* context) {
  auto& cache = *static_cast<DentryCache*>(context);
  auto* const d = reinterpret_cast<Dentry*>(reinterpret_cast<std::byte*>(head) - offsetof(Dentry, head));
  std::lock_guard lock(cache.mutex_);
  cache.free_now(d->slot, d->more);
}

void DentryCache::free_now(Slot slot, Slot more) {
  while (more != 0) {
    const Slot next = arena_->as<More>(more)->next;
    arena_->give_back(more);
    more = next;
  }
  arena_->give_back(slot);
  deferred_ -= 1;
}

void DentryCache::drop_child(Dir& dir) {
  PMFS_ASSERT(dir.children > 0);
  dir.children -= 1;
  if (dir.children == 0 && dir.listed == 0) free_dir(dir);
}

// The directory is no more: nobody finds it by number. What still has it for its parent keeps its memory (D3).
void DentryCache::unlist(Dir& dir) {
  if (dir.listed == 0) return;
  dir.mode.store(dir.mode.load(std::memory_order_relaxed) | Dir::kRemoved, std::memory_order_release);
  dirs_->remove(&dir.node);
  dir.listed = 0;
  directories_ -= 1;
  if (dir.children == 0) free_dir(dir);
}

void DentryCache::free_dir(Dir& dir) {
  arena_->info(arena_->slot_of(&dir)).leaving = 1;
  free_later(dir.head, run_free_dir);
}

void DentryCache::run_free_dir(RcuHead* head, void* context) {
  auto& cache = *static_cast<DentryCache*>(context);
  auto* const dir = reinterpret_cast<Dir*>(reinterpret_cast<std::byte*>(head) - offsetof(Dir, head));
  std::lock_guard lock(cache.mutex_);
  cache.free_now(cache.arena_->slot_of(dir), 0);
}

Dir* DentryCache::remember(const Answer& answer, const Component* c) {
  if (answer.removed) return nullptr;
  std::lock_guard lock(mutex_);
  Dir* const dir = dir_for(answer.ino, answer.generation);
  if (dir == nullptr) return nullptr;
  if ((dir->mode.load(std::memory_order_relaxed) & Dir::kUnknown) != 0) {
    Changing changing;
    changing.begin(dir);
    learn_permission(*dir, answer.permission);
  }
  if (c != nullptr && find(dir, *c) == nullptr) {
    dir->held += 1;
    add(*dir, *c, answer.target.has_value() ? &*answer.target : nullptr);
    dir->held -= 1;
  }
  return dir;
}

void DentryCache::take_out_name(Dir& dir, const Component& c) {
  if (Dentry* const d = find(&dir, c); d != nullptr) take_out(*d);
}

void DentryCache::name_added(InodeNo dir_ino, std::string_view name, const Target& target) {
  const RcuReadGuard reading;
  std::lock_guard lock(mutex_);
  Dir* const dir = find_dir(dir_ino);
  if (dir == nullptr) return;
  const Component c = make_component(name, keys_);
  Changing changing;
  changing.begin(dir);
  take_out_name(*dir, c);  // a negative one
  add(*dir, c, &target);
}

void DentryCache::name_removed(InodeNo dir_ino, std::string_view name, const Target& target) {
  const RcuReadGuard reading;
  std::lock_guard lock(mutex_);
  Dir* const dir = find_dir(dir_ino);
  Dir* const victim = target.type == kTypeDirectory ? find_dir(target.ino) : nullptr;
  Changing changing;
  changing.begin(dir);
  changing.begin(victim);
  if (dir != nullptr) take_out_name(*dir, make_component(name, keys_));
  if (victim != nullptr) unlist(*victim);
}

void DentryCache::renamed(InodeNo from_ino, std::string_view from_name, const Target& moved, InodeNo to_ino,
                          std::string_view to_name, const Target* victim, bool exchange) {
  const RcuReadGuard reading;
  std::lock_guard lock(mutex_);
  Dir* const from = find_dir(from_ino);
  Dir* const to = find_dir(to_ino);
  Dir* const moved_dir = moved.type == kTypeDirectory ? find_dir(moved.ino) : nullptr;
  Dir* const victim_dir = victim != nullptr && victim->type == kTypeDirectory ? find_dir(victim->ino) : nullptr;
  const Component from_c = make_component(from_name, keys_);
  const Component to_c = make_component(to_name, keys_);
  Changing changing;
  for (Dir* const dir : {from, to, moved_dir, victim_dir}) changing.begin(dir);
  if (from != nullptr) take_out_name(*from, from_c);
  if (to != nullptr) take_out_name(*to, to_c);
  if (to != nullptr) add(*to, to_c, &moved);
  if (exchange) {
    if (from != nullptr) add(*from, from_c, victim);
  } else if (victim_dir != nullptr) {
    unlist(*victim_dir);
  }
}

void DentryCache::permission_changed(InodeNo ino, const Permission& now) {
  const RcuReadGuard reading;
  if (find_dir(ino) == nullptr) return;  // if it comes in meanwhile, it learns its words under the lock we hold
  std::lock_guard lock(mutex_);
  Dir* const dir = find_dir(ino);
  if (dir == nullptr) return;
  Changing changing;
  changing.begin(dir);
  Dentry* const place = dir->place.load(std::memory_order_relaxed);
  if (watcher_ != nullptr && (place != nullptr || dir == root_)) watcher_->changes_below(place);
  learn_permission(*dir, now);
}

// --- Memory ----------------------------------------------------------------------------------------------------------

Slot DentryCache::take_slot(SlotKind kind) { return make_room(1) ? arena_->take(kind) : 0; }

// Evicts early, since what goes is free only after a grace period.
bool DentryCache::make_room(u64 slots) {
  const u64 reserve = std::max<u64>(64, (arena_->used() + arena_->free()) / 8);
  if (arena_->free() + deferred_ < reserve) evict(8);
  return arena_->free() >= slots;
}

void DentryCache::evict(u64 want) {
  drain_samples();
  constexpr u64 kLooks = 1024;  // bounds how long others wait
  const Slot end = arena_->end();
  for (u64 looks = 0; looks < kLooks && want > 0 && end > 1; ++looks) {
    if (++hand_ >= end) hand_ = 1;
    if (evict_one(hand_)) want -= 1;
  }
}

bool DentryCache::evict_one(Slot slot) {
  SlotInfo& info = arena_->info(slot);
  if (info.leaving != 0 || (info.kind != SlotKind::kDentry && info.kind != SlotKind::kDir)) return false;
  if (info.kind == SlotKind::kDir) {
    // On its own only when it has no dentry, with which it goes otherwise.
    Dir* const dir = arena_->as<Dir>(slot);
    if (dir->children != 0 || dir->held != 0 || dir->listed == 0 ||
        dir->place.load(std::memory_order_relaxed) != nullptr)
      return false;
    Changing changing;
    changing.begin(dir);
    unlist(*dir);
    evictions_ += 1;
    return true;
  }
  Dentry* const d = arena_->as<Dentry>(slot);
  if (d->alive == 0 || d->links.pins != 0 || d->candidate != 0) return false;
  if (d->dir != nullptr && (d->dir->children != 0 || d->dir->held != 0)) return false;
  if (info.mark > 0) {
    info.mark -= 1;
    return false;
  }
  Dir* const dir = d->dir;
  Changing changing;  // of the Dir: whoever stands on it finds it unlisted, and asks the file system
  changing.begin(dir);
  take_out(*d);
  if (dir != nullptr) unlist(*dir);
  evictions_ += 1;
  return true;
}

Dentry* DentryCache::still_there(Slot slot, u32 serial) const {
  if (slot == 0 || slot >= arena_->end()) return nullptr;
  const SlotInfo& info = arena_->info(slot);
  if (info.kind != SlotKind::kDentry || info.serial != serial || info.leaving != 0) return nullptr;
  Dentry* const d = arena_->as<Dentry>(slot);
  return d->alive != 0 ? d : nullptr;
}

void DentryCache::drain_samples() {
  threads_.drain([this](Slot slot, u32 serial) {
    Dentry* const d = still_there(slot, serial);
    if (d == nullptr) return;
    arena_->info(slot).mark = kHot;
    if (watcher_ != nullptr) watcher_->looked_up(*d);
  });
}

void DentryCache::maintain() {
  if (names_->should_resize()) names_->resize();
  if (dirs_->should_resize()) dirs_->resize();
}

CacheSizes DentryCache::sizes() const {
  std::lock_guard lock(mutex_);
  CacheSizes s;
  s.bytes = arena_->used() * Arena::kBytesPerSlot + names_->bytes() + dirs_->bytes();
  s.limit = limit_;
  s.positive = positive_;
  s.negative = negative_;
  s.directories = directories_;
  s.evictions = evictions_;
  s.deferred = deferred_;
  s.not_remembered = not_remembered_;
  return s;
}

}  // namespace pmfs::dcache
