#include "fs/attributes.h"

#include <sys/stat.h>

#include "fs/clock.h"
#include "fs/file_io.h"
#include "fs/resolve.h"
#include "fs/xattr.h"

namespace pmfs {

namespace {

void read_attributes(InodeNo ino, const media::Inode& inode, i64 waiting_atime_ns, Attributes& a) {
  a.ino = ino;
  a.generation = generation_of(inode);
  a.mode = mode_of(inode);
  a.links = links_of(inode);
  a.uid = uid_of(inode);
  a.gid = gid_of(inode);
  a.size_bytes = inode.size_bytes.get();
  a.blocks_512 = inode.blocks.get() * (kBlockBytes / 512);
  const u32 type = a.mode & S_IFMT;
  a.rdev = type == S_IFCHR || type == S_IFBLK ? inode.rdev_index.get() : 0;
  a.atime_ns = waiting_atime_ns != 0 ? waiting_atime_ns : static_cast<i64>(inode.atime_ns.get());
  a.mtime_ns = static_cast<i64>(inode.mtime_ns.get());
  a.ctime_ns = static_cast<i64>(inode.ctime_ns.get());
  a.birth_ns = static_cast<i64>(inode.birth_ns.get());
}

}  // namespace

Attributes attributes_of(const InodeRef& ref) {
  Attributes a;
  read_attributes(ref.ino(), ref.media(), ref->atime_ns.load(std::memory_order_relaxed), a);
  return a;
}

bool peek_attributes(const Volume& volume, InodeNo ino, u64 generation, Attributes& found) {
  bool live = false;
  const auto look = [&](const media::Inode& inode, i64 waiting_atime_ns) {
    live = media::low_half(inode.state_gen.get()) == media::kSlotLive;
    if (live) read_attributes(ino, inode, waiting_atime_ns, found);  // else somebody may be filling the slot
  };
  const InodeState* const state = volume.inodes.peek(ino);
  const u64 seen = state == nullptr ? 0 : state->version.look();
  if (state == nullptr || !InodeTable::is_of(*state, ino)) {
    if (!volume.inodes.look_if_idle(ino, [&](const media::Inode& inode) { look(inode, 0); })) return false;
  } else {
    if (Version::changing(seen)) return false;
    look(volume.inodes.slot(to_u64(ino) - 1), state->atime_ns.load(std::memory_order_relaxed));
    if (!state->version.still(seen)) return false;
  }
  return live && (generation == 0 || found.generation == generation);
}

Watched watched(const InodeRef& ref) {
  return {&ref.media().state_gen, media::kInodeBytes / sizeof(u64), &ref->version, &ref->shape, kShapeWords};
}

void touch_inode(Volume& volume, Commit& commit, const InodeRef& ref) {
  commit.touch(ref->last, watched(ref));
  if (ref->atime_ns.load(std::memory_order_relaxed) == 0 || !volume.lanes.retired(ref->atime_logged)) return;
  // Without a record: no record that recovery could still use holds this word (R3), and an older value would do no
  // harm.
  volume.persist.store(ref.media().atime_ns, static_cast<u64>(ref->atime_ns.exchange(0)));
  ref->times_lazy = true;  // until the commit's fence 2 has taken the line along, or, if it never runs, until fsync
}

u32 without_set_id(u32 mode, u32 gid, const Credentials& who) {
  if (who.uid == 0 || type_of_mode(mode) == FileType::kDirectory) return mode;
  mode &= ~u32{S_ISUID};
  // Without group execution the bit means something else, and stays with those who may set it (Linux 6.2 and later).
  const bool may_set = who.checked_elsewhere || is_member(gid, who);
  if ((mode & S_IXGRP) != 0 || !may_set) mode &= ~u32{S_ISGID};
  return mode;
}

u32 mode_word_after_write(const media::Inode& inode, const Credentials& who) {
  const u32 flags = media::low_half(inode.mode_links.get()) & ~u32{0xffff} & ~media::kModeHasCapability;
  return flags | without_set_id(mode_of(inode), gid_of(inode), who);
}

namespace {

Result<void> check_change(const Volume& volume, const InodeRef& ref, const SetAttributes& change,
                          const Credentials& who, bool through_handle) {
  if (who.checked_elsewhere || who.uid == 0) return {};
  const media::Inode& inode = ref.media();
  const bool owner = who.uid == uid_of(inode);
  if (change.mode.has_value() && !owner) return Error{Errc::kPermission, "only the owner may change the mode", 0};
  if (change.uid.has_value() && (!owner || *change.uid != uid_of(inode)))
    return Error{Errc::kPermission, "only root may change the owner", 0};
  if (change.gid.has_value() && (!owner || (*change.gid != gid_of(inode) && !is_member(*change.gid, who))))
    return Error{Errc::kPermission, "only the owner may change the group, and only to one of his own", 0};
  // Both times to now is less than one of them: utimensat(2).
  const bool times = change.atime_ns.has_value() || change.mtime_ns.has_value() || change.atime_now != change.mtime_now;
  if (times && !owner) return Error{Errc::kPermission, "only the owner may set times", 0};
  if (change.atime_now && !owner) PMFS_TRY(check_access(volume, ref, kMayWrite, who));
  if (change.size_bytes.has_value() && !through_handle) PMFS_TRY(check_access(volume, ref, kMayWrite, who));
  return {};
}

u32 new_mode(const media::Inode& inode, const SetAttributes& change, const Credentials& who) {
  u32 mode = mode_of(inode);
  if (change.mode.has_value()) {
    mode = (mode & S_IFMT) | (*change.mode & 07777);
    const u32 gid = change.gid.value_or(gid_of(inode));
    if (!who.checked_elsewhere && who.uid != 0 && !is_member(gid, who)) mode &= ~u32{S_ISGID};
  } else if (change.uid.has_value() || change.gid.has_value()) {
    // Whoever changes the owner, root too, takes the set-id bits of all but directories away (Linux chown(2)).
    Credentials changer = who;
    if (who.uid == 0) {
      changer.uid = 1;
      changer.checked_elsewhere = true;
    }
    mode = without_set_id(mode, gid_of(inode), changer);
  } else if (change.size_bytes.has_value()) {
    mode = without_set_id(mode, gid_of(inode), who);
  }
  return mode;
}

}  // namespace

Result<Attributes> set_attributes(Volume& volume, const InodeRef& ref, const SetAttributes& change,
                                  const Credentials& who, bool through_handle) {
  std::unique_lock lock(ref->lock);
  PMFS_TRY(check_alive(volume, ref));
  media::Inode& inode = ref.media();
  if (change.size_bytes.has_value()) {
    if (type_of(inode) == FileType::kDirectory) return Error{Errc::kIsDirectory, "a directory has no settable size", 0};
    if (type_of(inode) != FileType::kRegular) return Error{Errc::kInvalid, "only a file has a settable size", 0};
    if (*change.size_bytes > kMaxFileBytes) return Error{Errc::kFileTooBig, "the size is beyond what a map holds", 0};
  }
  PMFS_TRY(check_change(volume, ref, change, who, through_handle));

  // ORDER set_attributes: live words are the inode's only. A new size's map nodes and zeroed bytes ride in fence 1.
  Commit commit = volume.begin_commit();
  BlockHold hold(volume.blocks, Purpose::kFreeing);
  Freed freed;
  const auto now = static_cast<u64>(now_ns());
  touch_inode(volume, commit, ref);
  commit.set(inode.ctime_ns, now);
  if (change.size_bytes.has_value()) {
    PMFS_TRY(plan_size(volume, ref, *change.size_bytes, commit, hold, freed));
    commit.set(inode.mtime_ns, now);
  }
  const u32 old_word = media::low_half(inode.mode_links.get());
  u32 flags = old_word & ~u32{0xffff};
  const bool owner_changes = change.uid.has_value() || change.gid.has_value();
  if (change.size_bytes.has_value() || (owner_changes && type_of(inode) != FileType::kDirectory)) {
    PMFS_TRY(plan_without_capability(volume, commit, ref, hold, freed));
    flags &= ~media::kModeHasCapability;
  }
  if (const u32 word = flags | new_mode(inode, change, who); word != old_word)
    commit.set(inode.mode_links, media::join(word, links_of(inode)));
  if (owner_changes)
    commit.set(inode.uid_gid, media::join(change.uid.value_or(uid_of(inode)), change.gid.value_or(gid_of(inode))));
  const bool atime = change.atime_now || change.atime_ns.has_value();
  if (atime) {
    ref->atime_ns = 0;
    commit.set(inode.atime_ns, change.atime_now ? now : static_cast<u64>(*change.atime_ns));
  }
  if (change.mtime_now) commit.set(inode.mtime_ns, now);
  if (change.mtime_ns.has_value()) commit.set(inode.mtime_ns, static_cast<u64>(*change.mtime_ns));

  PMFS_ASSIGN(const ChangeMark mark, commit.run());
  if (atime) ref->atime_logged = mark;
  ref->times_lazy = false;  // fence 2 took the whole line along
  hold.keep();
  if (type_of(inode) == FileType::kDirectory)
    if (dcache::DentryCache* const cache = volume.paths.changed(); cache != nullptr)
      cache->permission_changed(ref.ino(), permission_of(inode));
  freed.by = mark;
  volume.quarantine.add(std::move(freed));
  return attributes_of(ref);
}

Result<void> sync_inode(Volume& volume, const InodeRef& ref) {
  std::unique_lock lock(ref->lock);
  PMFS_TRY(check_alive(volume, ref));
  Persist& persist = volume.persist;
  if (volume.options.read_only) return {};
  if (ref->atime_ns.load() != 0) {
    if (!volume.lanes.retired(ref->atime_logged)) {
      // The word was logged by a utimens whose bump may not be durable: recovery could undo that together with this
      // store (R3). The one case in which fsync costs two fences.
      const u32 lane = ref->atime_logged.lane;
      const u64 read = volume.lanes.flush_header(lane, Order::kRetireHeader);
      persist.fence(Order::kRetireFence);
      if (read != 0) volume.lanes.set_durable(lane, read);
    }
    persist.store(ref.media().atime_ns, static_cast<u64>(ref->atime_ns.exchange(0)));
    ref->times_lazy = true;
  }
  if (ref->times_lazy) {
    // ORDER sync: times stored after an overwrite, or the access time, are durable when this returns.
    persist.flush(&ref.media(), kLineBytes, Order::kLazyTimes);
    persist.fence(Order::kSyncFence);
    ref->times_lazy = false;
  }
  persist.write_back_all();
  if (persist.failed()) return Error{Errc::kIo, "writing to the medium failed", 0};
  return {};
}

}  // namespace pmfs
