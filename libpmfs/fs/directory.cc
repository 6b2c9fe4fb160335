#include "fs/directory.h"

#include <algorithm>

#include "base/racy.h"

namespace pmfs {

static_assert(htree::make_key(1, 0) > kCookieDotDot, "an entry's key is never a reserved cookie");

namespace {

FoundEntry found(const htree::Entry& entry, u64 block, u64 logical) {
  return {entry.ino, static_cast<FileType>(entry.type), entry.key, block, logical, entry.slot};
}

}  // namespace

htree::Index index_of(const Volume& volume, const InodeRef& dir) { return {volume.index_space, dir.ino()}; }

std::vector<BlockRun> index_blocks(const Volume& volume, const InodeRef& dir) {
  std::vector<BlockRun> blocks;
  const auto verified = index_of(volume, dir)
                            .verify(
                                dir.media().rdev_index.get(),
                                [&](u64 block) -> Result<void> {
                                  blocks.push_back({block, 1});
                                  return {};
                                },
                                [](const htree::IndexedLeaf&) { return Result<void>(); });
  return verified.ok() ? blocks : std::vector<BlockRun>();
}

u64 usable_index(const Volume& volume, const InodeRef& dir, ReadSet* reads) {
  const u64 root = dir.media().rdev_index.get();
  if (root == 0 || !volume.options.dir_index) return 0;
  if (root == dir->index_good.load(std::memory_order_relaxed)) return root;
  if (root == dir->index_damaged.load(std::memory_order_relaxed)) return 0;
  if (reads != nullptr) {
    reads->give_up();
    return 0;
  }
  // Seen for the first time since the file system was opened: look at all of it once. It must name each leaf, once.
  std::vector<u64> named;
  const auto verified = index_of(volume, dir)
                            .verify(
                                root, [](u64) { return Result<void>(); },
                                [&](const htree::IndexedLeaf& leaf) -> Result<void> {
                                  named.push_back(leaf.logical);
                                  return {};
                                });
  std::sort(named.begin(), named.end());
  std::size_t at = 0;
  const auto counted = volume.maps.each(dir.media().map_root.get(), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    for (u64 logical = e.logical; logical < e.end(); ++logical)
      if (at == named.size() || named[at++] != logical)
        return Error{Errc::kCorrupt, "an index does not name each leaf once", 0};
    return {};
  });
  if (verified.ok() && counted.ok() && at == named.size()) {
    dir->index_good.store(root, std::memory_order_relaxed);
    return root;
  }
  if (dir->index_damaged.exchange(root, std::memory_order_relaxed) != root)
    volume.damaged_indexes.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

namespace {

// What a reader without locks is told when a leaf is changing; nobody else hears of it.
Error changing() { return {Errc::kBusy, "a directory leaf is changing", 0}; }

}  // namespace

Result<u64> leaf_block(const Volume& volume, const InodeRef& dir, u64 logical, ReadSet* reads) {
  if (logical >= kMapEnd) return Error{Errc::kCorrupt, "an index names a leaf that cannot be", 0};
  PMFS_ASSIGN(const Extent e, volume.maps.find(dir.media().map_root.get(), logical, ExtentMap::Sums::kSkip));
  if (e.hole() || e.unwritten) return Error{Errc::kCorrupt, "an index names a leaf that is not there", 0};
  if (reads != nullptr && !reads->watch(volume.versions.of(e.block))) return changing();
  PMFS_TRY(htree::check_header(leaf_at(volume, e.block), dir.ino(), logical, to_u64(block_off(e.block))));
  return e.block;
}

Result<void> each_leaf_of_hash(const Volume& volume, const InodeRef& dir, u64 root, u64 hash,
                               const std::function<Result<bool>(const media::Leaf&, u64 block, u64 logical)>& visit,
                               ReadSet* reads) {
  const htree::Index index = index_of(volume, dir);
  for (u64 key = htree::make_key(hash, 0);;) {
    PMFS_ASSIGN(const htree::IndexedLeaf at, index.find(root, key));
    PMFS_ASSIGN(const u64 block, leaf_block(volume, dir, at.logical, reads));
    PMFS_ASSIGN(const bool go_on, visit(leaf_at(volume, block), block, at.logical));
    // Names of one hash go on in the next leaf while its lowest key still has that hash.
    if (!go_on || at.next_key == htree::kNoKey || htree::key_hash(at.next_key) != hash) return {};
    key = at.next_key;
  }
}

Result<std::optional<FoundEntry>> find_entry(const Volume& volume, const InodeRef& dir, std::string_view name,
                                             ReadSet* reads) {
  const htree::NameHash hash = volume.hash_name(name);
  std::optional<FoundEntry> result;
  const auto look = [&](const media::Leaf& leaf, u64 block, u64 logical) -> Result<bool> {
    PMFS_ASSIGN(const auto entry, htree::find(leaf, hash, name, to_u64(block_off(block))));
    if (!entry.has_value()) return true;
    result = found(*entry, block, logical);
    return false;
  };
  if (const u64 root = usable_index(volume, dir, reads); root != 0)
    PMFS_TRY(each_leaf_of_hash(volume, dir, root, hash.hash, look, reads));
  else
    PMFS_TRY(each_leaf(volume, dir, look, reads));
  return result;
}

Result<void> each_leaf(const Volume& volume, const InodeRef& dir,
                       const std::function<Result<bool>(const media::Leaf&, u64 block, u64 logical)>& visit,
                       ReadSet* reads) {
  bool done = false;
  return volume.maps.each(dir.media().map_root.get(), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    if (e.unwritten) return Error{Errc::kCorrupt, "a directory has an unwritten block", to_u64(block_off(e.block))};
    for (u64 i = 0; i < e.count && !done; ++i) {
      const media::Leaf& leaf = leaf_at(volume, e.block + i);
      if (reads != nullptr && !reads->watch(volume.versions.of(e.block + i))) return changing();
      PMFS_TRY(htree::check_header(leaf, dir.ino(), e.logical + i, to_u64(block_off(e.block + i))));
      PMFS_ASSIGN(const bool go_on, visit(leaf, e.block + i, e.logical + i));
      done = !go_on;
    }
    return {};
  });
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

// --- Listing
// -----------------------------------------------------------------------------------------------------------

namespace {

void show(const htree::Entry& entry, DirEntry& out) {
  out.ino = entry.ino;
  out.type = static_cast<FileType>(entry.type);
  out.cookie = entry.key;
  out.name_len = static_cast<u16>(entry.name.size());
  racy_copy(out.name, entry.name.data(), entry.name.size());
  out.name[entry.name.size()] = '\0';
}

}  // namespace

// Reads the leaf that holds `from` (by the index, or the only one) and sorts its entries from there on.
Result<void> DirectoryListing::sort_leaf(const Volume& volume, const InodeRef& dir, u64 root, u64 from,
                                         ReadSet* reads) {
  leaf_.block = 0;
  htree::IndexedLeaf at{0, htree::kNoKey, 0, false};
  if (root != 0) {
    PMFS_ASSIGN(at, index_of(volume, dir).find(root, from));
  }
  PMFS_ASSIGN(const u64 block, leaf_block(volume, dir, at.logical, reads));
  // Of the time before the first of it was read: what is kept here is good for as long as they stay the same.
  const Version& version = volume.versions.of(block);
  const u64 leaf_seen = reads != nullptr ? reads->seen(version) : version.look();
  const u64 shape_seen = reads != nullptr ? reads->seen(dir->shape) : dir->shape.look();
  const media::Leaf& leaf = leaf_at(volume, block);
  struct One {
    u64 key;
    u8 slot;
  };
  std::array<One, media::kLeafSlots> found;
  u32 count = 0;
  for (u64 left = leaf.live.get(); left != 0; left &= left - 1) {
    const auto slot = static_cast<u32>(std::countr_zero(left));
    PMFS_ASSIGN(const htree::Entry entry, htree::read_entry(leaf, slot, to_u64(block_off(block))));
    if (entry.key >= from) found[count++] = {entry.key, static_cast<u8>(slot)};
  }
  std::sort(found.begin(), found.begin() + count, [](const One& a, const One& b) { return a.key < b.key; });
  leaf_ = {from - 1, block, leaf_seen, shape_seen, at.next_key, 0, count, {}};
  for (u32 i = 0; i < count; ++i) leaf_.slots[i] = found[i].slot;
  return {};
}

Result<bool> DirectoryListing::next(const Volume& volume, const InodeRef& dir, u64 key, DirEntry& out, ReadSet* reads) {
  const u64 root = usable_index(volume, dir, reads);
  if (reads != nullptr && reads->failed()) return false;
  // The only leaf of a small directory is in no need of an index.
  const u64 map_root = dir.media().map_root.get();
  if (root == 0 && !volume.maps.one_block(map_root)) {
    if (map_root == 0) return false;
    if (reads == nullptr) return next_of_snapshot(volume, dir, key, out);
    reads->give_up();
    return false;
  }
  if (leaf_.block == 0 || leaf_.last_key != key || !dir->shape.still(leaf_.shape_seen) ||
      !volume.versions.of(leaf_.block).still(leaf_.leaf_seen)) {
    PMFS_TRY(sort_leaf(volume, dir, root, key + 1, reads));
  } else if (reads != nullptr && !reads->watch(volume.versions.of(leaf_.block))) {
    return changing();
  }
  while (leaf_.at == leaf_.count) {
    if (leaf_.next_key == htree::kNoKey) return false;
    PMFS_TRY(sort_leaf(volume, dir, root, leaf_.next_key, reads));
  }
  PMFS_ASSIGN(const htree::Entry entry,
              htree::read_entry(leaf_at(volume, leaf_.block), leaf_.slots[leaf_.at], to_u64(block_off(leaf_.block))));
  leaf_.at += 1;
  leaf_.last_key = entry.key;
  show(entry, out);
  return true;
}

Result<void> DirectoryListing::take_snapshot(const Volume& volume, const InodeRef& dir) {
  keys_.clear();
  PMFS_TRY(each_entry(volume, dir, [&](const htree::Entry& entry, u64, u64 logical) -> Result<void> {
    keys_.push_back({entry.key, logical});
    return {};
  }));
  std::sort(keys_.begin(), keys_.end(), [](const Key& a, const Key& b) { return a.key < b.key; });
  at_ = 0;
  rebuilds_ = dir->rebuilds.load(std::memory_order_relaxed);
  taken_ = true;
  return {};
}

Result<bool> DirectoryListing::next_of_snapshot(const Volume& volume, const InodeRef& dir, u64 key, DirEntry& out) {
  // The listing is of one moment, the first read behind the dots: what comes and goes later is not promised.
  if (!taken_) PMFS_TRY(take_snapshot(volume, dir));
  if (at_ > keys_.size() || (at_ > 0 && keys_[at_ - 1].key > key) || (at_ < keys_.size() && keys_[at_].key <= key))
    at_ = static_cast<std::size_t>(
        std::upper_bound(keys_.begin(), keys_.end(), key, [](u64 k, const Key& b) { return k < b.key; }) -
        keys_.begin());
  for (; at_ < keys_.size(); ++at_) {
    const Key& wanted = keys_[at_];
    std::optional<htree::Entry> entry;
    // An entry stays in its logical block while it lives, unless an index was made meanwhile: then it may be anywhere.
    const auto look = [&](const media::Leaf& leaf, u64 block, u64) -> Result<bool> {
      for (u64 left = leaf.live.get(); left != 0; left &= left - 1) {
        PMFS_ASSIGN(const htree::Entry e,
                    htree::read_entry(leaf, static_cast<u32>(std::countr_zero(left)), to_u64(block_off(block))));
        if (e.key != wanted.key) continue;
        entry = e;
        return false;
      }
      return true;
    };
    if (auto block = leaf_block(volume, dir, wanted.logical); block.ok())
      PMFS_TRY(look(leaf_at(volume, *block), *block, wanted.logical));
    if (!entry.has_value() && dir->rebuilds.load(std::memory_order_relaxed) != rebuilds_)
      PMFS_TRY(each_leaf(volume, dir, look));
    if (!entry.has_value()) continue;  // removed since
    show(*entry, out);
    ++at_;
    return true;
  }
  return false;
}

}  // namespace pmfs
