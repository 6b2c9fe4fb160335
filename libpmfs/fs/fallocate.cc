#include "fs/fallocate.h"

#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "fs/attributes.h"
#include "fs/clock.h"
#include "fs/file_io.h"
#include "fs/resolve.h"
#include "fs/xattr.h"

namespace pmfs {

namespace {

u64 block_of(u64 off) { return off / kBlockBytes; }
u64 block_behind(u64 off) { return (off + kBlockBytes - 1) / kBlockBytes; }

// The modes there are, as Linux checks them before it asks a file system.
Result<void> check_mode(int mode, u64 off, u64 len) {
  constexpr auto kMost = static_cast<u64>(std::numeric_limits<i64>::max());
  if (len == 0 || len > kMost || off > kMost) return Error{Errc::kInvalid, "no such range", 0};
  switch (mode) {
    case 0:
    case FALLOC_FL_KEEP_SIZE:
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
    case FALLOC_FL_ZERO_RANGE:
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
    case FALLOC_FL_COLLAPSE_RANGE:
    case FALLOC_FL_INSERT_RANGE: return {};
    default: return Error{Errc::kNotSupported, "no such mode of fallocate", 0};
  }
}

Result<void> check_file(const Volume& volume, const InodeRef& ref, u64 off, u64 len) {
  PMFS_TRY(check_alive(volume, ref));
  switch (type_of(ref.media())) {
    case FileType::kRegular: break;
    case FileType::kDirectory: return Error{Errc::kIsDirectory, "a directory has no contents to allocate", 0};
    case FileType::kFifo: return Error{Errc::kNotSeekable, "a pipe has no places", 0};
    default: return Error{Errc::kNoDevice, "not a regular file", 0};
  }
  if (off > kMaxFileBytes || len > kMaxFileBytes - off)
    return Error{Errc::kFileTooBig, "the range ends beyond what a map holds", 0};
  return {};
}

// One call in the making. What it does to a file is the new list of extents in [from_, to_), from which finish() makes
// the map; blocks that were in the range before and still are, in whatever place, are kept.
class RangeEdit {
 public:
  RangeEdit(Volume& volume, const InodeRef& ref, Purpose purpose)
      : volume_(volume),
        ref_(ref),
        commit_(volume.begin_commit()),
        hold_(volume.blocks, purpose),
        size_(ref.media().size_bytes.get()) {
    touch_inode(volume, commit_, ref);
  }

  u64 size() const { return size_; }
  u64 map_root() const { return ref_.media().map_root.get(); }

  /// The logical blocks that change.
  void begin(u64 from, u64 to) {
    from_ = from;
    to_ = to;
  }
  /// Adds an extent behind those added before. REQUIRES: inside the range.
  void put(const Extent& e) {
    if (e.count == 0 || e.hole()) return;
    if (!put_.empty()) {
      Extent& last = put_.back();
      if (last.end() == e.logical && last.block + last.count == e.block && last.unwritten == e.unwritten &&
          last.count + e.count <= kMaxExtentBlocks) {
        last.count += e.count;
        return;
      }
    }
    put_.push_back(e);
  }
  /// The same for blocks that the file has already.
  void keep(const Extent& e) {
    put(e);
    if (e.count != 0 && !e.hole()) kept_.push_back({e.block, e.count});
  }
  /// Fresh unwritten blocks for [from, to).
  Result<void> reserve(u64 from, u64 to) {
    u64 goal = put_.empty() || put_.back().end() != from ? 0 : put_.back().block + put_.back().count;
    if (goal == 0 && from > 0 && from == from_) {
      PMFS_ASSIGN(const Extent before, volume_.maps.find(map_root(), from - 1));
      if (!before.hole()) goal = before.block + 1;
    }
    for (u64 at = from; at < to;) {
      PMFS_ASSIGN(const BlockRun run, hold_.take(std::min(to - at, kMaxExtentBlocks), goal));
      put({at, run.count, run.first, true});
      at += run.count;
      goal = run.end();
    }
    return {};
  }
  /// A copy of one written block, in which [zero_from, zero_to) of the file, and what lies behind its size, is zero.
  Result<void> put_copy(const Extent& old, u64 zero_from, u64 zero_to) {
    PMFS_ASSERT(old.count == 1);
    PMFS_ASSIGN(const BlockRun run, hold_.take(1));
    const u64 start = old.logical * kBlockBytes;
    const auto inside = [&](u64 off) { return std::clamp(off, start, start + kBlockBytes) - start; };
    const u64 from = std::min(inside(zero_from), inside(size_));
    const u64 to = inside(zero_to) < inside(size_) ? inside(zero_to) : kBlockBytes;
    Persist& persist = volume_.persist;
    std::byte* const fresh = persist.memory().at(block_off(run.first));
    const std::byte* const data = persist.memory().at(block_off(old.block));
    if (from != 0) persist.copy(fresh, data, from, Order::kFreshData);
    persist.zero(fresh + from, to - from);
    persist.flush(fresh + from, to - from, Order::kFreshData);
    if (to != kBlockBytes) persist.copy(fresh + to, data + to, kBlockBytes - to, Order::kFreshData);
    put({old.logical, 1, run.first, false});
    copied_size_ |= size_ / kBlockBytes == old.logical;
    return {};
  }

  Result<void> finish(u64 new_size, const Credentials& who);

 private:
  std::vector<BlockRun> without_kept(const std::vector<BlockRun>& freed);

  Volume& volume_;
  const InodeRef& ref_;
  Commit commit_;
  BlockHold hold_;
  const u64 size_;
  u64 from_ = 0, to_ = 0;
  std::vector<Extent> put_;
  std::vector<BlockRun> kept_;
  bool copied_size_ = false;  // the block in which the old size falls is a copy, zero behind it
};

// What replace() took out of the map, less what was put in again.
std::vector<BlockRun> RangeEdit::without_kept(const std::vector<BlockRun>& freed) {
  std::sort(kept_.begin(), kept_.end(), [](const BlockRun& a, const BlockRun& b) { return a.first < b.first; });
  std::vector<BlockRun> gone;
  for (BlockRun run : freed) {
    auto kept = std::upper_bound(kept_.begin(), kept_.end(), run.first,
                                 [](u64 block, const BlockRun& k) { return block < k.end(); });
    while (run.count != 0) {
      const u64 next = kept == kept_.end() ? run.end() : std::clamp(kept->first, run.first, run.end());
      if (next != run.first) gone.push_back({run.first, next - run.first});
      const u64 go_on = kept == kept_.end() ? run.end() : std::clamp(kept->end(), next, run.end());
      run = {go_on, run.end() - go_on};
      if (run.count != 0) ++kept;
    }
  }
  return gone;
}

// ORDER fallocate: copies of blocks at the ends, and new map nodes, lie where nothing points to; bytes that are zeroed
// behind the old size are not part of the file yet. All of it rides in fence 1.
//   live words: map root and blocks, size, mode if set-id bits or security.capability go, times.
//   crash before fence 2: the old map, and so the old contents. Blocks that became unwritten have not changed.
Result<void> RangeEdit::finish(u64 new_size, const Credentials& who) {
  media::Inode& inode = ref_.media();
  Freed freed;
  if (from_ != to_) {
    PMFS_ASSIGN(const MapChange change, volume_.maps.replace(map_root(), from_, to_, put_, hold_));
    freed.blocks = without_kept(change.freed);
    u64 kept = 0, gone = 0;
    for (const BlockRun& run : kept_) kept += run.count;
    for (const BlockRun& run : freed.blocks) gone += run.count;
    commit_.set(inode.map_root, change.root);
    commit_.set(inode.blocks, inode.blocks.get() + change.added_blocks - kept - gone);
  }
  if (new_size != size_) {
    if (new_size > size_ && !copied_size_) PMFS_TRY(zero_tail(volume_, ref_, size_, new_size));
    commit_.set(inode.size_bytes, new_size);
  }
  PMFS_TRY(plan_without_capability(volume_, commit_, ref_, hold_, freed));
  if (const u32 word = mode_word_after_write(inode, who); word != media::low_half(inode.mode_links.get()))
    commit_.set(inode.mode_links, media::join(word, links_of(inode)));
  const auto now = static_cast<u64>(now_ns());
  commit_.set(inode.mtime_ns, now);
  commit_.set(inode.ctime_ns, now);
  PMFS_ASSIGN(const ChangeMark mark, commit_.run());
  ref_->times_lazy = false;
  hold_.keep();
  freed.by = mark;
  volume_.quarantine.add(std::move(freed));
  return {};
}

// Blocks wherever the range has none.
Result<void> allocate(Volume& volume, RangeEdit& edit, u64 off, u64 len) {
  const u64 to = block_behind(off + len);
  edit.begin(block_of(off), to);
  for (u64 at = block_of(off); at < to;) {
    PMFS_ASSIGN(Extent e, volume.maps.find(edit.map_root(), at));
    e.count = std::min(e.count, to - at);
    if (e.hole()) {
      PMFS_TRY(edit.reserve(at, e.end()));
    } else {
      edit.keep(e);
    }
    at = e.end();
  }
  return {};
}

// Makes [off, end) read as zero: with blocks (zero range) or without (punch).
Result<void> zero(Volume& volume, RangeEdit& edit, u64 off, u64 end, bool with_blocks) {
  // Nothing of the last block is to stay if the file ends before the range does.
  const u64 whole_end = end >= edit.size() ? block_behind(end) : block_of(end);
  const u64 whole_from = block_behind(off);
  const u64 from = block_of(off);
  const u64 to = block_behind(end);
  edit.begin(from, to);
  for (u64 at = from; at < to;) {
    PMFS_ASSIGN(Extent e, volume.maps.find(edit.map_root(), at));
    const bool whole = at >= whole_from && at < whole_end;
    // One block at either end; all blocks in between at once.
    e.count = std::min(e.count, whole ? whole_end - at : e.hole() ? to - at : 1);
    if (e.hole()) {
      if (with_blocks) PMFS_TRY(edit.reserve(at, e.end()));
    } else if (e.unwritten) {
      if (with_blocks || !whole) edit.keep(e);
    } else if (!whole) {
      PMFS_TRY(edit.put_copy(e, off, end));
    } else if (with_blocks) {
      e.unwritten = true;
      edit.keep(e);
    }
    at = e.end();
  }
  return {};
}

// Everything from block `from` on moves to block `to`; what was between them goes, or a hole comes.
Result<void> move_tail(Volume& volume, RangeEdit& edit, u64 from, u64 to) {
  edit.begin(std::min(from, to), kMapEnd);
  return volume.maps.each(edit.map_root(), from, kMapEnd, [&](const Extent& e) -> Result<void> {
    if (e.end() > kMapEnd - (to > from ? to - from : 0))
      return Error{Errc::kFileTooBig, "blocks would lie beyond what a map holds", 0};
    edit.keep({e.logical - from + to, e.count, e.block, e.unwritten});
    return {};
  });
}

}  // namespace

Result<void> allocate_range(Volume& volume, const InodeRef& ref, int mode, u64 off, u64 len, const Credentials& who) {
  PMFS_TRY(check_mode(mode, off, len));
  std::unique_lock lock(ref->lock);
  PMFS_TRY(check_file(volume, ref, off, len));
  const bool keep_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const u64 size = ref.media().size_bytes.get();
  const u64 end = off + len;
  const u64 grown = keep_size ? size : std::max(size, end);
  const bool moves = mode == FALLOC_FL_COLLAPSE_RANGE || mode == FALLOC_FL_INSERT_RANGE;
  if (moves && (off % kBlockBytes != 0 || len % kBlockBytes != 0))
    return Error{Errc::kInvalid, "the range is not of whole blocks", 0};

  // What takes blocks away may use the reserve, so that a full pool can be emptied.
  const bool frees = mode == FALLOC_FL_COLLAPSE_RANGE || (mode & FALLOC_FL_PUNCH_HOLE) != 0;
  RangeEdit edit(volume, ref, frees ? Purpose::kFreeing : Purpose::kOrdinary);
  switch (mode & ~FALLOC_FL_KEEP_SIZE) {
    case 0: PMFS_TRY(allocate(volume, edit, off, len)); return edit.finish(grown, who);
    case FALLOC_FL_PUNCH_HOLE: PMFS_TRY(zero(volume, edit, off, end, false)); return edit.finish(size, who);
    case FALLOC_FL_ZERO_RANGE: PMFS_TRY(zero(volume, edit, off, end, true)); return edit.finish(grown, who);
    case FALLOC_FL_COLLAPSE_RANGE:
      if (end >= size) return Error{Errc::kInvalid, "the range reaches the end of the file: truncate it instead", 0};
      PMFS_TRY(move_tail(volume, edit, block_of(end), block_of(off)));
      return edit.finish(size - len, who);
    case FALLOC_FL_INSERT_RANGE:
      if (len > kMaxFileBytes - size) return Error{Errc::kFileTooBig, "the file would be too large", 0};
      if (off >= size) return Error{Errc::kInvalid, "behind the end of the file there is nothing to move", 0};
      PMFS_TRY(move_tail(volume, edit, block_of(off), block_of(end)));
      return edit.finish(size + len, who);
    default: return Error{Errc::kNotSupported, "no such mode of fallocate", 0};
  }
}

}  // namespace pmfs
