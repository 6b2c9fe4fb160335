#include "fs/namei.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "fs/acl.h"
#include "fs/attributes.h"
#include "fs/clock.h"
#include "fs/directory.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE (1 << 1)
#endif
#ifndef RENAME_WHITEOUT
#define RENAME_WHITEOUT (1 << 2)
#endif

namespace pmfs {

namespace {

// Exclusive locks of one operation. An inode that comes in order is waited for. One that does not is only tried: on
// failure the operation drops everything, waits for that inode alone, and starts again.
class ExclusiveLocks {
 public:
  ExclusiveLocks() = default;
  ExclusiveLocks(const ExclusiveLocks&) = delete;
  ExclusiveLocks& operator=(const ExclusiveLocks&) = delete;
  ~ExclusiveLocks() {
    for (u32 i = 0; i < count_; ++i) held_[i]->lock.unlock();
    if (missed_ != nullptr) {
      missed_->lock.lock();
      missed_->lock.unlock();
    }
  }
  /// @return false: start again; `ref` must outlive this object.
  bool lock(const InodeRef& ref) {
    InodeState* state = &*ref;
    for (u32 i = 0; i < count_; ++i)
      if (held_[i] == state) return true;
    if (count_ == 0 || held_[count_ - 1]->ino < state->ino) {
      state->lock.lock();
    } else if (!state->lock.try_lock()) {
      missed_ = state;
      return false;
    }
    held_[count_++] = state;  // the highest number stays last: what comes in order is compared with it
    if (count_ > 1 && held_[count_ - 2]->ino > state->ino) std::swap(held_[count_ - 2], held_[count_ - 1]);
    return true;
  }

 private:
  InodeState* held_[4] = {};
  u32 count_ = 0;
  InodeState* missed_ = nullptr;
};

// Runs `attempt(again)` until it does not set `again`.
template <class Attempt>
auto until_locked(Attempt&& attempt) {
  for (;;) {
    bool again = false;
    auto result = attempt(again);
    if (!again) return result;
  }
}

// The device number of a whiteout, which stands for a removed name in the upper layer of an overlay.
constexpr u64 kWhiteoutDevice = 0;

const Error kAgain{Errc::kBusy, "locks are taken again, in order", 0};  // never leaves this file

// Whether names in this directory may be added and removed. REQUIRES: its lock.
Result<void> check_changeable(const Volume& volume, const InodeRef& dir, const Credentials& who) {
  if (dir->dead || media::low_half(dir.media().state_gen.get()) != media::kSlotLive)
    return Error{Errc::kNotFound, "the directory was removed", 0};
  if (type_of(dir.media()) != FileType::kDirectory)
    return Error{Errc::kNotDirectory, "a component of the path is not a directory", 0};
  return check_access(volume, dir, kMayWrite | kMayExecute, who);
}

// The same for removing `name`: who may search but not write learns that the name is missing before that he may not.
Result<void> check_removable(Volume& volume, const InodeRef& dir, std::string_view name, const Credentials& who) {
  const auto changeable = check_changeable(volume, dir, who);
  if (changeable.ok() || changeable.error().code != Errc::kAccess) return changeable;
  PMFS_TRY(check_access(volume, dir, kMayExecute, who));
  PMFS_ASSIGN(const auto there, find_entry(volume, dir, name));
  return there.has_value() ? changeable.error() : Error{Errc::kNotFound, "no such file or directory", 0};
}

// In a sticky directory only the owner of the entry's inode, or of the directory, may remove it.
Result<void> check_sticky(const media::Inode& dir, const media::Inode& victim, const Credentials& who) {
  if (who.checked_elsewhere || who.uid == 0 || (mode_of(dir) & S_ISVTX) == 0 || who.uid == uid_of(victim) ||
      who.uid == uid_of(dir))
    return {};
  return Error{Errc::kPermission, "the directory is sticky and the file another's", 0};
}

bool is_dots(std::string_view name) { return name == "." || name == ".."; }

Result<void> check_name(const Parent& parent) {
  if (parent.name.size() > kNameMax) return Error{Errc::kNameTooLong, "a name is longer than 255 bytes", 0};
  return {};
}

Result<InodeRef> entry_inode(Volume& volume, const FoundEntry& entry) {
  auto ref = volume.inodes.get(entry.ino);
  if (ref.ok()) return ref;
  return Error{Errc::kCorrupt, "an entry names no inode", to_u64(block_off(entry.block))};
}

// An entry must lead to an inode in use. REQUIRES: the inode's lock, and the directory's.
Result<void> check_named(const Volume& volume, const InodeRef& ref) {
  const media::Inode& inode = ref.media();
  if (!ref->dead && media::low_half(inode.state_gen.get()) == media::kSlotLive) return {};
  return Error{Errc::kCorrupt, "an entry names an inode that is free", to_u64(volume.persist.memory().off_of(&inode))};
}

void set_links(Commit& commit, const InodeRef& ref, int delta) {
  Le64& word = ref.media().mode_links;
  const u64 now = commit.value(word);
  commit.set(word, media::join(media::low_half(now), media::high_half(now) + static_cast<u32>(delta)));
}

// Takes one name from an inode, or all of a directory: the last one frees it. What is still looked at by somebody also
// shows its new link count and time; otherwise only the state changes.
// @return whether this was the last name.
bool take_name(Volume& volume, Commit& commit, const InodeRef& victim, u64 now) {
  media::Inode& inode = victim.media();
  touch_inode(volume, commit, victim);
  const bool last = type_of(inode) == FileType::kDirectory || links_of(inode) <= 1;
  if (last) commit.set(inode.state_gen, media::join(media::kSlotFree, media::high_half(inode.state_gen.get())));
  if (!last || volume.inodes.held(*victim)) {
    commit.set(inode.ctime_ns, now);
    commit.set(inode.mode_links, media::join(media::low_half(inode.mode_links.get()), last ? 0 : links_of(inode) - 1));
  }
  return last;
}

}  // namespace

Result<void> write_new_inode(Volume& volume, const InodeRef& fresh, const InodeRef& dir, const NewNode& node,
                             const Credentials& who, i64 now, BlockHold& hold) {
  Persist& persist = volume.persist;
  const FileType type = type_of_mode(node.mode);
  const u32 dir_mode = mode_of(dir.media());
  PMFS_ASSIGN(const InheritedAcl inherited, inherit_acl(volume, dir, node.mode & (S_IFMT | 07777), who.umask));
  u32 mode = inherited.mode;
  u32 gid = who.gid;
  if ((dir_mode & S_ISGID) != 0) {  // the group, and for directories the bit, come from the parent
    gid = gid_of(dir.media());
    if (type == FileType::kDirectory) {
      mode |= S_ISGID;
    } else if ((mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && who.uid != 0 && !who.checked_elsewhere &&
               gid != who.gid && std::find(who.groups.begin(), who.groups.end(), gid) == who.groups.end()) {
      mode &= ~u32{S_ISGID};
    }
  }
  media::Inode inode{};
  inode.mode_links.set(media::join(mode, node.nameless ? 0 : type == FileType::kDirectory ? 2 : 1));
  inode.uid_gid.set(media::join(who.uid, gid));
  for (Le64* time : {&inode.atime_ns, &inode.mtime_ns, &inode.ctime_ns, &inode.birth_ns})
    time->set(static_cast<u64>(now));
  if (type == FileType::kDirectory) inode.parent.set(to_u64(dir.ino()));
  if (type == FileType::kCharDevice || type == FileType::kBlockDevice) inode.rdev_index.set(node.rdev);
  inode.gen_high.set(volume.lanes.key().epoch);
  std::size_t bytes = offsetof(media::Inode, inline_data);
  if (type == FileType::kSymlink) {
    inode.size_bytes.set(node.target.size());
    if (node.target.size() <= sizeof(inode.inline_data)) {
      std::memcpy(inode.inline_data, node.target.data(), node.target.size());
      bytes += node.target.size();
    } else {
      PMFS_ASSIGN(const BlockRun run, hold.take(1));
      std::byte* at = persist.memory().at(block_off(run.first));
      persist.write(at, node.target.data(), node.target.size());
      persist.flush(at, node.target.size(), Order::kFreshTarget);
      PMFS_ASSIGN(const MapChange map, volume.maps.replace(0, 0, 1, {{0, 1, run.first, false}}, hold));
      inode.map_root.set(map.root);
      inode.blocks.set(map.added_blocks);
    }
  }
  PMFS_TRY(write_fresh_areas(volume, fresh.ino(), {{}, inherited.acl}, inode, hold));
  if (!inherited.acl.empty()) bytes = sizeof(inode);
  auto* to = reinterpret_cast<std::byte*>(&fresh.media());
  constexpr std::size_t kBehindState = sizeof(Le64);
  persist.write(to + kBehindState, reinterpret_cast<std::byte*>(&inode) + kBehindState, bytes - kBehindState);
  persist.flush(to, bytes, Order::kFreshInode);
  return {};
}

namespace {

Result<void> check_new_node(const NewNode& node) {
  switch (type_of_mode(node.mode)) {
    case FileType::kSymlink:
      if (node.target.empty()) return Error{Errc::kNotFound, "a symbolic link needs a target", 0};
      if (node.target.size() > kPathMax) return Error{Errc::kNameTooLong, "the target is longer than 4095 bytes", 0};
      if (node.target.find('\0') != std::string_view::npos)
        return Error{Errc::kInvalid, "the target contains a zero byte", 0};
      return {};
    case FileType::kNone: return Error{Errc::kInvalid, "no such file type", 0};
    default: return {};
  }
}

// Takes a free slot, fills it, and adds to the commit that it is in use.
Result<NewInode> make_inode(Volume& volume, const InodeRef& dir, const NewNode& node, const Credentials& who, i64 now,
                            Commit& commit, BlockHold& hold) {
  PMFS_ASSIGN(NewInode fresh, volume.inodes.take_slot(commit, hold));
  const InodeRef& inode = fresh.ref();
  PMFS_TRY(write_new_inode(volume, inode, dir, node, who, now, hold));
  commit.touch(inode->last, watched(inode));
  const u32 generation = media::high_half(inode.media().state_gen.get()) + 1;
  commit.set(inode.media().state_gen, media::join(media::kSlotLive, generation));
  return fresh;
}

}  // namespace

Result<Attributes> make_node(Volume& volume, const At& at, const NewNode& node, const Credentials& who,
                             const std::function<void(InodeState&)>& hold_new) {
  PMFS_TRY(check_new_node(node));
  const bool directory = type_of_mode(node.mode) == FileType::kDirectory;
  PMFS_ASSIGN(const Parent parent, resolve_parent(volume, at, who));
  PMFS_TRY(check_name(parent));
  if (parent.name.empty() || is_dots(parent.name)) return Error{Errc::kExists, "the name is taken", 0};
  const InodeRef& dir = parent.dir;

  std::unique_lock lock(dir->lock);
  if (dir->dead || media::low_half(dir.media().state_gen.get()) != media::kSlotLive)
    return Error{Errc::kNotFound, "the directory was removed", 0};
  if (type_of(dir.media()) != FileType::kDirectory)
    return Error{Errc::kNotDirectory, "a component of the path is not a directory", 0};
  PMFS_TRY(check_access(volume, dir, kMayExecute, who));
  PMFS_ASSIGN(const auto there, find_entry(volume, dir, parent.name));
  if (there.has_value()) return Error{Errc::kExists, "the name is taken", 0};
  if (parent.must_be_directory && !directory)
    return Error{Errc::kNotFound, "a slash follows a name that is no directory", 0};
  PMFS_TRY(check_access(volume, dir, kMayWrite, who));
  // A device 0:0 is a whiteout of overlayfs, and harmless.
  const FileType type = type_of_mode(node.mode);
  const bool device = type == FileType::kBlockDevice || (type == FileType::kCharDevice && node.rdev != 0);
  if (device && !who.checked_elsewhere && who.uid != 0)
    return Error{Errc::kPermission, "only root may make devices", 0};
  PMFS_TRY(prepare_directory(volume, dir));

  // ORDER create: the inode, its entry and a grown leaf, map or inode file lie where nothing points to, and ride in
  // fence 1.
  //   live words: the leaf's bit, the slot's state, the parent's times and counts.
  //   crash before fence 1: nothing applied. Between: undone by the records. After fence 2: the file exists.
  Commit commit = volume.begin_commit();
  BlockHold hold(volume.blocks);
  const i64 now = now_ns();
  PMFS_ASSIGN(NewInode fresh, make_inode(volume, dir, node, who, now, commit, hold));
  const InodeRef& inode = fresh.ref();
  DirectoryEdit edit(volume, dir, commit, hold, now);
  PMFS_TRY(edit.insert(parent.name, inode.ino(), type_of_mode(node.mode)));
  if (directory) edit.add_links(+1);

  PMFS_ASSIGN(const ChangeMark mark, commit.run());
  hold.keep();
  Freed freed;
  edit.after_commit(freed);
  if (dcache::DentryCache* const cache = volume.paths.changed(); cache != nullptr)
    cache->name_added(dir.ino(), parent.name, target_of(inode.ino(), inode.media()));
  if (hold_new) hold_new(*inode);
  const Attributes made = attributes_of(inode);
  fresh.keep(freed);
  freed.by = mark;
  volume.quarantine.add(std::move(freed));
  return made;
}

namespace {

// @param when_gone  the error if the file has lost its last name.
Result<Attributes> link_found(Volume& volume, const InodeRef& file, const At& to, const Credentials& who,
                              Errc when_gone, const std::function<void(InodeState&)>& hold_linked) {
  PMFS_ASSIGN(const Parent parent, resolve_parent(volume, to, who));
  PMFS_TRY(check_name(parent));
  if (parent.name.empty() || is_dots(parent.name)) return Error{Errc::kExists, "the name is taken", 0};
  const InodeRef& dir = parent.dir;

  return until_locked([&](bool& again) -> Result<Attributes> {
    ExclusiveLocks locks;
    const bool file_first = file.ino() < dir.ino();
    for (const InodeRef* ref : {file_first ? &file : &dir, file_first ? &dir : &file})
      if (!locks.lock(*ref)) return again = true, kAgain;
    PMFS_TRY(check_changeable(volume, dir, who));
    PMFS_ASSIGN(const auto there, find_entry(volume, dir, parent.name));
    if (there.has_value()) return Error{Errc::kExists, "the name is taken", 0};
    if (parent.must_be_directory) return Error{Errc::kNotFound, "a slash follows a name that is no directory", 0};
    media::Inode& inode = file.media();
    const bool nameless = media::low_half(inode.state_gen.get()) != media::kSlotLive;
    if (file->dead || (nameless && !file->linkable)) return Error{when_gone, "the file was removed", 0};
    if (type_of(inode) == FileType::kDirectory) return Error{Errc::kPermission, "directories have one name", 0};
    PMFS_TRY(prepare_directory(volume, dir));
    if (links_of(inode) == ~u32{0}) return Error{Errc::kTooManyLinks, "the link count is at its limit", 0};

    // ORDER link: the entry rides in fence 1. Live words: its bit, the parent's times and count, the file's links and
    // ctime; the state of a file that had no name (what else there is of it was durable before: fs/nameless.h).
    Commit commit = volume.begin_commit();
    BlockHold hold(volume.blocks);
    const i64 now = now_ns();
    DirectoryEdit edit(volume, dir, commit, hold, now);
    PMFS_TRY(edit.insert(parent.name, file.ino(), type_of(inode)));
    touch_inode(volume, commit, file);
    set_links(commit, file, +1);
    if (nameless)
      commit.set(inode.state_gen, media::join(media::kSlotLive, media::high_half(inode.state_gen.get())));
    commit.set(inode.ctime_ns, static_cast<u64>(now));
    PMFS_ASSIGN(const ChangeMark mark, commit.run());
    hold.keep();
    Freed freed;
    edit.after_commit(freed);
    if (dcache::DentryCache* const cache = volume.paths.changed(); cache != nullptr)
      cache->name_added(dir.ino(), parent.name, target_of(file.ino(), inode));
    if (nameless) volume.inodes.named(file);
    if (hold_linked) hold_linked(*file);
    freed.by = mark;
    volume.quarantine.add(std::move(freed));
    return attributes_of(file);
  });
}

}  // namespace

Result<Attributes> make_link(Volume& volume, const At& from, const At& to, const Credentials& who, Follow follow,
                             const std::function<void(InodeState&)>& hold_linked) {
  PMFS_TRY(check_path(volume, to));
  return with_found(volume, from, who, follow, [&](const InodeRef& file) {
    return link_found(volume, file, to, who, from.self ? Errc::kNotFound : Errc::kStale, hold_linked);
  });
}

Result<void> remove_name(Volume& volume, const At& at, RemoveKind kind, const Credentials& who) {
  PMFS_ASSIGN(const Parent parent, resolve_parent(volume, at, who));
  PMFS_TRY(check_name(parent));
  const InodeRef& dir = parent.dir;
  if (kind == RemoveKind::kDirectory) {
    if (parent.name.empty()) return Error{Errc::kBusy, "the root cannot be removed", 0};
    if (parent.name == ".") return Error{Errc::kInvalid, "\".\" cannot be removed", 0};
    if (parent.name == "..") return Error{Errc::kNotEmpty, "\"..\" cannot be removed", 0};
  } else if (parent.name.empty() || is_dots(parent.name)) {
    return Error{Errc::kIsDirectory, "unlink does not remove directories", 0};
  }

  return until_locked([&](bool& again) -> Result<void> {
    InodeRef victim;
    ExclusiveLocks locks;  // destroyed, and so unlocked, before `victim`
    if (!locks.lock(dir)) return again = true, kAgain;
    PMFS_TRY(check_removable(volume, dir, parent.name, who));
    PMFS_ASSIGN(const auto entry, find_entry(volume, dir, parent.name));
    if (!entry.has_value()) return Error{Errc::kNotFound, "no such file or directory", 0};
    PMFS_ASSIGN(victim, entry_inode(volume, *entry));
    if (victim.ino() == dir.ino()) return Error{Errc::kCorrupt, "a directory contains itself", 0};
    if (!locks.lock(victim)) return again = true, kAgain;
    PMFS_TRY(check_named(volume, victim));
    media::Inode& inode = victim.media();
    PMFS_TRY(check_sticky(dir.media(), inode, who));
    const bool directory = type_of(inode) == FileType::kDirectory;
    if (kind == RemoveKind::kFile && directory)
      return Error{Errc::kIsDirectory, "unlink does not remove directories", 0};
    if (!directory && (kind == RemoveKind::kDirectory || parent.must_be_directory))
      return Error{Errc::kNotDirectory, "not a directory", 0};
    if (directory && inode.entry_count.get() != 0) return Error{Errc::kNotEmpty, "the directory is not empty", 0};

    // ORDER unlink: nothing fresh. Live words: the entry's bit, the parent's times and counts, the inode's state or
    // links.
    Commit commit = volume.begin_commit();
    BlockHold hold(volume.blocks, Purpose::kFreeing);
    const i64 now = now_ns();
    DirectoryEdit edit(volume, dir, commit, hold, now);
    PMFS_TRY(edit.remove(*entry, true));
    if (directory) edit.add_links(-1);
    const bool last = take_name(volume, commit, victim, static_cast<u64>(now));
    PMFS_ASSIGN(const ChangeMark mark, commit.run());
    hold.keep();
    Freed freed;
    edit.after_commit(freed);
    if (dcache::DentryCache* const cache = volume.paths.changed(); cache != nullptr)
      cache->name_removed(dir.ino(), parent.name, target_of(victim.ino(), inode));
    if (last) volume.inodes.unlinked(victim, freed);
    freed.by = mark;
    volume.quarantine.add(std::move(freed));
    return {};
  });
}

namespace {

// One end of a rename: the directory, the name, and what the name leads to.
struct RenameEnd {
  const Parent& parent;
  std::optional<FoundEntry> entry;
  InodeRef inode;
  const InodeRef& dir() const { return parent.dir; }
  bool is_directory() const { return inode && type_of(inode.media()) == FileType::kDirectory; }
};

Result<void> find_end(Volume& volume, RenameEnd& end) {
  PMFS_ASSIGN(end.entry, find_entry(volume, end.dir(), end.parent.name));
  if (!end.entry.has_value()) return {};
  PMFS_ASSIGN(end.inode, entry_inode(volume, *end.entry));
  return {};
}

// Whether `dir` is `ancestor` or lies below it. REQUIRES: the rename mutex, so no directory above `dir` moves
// meanwhile.
Result<bool> is_below(Volume& volume, const InodeRef& dir, InodeNo ancestor) {
  InodeNo at = dir.ino();
  for (u64 steps = volume.inodes.slots(); steps > 0; --steps) {
    if (at == ancestor) return true;
    if (at == kRootIno) return false;
    auto ref = volume.inodes.get(at);
    if (!ref.ok()) return Error{Errc::kCorrupt, "a directory's parent cannot be", 0};
    at = InodeNo{(*ref).media().parent.get()};
  }
  return Error{Errc::kCorrupt, "directories are each other's parents", 0};
}

// Everything that can be wrong with a rename, in the order in which Linux looks. REQUIRES: all locks.
Result<void> check_rename(Volume& volume, const RenameEnd& from, const RenameEnd& to, unsigned flags,
                          const Credentials& who) {
  const bool exchange = (flags & RENAME_EXCHANGE) != 0;
  const bool crosses = from.dir().ino() != to.dir().ino();
  if (!from.entry.has_value() || (exchange && !to.entry.has_value()))
    return Error{Errc::kNotFound, "no such file or directory", 0};
  if ((flags & RENAME_NOREPLACE) != 0 && to.entry.has_value()) return Error{Errc::kExists, "the new name is taken", 0};
  if (!from.is_directory() && (from.parent.must_be_directory || (to.parent.must_be_directory && !exchange)))
    return Error{Errc::kNotDirectory, "a slash follows a name that is no directory", 0};
  if (exchange && to.parent.must_be_directory && !to.is_directory())
    return Error{Errc::kNotDirectory, "a slash follows a name that is no directory", 0};
  if (from.is_directory() && crosses) {
    PMFS_ASSIGN(const bool below, is_below(volume, to.dir(), from.inode.ino()));
    if (below) return Error{Errc::kInvalid, "a directory cannot move into itself", 0};
  }
  if (to.is_directory() && crosses) {
    PMFS_ASSIGN(const bool below, is_below(volume, from.dir(), to.inode.ino()));
    if (below)
      return Error{exchange ? Errc::kInvalid : Errc::kNotEmpty, "the new name leads to a directory above the old", 0};
  }
  PMFS_TRY(check_changeable(volume, from.dir(), who));
  PMFS_TRY(check_changeable(volume, to.dir(), who));
  PMFS_TRY(check_sticky(from.dir().media(), from.inode.media(), who));
  if (to.entry.has_value()) {
    PMFS_TRY(check_sticky(to.dir().media(), to.inode.media(), who));
    if (!exchange) {
      if (from.is_directory() && !to.is_directory())
        return Error{Errc::kNotDirectory, "the new name is no directory", 0};
      if (!from.is_directory() && to.is_directory()) return Error{Errc::kIsDirectory, "the new name is a directory", 0};
      if (to.is_directory() && to.inode.ino() != from.inode.ino() && to.inode.media().entry_count.get() != 0)
        return Error{Errc::kNotEmpty, "the directory at the new name is not empty", 0};
    }
  }
  // The moved directory's ".." changes.
  if (crosses && from.is_directory()) PMFS_TRY(check_access(volume, from.inode, kMayWrite, who));
  if (crosses && exchange && to.is_directory()) PMFS_TRY(check_access(volume, to.inode, kMayWrite, who));
  return {};
}

// REQUIRES: all locks, all checks.
Result<void> commit_rename(Volume& volume, RenameEnd& from, RenameEnd& to, unsigned flags, const Credentials& who) {
  const bool exchange = (flags & RENAME_EXCHANGE) != 0;
  // ORDER rename: a new entry rides in fence 1. Live words: the entries' bits or targets, the parents' times and
  // counts,
  //   the moved inodes' ctime and parent, the victim's state or links. Both names change in the one commit. A whiteout
  //   is an inode that rides in fence 1, too; its state is a live word, and the old entry is retargeted to it.
  Commit commit = volume.begin_commit();
  BlockHold hold(volume.blocks);
  const i64 now = now_ns();
  const bool crosses = from.dir().ino() != to.dir().ino();
  DirectoryEdit from_edit(volume, from.dir(), commit, hold, now);
  std::optional<DirectoryEdit> other;
  if (crosses) other.emplace(volume, to.dir(), commit, hold, now);
  DirectoryEdit& to_edit = crosses ? *other : from_edit;

  const auto move_inode = [&](const InodeRef& inode, bool directory, DirectoryEdit& old_dir, DirectoryEdit& new_dir,
                              InodeNo new_parent) {
    touch_inode(volume, commit, inode);
    commit.set(inode.media().ctime_ns, static_cast<u64>(now));
    if (!directory || !crosses) return;
    commit.set(inode.media().parent, to_u64(new_parent));
    old_dir.add_links(-1);
    new_dir.add_links(+1);
  };
  bool last = false;
  move_inode(from.inode, from.is_directory(), from_edit, to_edit, to.dir().ino());
  if (exchange) {
    move_inode(to.inode, to.is_directory(), to_edit, from_edit, from.dir().ino());
    from_edit.retarget(*from.entry, to.inode.ino(), type_of(to.inode.media()));
    to_edit.retarget(*to.entry, from.inode.ino(), type_of(from.inode.media()));
  } else {
    // In one directory the leaf with the other entry could be the one that is joined: its entry is retargeted below.
    if ((flags & RENAME_WHITEOUT) == 0) PMFS_TRY(from_edit.remove(*from.entry, crosses));
    if (to.entry.has_value()) {
      to_edit.retarget(*to.entry, from.inode.ino(), type_of(from.inode.media()));
      if (to.is_directory()) to_edit.add_links(-1);
      last = take_name(volume, commit, to.inode, static_cast<u64>(now));
    } else {
      PMFS_TRY(to_edit.insert(to.parent.name, from.inode.ino(), type_of(from.inode.media())));
    }
  }
  std::optional<NewInode> whiteout;
  if ((flags & RENAME_WHITEOUT) != 0) {
    PMFS_ASSIGN(NewInode fresh, make_inode(volume, from.dir(), {S_IFCHR, kWhiteoutDevice, {}}, who, now, commit, hold));
    from_edit.retarget(*from.entry, fresh.ref().ino(), FileType::kCharDevice);  // behind insert(), which may move it
    whiteout.emplace(std::move(fresh));
  }
  PMFS_ASSIGN(const ChangeMark mark, commit.run());
  hold.keep();
  Freed freed;
  from_edit.after_commit(freed);
  if (crosses) to_edit.after_commit(freed);
  if (dcache::DentryCache* const cache = volume.paths.changed(); cache != nullptr) {
    dcache::Target victim;
    if (to.entry.has_value()) victim = target_of(to.inode.ino(), to.inode.media());
    cache->renamed(from.dir().ino(), from.parent.name, target_of(from.inode.ino(), from.inode.media()), to.dir().ino(),
                   to.parent.name, to.entry.has_value() ? &victim : nullptr, exchange);
    // In between, nothing is known of the old name: who asks for it then reads the directory.
    if (whiteout.has_value())
      cache->name_added(from.dir().ino(), from.parent.name,
                        target_of(whiteout->ref().ino(), whiteout->ref().media()));
  }
  if (whiteout.has_value()) whiteout->keep(freed);
  if (last) volume.inodes.unlinked(to.inode, freed);
  freed.by = mark;
  volume.quarantine.add(std::move(freed));
  return {};
}

}  // namespace

Result<void> rename_name(Volume& volume, const At& from_at, const At& to_at, unsigned flags, const Credentials& who) {
  if ((flags & ~unsigned{RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT}) != 0)
    return Error{Errc::kInvalid, "unknown rename flags", 0};
  if ((flags & RENAME_EXCHANGE) != 0 && flags != RENAME_EXCHANGE)
    return Error{Errc::kInvalid, "an exchange replaces nothing and leaves no whiteout", 0};
  PMFS_ASSIGN(const Parent from_parent, resolve_parent(volume, from_at, who));
  PMFS_ASSIGN(const Parent to_parent, resolve_parent(volume, to_at, who));
  for (const Parent* parent : {&from_parent, &to_parent}) {
    PMFS_TRY(check_name(*parent));
    if (parent->name.empty() || is_dots(parent->name))
      return Error{Errc::kBusy, "the root, \".\" and \"..\" cannot be renamed", 0};
  }
  const bool crosses = from_parent.dir.ino() != to_parent.dir.ino();

  // A directory that changes parents needs the rename mutex before all locks; that it is one is only known under them.
  std::unique_lock moving(volume.rename_mutex, std::defer_lock);
  bool directory_moves = false;
  return until_locked([&](bool& again) -> Result<void> {
    if (directory_moves && !moving.owns_lock()) moving.lock();
    RenameEnd from{from_parent, {}, {}};
    RenameEnd to{to_parent, {}, {}};
    ExclusiveLocks locks;
    const bool from_first = from.dir().ino() < to.dir().ino();
    for (const InodeRef* dir : {from_first ? &from.dir() : &to.dir(), from_first ? &to.dir() : &from.dir()})
      if (!locks.lock(*dir)) return again = true, kAgain;
    for (const RenameEnd* end : {&from, &to}) {
      const InodeRef& dir = end->dir();
      if (dir->dead || media::low_half(dir.media().state_gen.get()) != media::kSlotLive)
        return Error{Errc::kNotFound, "the directory was removed", 0};
      if (type_of(dir.media()) != FileType::kDirectory)
        return Error{Errc::kNotDirectory, "a component of the path is not a directory", 0};
      PMFS_TRY(check_access(volume, dir, kMayExecute, who));
    }
    PMFS_TRY(prepare_directory(volume, to.dir()));
    PMFS_TRY(find_end(volume, from));
    PMFS_TRY(find_end(volume, to));
    for (const RenameEnd* end : {&from, &to})
      if (end->inode && !locks.lock(end->inode)) return again = true, kAgain;
    for (const RenameEnd* end : {&from, &to})
      if (end->inode) PMFS_TRY(check_named(volume, end->inode));
    if (crosses && (from.is_directory() || to.is_directory()) && !moving.owns_lock()) {
      directory_moves = again = true;  // unlock all first: the mutex comes before them
      return kAgain;
    }
    PMFS_TRY(check_rename(volume, from, to, flags, who));
    if (to.inode && from.inode.ino() == to.inode.ino()) return {};  // two names of one file: POSIX wants nothing done
    return commit_rename(volume, from, to, flags, who);
  });
}

}  // namespace pmfs
