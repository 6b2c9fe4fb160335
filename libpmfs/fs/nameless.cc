#include "fs/nameless.h"

#include <sys/stat.h>

#include <shared_mutex>

#include "fs/clock.h"
#include "fs/namei.h"

namespace pmfs {

Result<InodeNo> make_nameless(Volume& volume, const InodeRef& dir, u32 mode, bool linkable, const Credentials& who) {
  std::shared_lock lock(dir->lock);
  if (type_of(dir.media()) != FileType::kDirectory) return Error{Errc::kNotDirectory, "not a directory", 0};
  if (dir->dead || media::low_half(dir.media().state_gen.get()) != media::kSlotLive)
    return Error{Errc::kNotFound, "the directory was removed", 0};
  PMFS_TRY(check_access(volume, dir, kMayWrite | kMayExecute, who));

  Persist& persist = volume.persist;
  Commit commit = volume.begin_commit();
  BlockHold hold(volume.blocks);
  PMFS_ASSIGN(NewInode fresh, volume.inodes.take_slot(commit, hold));
  const InodeRef& inode = fresh.ref();
  // The slot stays free. Its count of lives is stored without a record: no commit that could still be undone has logged
  // it (R4).
  const u32 generation = media::high_half(inode.media().state_gen.get()) + 1;
  persist.store(inode.media().state_gen, media::join(media::kSlotFree, generation));
  const NewNode node{S_IFREG | mode, 0, {}, true};
  PMFS_TRY(write_new_inode(volume, inode, dir, node, who, now_ns(), hold));
  Freed freed;
  if (fresh.grows()) {
    PMFS_ASSIGN(freed.by, commit.run());
    hold.keep();
  } else {
    // ORDER nameless: whoever gives it a name may be another thread, whose fences do not order our flushes.
    persist.fence(Order::kNamelessFence);
    if (persist.failed()) return Error{Errc::kIo, "writing to the medium failed", 0};
    hold.keep();  // of an ACL that it has inherited
  }
  const InodeNo ino = inode.ino();
  volume.inodes.add_nameless(*inode, linkable);
  fresh.keep(freed);
  volume.quarantine.add(std::move(freed));
  return ino;
}

}  // namespace pmfs
