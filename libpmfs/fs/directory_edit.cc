// Changing a directory: entries, leaves and the index, as one commit's words and fresh blocks.
#include <algorithm>

#include "base/assert.h"
#include "fs/area.h"
#include "fs/attributes.h"
#include "fs/directory.h"

namespace pmfs {

namespace {

constexpr u32 kHeapBytes = static_cast<u32>(kBlockBytes) - media::kLeafHeapOff;

// A leaf that falls below a quarter is joined with its neighbour if both together fill no more than five eighths: after
// that it takes a quarter of a leaf of inserts to split them again.
constexpr u32 kShrinkBelowBytes = kHeapBytes / 4;
constexpr u32 kShrinkBelowSlots = media::kLeafSlots / 4;
constexpr u32 kJoinUpToBytes = kHeapBytes * 5 / 8;
constexpr u32 kJoinUpToSlots = media::kLeafSlots * 5 / 8;

u32 count_of(u64 slots) { return static_cast<u32>(std::popcount(slots)); }

struct Placed {
  u64 key;
  u32 slot;
  u32 bytes;
};

Result<std::vector<Placed>> sorted_entries(const media::Leaf& leaf, u64 slots, u64 block) {
  std::vector<Placed> list;
  for (; slots != 0; slots &= slots - 1) {
    const auto slot = static_cast<u32>(std::countr_zero(slots));
    PMFS_ASSIGN(const htree::Entry entry, htree::read_entry(leaf, slot, to_u64(block_off(block))));
    list.push_back({entry.key, slot, htree::entry_bytes(entry.name.size())});
  }
  std::sort(list.begin(), list.end(), [](const Placed& a, const Placed& b) { return a.key < b.key; });
  return list;
}

}  // namespace

DirectoryEdit::DirectoryEdit(Volume& volume, const InodeRef& dir, Commit& commit, BlockHold& hold, i64 now)
    : volume_(volume), dir_(dir), commit_(commit), hold_(hold), hint_(dir->hint_logical) {
  touch_inode(volume, commit, dir);
  commit.set(dir.media().mtime_ns, static_cast<u64>(now));
  commit.set(dir.media().ctime_ns, static_cast<u64>(now));
}

// --- Blocks of the directory
// -------------------------------------------------------------------------------------------

u64 DirectoryEdit::end_logical() const { return commit_.value(dir_.media().size_bytes) / kBlockBytes; }

Result<u64> DirectoryEdit::fresh_leaf(BlockHold& hold, u64 logical) {
  if (logical >= kMapEnd) return Error{Errc::kFileTooBig, "the directory has as many blocks as a map holds", 0};
  u64 goal = 0;
  if (logical > 0) {
    PMFS_ASSIGN(const Extent before, volume_.maps.find(commit_.value(dir_.media().map_root), logical - 1));
    if (!before.hole()) goal = before.block + 1;
  }
  PMFS_ASSIGN(const BlockRun run, hold.take(1, goal));
  htree::init(volume_.persist, leaf_at(volume_, run.first), dir_.ino(), logical, volume_.hash_name.seed);
  return run.first;
}

void DirectoryEdit::take_map_change(MapChange change) {
  media::Inode& inode = dir_.media();
  commit_.set(inode.map_root, change.root);
  commit_.set(inode.blocks, commit_.value(inode.blocks) + change.added_blocks - change.freed_blocks());
  freed_.insert(freed_.end(), change.freed.begin(), change.freed.end());
}

Result<void> DirectoryEdit::map_leaf(BlockHold& hold, u64 logical, u64 block) {
  media::Inode& inode = dir_.media();
  PMFS_ASSIGN(MapChange change, volume_.maps.replace(commit_.value(inode.map_root), logical, logical + 1,
                                                     {{logical, 1, block, false}}, hold));
  if (logical >= end_logical()) commit_.set(inode.size_bytes, (logical + 1) * kBlockBytes);
  take_map_change(std::move(change));
  return {};
}

void DirectoryEdit::take_index_change(htree::IndexChange change) {
  media::Inode& inode = dir_.media();
  u64 freed = 0;
  for (const BlockRun& run : change.freed) freed += run.count;
  commit_.set(inode.rdev_index, change.root);
  commit_.set(inode.blocks, commit_.value(inode.blocks) + change.added_blocks - freed);
  freed_.insert(freed_.end(), change.freed.begin(), change.freed.end());
  new_root_ = change.root;
}

// The index is not kept right by this change: it becomes stale, in the same commit.
Result<void> DirectoryEdit::drop_index() {
  const u64 root = commit_.value(dir_.media().rdev_index);
  if (root == 0) return {};
  htree::IndexChange change;
  change.freed = index_blocks(volume_, dir_);
  if (change.freed.empty()) {
    // Which blocks a damaged index has cannot be said: they stay out of use until the next open (close_volume). The
    // count of blocks is corrected to what the map has.
    u64 blocks = count_blocks(area_blocks(volume_.maps, dir_.media()));
    PMFS_TRY(volume_.maps.each(commit_.value(dir_.media().map_root), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
      blocks += e.count;
      return {};
    }));
    PMFS_TRY(volume_.maps.each_node(commit_.value(dir_.media().map_root), [&](u64, u32) -> Result<void> {
      blocks += 1;
      return {};
    }));
    commit_.set(dir_.media().blocks, blocks);
  }
  take_index_change(std::move(change));
  return {};
}

// --- Inserting
// -----------------------------------------------------------------------------------------------------------

Result<u32> DirectoryEdit::free_ordinal(u64 root, u64 hash, u8 fingerprint) const {
  std::vector<u32> taken;
  const auto look = [&](const media::Leaf& at, u64 block, u64) -> Result<bool> {
    for (u64 left = htree::match(at, fingerprint); left != 0; left &= left - 1) {
      PMFS_ASSIGN(const htree::Entry entry,
                  htree::read_entry(at, static_cast<u32>(std::countr_zero(left)), to_u64(block_off(block))));
      if (htree::key_hash(entry.key) == hash) taken.push_back(htree::key_ordinal(entry.key));
    }
    return true;
  };
  if (root != 0)
    PMFS_TRY(each_leaf_of_hash(volume_, dir_, root, hash, look));
  else
    PMFS_TRY(each_leaf(volume_, dir_, look));
  std::sort(taken.begin(), taken.end());
  u32 ordinal = 0;
  for (const u32 one : taken) ordinal += one == ordinal;
  if (ordinal >= htree::kOrdinals) return Error{Errc::kNoSpace, "32,767 names of one hash in one directory", 0};
  return ordinal;
}

Result<void> DirectoryEdit::insert(std::string_view name, InodeNo ino, FileType type) {
  const u64 root = usable_index(volume_, dir_);
  NewEntry entry{name, volume_.hash_name(name), htree::make_target(ino, static_cast<u8>(type), name.size()), 0};
  PMFS_ASSIGN(const u32 ordinal, free_ordinal(root, entry.hash.hash, entry.hash.fingerprint));
  entry.key = htree::make_key(entry.hash.hash, ordinal);
  if (root != 0) {
    PMFS_TRY(insert_by_index(root, entry));
  } else {
    PMFS_TRY(drop_index());
    PMFS_TRY(insert_by_scan(entry));
  }
  Le64& count = dir_.media().entry_count;
  commit_.set(count, commit_.value(count) + 1);
  return {};
}

bool DirectoryEdit::put_in_place(u64 block, u64 logical, const NewEntry& entry) {
  media::Leaf& at = leaf_at(volume_, block);
  const auto place = htree::find_room(at, entry.name.size());
  if (!place.has_value()) return false;
  htree::write_entry(volume_.persist, at, *place, entry.target, entry.key, entry.hash, entry.name);
  commit_.set(at.live, live_after(at) | u64{1} << place->slot);
  hint_ = logical;
  return true;
}

// The first leaf with room takes it, the hinted one before all others; or one whose free bytes only lie scattered; or a
// new one. The one leaf of a small directory is split, so that an index begins with it.
Result<void> DirectoryEdit::insert_by_scan(const NewEntry& entry) {
  if (const auto block = leaf_block(volume_, dir_, hint_); block.ok() && put_in_place(*block, hint_, entry)) return {};
  struct Seen {
    u64 block, logical;
  };
  std::optional<Seen> room;
  std::optional<Seen> rewrite;
  Seen last{0, 0};
  u64 leaves = 0;
  PMFS_TRY(each_leaf(volume_, dir_, [&](const media::Leaf& at, u64 block, u64 logical) -> Result<bool> {
    leaves += 1;
    last = {block, logical};
    if (htree::find_room(at, entry.name.size()).has_value()) {
      room = last;
      return false;
    }
    if (!rewrite.has_value() && block != removed_from_ && htree::fits_compacted(at, entry.name.size(), at.live.get()))
      rewrite = last;
    return true;
  }));
  if (room.has_value()) {
    PMFS_ASSERT(put_in_place(room->block, room->logical, entry));
    return {};
  }
  if (rewrite.has_value()) return rewrite_leaf(rewrite->block, rewrite->logical, entry);
  if (leaves == 1 && volume_.options.dir_index)
    return split(0, {0, htree::kNoKey, last.logical, false}, last.block, entry);
  return add_leaf(end_logical(), entry);
}

Result<void> DirectoryEdit::insert_by_index(u64 root, const NewEntry& entry) {
  PMFS_ASSIGN(const htree::IndexedLeaf leaf, index_of(volume_, dir_).find(root, entry.key));
  PMFS_ASSIGN(const u64 block, leaf_block(volume_, dir_, leaf.logical));
  if (put_in_place(block, leaf.logical, entry)) return {};
  const media::Leaf& at = leaf_at(volume_, block);
  if (block != removed_from_ && htree::fits_compacted(at, entry.name.size(), at.live.get()))
    return rewrite_leaf(block, leaf.logical, entry);
  return split(root, leaf, block, entry);
}

Result<void> DirectoryEdit::add_leaf(u64 logical, const NewEntry& entry) {
  PMFS_ASSIGN(const u64 block, fresh_leaf(hold_, logical));
  htree::add_fresh(volume_.persist, leaf_at(volume_, block), entry.target, entry.key, entry.hash, entry.name);
  htree::flush_fresh(volume_.persist, leaf_at(volume_, block));
  hint_ = logical;
  return map_leaf(hold_, logical, block);
}

// The same logical block, with its entries close together in a fresh one.
Result<void> DirectoryEdit::rewrite_leaf(u64 block, u64 logical, const NewEntry& entry) {
  const media::Leaf& old = leaf_at(volume_, block);
  PMFS_ASSIGN(const u64 fresh, fresh_leaf(hold_, logical));
  htree::copy_entries(volume_.persist, old, old.live.get(), leaf_at(volume_, fresh));
  copied_ = {block, old.live.get(), fresh};
  htree::add_fresh(volume_.persist, leaf_at(volume_, fresh), entry.target, entry.key, entry.hash, entry.name);
  htree::flush_fresh(volume_.persist, leaf_at(volume_, fresh));
  hint_ = logical;
  return map_leaf(hold_, logical, fresh);
}

// Moves the half that the new entry belongs to into a fresh leaf at the end of the directory. The old leaf only loses
// bits: the moved bytes stay as they are until fence 2.
Result<void> DirectoryEdit::split(u64 root, const htree::IndexedLeaf& leaf, u64 block, const NewEntry& entry) {
  media::Leaf& old = leaf_at(volume_, block);
  PMFS_ASSIGN(const std::vector<Placed> list, sorted_entries(old, live_after(old), block));
  std::size_t at = 0;  // entries below the split
  u64 split_key = 0;
  if (list.size() >= 2) {
    u32 total = 0;
    for (const Placed& one : list) total += one.bytes;
    at = 1;
    for (u32 below = list[0].bytes; at + 1 < list.size() && below + list[at].bytes <= total / 2; ++at)
      below += list[at].bytes;
    split_key = list[at].key;
  } else if (!list.empty() && list[0].key < entry.key) {  // one entry left, and no room beside what this commit removes
    at = 1;
    split_key = entry.key;
  } else {
    split_key = entry.key + 1;
    if (split_key == leaf.next_key) return Error{Errc::kNoSpace, "a directory leaf cannot be split", 0};
  }
  const bool low = entry.key < split_key;
  u64 moved = 0;
  for (std::size_t i = low ? 0 : at; i < (low ? at : list.size()); ++i) moved |= u64{1} << list[i].slot;

  const u64 logical = end_logical();
  PMFS_ASSIGN(const u64 fresh, fresh_leaf(hold_, logical));
  htree::copy_entries(volume_.persist, old, moved, leaf_at(volume_, fresh));
  copied_ = {block, moved, fresh};
  htree::add_fresh(volume_.persist, leaf_at(volume_, fresh), entry.target, entry.key, entry.hash, entry.name);
  htree::flush_fresh(volume_.persist, leaf_at(volume_, fresh));
  commit_.set(old.live, live_after(old) & ~moved);
  PMFS_TRY(map_leaf(hold_, logical, fresh));

  const std::vector<htree::IndexedLeaf> halves = {{leaf.key, 0, low ? logical : leaf.logical, false},
                                                  {split_key, 0, low ? leaf.logical : logical, false}};
  const htree::Index index = index_of(volume_, dir_);
  PMFS_ASSIGN(htree::IndexChange change,
              root == 0 ? index.build(halves, hold_) : index.replace(root, leaf.key, halves, hold_));
  take_index_change(std::move(change));
  return {};
}

// --- Removing
// ------------------------------------------------------------------------------------------------------------

Result<void> DirectoryEdit::remove(const FoundEntry& entry, bool may_shrink) {
  media::Leaf& at = leaf_at(volume_, entry.block);
  PMFS_ASSERT(removed_from_ == 0);  // one removal in a commit and directory
  removed_from_ = entry.block;
  Le64& count = dir_.media().entry_count;
  commit_.set(count, commit_.value(count) - 1);
  const u64 live = live_after(at) & ~(u64{1} << entry.slot);
  bool shrunk = false;
  if (const u64 root = may_shrink ? usable_index(volume_, dir_) : 0; root != 0)
    PMFS_TRY(shrink(root, entry, live, shrunk));
  if (!shrunk) commit_.set(at.live, live);
  return {};
}

// Gives up an empty leaf, or joins a nearly empty one with the leaf behind it. Best effort: without blocks for it,
// nothing.
Result<void> DirectoryEdit::shrink(u64 root, const FoundEntry& entry, u64 live, bool& done) {
  const media::Leaf& at = leaf_at(volume_, entry.block);
  if (live != 0 && (count_of(live) > kShrinkBelowSlots || htree::bytes_in_use(at, live) > kShrinkBelowBytes)) return {};
  const htree::Index index = index_of(volume_, dir_);
  PMFS_ASSIGN(const htree::IndexedLeaf leaf, index.find(root, entry.key));
  if (leaf.logical != entry.logical)
    return Error{Errc::kCorrupt, "an entry stands in another leaf than the index says", 0};

  // Everything that needs blocks first, into a hold of its own and with nothing in the commit yet.
  BlockHold attempt = hold_.attempt();
  const auto gave_up = [](const Error& error) { return error.code == Errc::kNoSpace; };
  u64 joined = 0;
  htree::IndexedLeaf behind;
  if (live != 0) {
    if (!leaf.next_is_near) return {};
    PMFS_ASSIGN(behind, index.find(root, leaf.next_key));
    PMFS_ASSIGN(const u64 behind_block, leaf_block(volume_, dir_, behind.logical));
    const media::Leaf& other = leaf_at(volume_, behind_block);
    const u64 other_live = other.live.get();
    if (count_of(live) + count_of(other_live) > kJoinUpToSlots ||
        htree::bytes_in_use(at, live) + htree::bytes_in_use(other, other_live) > kJoinUpToBytes)
      return {};
    auto fresh = fresh_leaf(attempt, leaf.logical);
    if (!fresh.ok()) return gave_up(fresh.error()) ? Result<void>() : fresh.error();
    joined = *fresh;
    htree::copy_entries(volume_.persist, at, live, leaf_at(volume_, joined));
    htree::copy_entries(volume_.persist, other, other_live, leaf_at(volume_, joined));
    htree::flush_fresh(volume_.persist, leaf_at(volume_, joined));
  }
  const u64 gone_key = live == 0 ? leaf.key : behind.key;
  const u64 gone_logical = live == 0 ? leaf.logical : behind.logical;
  auto index_change = index.replace(root, gone_key, {}, attempt);
  if (!index_change.ok()) return gave_up(index_change.error()) ? Result<void>() : index_change.error();
  const u64 map_root = commit_.value(dir_.media().map_root);
  auto unmapped = volume_.maps.replace(map_root, gone_logical, gone_logical + 1, {}, attempt);
  if (!unmapped.ok()) return gave_up(unmapped.error()) ? Result<void>() : unmapped.error();
  if (joined != 0) {
    auto mapped = volume_.maps.replace(unmapped->root, leaf.logical, leaf.logical + 1,
                                       {{leaf.logical, 1, joined, false}}, attempt);
    if (!mapped.ok()) return gave_up(mapped.error()) ? Result<void>() : mapped.error();
    unmapped->root = mapped->root;
    unmapped->added_blocks += mapped->added_blocks;
    unmapped->freed.insert(unmapped->freed.end(), mapped->freed.begin(), mapped->freed.end());
  }

  PMFS_ASSIGN(const u64 end, volume_.maps.end(unmapped->root));
  PMFS_ASSIGN(const bool several, index.names_several(index_change->root));
  commit_.set(dir_.media().size_bytes, end * kBlockBytes);
  take_map_change(std::move(*unmapped));
  hold_.adopt(attempt);
  if (several) {
    take_index_change(std::move(*index_change));
  } else {
    // One leaf needs no index: its last node goes too, whether it was just made or is an old one.
    const u64 last_node = index_change->root / kBlockBytes;
    if (index_change->root != 0 && hold_.holds(last_node)) {
      hold_.give_back(last_node);
      index_change->added_blocks -= 1;
    } else if (index_change->root != 0) {
      index_change->freed.push_back({last_node, 1});
    }
    index_change->root = 0;
    take_index_change(std::move(*index_change));
  }
  done = true;
  return {};
}

void DirectoryEdit::retarget(const FoundEntry& entry, InodeNo ino, FileType type) {
  htree::Entry raw;
  raw.slot = entry.slot;
  if (entry.block == copied_.from && (copied_.slots >> entry.slot & 1) != 0) {
    // The copy is what counts. Nothing points to it yet, so it is no live word; the old one must not be logged (R4).
    media::Leaf& fresh = leaf_at(volume_, copied_.to);
    for (u64 left = fresh.live.get(); left != 0; left &= left - 1) {
      const auto copy =
          htree::read_entry(fresh, static_cast<u32>(std::countr_zero(left)), to_u64(block_off(copied_.to)));
      if (!copy.ok() || copy->key != entry.key) continue;
      Le64& word = htree::target_word(fresh, *copy);
      volume_.persist.store(word, htree::make_target(ino, static_cast<u8>(type), copy->name.size()));
      volume_.persist.flush(&word, sizeof(word), Order::kFreshLeaf);
      return;
    }
    PMFS_ASSERT(false);
  }
  media::Leaf& at = leaf_at(volume_, entry.block);
  Le64& word = htree::target_word(at, raw);
  commit_.set(word, htree::make_target(ino, static_cast<u8>(type), htree::target_name_len(word.get())));
}

void DirectoryEdit::add_links(int delta) {
  Le64& word = dir_.media().mode_links;
  const u64 now = commit_.value(word);
  commit_.set(word, media::join(media::low_half(now), media::high_half(now) + static_cast<u32>(delta)));
}

void DirectoryEdit::after_commit(Freed& freed) {
  dir_->hint_logical = hint_;
  if (new_root_ != 0) dir_->index_good = new_root_;  // made from one that was found good
  freed.blocks.insert(freed.blocks.end(), freed_.begin(), freed_.end());
}

// --- Making an index
// -----------------------------------------------------------------------------------------------------

namespace {

struct Everything {
  u64 key;
  u64 target;
  htree::NameHash hash;
  std::string_view name;  // into the old leaves, which stay until the commit has run
};

}  // namespace

Result<void> prepare_directory(Volume& volume, const InodeRef& dir) {
  media::Inode& inode = dir.media();
  if (!volume.options.dir_index || inode.size_bytes.get() <= kBlockBytes || dir->index_lacks_space ||
      usable_index(volume, dir) != 0)
    return {};
  u64 mapped = 0;  // the one leaf of a directory that has shrunk may stand behind a hole
  PMFS_TRY(volume.maps.each(inode.map_root.get(), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    mapped += e.count;
    return {};
  }));
  if (mapped < 2) return {};
  std::vector<Everything> all;
  PMFS_TRY(each_entry(volume, dir, [&](const htree::Entry& e, u64, u64) -> Result<void> {
    all.push_back({e.key, htree::make_target(e.ino, e.type, e.name.size()), volume.hash_name(e.name), e.name});
    return {};
  }));
  std::sort(all.begin(), all.end(), [](const Everything& a, const Everything& b) { return a.key < b.key; });

  // ORDER index rebuild: leaves, map and index are fresh and ride in fence 1. Live words: map root, index root, size,
  // blocks.
  Commit commit = volume.begin_commit();
  BlockHold hold(volume.blocks);
  const auto no_space = [&](const Error& error) -> Result<void> {
    if (error.code != Errc::kNoSpace) return error;
    dir->index_lacks_space = true;
    return {};
  };
  std::vector<Extent> extents;
  std::vector<htree::IndexedLeaf> leaves;
  for (std::size_t i = 0; i < all.size();) {
    const u64 logical = leaves.size();
    const auto run = hold.take(1, extents.empty() ? 0 : extents.back().block + extents.back().count);
    if (!run.ok()) return no_space(run.error());
    media::Leaf& leaf = leaf_at(volume, run->first);
    htree::init(volume.persist, leaf, dir.ino(), logical, volume.hash_name.seed);
    leaves.push_back({i == 0 ? 0 : all[i].key, 0, logical, false});
    for (u32 slots = 0, bytes = 0; i < all.size(); ++i, ++slots) {  // three quarters full
      bytes += htree::entry_bytes(all[i].name.size());
      if (slots != 0 && (slots == media::kLeafSlots * 3 / 4 || bytes > kHeapBytes * 3 / 4)) break;
      htree::add_fresh(volume.persist, leaf, all[i].target, all[i].key, all[i].hash, all[i].name);
    }
    htree::flush_fresh(volume.persist, leaf);
    extents.push_back({logical, 1, run->first, false});
  }
  auto map = volume.maps.replace(inode.map_root.get(), 0, kMapEnd, extents, hold);
  if (!map.ok()) return no_space(map.error());
  htree::IndexChange index;
  if (leaves.size() > 1) {
    auto built = index_of(volume, dir).build(leaves, hold);
    if (!built.ok()) return no_space(built.error());
    index = std::move(*built);
  }
  const std::vector<BlockRun> old_index = index_blocks(volume, dir);
  touch_inode(volume, commit, dir);
  u64 blocks = index.added_blocks + extents.size() + count_blocks(area_blocks(volume.maps, inode));
  PMFS_TRY(volume.maps.each_node(map->root, [&](u64, u32) -> Result<void> {
    blocks += 1;
    return {};
  }));
  commit.set(inode.map_root, map->root);
  commit.set(inode.rdev_index, index.root);
  commit.set(inode.size_bytes, extents.size() * kBlockBytes);
  commit.set(inode.blocks, blocks);
  PMFS_ASSIGN(const ChangeMark mark, commit.run());
  hold.keep();
  dir->index_good = index.root;
  dir->rebuilds.fetch_add(1, std::memory_order_relaxed);
  dir->hint_logical = 0;
  Freed freed;
  freed.by = mark;
  freed.blocks = std::move(map->freed);
  freed.blocks.insert(freed.blocks.end(), old_index.begin(), old_index.end());
  volume.quarantine.add(std::move(freed));
  return {};
}

}  // namespace pmfs
