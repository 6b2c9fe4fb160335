// The superblock: making it, checking it, and its words that change: the epoch and the saved map's locator.
#pragma once

#include <string>

#include "base/lane.h"
#include "fs/format.h"
#include "fs/regions.h"

namespace pmfs {

/// What mkfs decides.
struct FormatParameters {
  std::string label;  ///< up to 31 bytes
  std::vector<Region> regions;
  PoolOff locator_off{};
  u32 root_uid = 0;                    ///< owner and group of the root directory
  u32 root_gid = 0;
  u32 lane_count = media::kLaneCount;  ///< fewer only in tests
  bool fixed_ids = false;              ///< tests: uuid and seed are constants instead of random
};

/// Features this version knows. Another set bit belongs to a newer version.
inline constexpr u64 kKnownRoCompat = media::kRoCompatAreas;
inline constexpr u64 kKnownIncompat = 0;

/// Writes an empty file system: superblock, region table, lanes, root directory; the locator last.
/// @error kPoolTooSmall, kInvalid (label), kIo. Durability: on return.
Result<void> format_memory(Memory memory, const FormatParameters& parameters);

/// Finds and checks the superblock. Follows nothing else.
/// @error kNotFormatted, kTooNew, kCorrupt.
Result<media::Superblock*> find_superblock(const Memory& memory, PoolOff locator_off);

/// Reads the region table. @error kCorrupt: a region leaves the pool, or two overlap.
Result<Regions> read_regions(const Memory& memory, const media::Superblock& superblock);

LaneKey lane_key(const media::Superblock& superblock, u64 epoch);

/// "8-4-4-4-12" hexadecimal digits.
std::string uuid_text(const media::Superblock& superblock);

}  // namespace pmfs
