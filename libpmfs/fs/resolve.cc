#include "fs/resolve.h"

#include <algorithm>

#include "fs/directory.h"
#include "fs/read_unlocked.h"

namespace pmfs {

namespace {

constexpr int kMaxLinks = 40;
constexpr u64 kMaxTarget = kPathMax;

bool in_group(u32 gid, const Credentials& who) {
  return gid == who.gid || std::find(who.groups.begin(), who.groups.end(), gid) != who.groups.end();
}

// The walk's state: where it stands, and what is left of the path.
struct Walk {
  Volume& volume;
  const Credentials& who;
  InodeRef here;
  std::string left;  // a view into it would not survive a symbolic link
  std::size_t pos = 0;
  int links = 0;

  bool at_end() const { return pos >= left.size(); }
  void skip_slashes() {
    while (pos < left.size() && left[pos] == '/') ++pos;
  }
  std::string_view take_component() {
    const std::size_t end = std::min(left.find('/', pos), left.size());
    const std::string_view name = std::string_view(left).substr(pos, end - pos);
    pos = end;
    return name;
  }
};

// What a name leads to, and of what type its entry says it is.
struct Step {
  InodeRef inode;
  FileType type;
};

// Looks `name` up in the directory where the walk stands: search permission, then the entry. The inode is referred to
// before what was read is found to be whole: so it is still the entry's then, and its slot is not reused afterwards
// (I5).
Result<Step> step_once(Walk& walk, std::string_view name, ReadSet* reads) {
  InodeRef& dir = walk.here;
  if (!check_alive(walk.volume, dir, reads).ok()) return Error{Errc::kNotFound, "a directory of the path is gone", 0};
  if (type_of(dir.media()) != FileType::kDirectory)
    return Error{Errc::kNotDirectory, "a component of the path is not a directory", 0};
  PMFS_TRY(check_access(dir.media(), kMayExecute, walk.who));
  if (name == "." || name == "..") {
    const bool removed = media::low_half(dir.media().state_gen.get()) != media::kSlotLive;
    if (removed && name == "..") return Error{Errc::kNotFound, "a removed directory has no parent", 0};
    auto ref = walk.volume.inodes.get(name == "." ? dir.ino() : InodeNo{dir.media().parent.get()});
    if (!ref.ok()) return Error{Errc::kCorrupt, "a directory's parent cannot be", 0};
    return Step{std::move(*ref), FileType::kDirectory};
  }
  PMFS_ASSIGN(const auto entry, find_entry(walk.volume, dir, name, reads));
  if (!entry.has_value()) return Error{Errc::kNotFound, "no such file or directory", 0};
  auto found = walk.volume.inodes.get(entry->ino);
  if (!found.ok()) return Error{Errc::kCorrupt, "an entry names no inode", to_u64(block_off(entry->block))};
  return Step{std::move(*found), entry->type};
}

Result<Step> step(Walk& walk, std::string_view name) {
  if (name.size() > kNameMax) return Error{Errc::kNameTooLong, "a name is longer than 255 bytes", 0};
  return read_unlocked(walk.volume, walk.here, walk.here->shape,
                       [&](ReadSet* reads) { return step_once(walk, name, reads); });
}

// Puts a link's target in front of what is left of the path.
Result<void> follow_link(Walk& walk, const std::string& target) {
  if (++walk.links > kMaxLinks) return Error{Errc::kLoop, "too many symbolic links", 0};
  std::string rest = target;
  if (!walk.at_end()) rest += walk.left.substr(walk.pos);
  walk.left = std::move(rest);
  walk.pos = 0;
  if (!walk.left.empty() && walk.left[0] == '/') {
    PMFS_ASSIGN(walk.here, walk.volume.inodes.get(kRootIno));
  }
  return {};
}

Result<Walk> start(Volume& volume, const At& at, const Credentials& who) {
  if (at.path.empty()) return Error{Errc::kNotFound, "the path is empty", 0};
  if (at.path.size() > kPathMax) return Error{Errc::kNameTooLong, "the path is longer than 4095 bytes", 0};
  if (at.path.find('\0') != std::string_view::npos) return Error{Errc::kInvalid, "the path contains a zero byte", 0};
  PMFS_ASSIGN(InodeRef here, volume.inodes.get(at.path[0] == '/' ? kRootIno : at.dir));
  return Walk{volume, who, std::move(here), std::string(at.path)};
}

Result<std::string> target_of(Volume& volume, const InodeRef& link) {
  std::shared_lock lock(link->lock);
  if (!check_alive(volume, link).ok()) return Error{Errc::kNotFound, "no such file or directory", 0};
  return read_target(volume, link);
}

// Walks all components but the last. Afterwards `walk.here` is the directory for it.
Result<Parent> walk_to_last(Walk& walk) {
  for (;;) {
    walk.skip_slashes();
    if (walk.at_end()) return Parent{std::move(walk.here), "", true};  // only slashes
    const std::string name(walk.take_component());
    const std::size_t behind = walk.pos;
    walk.skip_slashes();
    if (walk.at_end()) return Parent{std::move(walk.here), name, behind < walk.left.size()};
    PMFS_ASSIGN(Step next, step(walk, name));
    walk.pos = behind;
    if (next.type == FileType::kSymlink) {
      PMFS_ASSIGN(const std::string target, target_of(walk.volume, next.inode));
      PMFS_TRY(follow_link(walk, target));
    } else if (next.type == FileType::kDirectory) {
      walk.here = std::move(next.inode);
    } else {
      return Error{Errc::kNotDirectory, "a component of the path is not a directory", 0};
    }
  }
}

}  // namespace

Result<void> check_access(const media::Inode& inode, unsigned wanted, const Credentials& who) {
  if (who.checked_elsewhere || wanted == 0) return {};
  const u32 mode = mode_of(inode);
  if (who.uid == 0) {  // root may all, but execute only what somebody may
    if ((wanted & kMayExecute) == 0 || (mode & 0111) != 0 || type_of_mode(mode) == FileType::kDirectory) return {};
  } else {
    const u32 bits = who.uid == uid_of(inode) ? mode >> 6 : in_group(gid_of(inode), who) ? mode >> 3 : mode;
    if ((bits & wanted) == wanted) return {};
  }
  return Error{Errc::kAccess, "permission denied", 0};
}

Result<void> check_alive(const Volume& volume, const InodeRef& ref, ReadSet* reads) {
  const bool live = media::low_half(ref.media().state_gen.get()) == media::kSlotLive;
  if (reads != nullptr) {
    if (live) return {};
    reads->give_up();
  } else if (!ref->dead && (live || volume.inodes.held(*ref))) {
    return {};
  }
  return Error{Errc::kStale, "the inode is gone", 0};
}

Result<std::string> read_target(const Volume& volume, const InodeRef& link) {
  const media::Inode& inode = link.media();
  if (type_of(inode) != FileType::kSymlink) return Error{Errc::kInvalid, "not a symbolic link", 0};
  const u64 size = inode.size_bytes.get();
  const u64 where = to_u64(volume.persist.memory().off_of(&inode));
  if (size == 0 || size > kMaxTarget) return Error{Errc::kCorrupt, "a symbolic link has an impossible length", where};
  if (size <= sizeof(inode.inline_data)) return std::string(reinterpret_cast<const char*>(inode.inline_data), size);
  PMFS_ASSIGN(const Extent e, volume.maps.find(inode.map_root.get(), 0));
  if (e.hole() || e.unwritten) return Error{Errc::kCorrupt, "a symbolic link has no target", where};
  return std::string(reinterpret_cast<const char*>(volume.persist.memory().at(block_off(e.block))), size);
}

Result<Parent> resolve_parent(Volume& volume, const At& at, const Credentials& who) {
  PMFS_ASSIGN(Walk walk, start(volume, at, who));
  return walk_to_last(walk);
}

Result<InodeRef> resolve(Volume& volume, const At& at, const Credentials& who, Follow follow) {
  if (at.self) {
    PMFS_ASSIGN(InodeRef ref, volume.inodes.get(at.dir));
    PMFS_TRY(read_unlocked(volume, ref, ref->shape, [&](ReadSet* reads) { return check_alive(volume, ref, reads); }));
    return ref;
  }
  PMFS_ASSIGN(Walk walk, start(volume, at, who));
  for (;;) {
    PMFS_ASSIGN(Parent last, walk_to_last(walk));
    walk.here = std::move(last.dir);
    if (last.name.empty()) return std::move(walk.here);
    PMFS_ASSIGN(Step found, step(walk, last.name));
    if (found.type == FileType::kSymlink && (follow == Follow::kYes || last.must_be_directory)) {
      PMFS_ASSIGN(const std::string target, target_of(volume, found.inode));
      // "link/": the slash goes behind the target, which must then be a directory.
      walk.left = last.must_be_directory ? "/" : "";
      walk.pos = 0;
      PMFS_TRY(follow_link(walk, target));
      continue;
    }
    if (last.must_be_directory && found.type != FileType::kDirectory)
      return Error{Errc::kNotDirectory, "a slash follows a name that is no directory", 0};
    return std::move(found.inode);
  }
}

Result<void> through_links(Volume& volume, At& at, std::string& storage, const Credentials& who) {
  for (int links = 0; links <= kMaxLinks; ++links) {
    auto link = resolve(volume, at, who, Follow::kNo);
    if (!link.ok()) return link.error().code == Errc::kNotFound ? Result<void>() : link.error();
    {
      std::shared_lock lock((*link)->lock);
      if (type_of((*link).media()) != FileType::kSymlink) return {};
    }
    PMFS_ASSIGN(std::string target, target_of(volume, *link));
    PMFS_ASSIGN(const Parent parent, resolve_parent(volume, at, who));
    storage = std::move(target);
    at = At(parent.dir.ino(), storage);
  }
  return Error{Errc::kLoop, "too many symbolic links", 0};
}

}  // namespace pmfs
