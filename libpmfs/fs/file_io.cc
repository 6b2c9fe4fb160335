#include "fs/file_io.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "fs/attributes.h"
#include "fs/clock.h"
#include "fs/resolve.h"
#include "fs/xattr.h"

namespace pmfs {

namespace {

constexpr i64 kDayNs = i64{24} * 3600 * 1'000'000'000;

Result<void> check_regular(const Volume& volume, const InodeRef& ref) {
  PMFS_TRY(check_alive(volume, ref));
  switch (type_of(ref.media())) {
    case FileType::kRegular: return {};
    case FileType::kDirectory: return Error{Errc::kIsDirectory, "a directory has no contents to read or write", 0};
    default: return Error{Errc::kInvalid, "not a regular file", 0};
  }
}

}  // namespace

void note_access(Volume& volume, const InodeRef& ref) {
  if (volume.read_only() || volume.options.atime == OpenOptions::Atime::kNone) return;
  const i64 now = now_ns();
  if (volume.options.atime == OpenOptions::Atime::kRelative) {
    const Attributes a = attributes_of(ref);
    if (a.atime_ns > a.mtime_ns && a.atime_ns > a.ctime_ns && now - a.atime_ns < kDayNs) return;
  }
  ref->atime_ns.store(now, std::memory_order_relaxed);
}

namespace {

std::byte* address(const Volume& volume, const Extent& e, u64 file_off) {
  return volume.persist.memory().at(block_off(e.block)) + (file_off - e.logical * kBlockBytes);
}

}  // namespace

Result<void> zero_tail(Volume& volume, const InodeRef& ref, u64 old_size, u64 to) {
  if (old_size % kBlockBytes == 0 || to <= old_size) return {};
  PMFS_ASSIGN(const Extent e, volume.maps.find(ref.media().map_root.get(), old_size / kBlockBytes));
  if (e.hole() || e.unwritten) return {};
  const u64 until = std::min(to, (old_size / kBlockBytes + 1) * kBlockBytes);
  std::byte* at = address(volume, e, old_size);
  volume.persist.zero(at, until - old_size);
  volume.persist.flush(at, until - old_size, Order::kFreshData);
  return {};
}

namespace {

// A write in the making: the pieces of the file it touches, mapped already or by blocks taken for it.
struct WritePlan {
  struct Piece {
    Extent extent;  // never unwritten: as it is when the write is done
    bool fresh;     // the map does not say so yet
    bool reserved;  // its blocks were there, unwritten
  };
  std::vector<Piece> pieces;
  bool any_fresh = false;
  bool any_taken = false;  // blocks for data were allocated
  u64 end = 0;             // first byte behind what can be written; less than asked when space runs out
};

// Whether a write that lacks blocks should fail rather than be cut short: it is then run again with what waits in the
// quarantine (Volume::with_space).
bool more_may_come(const Volume& volume) { return volume.quarantine.blocks() != 0; }

Result<WritePlan> plan_write(Volume& volume, const InodeRef& ref, u64 off, u64 end, BlockHold& hold) {
  const u64 root = ref.media().map_root.get();
  WritePlan plan;
  plan.end = end;
  const u64 last = (end + kBlockBytes - 1) / kBlockBytes;
  u64 goal = 0;
  if (off / kBlockBytes > 0) {
    PMFS_ASSIGN(const Extent before, volume.maps.find(root, off / kBlockBytes - 1));
    if (!before.hole()) goal = before.block + 1;
  }
  for (u64 at = off / kBlockBytes; at < last;) {
    PMFS_ASSIGN(Extent e, volume.maps.find(root, at));
    e.count = std::min(e.count, last - at);
    const bool reserved = e.unwritten;
    const bool fresh = e.hole() || reserved;
    e.unwritten = false;
    if (e.hole()) {
      const auto run = hold.take(std::min(e.count, kMaxExtentBlocks), goal);
      if (!run.ok()) {
        plan.end = at * kBlockBytes;
        if (run.error().code != Errc::kNoSpace || plan.end <= off || more_may_come(volume)) return run.error();
        break;
      }
      e = {at, run->count, run->first, false};
      plan.any_taken = true;
    }
    plan.pieces.push_back({e, fresh, reserved});
    plan.any_fresh |= fresh;
    goal = e.block + e.count;
    at = e.end();
  }
  return plan;
}

// Stores the data of a planned write, and zeroes what its fresh blocks have besides.
void store_data(Volume& volume, const WritePlan& plan, u64 off, const DataSource& data, u64 size_after, Order why) {
  Persist& persist = volume.persist;
  for (const auto& [e, fresh, reserved] : plan.pieces) {
    const u64 start = e.logical * kBlockBytes;
    const u64 stop = e.end() * kBlockBytes;
    const u64 from = std::max(off, start);
    const u64 to = std::min(plan.end, stop);
    if (fresh && from > start) {
      persist.zero(address(volume, e, start), from - start);
      persist.flush(address(volume, e, start), from - start, Order::kFreshData);
    }
    data(address(volume, e, from), from - off, to - from, why);
    if (fresh && to < stop && to < size_after) {  // below the file's size: it would be read
      persist.zero(address(volume, e, to), stop - to);
      persist.flush(address(volume, e, to), stop - to, Order::kFreshData);
    }
  }
}

}  // namespace

Result<void> end_overwrite(Volume& volume, const InodeRef& ref) {
  Persist& persist = volume.persist;
  // R3: the times below are words that the inode's last change may have logged. Until its bump is durable, recovery
  // could find that change "not in place" because of them, and undo it.
  u64 read = 0;
  if (!volume.lanes.retired(ref->last) && persist.rule(Rule::kRetireBeforeLazy))
    read = volume.lanes.flush_header(ref->last.lane, Order::kOverwriteHeader);
  // ORDER overwrite: the data is durable when this returns; and the bump, before the times can be.
  persist.fence(Order::kOverwriteFence);
  if (read != 0) volume.lanes.set_durable(ref->last.lane, read);
  if (persist.failed()) return Error{Errc::kIo, "writing to the medium failed", 0};
  const auto now = static_cast<u64>(now_ns());
  // No flush: the times may be older after a crash, until fsync or the next logged change flushes this line.
  persist.store(ref.media().mtime_ns, now);
  persist.store(ref.media().ctime_ns, now);
  ref->times_lazy = true;
  return {};
}

namespace {

// Writes `len` bytes, or fewer if blocks run out. REQUIRES: the exclusive lock, checks done.
Result<std::size_t> write_locked(Volume& volume, const InodeRef& ref, u64 off, u64 len, const DataSource& data,
                                 const Credentials& who) {
  media::Inode& inode = ref.media();
  const u64 size = inode.size_bytes.get();
  BlockHold hold(volume.blocks);
  PMFS_ASSIGN(WritePlan plan, plan_write(volume, ref, off, off + len, hold));
  const u32 old_word = media::low_half(inode.mode_links.get());
  const u32 mode_word = mode_word_after_write(inode, who);
  if (!plan.any_fresh && plan.end <= size && mode_word == old_word) {
    store_data(volume, plan, off, data, 0, Order::kOverwriteData);
    PMFS_TRY(end_overwrite(volume, ref));
    return static_cast<std::size_t>(plan.end - off);
  }

  // ORDER write: data, zeroed edges and new map nodes lie where nothing points to (or behind the size), and ride in
  // fence 1.
  //   live words: map root, size, blocks, times, mode. Data over mapped blocks below the size is in place: it may be
  //   mixed until the call returns.
  Commit commit = volume.begin_commit();
  touch_inode(volume, commit, ref);
  const u64 size_after = std::max(size, plan.end);
  Freed freed;
  u64 root = inode.map_root.get();
  u64 blocks = inode.blocks.get();
  // Blocks that were reserved for this data must do: their map may be changed on a full pool, too.
  BlockHold nodes(volume.blocks, plan.any_taken ? Purpose::kOrdinary : Purpose::kFreeing);
  for (const auto& [e, fresh, reserved] : plan.pieces) {
    if (!fresh) continue;
    PMFS_ASSIGN(MapChange change, volume.maps.replace(root, e.logical, e.end(), {e}, nodes));
    if (reserved) {  // these blocks only change their state
      const u64 first = e.block;
      std::erase_if(change.freed, [first](const BlockRun& run) { return run.first == first; });
      change.added_blocks -= e.count;
    }
    root = change.root;
    blocks = blocks + change.added_blocks - change.freed_blocks();
    freed.blocks.insert(freed.blocks.end(), change.freed.begin(), change.freed.end());
  }
  if (plan.any_fresh) {
    commit.set(inode.map_root, root);
    commit.set(inode.blocks, blocks);
  }
  PMFS_TRY(plan_without_capability(volume, commit, ref, nodes, freed));
  // The last that can fail has not failed: only now bytes of the file itself change.
  if (off > size) PMFS_TRY(zero_tail(volume, ref, size, off));
  store_data(volume, plan, off, data, size_after, Order::kFreshData);
  if (size_after != size) commit.set(inode.size_bytes, size_after);
  if (mode_word != old_word) commit.set(inode.mode_links, media::join(mode_word, links_of(inode)));
  const auto now = static_cast<u64>(now_ns());
  commit.set(inode.mtime_ns, now);
  commit.set(inode.ctime_ns, now);
  PMFS_ASSIGN(const ChangeMark mark, commit.run());
  ref->times_lazy = false;
  hold.keep();
  nodes.keep();
  freed.by = mark;
  volume.quarantine.add(std::move(freed));
  return static_cast<std::size_t>(plan.end - off);
}

}  // namespace

Result<std::size_t> read_file(Volume& volume, const InodeRef& ref, u64 off, std::span<std::byte> out, bool no_atime) {
  std::shared_lock lock(ref->lock);
  PMFS_TRY(check_regular(volume, ref));
  const media::Inode& inode = ref.media();
  const u64 size = inode.size_bytes.get();
  if (off >= size || out.empty()) return std::size_t{0};
  const u64 end = off + std::min<u64>(out.size(), size - off);
  if (end > kMaxFileBytes) return Error{Errc::kCorrupt, "a file is longer than any map", 0};
  for (u64 at = off; at < end;) {
    PMFS_ASSIGN(const Extent e, volume.maps.find(inode.map_root.get(), at / kBlockBytes));
    const u64 stop = std::min(end, e.end() * kBlockBytes);
    if (e.hole() || e.unwritten)
      std::memset(out.data() + (at - off), 0, stop - at);
    else
      std::memcpy(out.data() + (at - off), address(volume, e, at), stop - at);
    at = stop;
  }
  if (!no_atime) note_access(volume, ref);
  return static_cast<std::size_t>(end - off);
}

Result<std::size_t> write_file(Volume& volume, const InodeRef& ref, u64 off, std::span<const std::byte> in, bool append,
                               const Credentials& who) {
  std::unique_lock lock(ref->lock);
  PMFS_TRY(check_regular(volume, ref));
  if (append) off = ref.media().size_bytes.get();
  return write_range(volume, ref, off, in.size(),
                     [&](std::byte* to, u64 at, u64 bytes, Order why) { volume.persist.copy(to, &in[at], bytes, why); },
                     who);
}

Result<std::size_t> write_range(Volume& volume, const InodeRef& ref, u64 off, u64 len, const DataSource& data,
                                const Credentials& who) {
  if (len == 0) return std::size_t{0};
  if (off >= kMaxFileBytes) return Error{Errc::kFileTooBig, "the offset is beyond what a map holds", 0};
  len = std::min(len, kMaxFileBytes - off);
  for (;;) {
    auto written = write_locked(volume, ref, off, len, data, who);
    // Blocks for the data may have left none for the map: then less data may still fit.
    if (written.ok() || written.error().code != Errc::kNoSpace || len <= kBlockBytes || more_may_come(volume))
      return written;
    len /= 2;
  }
}

Result<u64> seek_file(Volume& volume, const InodeRef& ref, u64 off, int whence) {
  if (whence != SEEK_DATA && whence != SEEK_HOLE) return Error{Errc::kInvalid, "only data and holes are sought", 0};
  std::shared_lock lock(ref->lock);
  PMFS_TRY(check_alive(volume, ref));
  const media::Inode& inode = ref.media();
  if (type_of(inode) != FileType::kRegular) return Error{Errc::kInvalid, "not a regular file", 0};
  const u64 size = inode.size_bytes.get();
  if (off >= size) return Error{Errc::kNoAddress, "the place is behind the end of the file", 0};
  if (size > kMaxFileBytes) return Error{Errc::kCorrupt, "a file is longer than any map", 0};
  for (u64 at = off; at < size;) {
    PMFS_ASSIGN(const Extent e, volume.maps.find(inode.map_root.get(), at / kBlockBytes));
    if ((e.hole() || e.unwritten) == (whence == SEEK_HOLE)) return at;
    at = e.end() * kBlockBytes;
  }
  if (whence == SEEK_HOLE) return size;  // the end is a hole
  return Error{Errc::kNoAddress, "no data follows", 0};
}

Result<void> plan_size(Volume& volume, const InodeRef& ref, u64 size_bytes, Commit& commit, BlockHold& hold,
                       Freed& freed) {
  media::Inode& inode = ref.media();
  const u64 size = inode.size_bytes.get();
  if (size_bytes > size) PMFS_TRY(zero_tail(volume, ref, size, size_bytes));
  const u64 keep = (size_bytes + kBlockBytes - 1) / kBlockBytes;
  if (size_bytes <= size && keep < kMapEnd) {  // equal: what was reserved behind the end goes
    const u64 root = inode.map_root.get();
    PMFS_ASSIGN(const Extent behind, volume.maps.find(root, keep));
    if (!behind.hole() || behind.end() != kMapEnd) {
      PMFS_ASSIGN(MapChange change, volume.maps.replace(root, keep, kMapEnd, {}, hold));
      commit.set(inode.map_root, change.root);
      commit.set(inode.blocks, inode.blocks.get() + change.added_blocks - change.freed_blocks());
      freed.blocks = std::move(change.freed);
    }
  }
  if (size_bytes != size) commit.set(inode.size_bytes, size_bytes);
  return {};
}

}  // namespace pmfs
