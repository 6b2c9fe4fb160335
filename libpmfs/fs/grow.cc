#include "fs/grow.h"

#include <algorithm>

#include "fs/enlarge.h"
#include "fs/error_detail.h"
#include "fs/volume.h"

namespace pmfs {

Result<u64> grow_memory(Memory memory, PoolOff locator_off, u64 from_off) {
  PMFS_ASSIGN(const auto volume, open_volume(memory, locator_off, {}));
  u64 from = (from_off + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  for (const Region& region : volume->regions.list()) from = std::max(from, region.off + region.length_bytes);
  const u64 to = memory.size_bytes / kBlockBytes * kBlockBytes;
  if (from >= to) {
    PMFS_TRY(close_volume(*volume));
    return u64{0};
  }

  auto& table = *reinterpret_cast<media::RegionTable*>(memory.at(PoolOff{volume->superblock.region_table_off.get()}));
  const auto list = volume->regions.list();
  // A region that ends where the new space begins, usually one of an earlier growth, gets longer.
  std::size_t entry = 0;
  while (entry < list.size() && list[entry].off + list[entry].length_bytes != from) ++entry;
  if (entry == media::kMaxRegions) return Error{Errc::kNotSupported, "the pool has as many regions as it can", 0};

  // ORDER grow: the list of regions ends at the first entry of length 0, so the place of a new region is written where
  // nobody looks, and rides in fence 1. The one live word is the length: before lanes are recovered, too, an open finds
  // the old list or the new one.
  // Durable as soon as it has run. The volume still knows the old regions, so it is dropped without a saved map.
  if (entry == list.size()) {
    volume->persist.store(table.regions[entry].off, from);
    volume->persist.flush(&table.regions[entry].off, sizeof(u64), Order::kFreshRegion);
  }
  Commit commit = volume->begin_commit();
  commit.set(table.regions[entry].length_bytes, table.regions[entry].length_bytes.get() + (to - from));
  PMFS_TRY(commit.run());
  return (to - from) / kBlockBytes;
}

namespace {

/// Opens a pool as a mount would, and closes it cleanly.
Result<void> open_and_close(const std::string& path, const OpenOptions& options) {
  PMFS_ASSIGN(Filesystem fs, Filesystem::open(path, options));
  return fs.close();
}

Result<GrowReport> grow(const std::string& path, u64 size_bytes, OpenOptions options) {
  options.read_only = false;
  clear_error_detail();
  size_bytes = size_bytes / kBlockBytes * kBlockBytes;
  PMFS_ASSIGN(PoolSource source, look_at(path));
  for (const PoolPart& part : source.parts) {
    if (part.exists && !part.is_device) continue;
    set_error_detail(path, part.is_device ? "a device cannot be made larger" : "a part is missing: ",
                     part.is_device ? "" : part.path);
    return part.is_device ? Error{Errc::kNotSupported, "a device has its size"}
                          : Error{Errc::kPoolMissing, "no such file"};
  }
  GrowReport report;
  report.bytes_before = total_bytes(source);
  if (size_bytes < report.bytes_before / kBlockBytes * kBlockBytes) {
    set_error_detail(path, "a pool cannot be made smaller; it has ", std::to_string(report.bytes_before), " bytes");
    return Error{Errc::kInvalid, "a pool cannot be made smaller"};
  }
  PMFS_TRY(settle_poolset(source));
  PMFS_TRY(open_and_close(path, options));  // recovers; a pool that cannot be opened stays as large as it is
  if (size_bytes > report.bytes_before) PMFS_TRY(enlarge_last_part(source, size_bytes - report.bytes_before));
  report.bytes_after = total_bytes(source);

  PMFS_ASSIGN(const PoolHeader header, read_header(source.parts[0]));
  {
    PMFS_ASSIGN(Pool pool, Pool::open(path, false));
    auto grown = grow_memory(pool.memory(), pool.locator_off(), header.heap_off + header.heap_bytes);
    if (!grown.ok()) {
      set_error_detail(path, grown.error().what);
      return grown.error();
    }
    report.blocks_added = *grown;
    PMFS_TRY(pool.close());
  }
  PMFS_TRY(open_and_close(path, options));  // learns what is free in the larger pool, and saves it
  return report;
}

}  // namespace

Result<GrowReport> Filesystem::grow(const std::string& path, u64 size_bytes, const OpenOptions& options) {
  try {
    return pmfs::grow(path, size_bytes, options);
  } catch (const std::bad_alloc&) {
    return Error{Errc::kNoMemory, "out of memory", 0};
  }
}

}  // namespace pmfs
