#include "fs/copy_range.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <shared_mutex>

#include "fs/file_io.h"
#include "fs/resolve.h"

namespace pmfs {

namespace {

// One call copies no more, so that locks are not held for ever: the caller goes on from there.
constexpr u64 kCopyAtOnce = u64{64} << 20;

Result<void> check_file(const Volume& volume, const InodeRef& ref) {
  PMFS_TRY(check_alive(volume, ref));
  const FileType type = type_of(ref.media());
  if (type == FileType::kDirectory) return Error{Errc::kIsDirectory, "a directory has no contents to copy", 0};
  if (type != FileType::kRegular) return Error{Errc::kInvalid, "not a regular file", 0};
  return {};
}

// Puts a part of the source's contents somewhere: `extents` has all of its data in the range, in order.
void put(Volume& volume, const std::vector<Extent>& extents, u64 off, std::byte* to, u64 bytes, Order why) {
  Persist& persist = volume.persist;
  auto e = std::upper_bound(extents.begin(), extents.end(), off / kBlockBytes,
                            [](u64 logical, const Extent& one) { return logical < one.end(); });
  for (const u64 end = off + bytes; off < end;) {
    const u64 data_from = e == extents.end() ? end : std::clamp(e->logical * kBlockBytes, off, end);
    const u64 data_to = e == extents.end() ? end : std::clamp(e->end() * kBlockBytes, data_from, end);
    if (data_from > off) {  // a hole, or blocks never written
      persist.zero(to, data_from - off);
      persist.flush(to, data_from - off, why);
      to += data_from - off;
    }
    if (data_to > data_from) {
      persist.copy(to, persist.memory().at(block_off(e->block)) + (data_from - e->logical * kBlockBytes),
                   data_to - data_from, why);
      to += data_to - data_from;
    }
    off = data_to;
    if (e != extents.end()) ++e;
  }
}

}  // namespace

Result<std::size_t> copy_range(Volume& volume, const InodeRef& from, u64 from_off, const InodeRef& to, u64 to_off,
                               u64 len, const Credentials& who) {
  std::shared_lock reading(from->lock, std::defer_lock);
  std::unique_lock writing(to->lock, std::defer_lock);
  const bool same = from.ino() == to.ino();
  if (!same && from.ino() < to.ino()) reading.lock();
  writing.lock();
  if (!same && from.ino() > to.ino()) reading.lock();
  PMFS_TRY(check_file(volume, from));
  PMFS_TRY(check_file(volume, to));

  constexpr auto kMost = static_cast<u64>(std::numeric_limits<i64>::max());
  if (from_off > kMost || to_off > kMost || len > kMost - from_off || len > kMost - to_off)
    return Error{Errc::kOverflow, "a range ends beyond what a signed number holds", 0};
  const u64 size = from.media().size_bytes.get();
  if (size > kMaxFileBytes) return Error{Errc::kCorrupt, "a file is longer than any map", 0};
  len = from_off >= size ? 0 : std::min(len, size - from_off);
  if (len != 0 && to_off >= kMaxFileBytes) return Error{Errc::kFileTooBig, "the offset is beyond what a map holds", 0};
  if (same && to_off < from_off + len && from_off < to_off + len)
    return Error{Errc::kInvalid, "the two ranges of one file overlap", 0};
  if (len == 0) return std::size_t{0};
  len = std::min(len, kCopyAtOnce);

  std::vector<Extent> extents;
  PMFS_TRY(volume.maps.each(from.media().map_root.get(), from_off / kBlockBytes,
                            (from_off + len + kBlockBytes - 1) / kBlockBytes, [&](const Extent& e) -> Result<void> {
                              if (!e.unwritten) extents.push_back(e);
                              return {};
                            }));
  const auto copied = write_range(
      volume, to, to_off, len,
      [&](std::byte* at, u64 done, u64 bytes, Order why) { put(volume, extents, from_off + done, at, bytes, why); },
      who);
  if (copied.ok()) note_access(volume, from);
  return copied;
}

}  // namespace pmfs
