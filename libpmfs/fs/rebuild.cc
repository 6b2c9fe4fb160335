#include "fs/rebuild.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "base/lane_format.h"
#include "fs/area.h"
#include "fs/directory.h"
#include "fs/resolve.h"

namespace pmfs {

namespace {

constexpr u64 kPieceSlots = 4096;  // 1 MiB of the inode file

Result<void> use(BlockAlloc& blocks, BlockRun run) {
  if (blocks.mark_used(run)) return {};
  return Error{Errc::kCorrupt, "a block has two owners", to_u64(block_off(run.first))};
}

Result<void> use_map(Volume& volume, u64 root) {
  PMFS_TRY(volume.maps.each(root, 0, kMapEnd, [&](const Extent& e) { return use(volume.blocks, {e.block, e.count}); }));
  return volume.maps.each_node(root, [&](u64 block, u32) { return use(volume.blocks, {block, 1}); });
}

Result<void> use_own_structures(Volume& volume) {
  const media::Superblock& sb = volume.superblock;
  const u64 own = to_u64(volume.persist.memory().off_of(&sb)) / kBlockBytes;
  PMFS_TRY(use(volume.blocks, {own, 1}));
  PMFS_TRY(use(volume.blocks, {sb.region_table_off.get() / kBlockBytes, 1}));
  constexpr u64 kLaneBlocks = (media::kLaneAreaBytes + kBlockBytes - 1) / kBlockBytes;
  PMFS_TRY(use(volume.blocks, {sb.lane_area_off.get() / kBlockBytes, kLaneBlocks}));
  return use_map(volume, sb.inode_map_root.get());
}

class Rebuilder {
 public:
  explicit Rebuilder(Volume& volume)
      : volume_(volume), pieces_((volume.inodes.slots() + kPieceSlots - 1) / kPieceSlots) {}

  Result<void> run() {
    PMFS_TRY(use_own_structures(volume_));
    u64 threads = volume_.options.rebuild_threads;
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> others;
    try {
      while (others.size() + 1 < std::min<u64>(threads, pieces_.size())) others.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // fewer threads, then
    }
    work();
    for (std::thread& other : others) other.join();
    for (const Piece& piece : pieces_) PMFS_TRY(piece.result);
    // The lowest is put last, and so handed out first.
    for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece)
      for (auto slot = piece->free_slots.rbegin(); slot != piece->free_slots.rend(); ++slot)
        volume_.inodes.add_free_slot(*slot);
    return {};
  }

 private:
  struct Piece {
    std::vector<u64> free_slots;  // ascending
    Result<void> result;
  };

  // Takes pieces until none is left, or one is bad: the error of the first bad piece is the answer, so that all before
  // it are looked at.
  void work() {
    while (!bad_.load(std::memory_order_relaxed)) {
      const u64 index = next_.fetch_add(1, std::memory_order_relaxed);  // what was taken is looked at
      if (index >= pieces_.size()) break;
      Piece& piece = pieces_[index];
      try {
        piece.result = scan(index * kPieceSlots, piece.free_slots);
      } catch (const std::bad_alloc&) {
        piece.result = Error{Errc::kNoMemory, "out of memory", 0};
      }
      if (!piece.result.ok()) bad_.store(true, std::memory_order_relaxed);
    }
    // ORDER rebuild: what this thread flushed is durable before anybody can see it.
    volume_.persist.fence(Order::kSyncFence);
  }

  Result<void> scan(u64 first, std::vector<u64>& free_slots) {
    const u64 end = std::min(first + kPieceSlots, volume_.inodes.slots());
    for (u64 slot = first; slot < end; ++slot) {
      const media::Inode& inode = volume_.inodes.slot(slot);
      const u32 state = media::low_half(inode.state_gen.get());
      if (slot == 0 && state != media::kSlotLive)
        return Error{Errc::kCorrupt, "the root directory is missing", to_u64(volume_.persist.memory().off_of(&inode))};
      if (state == media::kSlotFree)
        free_slots.push_back(slot);
      else if (state != media::kSlotLive)
        return Error{Errc::kCorrupt, "an inode is in no known state", to_u64(volume_.persist.memory().off_of(&inode))};
      else
        PMFS_TRY(use_inode(slot, inode));
    }
    return {};
  }

  // The last process may have died with stores still in a CPU cache: times it had stored lazily. They can be seen, so
  // they are made durable.
  Result<void> use_inode(u64 slot, const media::Inode& inode) {
    volume_.persist.flush(&inode, kLineBytes, Order::kLazyTimes);
    PMFS_TRY(use_map(volume_, inode.map_root.get()));
    for (const u64 reference : {inode.xattr_ref.get(), inode.acl_ref.get()})
      PMFS_TRY(use_map(volume_, area_map(reference)));
    if (type_of(inode) != FileType::kDirectory || inode.rdev_index.get() == 0) return {};
    PMFS_ASSIGN(const InodeRef dir, volume_.inodes.get(InodeNo{slot + 1}));
    for (const BlockRun& run : index_blocks(volume_, dir)) PMFS_TRY(use(volume_.blocks, run));
    return {};
  }

  Volume& volume_;
  std::vector<Piece> pieces_;
  std::atomic<u64> next_{0};
  std::atomic<bool> bad_{false};
};

}  // namespace

Result<void> rebuild(Volume& volume) { return Rebuilder(volume).run(); }

}  // namespace pmfs
