#include "fs/lease.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>

#include "fs/file_io.h"
#include "fs/resolve.h"

namespace pmfs {

namespace {

using Pieces = std::vector<std::span<std::byte>>;

// The blocks that a piece touches.
BlockRun blocks_of(const Volume& volume, std::span<const std::byte> piece) {
  const u64 off = to_u64(volume.persist.memory().off_of(piece.data()));
  const u64 first = off / kBlockBytes;
  return {first, (off + piece.size() + kBlockBytes - 1) / kBlockBytes - first};
}

// Writes zeroes wherever [off, end) has no data. REQUIRES: the exclusive lock.
Result<void> fill_holes(Volume& volume, const InodeRef& ref, u64 off, u64 end) {
  const DataSource zeroes = [&](std::byte* to, u64, u64 bytes, Order why) {
    volume.persist.zero(to, bytes);
    volume.persist.flush(to, bytes, why);
  };
  while (off < end) {
    PMFS_ASSIGN(const Extent e, volume.maps.find(ref.media().map_root.get(), off / kBlockBytes));
    u64 stop = std::min(end, e.end() * kBlockBytes);
    if (e.hole() || e.unwritten) {
      // As nobody: zeroes in holes change nothing that set-id bits would have to answer for.
      PMFS_ASSIGN(const std::size_t written, write_range(volume, ref, off, stop - off, zeroes, Credentials::root()));
      stop = off + written;
    }
    off = stop;
  }
  return {};
}

}  // namespace

Result<Pieces> take_lease(Volume& volume, const InodeRef& ref, u64 off, u64 len, bool fill) {
  std::shared_lock reading(ref->lock, std::defer_lock);
  std::unique_lock writing(ref->lock, std::defer_lock);
  if (fill) {
    writing.lock();
  } else {
    reading.lock();
  }
  PMFS_TRY(check_alive(volume, ref));
  if (type_of(ref.media()) != FileType::kRegular) return Error{Errc::kInvalid, "not a regular file", 0};
  const u64 size = ref.media().size_bytes.get();
  if (size > kMaxFileBytes) return Error{Errc::kCorrupt, "a file is longer than any map", 0};
  const u64 end = off >= size ? off : off + std::min(len, size - off);
  if (fill) PMFS_TRY(fill_holes(volume, ref, off, end));

  Pieces pieces;
  for (u64 at = off; at < end;) {
    PMFS_ASSIGN(const Extent e, volume.maps.find(ref.media().map_root.get(), at / kBlockBytes));
    if (e.hole() || e.unwritten) return Error{Errc::kNoAddress, "a hole has no place in the pool", 0};
    const u64 stop = std::min(end, e.end() * kBlockBytes);
    pieces.push_back({volume.persist.memory().at(block_off(e.block)) + (at - e.logical * kBlockBytes), stop - at});
    at = stop;
  }
  for (const auto& piece : pieces) volume.quarantine.pin(blocks_of(volume, piece));
  volume.inodes.add_handle(*ref);
  return pieces;
}

void end_lease(Volume& volume, const InodeRef& ref, std::span<const std::span<const std::byte>> pieces) {
  for (const auto& piece : pieces) volume.quarantine.unpin(blocks_of(volume, piece));
  volume.inodes.drop_handle(ref);
}

Result<void> persist_lease(Volume& volume, const InodeRef& ref, std::span<const std::span<std::byte>> pieces, u64 from,
                           u64 bytes) {
  std::unique_lock lock(ref->lock);
  PMFS_TRY(check_alive(volume, ref));
  for (const auto& piece : pieces) {
    if (from < piece.size() && bytes != 0) {
      const u64 n = std::min(bytes, piece.size() - from);
      volume.persist.flush(piece.data() + from, n, Order::kOverwriteData);
      bytes -= n;
      from = 0;
    } else {
      from -= std::min<u64>(from, piece.size());
    }
  }
  return end_overwrite(volume, ref);
}

}  // namespace pmfs
