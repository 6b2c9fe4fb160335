#include "fs/inode_table.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "base/thread_index.h"

namespace pmfs {

namespace {
constexpr u64 kFirstGrowth = 4;   // blocks: 16 KiB
constexpr u64 kLastGrowth = 256;  // 1 MiB
}  // namespace

InodeRef::~InodeRef() {
  if (state_ != nullptr) table_->release(state_);
}

NewInode::~NewInode() {
  if (!ref_) return;  // moved from, or kept
  const bool grown = growth_.owns_lock();
  if (grown) ref_->media = nullptr;  // its block goes back: the inode file did not grow
  ref_->lock.unlock();
  if (!grown) table_->add_free_slot(to_u64(ref_.ino()) - 1);
}

void NewInode::keep(Freed& freed) {
  if (growth_.owns_lock()) {
    freed.blocks.insert(freed.blocks.end(), old_nodes_.begin(), old_nodes_.end());
    for (u64 i = 0; i < new_blocks_; ++i) table_->set_block(new_first_ + i, new_block_ + i);
    const u64 first_slot = new_first_ * media::kInodesPerBlock;
    table_->slots_.store(first_slot + new_blocks_ * media::kInodesPerBlock, std::memory_order_release);
    for (u64 slot = first_slot + new_blocks_ * media::kInodesPerBlock - 1; slot > first_slot; --slot)
      table_->add_free_slot(slot);  // the first one is this inode's
    growth_.unlock();
  }
  ref_->lock.unlock();
  ref_ = InodeRef();
}

InodeTable::InodeTable(Persist& persist, Lanes& lanes, media::Superblock& superblock, const ExtentMap& maps)
    : persist_(persist), lanes_(lanes), superblock_(superblock), maps_(maps) {}

InodeTable::~InodeTable() {
  for (auto& chunk : chunks_) delete[] chunk.load();
}

// --- Slots
// -------------------------------------------------------------------------------------------------------------

void InodeTable::set_block(u64 index, u64 block) {
  const u64 shifted = index + 64;
  const auto k = static_cast<u32>(std::bit_width(shifted) - 7);
  PMFS_ASSERT(k < kChunks);
  if (chunks_[k].load(std::memory_order_relaxed) == nullptr)
    chunks_[k].store(
        new std::atomic<u64>[std::size_t{64} << k] {}, std::memory_order_release);
  chunks_[k].load(std::memory_order_relaxed)[shifted - (u64{64} << k)].store(block, std::memory_order_release);
}

// Where the number of a slot's block stands.
const std::atomic<u64>& InodeTable::block_word(u64 slot) const {
  const u64 shifted = slot / media::kInodesPerBlock + 64;
  const auto k = static_cast<u32>(std::bit_width(shifted) - 7);
  return chunks_[k].load(std::memory_order_acquire)[shifted - (u64{64} << k)];
}

media::Inode& InodeTable::slot(u64 slot) const {
  const u64 block = block_word(slot).load(std::memory_order_acquire);
  auto* inodes = reinterpret_cast<media::Inode*>(persist_.memory().at(block_off(block)));
  return inodes[slot % media::kInodesPerBlock];
}

Result<void> InodeTable::load() {
  places_.reset(static_cast<Place*>(std::calloc(kPlaces, sizeof(Place))));
  if (places_ == nullptr) return Error{Errc::kNoMemory, "out of memory", 0};
  const u64 slots = superblock_.inode_slots.get();
  if (slots == 0 || slots % media::kInodesPerBlock != 0 || slots > u64{1} << 36)
    return Error{Errc::kCorrupt, "the inode file's length cannot be", 0};
  const u64 blocks = slots / media::kInodesPerBlock;
  u64 next = 0;
  PMFS_TRY(maps_.each(superblock_.inode_map_root.get(), 0, blocks, [&](const Extent& e) -> Result<void> {
    if (e.logical != next || e.unwritten) return Error{Errc::kCorrupt, "the inode file has a hole", 0};
    for (u64 i = 0; i < e.count; ++i) set_block(e.logical + i, e.block + i);
    next = e.end();
    return {};
  }));
  if (next != blocks) return Error{Errc::kCorrupt, "the inode file is shorter than its length", 0};
  slots_ = slots;
  return {};
}

void InodeTable::add_free_slot(u64 slot) {
  FreeSlots& list = free_[slot % free_.size()];
  std::lock_guard lock(list.mutex);
  list.slots.push_back(slot);
  free_count_.fetch_add(1, std::memory_order_relaxed);
}

std::vector<u64> InodeTable::save_free_slots() const {
  std::vector<u64> words(saved_words(), ~u64{0});
  for (const FreeSlots& list : free_)
    for (const u64 slot : list.slots) words[slot / 64] &= ~(u64{1} << slot % 64);
  return words;
}

// The lowest is put last, and so handed out first.
void InodeTable::load_free_slots(std::span<const u64> words) {
  const u64 end = slots();
  for (std::size_t word = words.size(); word-- > 0;)
    for (u64 free = ~words[word]; free != 0;) {
      const u64 bit = 63 - static_cast<u64>(std::countl_zero(free));
      free ^= u64{1} << bit;
      if (const u64 slot = word * 64 + bit; slot < end) add_free_slot(slot);
    }
}

std::optional<u64> InodeTable::pop_free_slot() {
  if (free_count_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  for (std::size_t i = 0; i < free_.size(); ++i) {
    FreeSlots& list = free_[(thread_index() + i) % free_.size()];
    std::lock_guard lock(list.mutex);
    if (list.slots.empty()) continue;
    const u64 slot = list.slots.back();
    list.slots.pop_back();
    free_count_.fetch_sub(1, std::memory_order_relaxed);
    return slot;
  }
  return std::nullopt;
}

Result<NewInode> InodeTable::take_slot(Commit& commit, BlockHold& hold) {
  std::unique_lock<std::mutex> growth;
  // Slots that somebody still refers to from their last life. He found the inode by its name and is about to lock it:
  // he must find it dead, not alive as another file. He is not waited for: he could be waiting for a lock of our
  // caller's.
  struct Busy {
    InodeTable& table;
    std::vector<u64> slots;
    ~Busy() {
      for (const u64 slot : slots) table.add_free_slot(slot);
    }
  } busy{*this, {}};
  for (;;) {
    const auto slot = pop_free_slot();
    if (!slot.has_value()) {
      if (!growth.owns_lock()) {  // look again under the lock: another thread may have grown the file meanwhile
        growth = std::unique_lock(grow_mutex_);
        quarantine_->collect();  // and freed slots may have become usable
        continue;
      }
      const u64 first = slots();
      // The new slot's state lies in a block that the table does not know yet, and nobody else can ask for.
      InodeRef ref;
      {
        const InodeNo ino{first + 1};
        Shard& home = shard(ino);
        std::lock_guard lock(home.mutex);
        const auto it = home.states.find(to_u64(ino));
        InodeState& state = it != home.states.end() ? *it->second : state_of(home, ino, nullptr);
        state.refs += 1;
        ref = InodeRef(this, &state);
      }
      // Only tried: it comes after the inode file's lock, against the LOCK order. Nobody can have it: its number is
      // new.
      if (!ref->lock.try_lock()) return Error{Errc::kNoSpace, "a new inode is busy", 0};
      NewInode fresh(*this, std::move(ref));
      fresh.growth_ = std::move(growth);
      if (auto grown = grow(commit, hold, fresh); !grown.ok()) return grown.error();
      return fresh;
    }
    PMFS_ASSIGN(InodeRef ref, get(InodeNo{*slot + 1}));
    if (!only_reference(ref) || !ref->lock.try_lock()) {
      busy.slots.push_back(*slot);
      continue;
    }
    // Reading it costs nothing: the line is about to be written.
    if (media::low_half(ref.media().state_gen.get()) != media::kSlotFree) {
      ref->lock.unlock();
      return Error{Errc::kCorrupt, "a slot that the saved map calls free is in use", 0};
    }
    ref->begin_life();
    return NewInode(*this, std::move(ref));
  }
}

// Grows the inode file by some blocks, as a part of the caller's commit. All new state words are zero before fence 1.
Result<void> InodeTable::grow(Commit& commit, BlockHold& hold, NewInode& fresh) {
  const u64 have = slots() / media::kInodesPerBlock;
  u64 want = std::clamp(have, kFirstGrowth, kLastGrowth);
  BlockRun run;
  for (;; want = std::max<u64>(1, want / 2)) {
    auto taken = hold.take(want);
    if (taken.ok()) {
      run = *taken;
      break;
    }
    if (want == 1) return taken.error();
  }
  auto* inodes = reinterpret_cast<media::Inode*>(persist_.memory().at(block_off(run.first)));
  for (u64 i = 0; i < run.count * media::kInodesPerBlock; ++i) {
    persist_.store(inodes[i].state_gen, 0);
    persist_.flush(&inodes[i].state_gen, sizeof(u64), Order::kFreshSlots);
  }
  PMFS_ASSIGN(const MapChange change, maps_.replace(superblock_.inode_map_root.get(), have, have + run.count,
                                                    {{have, run.count, run.first, false}}, hold));
  commit.touch(grow_last_);
  commit.set(superblock_.inode_map_root, change.root);
  commit.set(superblock_.inode_slots, (have + run.count) * media::kInodesPerBlock);
  fresh.ref_->media = inodes;
  fresh.new_first_ = have;
  fresh.new_blocks_ = run.count;
  fresh.new_block_ = run.first;
  fresh.old_nodes_ = change.freed;
  return {};
}

// --- States
// ------------------------------------------------------------------------------------------------------------

Result<InodeRef> InodeTable::get(InodeNo ino) {
  const u64 number = to_u64(ino);
  if (number == 0 || number > slots()) return Error{Errc::kStale, "no such inode", 0};
  Shard& home = shard(ino);
  std::lock_guard lock(home.mutex);
  const auto it = home.states.find(number);
  if (it == home.states.end()) {
    InodeState& state = state_of(home, ino, &slot(number - 1));
    state.refs = 1;
    InodeRef ref(this, &state);
    if (home.states.size() > kStatesKept) trim(home);
    return ref;
  }
  InodeState& state = *it->second;
  if (state.media == nullptr) state.media = &slot(number - 1);
  state.refs += 1;
  state.asked_for = true;
  auto& newest = place(ino).newest;
  if (newest.load(std::memory_order_relaxed) != &state) newest.store(&state, std::memory_order_release);
  return InodeRef(this, &state);
}

// A state for an inode that has none. REQUIRES: the shard mutex.
InodeState& InodeTable::state_of(Shard& home, InodeNo ino, media::Inode* inode) {
  auto& state = home.states[to_u64(ino)];
  if (home.spare.empty()) {
    state = std::make_unique<InodeState>();
  } else {
    state = std::move(home.spare.back());
    home.spare.pop_back();
  }
  state->become(ino, inode);
  place(ino).states += 1;
  place(ino).newest.store(state.get(), std::memory_order_release);
  return *state;
}

// REQUIRES: the shard mutex; nobody refers to it.
void InodeTable::forget(Shard& home, u64 number) {
  auto node = home.states.extract(number);
  node.mapped()->become(kNoInode, nullptr);  // whoever peeks at it still, finds it nobody's
  home.spare.push_back(std::move(node.mapped()));
  place(InodeNo{number}).states -= 1;
}

void InodeState::begin_life() {
  dead = times_lazy = false;
  atime_ns = 0;
  atime_logged = {};
  hint_logical = 0;
  index_good = index_damaged = 0;
  index_lacks_space = false;
}

void InodeState::become(InodeNo now, media::Inode* inode) {
  // As a writer would: who reads meanwhile, or has read before, throws that away.
  version.begin_change();
  shape.begin_change();
  std::atomic_ref(ino).store(now, std::memory_order_relaxed);
  std::atomic_ref(media).store(inode, std::memory_order_relaxed);
  begin_life();
  last = {};
  rebuilds = 0;
  refs = 0;
  handles = pins = 0;
  unlinked = linkable = asked_for = false;
  shape.end_change();
  version.end_change();
}

bool InodeTable::is_of(const InodeState& state, InodeNo ino) {
  auto& whose = const_cast<InodeNo&>(state.ino);  // only read
  return std::atomic_ref(whose).load(std::memory_order_relaxed) == ino;
}

bool InodeTable::only_reference(const InodeRef& ref) const {
  std::lock_guard lock(shard(ref.ino()).mutex);
  return ref->refs == 1;
}

void InodeTable::release(InodeState* state) {
  Shard& home = shard(state->ino);
  std::lock_guard lock(home.mutex);
  PMFS_ASSERT(state->refs > 0);
  state->refs -= 1;
}

// Drops a few states that nobody needs. Nobody holds their locks: refs is 0.
void InodeTable::trim(Shard& home) {
  const std::size_t buckets = home.states.bucket_count();
  for (u32 looked = 0; looked < 32; ++looked) {
    const std::size_t bucket = home.trim_at++ % buckets;
    for (auto it = home.states.begin(bucket); it != home.states.end(bucket); ++it) {
      InodeState& state = *it->second;
      if (std::exchange(state.asked_for, false)) continue;  // a directory in use would have to look at its index anew
      if (state.refs != 0 || state.handles != 0 || state.pins != 0 || state.unlinked || state.times_lazy ||
          state.atime_ns != 0 || !lanes_.retired(state.last))
        continue;
      forget(home, it->first);
      break;  // the bucket's iterators are gone
    }
  }
}

std::vector<InodeRef> InodeTable::all() {
  std::vector<InodeRef> refs;
  for (Shard& home : shards_) {
    std::lock_guard lock(home.mutex);
    for (auto& [number, state] : home.states) {
      if (state->media == nullptr) continue;  // of an inode file that is growing, or failed to
      state->refs += 1;
      refs.emplace_back(this, state.get());
    }
  }
  return refs;
}

// --- Holds
// -------------------------------------------------------------------------------------------------------------

void InodeTable::add_handle(InodeState& state) {
  std::lock_guard lock(shard(state.ino).mutex);
  state.handles += 1;
}

void InodeTable::add_pin(InodeState& state) {
  std::lock_guard lock(shard(state.ino).mutex);
  state.pins += 1;
}

void InodeTable::drop_handle(const InodeRef& ref) {
  {
    std::lock_guard lock(shard(ref.ino()).mutex);
    PMFS_ASSERT(ref->handles > 0);
    ref->handles -= 1;
  }
  bury(ref);
}

bool InodeTable::drop_pins(const InodeRef& ref, u64 count) {
  {
    std::lock_guard lock(shard(ref.ino()).mutex);
    if (ref->pins < count) return false;
    ref->pins -= count;
  }
  bury(ref);
  return true;
}

void InodeTable::drop_all_pins() {
  for (const InodeRef& ref : all()) {
    {
      std::lock_guard lock(shard(ref.ino()).mutex);
      if (ref->pins == 0) continue;
      ref->pins = 0;
    }
    bury(ref);
  }
}

bool InodeTable::anything_held() const {
  for (const Shard& home : shards_) {
    std::lock_guard lock(home.mutex);
    for (const auto& [number, state] : home.states)
      if (state->handles != 0 || state->pins != 0) return true;
  }
  return false;
}

HeldInodes InodeTable::held() const {
  HeldInodes out;
  for (const Shard& home : shards_) {
    std::lock_guard lock(home.mutex);
    out.states += home.states.size();
    for (const auto& [number, state] : home.states) {
      out.handles += state->handles;
      out.pins += state->pins;
      if (state->unlinked && (state->handles != 0 || state->pins != 0)) out.nameless += 1;
    }
  }
  return out;
}

bool InodeTable::held(const InodeState& state) const {
  std::lock_guard lock(shard(state.ino).mutex);
  return state.handles != 0 || state.pins != 0;
}

// Frees an inode that has neither names nor holds. REQUIRES: its exclusive lock.
void InodeTable::reclaim(const InodeRef& ref, Freed& freed) {
  ref->dead = true;
  ref->times_lazy = false;
  ref->atime_ns = 0;
  const media::Inode& inode = ref.media();
  for (const BlockRun& run : maps_.all_blocks(inode.map_root.get())) freed.blocks.push_back(run);
  for (const BlockRun& run : other_blocks_(ref)) freed.blocks.push_back(run);
  freed.slots.push_back(to_u64(ref.ino()) - 1);
}

void InodeTable::unlinked(const InodeRef& ref, Freed& freed) {
  {
    std::lock_guard lock(shard(ref.ino()).mutex);
    if (ref->handles != 0 || ref->pins != 0) {
      ref->unlinked = true;
      return;
    }
  }
  reclaim(ref, freed);
}

void InodeTable::add_nameless(InodeState& state, bool linkable) {
  std::lock_guard lock(shard(state.ino).mutex);
  state.handles += 1;
  state.unlinked = true;
  state.linkable = linkable;
}

void InodeTable::named(const InodeRef& ref) {
  std::lock_guard lock(shard(ref.ino()).mutex);
  ref->unlinked = false;
  ref->linkable = false;
}

// After a hold has gone: if it was the last of an inode without names, the inode is freed. No store, no fence.
void InodeTable::bury(const InodeRef& ref) {
  Freed freed;
  {
    std::unique_lock exclusive(ref->lock);
    {
      std::lock_guard lock(shard(ref.ino()).mutex);
      if (!ref->unlinked || ref->handles != 0 || ref->pins != 0) return;
      ref->unlinked = ref->linkable = false;
    }
    reclaim(ref, freed);
    // Its last change, not only the one that took the last name: each change had retired the one before it (R2).
    freed.by = ref->last;
  }
  quarantine_->add(std::move(freed));
}

}  // namespace pmfs
