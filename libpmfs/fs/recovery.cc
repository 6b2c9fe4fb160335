// Opening and closing: recovery of the lanes, the epoch, and what the allocator knows.
//
// RECOVERY order (DESIGN.md "RECOVERY"):
//   V1  Superblock and regions are checked before anything they lead to is followed.
//   V2  Every lane is recovered under the old epoch; one fence makes that durable.
//   V3  Then the epoch is raised and fenced: all records of the past are void. A crash before that repeats V2.
//   V4  Only then it is learnt what is free: from the saved map if it names the old epoch, otherwise from what is
//       reachable.
//   V5  Nothing is allocated before V4 is complete.
#include <cstring>

#include "base/checksum.h"
#include "fs/area.h"
#include "fs/directory.h"
#include "fs/rebuild.h"
#include "fs/volume.h"

namespace pmfs {

namespace {

u64 saved_locator_checksum(const media::Superblock& superblock) {
  return checksum64(&superblock.saved_map_off,
                    offsetof(media::Superblock, saved_locator_sum) - offsetof(media::Superblock, saved_map_off));
}

// The saved map, if there is a valid one of this epoch.
std::vector<u64> read_saved_map(const Volume& volume, u64 epoch) {
  const media::Superblock& sb = volume.superblock;
  const u64 off = sb.saved_map_off.get();
  const u64 bytes = sb.saved_map_bytes.get();
  if (sb.saved_locator_sum.get() != saved_locator_checksum(sb) || sb.saved_map_epoch.get() != epoch || bytes == 0 ||
      off % kBlockBytes != 0 || bytes % sizeof(u64) != 0 || !volume.regions.contains(off, bytes))
    return {};
  const std::byte* at = volume.persist.memory().at(PoolOff{off});
  if (checksum64(at, bytes, epoch) != sb.saved_map_sum.get()) return {};
  std::vector<u64> words(bytes / sizeof(u64));
  std::memcpy(words.data(), at, bytes);
  return words;
}

// The blocks' words, then the slots'.
bool load_saved_map(Volume& volume, std::span<const u64> words) {
  const u64 slot_words = volume.inodes.saved_words();
  if (words.size() < slot_words || !volume.blocks.load(words.first(words.size() - slot_words))) return false;
  volume.inodes.load_free_slots(words.last(slot_words));
  return true;
}

}  // namespace

namespace {

dcache::CacheOptions cache_options(const OpenOptions& options) {
  dcache::CacheOptions cache;
  cache.bytes = options.dcache_bytes;
  switch (options.resolver) {
    case OpenOptions::Resolver::kWalk: cache.resolver = dcache::ResolverKind::kWalk; break;
    case OpenOptions::Resolver::kStage: cache.resolver = dcache::ResolverKind::kStage; break;
    case OpenOptions::Resolver::kFullpath: cache.resolver = dcache::ResolverKind::kFullpath; break;
  }
  cache.stage.pivots = options.pivots;
  cache.stage.hashed = options.pivots_hashed;
  cache.stage.heat_inline = options.heat_inline;
  cache.stage.adaptive = options.pivots_adaptive;
  cache.stage.period_ms = options.pivot_period_ms;
  cache.stage.threshold = options.pivot_threshold;
  return cache;
}

}  // namespace

Volume::Volume(Memory memory, media::Superblock& sb, Regions region_list, LaneKey key, const OpenOptions& open_options)
    : persist(memory),
      superblock(sb),
      regions(std::move(region_list)),
      lanes(persist, PoolOff{sb.lane_area_off.get()}, key, sb.lane_count.get()),
      blocks(regions),
      maps(persist, regions, sb.hash_seed.get()),
      index_space{persist,
                  [this](u64 block) {
                    return regions.contains_blocks({block, 1});
                  },
                  sb.hash_seed.get()},
      quarantine(lanes, persist, sections,
                 [this](const Freed& freed) {
                   for (const BlockRun& run : freed.blocks) blocks.release(run);
                   for (const u64 slot : freed.slots) inodes.add_free_slot(slot);
                 }),
      inodes(persist, lanes, sb, maps),
      options(open_options),
      lookup_source(*this),
      paths(lookup_source, cache_options(open_options)) {
  hash_name.seed = sb.hash_seed.get();
  inodes.set_quarantine(&quarantine, [this](const InodeRef& ref) { return blocks_beside_map(*this, ref); });
}

Result<std::unique_ptr<Volume>> open_volume(Memory memory, PoolOff locator_off, const OpenOptions& options) {
  PMFS_ASSIGN(media::Superblock* const sb, find_superblock(memory, locator_off));
  if ((sb->ro_compat.get() & ~kKnownRoCompat) != 0 && !options.read_only)
    return Error{Errc::kTooNew, "the pool uses a feature of a newer version and can only be opened read-only", 0};
  PMFS_ASSIGN(Regions regions, read_regions(memory, *sb));

  const u64 epoch = sb->epoch.get();
  const LaneKey old_key = lane_key(*sb, epoch);
  u64 undone = 0;
  {
    Persist persist(memory);
    const PoolOff area{sb->lane_area_off.get()};
    for (u32 lane = 0; lane < sb->lane_count.get(); ++lane) {
      PMFS_ASSIGN(const LaneVerdict verdict, recover_lane(persist, area, old_key, lane,
                                                          [&](u64 off) { return regions.contains(off, sizeof(u64)); }));
      if (verdict == LaneVerdict::kUndone) undone += 1;
    }
    // ORDER recovery: what the lanes put back is durable before the epoch makes their records void (V3).
    persist.fence(Order::kUndoFence);
    persist.store(sb->epoch, epoch + 1);
    persist.flush(&sb->epoch, sizeof(u64), Order::kEpoch);
    // ORDER epoch: no record of the new epoch is written before the medium knows the epoch (R1).
    persist.fence(Order::kEpochFence);
    if (persist.failed()) return Error{Errc::kIo, "writing to the medium failed", 0};
  }

  if (undone != 0) {  // recovery wrote: what it may have changed is checked anew
    PMFS_TRY(find_superblock(memory, locator_off));
    PMFS_ASSIGN(regions, read_regions(memory, *sb));
  }

  auto volume = std::make_unique<Volume>(memory, *sb, std::move(regions), lane_key(*sb, epoch + 1), options);
  volume->recovered = undone != 0;
  volume->lanes_undone = undone;
  PMFS_TRY(volume->inodes.load());
  volume->saved_map_used = undone == 0 && load_saved_map(*volume, read_saved_map(*volume, epoch));
  if (!volume->saved_map_used) PMFS_TRY(rebuild(*volume));
  PMFS_TRY(volume->paths.start(generation_of(volume->inodes.slot(0))));
  return volume;
}

Result<void> sync_all(Volume& volume) {
  bool pending = false;
  volume.lanes.retire_all(Order::kRetireHeader, Order::kRetireFence);
  for (const InodeRef& ref : volume.inodes.all()) {
    std::unique_lock lock(ref->lock);
    if (ref->dead) continue;
    // Every change that returned is retired (above), so the access time may be stored without a record (R3).
    if (const i64 atime = ref->atime_ns.exchange(0); atime != 0 && volume.lanes.retired(ref->atime_logged)) {
      volume.persist.store(ref.media().atime_ns, static_cast<u64>(atime));
      ref->times_lazy = true;
    }
    if (!ref->times_lazy) continue;
    volume.persist.flush(&ref.media(), kLineBytes, Order::kLazyTimes);
    ref->times_lazy = false;
    pending = true;
  }
  // ORDER sync: lazily stored times are durable when this returns.
  if (pending) volume.persist.fence(Order::kSyncFence);
  volume.persist.write_back_all();
  if (volume.persist.failed()) return Error{Errc::kIo, "writing to the medium failed", 0};
  return {};
}

Result<void> close_volume(Volume& volume) {
  if (volume.inodes.anything_held()) return Error{Errc::kBusy, "files, directories or pins are still held", 0};
  if (volume.read_only()) return {};
  PMFS_TRY(sync_all(volume));
  volume.quarantine.drain();

  // The map lies in blocks that it calls free itself: the next open for writing reads it before it writes anything.
  if (volume.damaged_indexes != 0) return {};  // their blocks are unknown: the next open scans, and finds them free
  std::vector<u64> words = volume.blocks.save();
  const std::vector<u64> slots = volume.inodes.save_free_slots();
  words.insert(words.end(), slots.begin(), slots.end());
  const u64 bytes = words.size() * sizeof(u64);
  const BlockRun run = volume.blocks.find_free((bytes + kBlockBytes - 1) / kBlockBytes);
  if (run.count == 0) return {};  // no room: the next open scans
  media::Superblock& sb = volume.superblock;
  Persist& persist = volume.persist;
  const u64 epoch = sb.epoch.get();
  std::byte* at = persist.memory().at(block_off(run.first));
  persist.copy(at, words.data(), bytes, Order::kSavedMap);
  // ORDER saved map: the map is durable before its locator names it.
  persist.fence(Order::kSavedMapFence);
  persist.store(sb.saved_map_off, to_u64(block_off(run.first)));
  persist.store(sb.saved_map_bytes, bytes);
  persist.store(sb.saved_map_epoch, epoch);
  persist.store(sb.saved_map_sum, checksum64(words.data(), bytes, epoch));
  persist.store(sb.saved_locator_sum, saved_locator_checksum(sb));  // a torn locator fails it
  persist.flush(&sb.saved_map_off, kLineBytes, Order::kSavedLocator);
  // ORDER saved locator: the close that returned is seen as one.
  persist.fence(Order::kSavedLocatorFence);
  persist.write_back_all();
  if (persist.failed()) return Error{Errc::kIo, "writing to the medium failed", 0};
  return {};
}

}  // namespace pmfs
