// Counting what a file system holds, and how scattered it is.
#include <algorithm>
#include <bit>

#include "fs/area.h"
#include "fs/directory.h"
#include "fs/filesystem_impl.h"
#include "fs/resolve.h"

namespace pmfs {

namespace {

void add_depth(std::vector<u64>& by_depth, u32 levels) {
  if (by_depth.size() <= levels) by_depth.resize(levels + 1);
  by_depth[levels] += 1;
}

Result<void> survey_map(const Volume& volume, const media::Inode& inode, Survey& found) {
  u64 extents = 0;
  PMFS_TRY(volume.maps.each(inode.map_root.get(), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    extents += 1;
    if (e.unwritten) found.unwritten_blocks += e.count;
    return {};
  }));
  PMFS_TRY(volume.maps.each_node(inode.map_root.get(), [&](u64, u32) -> Result<void> {
    found.map_nodes += 1;
    return {};
  }));
  if (type_of(inode) != FileType::kRegular) return {};
  found.extents += extents;
  found.most_extents = std::max(found.most_extents, extents);
  if (extents > 1) found.fragmented_files += 1;
  return {};
}

Result<void> survey_directory(const Volume& volume, const InodeRef& dir, Survey& found) {
  const media::Inode& inode = dir.media();
  const u64 root = inode.rdev_index.get();
  u64 leaves = 0;
  PMFS_TRY(volume.maps.each(inode.map_root.get(), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    leaves += e.count;
    return {};
  }));
  if (root == 0) {
    if (leaves > 1)
      found.indexes_stale += 1;
    else
      add_depth(found.directories_by_depth, 0);
    return {};
  }
  const std::vector<BlockRun> nodes = index_blocks(volume, dir);
  if (nodes.empty()) {
    found.indexes_damaged += 1;
    return {};
  }
  found.index_nodes += nodes.size();
  add_depth(found.directories_by_depth, htree::Index::levels(root));
  return {};
}

Result<Survey> survey_volume(Volume& volume) {
  Survey found;
  for (u64 slot = 0; slot < volume.inodes.slots(); ++slot) {
    const media::Inode& inode = volume.inodes.slot(slot);
    if (media::low_half(inode.state_gen.get()) != media::kSlotLive) continue;
    PMFS_TRY(survey_map(volume, inode, found));
    found.with_xattrs += inode.xattr_ref.get() != 0;
    found.with_acls += inode.acl_ref.get() != 0;
    found.attribute_blocks += count_blocks(area_blocks(volume.maps, inode));
    switch (type_of(inode)) {
      case FileType::kRegular: found.regular_files += 1; break;
      case FileType::kSymlink: found.symlinks += 1; break;
      case FileType::kDirectory: {
        found.directories += 1;
        PMFS_ASSIGN(const InodeRef dir, volume.inodes.get(InodeNo{slot + 1}));
        PMFS_TRY(survey_directory(volume, dir, found));
        break;
      }
      default: found.special_files += 1; break;
    }
  }
  volume.blocks.each_free_run([&](BlockRun run) {
    const auto order = static_cast<std::size_t>(std::bit_width(run.count) - 1);
    if (found.free_blocks_by_run.size() <= order) found.free_blocks_by_run.resize(order + 1);
    found.free_blocks_by_run[order] += run.count;
    found.free_runs += 1;
    found.longest_free_run = std::max(found.longest_free_run, run.count);
  });
  return found;
}

}  // namespace

Result<Survey> survey(Filesystem& fs) {
  if (!fs.is_open()) return Error{Errc::kBadHandle, "the file system is closed", 0};
  try {
    PMFS_TRY(fs.impl_->usable());
    return survey_volume(fs.impl_->volume());
  } catch (const std::bad_alloc&) {
    return Error{Errc::kNoMemory, "out of memory", 0};
  }
}

}  // namespace pmfs
