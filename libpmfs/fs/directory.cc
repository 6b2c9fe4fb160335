#include "fs/directory.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "fs/attributes.h"

namespace pmfs {

static_assert(htree::make_key(1, 0) > kCookieDotDot, "an entry's key is never a reserved cookie");

namespace {

media::Leaf& leaf_at(const Volume& volume, u64 block) {
  return *reinterpret_cast<media::Leaf*>(volume.persist.memory().at(block_off(block)));
}

// Calls `visit(leaf, block, logical)` for each leaf, checked; it returns true to go on, false to stop.
template <class Visit>
Result<void> each_leaf(const Volume& volume, const InodeRef& dir, Visit&& visit) {
  bool done = false;
  return volume.maps.each(dir.media().map_root.get(), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    if (e.unwritten) return Error{Errc::kCorrupt, "a directory has an unwritten block", to_u64(block_off(e.block))};
    for (u64 i = 0; i < e.count && !done; ++i) {
      media::Leaf& leaf = leaf_at(volume, e.block + i);
      PMFS_TRY(htree::check_header(leaf, dir.ino(), e.logical + i, to_u64(block_off(e.block + i))));
      PMFS_ASSIGN(const bool go_on, visit(leaf, e.block + i, e.logical + i));
      done = !go_on;
    }
    return {};
  });
}

FoundEntry found(const htree::Entry& entry, u64 block, u64 logical) {
  return {entry.ino, static_cast<FileType>(entry.type), entry.key, block, logical, entry.slot};
}

}  // namespace

Result<std::optional<FoundEntry>> find_entry(const Volume& volume, const InodeRef& dir, std::string_view name) {
  const htree::NameHash hash = volume.hash_name(name);
  std::optional<FoundEntry> result;
  PMFS_TRY(each_leaf(volume, dir, [&](const media::Leaf& leaf, u64 block, u64 logical) -> Result<bool> {
    PMFS_ASSIGN(const auto entry, htree::find(leaf, hash, name, to_u64(block_off(block))));
    if (!entry.has_value()) return true;
    result = found(*entry, block, logical);
    return false;
  }));
  return result;
}

Result<void> each_entry(const Volume& volume, const InodeRef& dir,
                        const std::function<Result<void>(const htree::Entry&, u64, u64)>& visit) {
  return each_leaf(volume, dir, [&](const media::Leaf& leaf, u64 block, u64 logical) -> Result<bool> {
    for (u64 left = leaf.live.get(); left != 0; left &= left - 1) {
      PMFS_ASSIGN(const htree::Entry entry,
                  htree::read_entry(leaf, static_cast<u32>(std::countr_zero(left)), to_u64(block_off(block))));
      PMFS_TRY(visit(entry, block, logical));
    }
    return true;
  });
}

// --- Changing
// ----------------------------------------------------------------------------------------------------------

DirectoryEdit::DirectoryEdit(Volume& volume, const InodeRef& dir, Commit& commit, BlockHold& hold, i64 now)
    : volume_(volume), dir_(dir), commit_(commit), hold_(hold), hint_(dir->hint_logical) {
  touch_inode(volume, commit, dir);
  commit.set(dir.media().mtime_ns, static_cast<u64>(now));
  commit.set(dir.media().ctime_ns, static_cast<u64>(now));
}

media::Leaf& DirectoryEdit::leaf(u64 block) const { return leaf_at(volume_, block); }

u64 DirectoryEdit::reserved_slots(u64 block) const {
  u64 slots = block == removed_block_ ? removed_slots_ : 0;
  if (block == dir_->removed_block && !volume_.lanes.retired(dir_->removed_by) &&
      volume_.persist.rule(Rule::kEntryQuarantine))
    slots |= dir_->removed_slots;
  return slots;
}

Result<void> DirectoryEdit::insert(std::string_view name, InodeNo ino, FileType type) {
  const htree::NameHash hash = volume_.hash_name(name);
  // One pass: the ordinals in use for this hash, and where the entry could go. The first leaf with room wins, the
  // hinted one before all others.
  struct Room {
    u64 block, logical;
    htree::Place place;
  };
  std::optional<Room> room;
  std::optional<Room> rewrite;  // a leaf whose free bytes only lie scattered
  std::vector<u32> ordinals;
  u64 end = 0;
  PMFS_TRY(each_leaf(volume_, dir_, [&](const media::Leaf& at, u64 block, u64 logical) -> Result<bool> {
    end = logical + 1;
    for (u64 left = htree::match(at, hash.fingerprint); left != 0; left &= left - 1) {
      PMFS_ASSIGN(const htree::Entry entry,
                  htree::read_entry(at, static_cast<u32>(std::countr_zero(left)), to_u64(block_off(block))));
      if (htree::key_hash(entry.key) == hash.hash) ordinals.push_back(htree::key_ordinal(entry.key));
    }
    if (room.has_value() && logical != hint_) return true;
    if (const auto place = htree::find_room(at, name.size(), reserved_slots(block)); place.has_value())
      room = Room{block, logical, *place};
    else if (!rewrite.has_value() && block != removed_block_ &&
             htree::fits_compacted(at, name.size(), reserved_slots(block)))
      rewrite = Room{block, logical, {}};
    return true;
  }));

  std::sort(ordinals.begin(), ordinals.end());
  u32 ordinal = 0;
  for (const u32 taken : ordinals) ordinal += taken == ordinal;
  if (ordinal >= htree::kOrdinals) return Error{Errc::kNoSpace, "32,767 names of one hash in one directory", 0};
  const u64 key = htree::make_key(hash.hash, ordinal);
  const u64 target = htree::make_target(ino, static_cast<u8>(type), name.size());

  if (room.has_value()) {
    media::Leaf& at = leaf(room->block);
    htree::write_entry(volume_.persist, at, room->place, target, key, hash, name);
    commit_.set(at.live, commit_.value(at.live) | u64{1} << room->place.slot);
    hint_ = room->logical;
  } else if (rewrite.has_value()) {
    PMFS_TRY(put_in_fresh_leaf(&leaf(rewrite->block), rewrite->logical, name, target, key, hash));
  } else {
    if (end >= kMapEnd) return Error{Errc::kFileTooBig, "the directory has as many blocks as a map holds", 0};
    PMFS_TRY(put_in_fresh_leaf(nullptr, end, name, target, key, hash));
  }
  Le64& count = dir_.media().entry_count;
  commit_.set(count, commit_.value(count) + 1);
  return {};
}

// A new leaf at the end of the directory, or in the place of one whose entries are moved together (`from`).
Result<void> DirectoryEdit::put_in_fresh_leaf(const media::Leaf* from, u64 logical, std::string_view name, u64 target,
                                              u64 key, const htree::NameHash& hash) {
  media::Inode& inode = dir_.media();
  Persist& persist = volume_.persist;
  u64 goal = 0;
  if (logical > 0) {
    PMFS_ASSIGN(const Extent before, volume_.maps.find(inode.map_root.get(), logical - 1));
    if (!before.hole()) goal = before.block + 1;
  }
  PMFS_ASSIGN(const BlockRun run, hold_.take(1, goal));
  media::Leaf& fresh = leaf(run.first);
  htree::init(persist, fresh, dir_.ino(), logical, volume_.hash_name.seed);
  if (from != nullptr) htree::copy_live(persist, *from, fresh);
  htree::add_fresh(persist, fresh, target, key, hash, name);
  htree::flush_fresh(persist, fresh);

  PMFS_ASSIGN(const MapChange change, volume_.maps.replace(inode.map_root.get(), logical, logical + 1,
                                                           {{logical, 1, run.first, false}}, hold_));
  commit_.set(inode.map_root, change.root);
  commit_.set(inode.blocks, inode.blocks.get() + change.added_blocks - change.freed_blocks());
  if (from == nullptr) commit_.set(inode.size_bytes, (logical + 1) * kBlockBytes);
  freed_.insert(freed_.end(), change.freed.begin(), change.freed.end());
  hint_ = logical;
  return {};
}

void DirectoryEdit::remove(const FoundEntry& entry) {
  media::Leaf& at = leaf(entry.block);
  commit_.set(at.live, commit_.value(at.live) & ~(u64{1} << entry.slot));
  PMFS_ASSERT(removed_block_ == 0);  // one removal in a commit and directory
  removed_block_ = entry.block;
  removed_slots_ = u64{1} << entry.slot;
  Le64& count = dir_.media().entry_count;
  commit_.set(count, commit_.value(count) - 1);
}

void DirectoryEdit::retarget(const FoundEntry& entry, InodeNo ino, FileType type) {
  media::Leaf& at = leaf(entry.block);
  htree::Entry raw;
  raw.slot = entry.slot;
  Le64& word = htree::target_word(at, raw);
  commit_.set(word, htree::make_target(ino, static_cast<u8>(type), htree::target_name_len(word.get())));
}

void DirectoryEdit::add_links(int delta) {
  Le64& word = dir_.media().mode_links;
  const u64 now = commit_.value(word);
  commit_.set(word, media::join(media::low_half(now), media::high_half(now) + static_cast<u32>(delta)));
}

void DirectoryEdit::after_commit(const ChangeMark& mark, Freed& freed) {
  // The commit that just ran retired the one before it (its step 1), so only this one's removals still have to wait.
  dir_->removed_block = removed_block_;
  dir_->removed_slots = removed_slots_;
  dir_->removed_by = mark;
  dir_->hint_logical = hint_;
  freed.blocks.insert(freed.blocks.end(), freed_.begin(), freed_.end());
}

// --- Listing
// -----------------------------------------------------------------------------------------------------------

Result<void> DirectorySnapshot::take(const Volume& volume, const InodeRef& dir) {
  keys_.clear();
  PMFS_TRY(each_entry(volume, dir, [&](const htree::Entry& entry, u64, u64 logical) -> Result<void> {
    keys_.push_back({entry.key, logical});
    return {};
  }));
  std::sort(keys_.begin(), keys_.end(), [](const Key& a, const Key& b) { return a.key < b.key; });
  at_ = 0;
  taken_ = true;
  return {};
}

Result<bool> DirectorySnapshot::next(const Volume& volume, const InodeRef& dir, u64 key, DirEntry& out) {
  if (at_ > keys_.size() || (at_ > 0 && keys_[at_ - 1].key > key) || (at_ < keys_.size() && keys_[at_].key <= key))
    at_ = static_cast<std::size_t>(
        std::upper_bound(keys_.begin(), keys_.end(), key, [](u64 k, const Key& b) { return k < b.key; }) -
        keys_.begin());
  for (; at_ < keys_.size(); ++at_) {
    const Key& wanted = keys_[at_];
    PMFS_ASSIGN(const Extent e, volume.maps.find(dir.media().map_root.get(), wanted.logical));
    if (e.hole()) continue;  // the directory was emptied meanwhile
    const media::Leaf& leaf = leaf_at(volume, e.block);
    PMFS_TRY(htree::check_header(leaf, dir.ino(), wanted.logical, to_u64(block_off(e.block))));
    for (u64 left = leaf.live.get(); left != 0; left &= left - 1) {
      PMFS_ASSIGN(const htree::Entry entry,
                  htree::read_entry(leaf, static_cast<u32>(std::countr_zero(left)), to_u64(block_off(e.block))));
      if (entry.key != wanted.key) continue;
      out.ino = entry.ino;
      out.type = static_cast<FileType>(entry.type);
      out.cookie = entry.key;
      out.name_len = static_cast<u16>(entry.name.size());
      std::memcpy(out.name, entry.name.data(), entry.name.size());
      out.name[entry.name.size()] = '\0';
      ++at_;
      return true;
    }
    // Removed since the snapshot: an entry never leaves its logical block while it lives (D2).
  }
  return false;
}

}  // namespace pmfs
