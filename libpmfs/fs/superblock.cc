#include "fs/superblock.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "fs/clock.h"
#include "fs/extent_map.h"

namespace pmfs {

namespace {

u64 static_checksum(const media::Superblock& superblock) {
  return checksum64(&superblock, offsetof(media::Superblock, checksum));
}

u64 locator_checksum(const media::Locator& locator) { return checksum64(&locator, offsetof(media::Locator, checksum)); }

void random_bytes(void* at, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(at);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::getrandom(to + done, bytes - done, 0);
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

// Space that mkfs itself takes at the start of region 0.
constexpr u64 kRegionTableOff = kBlockBytes;
constexpr u64 kLaneAreaOff = 2 * kBlockBytes;
constexpr u64 kLaneAreaLength = (media::kLaneAreaBytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
constexpr u64 kInodeFileOff = kLaneAreaOff + kLaneAreaLength;
constexpr u64 kFirstInodeBlocks = 4;  // 16 KiB: 64 inodes
constexpr u64 kSmallest = kInodeFileOff + (kFirstInodeBlocks + 32) * kBlockBytes;

}  // namespace

Result<void> format_memory(Memory memory, const FormatParameters& parameters) {
  if (parameters.label.size() > 31) return Error{Errc::kInvalid, "the label is longer than 31 bytes", 0};
  if (parameters.regions.size() > media::kMaxRegions)
    return Error{Errc::kNotSupported, "more than 255 regions: the pool is larger than this version manages", 0};
  if (parameters.regions.empty() || parameters.regions[0].length_bytes < kSmallest)
    return Error{Errc::kPoolTooSmall, "no room for the file system's own structures", 0};
  Persist persist(memory);
  const u64 base = parameters.regions[0].off;

  // All of it lies in space that nothing points to until the locator says so: one fence, then the locator.
  media::Superblock superblock{};
  superblock.magic.set(media::kMagic);
  superblock.format_version.set(media::kFormatVersion);
  superblock.block_bytes.set(kBlockBytes);
  superblock.ro_compat.set(media::kRoCompatAreas);
  u64 seed = 0x9e3779b97f4a7c15;
  if (parameters.fixed_ids) {
    for (u8 i = 0; i < 16; ++i) superblock.uuid[i] = i;
  } else {
    random_bytes(superblock.uuid, sizeof(superblock.uuid));
    random_bytes(&seed, sizeof(seed));
  }
  superblock.uuid[6] = static_cast<u8>((superblock.uuid[6] & 0x0f) | 0x40);  // RFC 4122: version 4,
  superblock.uuid[8] = static_cast<u8>((superblock.uuid[8] & 0x3f) | 0x80);  // variant 1
  superblock.hash_seed.set(seed);
  std::memcpy(superblock.label, parameters.label.data(), parameters.label.size());
  superblock.lane_area_off.set(base + kLaneAreaOff);
  superblock.region_table_off.set(base + kRegionTableOff);
  superblock.lane_count.set(parameters.lane_count);
  superblock.checksum.set(static_checksum(superblock));
  superblock.epoch.set(1);
  const u64 inode_block = (base + kInodeFileOff) / kBlockBytes;
  superblock.inode_map_root.set(media::kMapDirect | kFirstInodeBlocks << 3 | inode_block << 23);
  superblock.inode_slots.set(kFirstInodeBlocks * media::kInodesPerBlock);
  persist.write(memory.at(PoolOff{base}), &superblock, sizeof(superblock));
  persist.flush(memory.at(PoolOff{base}), sizeof(superblock), Order::kFormat);

  media::RegionTable table{};
  for (std::size_t i = 0; i < parameters.regions.size(); ++i) {
    table.regions[i].off.set(parameters.regions[i].off);
    table.regions[i].length_bytes.set(parameters.regions[i].length_bytes);
  }
  persist.write(memory.at(PoolOff{base + kRegionTableOff}), &table, sizeof(table));
  persist.flush(memory.at(PoolOff{base + kRegionTableOff}), sizeof(table), Order::kFormat);

  std::byte* lanes = memory.at(PoolOff{base + kLaneAreaOff});
  persist.zero(lanes, kLaneAreaLength);
  for (u32 lane = 0; lane < media::kLaneCount; ++lane)
    persist.store(reinterpret_cast<media::LaneHeader*>(lanes)[lane].sequence, 1);
  persist.flush(lanes, kLaneAreaLength, Order::kFormat);

  std::byte* inodes = memory.at(PoolOff{base + kInodeFileOff});
  persist.zero(inodes, kFirstInodeBlocks * kBlockBytes);
  media::Inode root{};
  const auto now = static_cast<u64>(now_ns());
  root.state_gen.set(media::join(media::kSlotLive, 1));
  root.mode_links.set(media::join(0040755, 2));
  root.uid_gid.set(media::join(parameters.root_uid, parameters.root_gid));
  for (Le64* time : {&root.atime_ns, &root.mtime_ns, &root.ctime_ns, &root.birth_ns}) time->set(now);
  root.parent.set(to_u64(kRootIno));
  root.gen_high.set(1);
  persist.write(inodes, &root, sizeof(root));
  persist.flush(inodes, kFirstInodeBlocks * kBlockBytes, Order::kFormat);
  media::Locator locator{};
  locator.magic.set(media::kMagic);
  locator.format_version.set(media::kFormatVersion);
  locator.superblock_off.set(base);
  locator.checksum.set(locator_checksum(locator));
  locator.magic.set(0);
  auto& locator_at = *reinterpret_cast<media::Locator*>(memory.at(parameters.locator_off));
  persist.write(&locator_at, &locator, sizeof(locator));
  persist.flush(&locator_at, sizeof(locator), Order::kFormat);
  // ORDER format: everything that the locator's magic declares to be there is durable before it.
  persist.fence(Order::kFormatFence);

  // The magic was left out above: its one word decides that the file system is there.
  persist.store(locator_at.magic, media::kMagic);
  persist.flush(&locator_at, sizeof(u64), Order::kLocator);
  // ORDER locator: mkfs returns with a file system that can be found.
  persist.fence(Order::kLocatorFence);
  if (persist.failed()) return Error{Errc::kIo, "writing to the medium failed", 0};
  return {};
}

Result<media::Superblock*> find_superblock(const Memory& memory, PoolOff locator_off) {
  if (to_u64(locator_off) % 64 != 0 || !memory.contains(to_u64(locator_off), sizeof(media::Locator)))
    return Error{Errc::kCorrupt, "the locator lies outside the pool", to_u64(locator_off)};
  const auto& locator = *reinterpret_cast<const media::Locator*>(memory.at(locator_off));
  if (locator.magic.get() == 0)
    return Error{Errc::kNotFormatted, "mkfs did not finish on this pool", to_u64(locator_off)};
  if (locator.magic.get() != media::kMagic || locator.checksum.get() != locator_checksum(locator))
    return Error{Errc::kCorrupt, "the locator is damaged", to_u64(locator_off)};
  if (locator.format_version.get() > media::kFormatVersion)
    return Error{Errc::kTooNew, "the pool has a newer format version", to_u64(locator_off)};

  const u64 off = locator.superblock_off.get();
  if (off == 0 || off % kBlockBytes != 0 || !memory.contains(off, sizeof(media::Superblock)))
    return Error{Errc::kCorrupt, "the superblock lies outside the pool", off};
  auto* superblock = reinterpret_cast<media::Superblock*>(memory.at(PoolOff{off}));
  if (superblock->magic.get() != media::kMagic || superblock->checksum.get() != static_checksum(*superblock))
    return Error{Errc::kCorrupt, "the superblock is damaged", off};
  if (superblock->format_version.get() > media::kFormatVersion)
    return Error{Errc::kTooNew, "the pool has a newer format version", off};
  if ((superblock->incompat.get() & ~kKnownIncompat) != 0)
    return Error{Errc::kTooNew, "the pool uses a feature of a newer version", off};
  const u64 lanes = superblock->lane_area_off.get();
  const u64 table = superblock->region_table_off.get();
  if (superblock->format_version.get() == 0 || superblock->block_bytes.get() != kBlockBytes ||
      superblock->lane_count.get() == 0 || superblock->lane_count.get() > media::kLaneCount ||
      lanes % kBlockBytes != 0 || !memory.contains(lanes, media::kLaneAreaBytes) || table % kBlockBytes != 0 ||
      !memory.contains(table, sizeof(media::RegionTable)) || superblock->epoch.get() == 0 ||
      superblock->epoch.get() == ~u64{0} || superblock->label[sizeof(superblock->label) - 1] != 0)
    return Error{Errc::kCorrupt, "the superblock's geometry cannot be", off};
  return superblock;
}

Result<Regions> read_regions(const Memory& memory, const media::Superblock& superblock) {
  const u64 table_off = superblock.region_table_off.get();
  const auto& table = *reinterpret_cast<const media::RegionTable*>(memory.at(PoolOff{table_off}));
  std::vector<Region> list;
  for (const media::RegionEntry& entry : table.regions) {
    const Region region{entry.off.get(), entry.length_bytes.get()};
    if (region.length_bytes == 0) break;
    if (region.off == 0 || region.off % kBlockBytes != 0 || region.length_bytes % kBlockBytes != 0 ||
        !memory.contains(region.off, region.length_bytes))
      return Error{Errc::kCorrupt, "a region leaves the pool", table_off};
    list.push_back(region);
  }
  std::vector<Region> sorted = list;
  std::sort(sorted.begin(), sorted.end(), [](const Region& a, const Region& b) { return a.off < b.off; });
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1].off + sorted[i - 1].length_bytes > sorted[i].off)
      return Error{Errc::kCorrupt, "two regions overlap", table_off};
  Regions regions(std::move(list));
  const u64 off = to_u64(memory.off_of(&superblock));
  if (table.next_off.get() != 0)
    return Error{Errc::kTooNew, "the pool has more regions than this version reads", table_off};
  if (!regions.contains(off, kBlockBytes) || !regions.contains(table_off, kBlockBytes) ||
      !regions.contains(superblock.lane_area_off.get(), kLaneAreaLength))
    return Error{Errc::kCorrupt, "the file system's own structures lie outside its regions", off};
  return regions;
}

LaneKey lane_key(const media::Superblock& superblock, u64 epoch) {
  LaneKey key;
  std::memcpy(&key.uuid_low, superblock.uuid, 8);
  std::memcpy(&key.uuid_high, superblock.uuid + 8, 8);
  key.epoch = epoch;
  return key;
}

std::string uuid_text(const media::Superblock& superblock) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits[superblock.uuid[i] >> 4];
    text += digits[superblock.uuid[i] & 15];
  }
  return text;
}

}  // namespace pmfs
