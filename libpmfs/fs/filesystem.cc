// The public face: Filesystem, File and Dir check that the caller may be here, find the inode, and hand over.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "fs/api_call.h"
#include "fs/attributes.h"
#include "fs/directory.h"
#include "fs/error_detail.h"
#include "fs/file_io.h"
#include "fs/filesystem_impl.h"
#include "fs/namei.h"
#include "fs/nameless.h"
#include "fs/read_unlocked.h"

namespace pmfs {

// --- Values
// ------------------------------------------------------------------------------------------------------------

u32 mode_bits(FileType type) {
  switch (type) {
    case FileType::kNone: return 0;
    case FileType::kRegular: return S_IFREG;
    case FileType::kDirectory: return S_IFDIR;
    case FileType::kSymlink: return S_IFLNK;
    case FileType::kFifo: return S_IFIFO;
    case FileType::kCharDevice: return S_IFCHR;
    case FileType::kBlockDevice: return S_IFBLK;
    case FileType::kSocket: return S_IFSOCK;
  }
  return 0;
}

FileType type_of_mode(u32 mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return FileType::kRegular;
    case S_IFDIR: return FileType::kDirectory;
    case S_IFLNK: return FileType::kSymlink;
    case S_IFIFO: return FileType::kFifo;
    case S_IFCHR: return FileType::kCharDevice;
    case S_IFBLK: return FileType::kBlockDevice;
    case S_IFSOCK: return FileType::kSocket;
    default: return FileType::kNone;
  }
}

// --- FilesystemImpl
// ------------------------------------------------------------------------------------------------------

FilesystemImpl::FilesystemImpl(std::optional<Pool> pool, std::unique_ptr<Volume> volume, std::string path)
    : pool_(std::move(pool)), volume_(std::move(volume)), path_(std::move(path)), generation_(fork_generation()) {}

FilesystemImpl::~FilesystemImpl() {
  if (!usable().ok()) {
    // A forked child: other threads' locks may be held for ever here, and the memory is gone. Forget, touch nothing.
    (void)volume_.release();
    return;
  }
  if (volume_ == nullptr) return;
  volume_->inodes.drop_all_pins();
  (void)close();
}

Result<void> FilesystemImpl::close() {
  PMFS_TRY(usable());
  PMFS_TRY(close_volume(*volume_));
  volume_.reset();
  if (!pool_.has_value()) return {};
  auto closed = pool_->close();
  pool_.reset();
  return closed;
}

namespace {

// How often a look-up that lost its race against removals is begun again.
constexpr int kLookTries = 16;

std::function<void(InodeState&)> pin_if(Volume& volume, Ref ref) {
  if (ref == Ref::kNone) return nullptr;
  return [&volume](InodeState& state) { volume.inodes.add_pin(state); };
}

unsigned access_wanted(int flags) {
  switch (flags & O_ACCMODE) {
    case O_RDONLY: return kMayRead;
    case O_WRONLY: return kMayWrite;
    default: return kMayRead | kMayWrite;
  }
}

}  // namespace

// --- Opening and closing
// ---------------------------------------------------------------------------------------------------

namespace {

// Opens a pool, and tries again for as long as the caller wants while somebody else has it. Nothing is held meanwhile.
Result<Pool> open_when_free(const std::string& path, const OpenOptions& options) {
  using std::chrono::milliseconds;
  constexpr milliseconds kPause{20};
  const auto until = std::chrono::steady_clock::now() + milliseconds{options.busy_wait_ms};
  for (;;) {
    auto pool = Pool::open(path, options.read_only);
    if (pool.ok() || pool.error().code != Errc::kPoolBusy || std::chrono::steady_clock::now() >= until) return pool;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Filesystem::Filesystem(std::shared_ptr<FilesystemImpl> impl) : impl_(std::move(impl)) {}
Filesystem::Filesystem(Filesystem&&) noexcept = default;
Filesystem& Filesystem::operator=(Filesystem&&) noexcept = default;
Filesystem::~Filesystem() = default;  // the last of the file system and its handles closes the pool

namespace {

Result<void> format_pool(const Pool& pool, const FormatOptions& options) {
  FormatParameters parameters;
  parameters.label = options.label;
  parameters.root_uid = options.root_uid;
  parameters.root_gid = options.root_gid;
  parameters.regions.assign(pool.regions().begin(), pool.regions().end());
  parameters.locator_off = pool.locator_off();
  auto made = format_memory(pool.memory(), parameters);
  if (!made.ok()) set_error_detail(pool.path(), made.error().what);
  return made;
}

Result<void> check_label(const FormatOptions& options) {
  if (options.label.size() > 31) return Error{Errc::kInvalid, "the label is longer than 31 bytes", 0};
  return {};
}

Result<std::shared_ptr<FilesystemImpl>> open_pool(Pool pool, const OpenOptions& options) {
  const std::string path = pool.path();
  Memory memory = pool.memory();
  if (options.relaxed && memory.durability == Durability::kFileBacked) memory.durability = Durability::kRelaxed;
  auto volume = open_volume(memory, pool.locator_off(), options);
  if (!volume.ok()) {
    set_error_detail(path, volume.error().what);
    return volume.error();
  }
  return std::make_shared<FilesystemImpl>(std::move(pool), std::move(*volume), path);
}

}  // namespace

Result<void> Filesystem::format(const std::string& path, const FormatOptions& options) {
  return guarded([&]() -> Result<void> {
    PMFS_TRY(check_label(options));
    PMFS_ASSIGN(Pool pool, Pool::create(path, options.size_bytes, options.force, options.mode, options.reserve_bytes));
    if (auto made = format_pool(pool, options); !made.ok()) {
      (void)pool.close();
      if (options.size_bytes != 0) ::unlink(path.c_str());  // a file that this call made
      return made;
    }
    return pool.close();
  });
}

Result<u64> Filesystem::format_in(const std::string& path, ::pmemobjpool* pool, u64 size_bytes,
                                  const FormatOptions& options) {
  return guarded([&]() -> Result<u64> {
    PMFS_TRY(check_label(options));
    PMFS_ASSIGN(const Pool shared, Pool::take(path, pool, size_bytes));
    PMFS_TRY(format_pool(shared, options));
    return to_u64(shared.locator_off());
  });
}

Result<Filesystem> Filesystem::open(const std::string& path, const OpenOptions& options) {
  return guarded([&]() -> Result<Filesystem> {
    PMFS_ASSIGN(Pool pool, open_when_free(path, options));
    PMFS_ASSIGN(auto impl, open_pool(std::move(pool), options));
    return Filesystem(std::move(impl));
  });
}

Result<Filesystem> Filesystem::attach(const std::string& path, ::pmemobjpool* pool, u64 locator_off,
                                      const OpenOptions& options) {
  return guarded([&]() -> Result<Filesystem> {
    if (options.read_only) return Error{Errc::kNotSupported, "the application's pages are not private", 0};
    PMFS_ASSIGN(Pool shared, Pool::attach(path, pool, locator_off));
    PMFS_ASSIGN(auto impl, open_pool(std::move(shared), options));
    return Filesystem(std::move(impl));
  });
}

Volume& volume_of(Filesystem& fs) { return fs.impl_->volume(); }

Result<Filesystem> open_memory(Memory memory, PoolOff locator_off, const OpenOptions& options) {
  return guarded([&]() -> Result<Filesystem> {
    PMFS_ASSIGN(auto volume, open_volume(memory, locator_off, options));
    return Filesystem(std::make_shared<FilesystemImpl>(std::nullopt, std::move(volume), "memory"));
  });
}

Result<void> Filesystem::close() {
  return guarded([&]() -> Result<void> {
    PMFS_TRY(usable_volume(impl_));
    PMFS_TRY(impl_->close());
    impl_.reset();
    return {};
  });
}

// --- Looking
// -----------------------------------------------------------------------------------------------------------------

Result<Attributes> Filesystem::stat(At at, const Credentials& who, Follow follow, Ref ref) {
  return guarded([&]() -> Result<Attributes> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    if (ref == Ref::kNone) {
      PMFS_ASSIGN(const dcache::Found seen, look_up(*volume, at, who, follow));
      Result<Attributes> quick = Attributes();
      if (peek_attributes(*volume, seen.ino, seen.generation, *quick)) return quick;
    }
    return with_found(*volume, at, who, follow, [&](const InodeRef& inode) {
      return read_unlocked(*volume, inode, inode->version, [&](ReadSet* reads) -> Result<Attributes> {
        if (reads != nullptr && ref == Ref::kPin) reads->give_up();  // a pin is taken under the lock
        PMFS_TRY(check_alive(*volume, inode, reads));
        if (reads == nullptr && ref == Ref::kPin) volume->inodes.add_pin(*inode);
        return attributes_of(inode);
      });
    });
  });
}

Result<std::string> Filesystem::readlink(At at, const Credentials& who) {
  return guarded([&]() -> Result<std::string> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    return with_found(*volume, at, who, Follow::kNo, [&](const InodeRef& inode) -> Result<std::string> {
      std::shared_lock lock(inode->lock);
      PMFS_TRY(check_alive(*volume, inode));
      return read_target(*volume, inode);
    });
  });
}

Result<void> Filesystem::access(At at, int mode, const Credentials& who, Follow follow) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    return with_found(*volume, at, who, follow, [&](const InodeRef& inode) -> Result<void> {
      std::shared_lock lock(inode->lock);
      PMFS_TRY(check_alive(*volume, inode));
      const FileType type = type_of(inode.media());
      const bool stored = type == FileType::kRegular || type == FileType::kDirectory || type == FileType::kSymlink;
      if ((mode & W_OK) != 0 && stored) PMFS_TRY(volume->writable());
      static_assert(R_OK == kMayRead && W_OK == kMayWrite && X_OK == kMayExecute);
      return check_access(*volume, inode, static_cast<unsigned>(mode), who);
    });
  });
}

Result<DirectoryInfo> Filesystem::directory_info(At at, const Credentials& who) {
  return guarded([&]() -> Result<DirectoryInfo> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    return with_found(*volume, at, who, Follow::kYes, [&](const InodeRef& inode) -> Result<DirectoryInfo> {
      std::shared_lock lock(inode->lock);
      PMFS_TRY(check_alive(*volume, inode));
      if (type_of(inode.media()) != FileType::kDirectory) return Error{Errc::kNotDirectory, "not a directory", 0};
      DirectoryInfo info;
      info.entries = inode.media().entry_count.get();
      info.index_levels = htree::Index::levels(usable_index(*volume, inode));
      PMFS_TRY(volume->maps.each(inode.media().map_root.get(), 0, kMapEnd, [&](const Extent& e) -> Result<void> {
        info.leaves += e.count;
        return {};
      }));
      return info;
    });
  });
}

Result<SpaceInfo> Filesystem::space() const {
  PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
  SpaceInfo space;
  const u64 waiting =
      volume->quarantine.blocks();  // read first: released blocks are counted twice rather than not at all
  const u64 free = std::min(volume->blocks.free_blocks() + waiting, volume->blocks.total());
  space.block_bytes = kBlockBytes;
  space.blocks = volume->blocks.total();
  space.blocks_free = free;
  space.blocks_avail = free > volume->blocks.reserve() ? free - volume->blocks.reserve() : 0;
  space.inodes_free = volume->inodes.free_slots() + volume->quarantine.slots() + free * media::kInodesPerBlock;
  space.inodes = volume->inodes.slots() + free * media::kInodesPerBlock;
  return space;
}

PoolInfo Filesystem::info() const {
  PoolInfo info;
  auto found = usable_volume(impl_);
  if (!found.ok()) return info;
  const Volume& volume = **found;
  const media::Superblock& sb = volume.superblock;
  info.path = impl_->path();
  info.label = reinterpret_cast<const char*>(sb.label);
  info.uuid = uuid_text(sb);
  info.format_version = sb.format_version.get();
  info.compat = sb.compat.get();
  info.ro_compat = sb.ro_compat.get();
  info.incompat = sb.incompat.get();
  info.pool_bytes = volume.persist.memory().size_bytes;
  info.epoch = sb.epoch.get();
  info.lanes = sb.lane_count.get();
  info.durability = volume.persist.memory().durability;
  info.medium = volume.persist.memory().medium;
  info.read_only = volume.read_only();
  info.recovered = volume.recovered;
  info.saved_map_used = volume.saved_map_used;
  for (const Region& region : volume.regions.list()) info.regions.push_back({region.off, region.length_bytes});
  if (auto space_now = space(); space_now.ok()) info.space = *space_now;
  info.files = volume.inodes.slots() - std::min(volume.inodes.slots(), volume.inodes.free_slots());
  return info;
}

HeldInodes Filesystem::held_inodes() const {
  const auto volume = usable_volume(impl_);
  return volume.ok() ? (*volume)->inodes.held() : HeldInodes{};
}

// --- Changing the tree
// -------------------------------------------------------------------------------------------------------

Result<Attributes> Filesystem::mknod(At at, u32 mode, u64 rdev, const Credentials& who, Ref ref) {
  return guarded([&]() -> Result<Attributes> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    if ((mode & S_IFMT) == 0) mode |= S_IFREG;
    if (S_ISDIR(mode)) return Error{Errc::kPermission, "mknod makes no directories", 0};
    if (S_ISLNK(mode)) return Error{Errc::kInvalid, "mknod makes no links", 0};
    return volume->with_space([&] { return make_node(*volume, at, {mode, rdev, {}}, who, pin_if(*volume, ref)); });
  });
}

Result<Attributes> Filesystem::mkdir(At at, u32 mode, const Credentials& who, Ref ref) {
  return guarded([&]() -> Result<Attributes> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    const NewNode node{(mode & 01777) | S_IFDIR, 0, {}};
    return volume->with_space([&] { return make_node(*volume, at, node, who, pin_if(*volume, ref)); });
  });
}

Result<Attributes> Filesystem::symlink(std::string_view target, At at, const Credentials& who, Ref ref) {
  return guarded([&]() -> Result<Attributes> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    const NewNode node{0777 | S_IFLNK, 0, target};
    return volume->with_space([&] { return make_node(*volume, at, node, who, pin_if(*volume, ref)); });
  });
}

Result<Attributes> Filesystem::link(At from, At to, const Credentials& who, Follow follow, Ref ref) {
  return guarded([&]() -> Result<Attributes> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    return volume->with_space([&] { return make_link(*volume, from, to, who, follow, pin_if(*volume, ref)); });
  });
}

Result<void> Filesystem::unlink(At at, const Credentials& who) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    return volume->with_space([&] { return remove_name(*volume, at, RemoveKind::kFile, who); });
  });
}

Result<void> Filesystem::rmdir(At at, const Credentials& who) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    return volume->with_space([&] { return remove_name(*volume, at, RemoveKind::kDirectory, who); });
  });
}

Result<void> Filesystem::rename(At from, At to, unsigned flags, const Credentials& who) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    return volume->with_space([&] { return rename_name(*volume, from, to, flags, who); });
  });
}

Result<Attributes> Filesystem::set_attributes(At at, const SetAttributes& change, const Credentials& who,
                                              Follow follow) {
  return guarded([&]() -> Result<Attributes> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    return volume->with_space([&] {
      return with_found(*volume, at, who, follow,
                        [&](const InodeRef& inode) { return pmfs::set_attributes(*volume, inode, change, who); });
    });
  });
}

// --- Files
// -------------------------------------------------------------------------------------------------------------------

namespace {

// Opens an inode. @error kStale, if it is gone.
Result<InodeNo> open_found(Volume& volume, const InodeRef& inode, int flags, const Credentials& who) {
  {
    std::shared_lock lock(inode->lock);
    PMFS_TRY(check_alive(volume, inode));
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return Error{Errc::kExists, "the name is taken", 0};
    const FileType type = type_of(inode.media());
    if ((flags & O_DIRECTORY) != 0 && type != FileType::kDirectory)
      return Error{Errc::kNotDirectory, "not a directory", 0};
    if (type == FileType::kSymlink) return Error{Errc::kLoop, "a symbolic link, and none may be followed", 0};
    const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
    if (type == FileType::kDirectory && (writes || (flags & O_CREAT) != 0))
      return Error{Errc::kIsDirectory, "a directory cannot be opened for writing", 0};
    if (type == FileType::kSocket) return Error{Errc::kNoAddress, "a socket cannot be opened", 0};
    if (type != FileType::kRegular && type != FileType::kDirectory)
      return Error{Errc::kNotSupported, "devices, pipes and sockets are opened by the kernel, not here", 0};
    unsigned wanted = access_wanted(flags);
    if ((flags & O_TRUNC) != 0) wanted |= kMayWrite;
    PMFS_TRY(check_access(volume, inode, wanted, who));
    if ((flags & O_NOATIME) != 0 && !who.checked_elsewhere && who.uid != 0 && who.uid != uid_of(inode.media()))
      return Error{Errc::kPermission, "only the owner may read without a new access time", 0};
    if (writes) PMFS_TRY(volume.writable());
    volume.inodes.add_handle(*inode);
  }
  if ((flags & O_TRUNC) == 0) return inode.ino();
  SetAttributes empty;
  empty.size_bytes = 0;
  if (auto cut = set_attributes(volume, inode, empty, who, true); !cut.ok()) {
    volume.inodes.drop_handle(inode);
    return cut.error();
  }
  return inode.ino();
}

// Opens what is there. @error kNotFound, if nothing is.
Result<InodeNo> open_existing(Volume& volume, const At& at, int flags, const Credentials& who) {
  const Follow follow =
      (flags & O_NOFOLLOW) != 0 || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) ? Follow::kNo : Follow::kYes;
  return with_found(volume, at, who, follow,
                    [&](const InodeRef& inode) { return open_found(volume, inode, flags, who); });
}

Result<InodeNo> open_or_create(Volume& volume, const At& at, int flags, u32 mode, const Credentials& who) {
  for (int tries = 0;; ++tries) {
    if ((flags & O_CREAT) != 0 && !at.self) {
      // With O_CREAT a slash behind the name is refused, whatever is there; but the way to it must exist.
      PMFS_TRY(check_path(volume, at));
      if (at.path.ends_with('/') && at.path.find_first_not_of('/') != std::string_view::npos) {
        PMFS_TRY(resolve_parent(volume, at, who));
        return Error{Errc::kIsDirectory, "open makes no directories", 0};
      }
    }
    auto opened = open_existing(volume, at, flags, who);
    if (opened.ok() || opened.error().code != Errc::kNotFound || (flags & O_CREAT) == 0 || at.self) return opened;
    PMFS_TRY(volume.writable());
    // A dangling symbolic link is created through, as open(2) does, unless O_EXCL or O_NOFOLLOW forbid it.
    std::string behind_link;
    At where = at;
    if ((flags & (O_EXCL | O_NOFOLLOW)) == 0) PMFS_TRY(through_links(volume, where, behind_link, who));
    auto made = make_node(volume, where, {(mode & 07777) | S_IFREG, 0, {}}, who,
                          [&](InodeState& state) { volume.inodes.add_handle(state); });
    if (made.ok()) return made->ino;
    // Somebody made it meanwhile: then it can be opened, unless it must be new.
    if (made.error().code != Errc::kExists || (flags & O_EXCL) != 0 || tries == kLookTries) return made.error();
  }
}

}  // namespace

Result<File> Filesystem::open_file(At at, int flags, u32 mode, const Credentials& who) {
  return guarded([&]() -> Result<File> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    if ((flags & O_TMPFILE) == O_TMPFILE) {
      if ((flags & O_CREAT) != 0 || (flags & O_ACCMODE) == O_RDONLY)
        return Error{Errc::kInvalid, "a nameless file is made to be written", 0};
      PMFS_TRY(volume->writable());
      PMFS_ASSIGN(const InodeNo ino, volume->with_space([&] {
        return with_found(
            *volume, at, who, (flags & O_NOFOLLOW) != 0 ? Follow::kNo : Follow::kYes,
            [&](const InodeRef& dir) { return make_nameless(*volume, dir, mode & 07777, (flags & O_EXCL) == 0, who); });
      }));
      return File(impl_, ino, flags, who);
    }
    if ((flags & O_CREAT) != 0 && (flags & O_DIRECTORY) != 0)
      return Error{Errc::kInvalid, "open makes no directories", 0};
    PMFS_ASSIGN(const InodeNo ino, volume->with_space([&] { return open_or_create(*volume, at, flags, mode, who); }));
    return File(impl_, ino, flags, who);
  });
}

Result<Dir> Filesystem::open_dir(At at, const Credentials& who) {
  return guarded([&]() -> Result<Dir> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    PMFS_ASSIGN(const InodeNo ino, open_existing(*volume, at, O_RDONLY | O_DIRECTORY, who));
    return Dir(impl_, ino);
  });
}

Result<std::size_t> Filesystem::read(InodeNo ino, u64 off, std::span<std::byte> out) {
  return guarded([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino));
    return read_file(*volume, inode, off, out);
  });
}

Result<std::size_t> Filesystem::write(InodeNo ino, u64 off, std::span<const std::byte> in, const Credentials& who) {
  return guarded([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino));
    return volume->with_space([&] { return write_file(*volume, inode, off, in, false, who); });
  });
}

Result<void> Filesystem::sync(InodeNo ino) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino));
    return sync_inode(*volume, inode);
  });
}

Result<void> Filesystem::sync() {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    if (volume->options.read_only) return {};
    return sync_all(*volume);
  });
}

Result<void> Filesystem::pin(InodeNo ino) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino));
    std::shared_lock lock(inode->lock);
    PMFS_TRY(check_alive(*volume, inode));
    volume->inodes.add_pin(*inode);
    return {};
  });
}

Result<void> Filesystem::unpin(InodeNo ino, u64 count) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino));
    if (!volume->inodes.drop_pins(inode, count)) return Error{Errc::kInvalid, "more pins than are held", 0};
    return {};
  });
}

void Filesystem::unpin_all() {
  if (auto volume = usable_volume(impl_); volume.ok()) (*volume)->inodes.drop_all_pins();
}

// --- File
// --------------------------------------------------------------------------------------------------------------------

File::File(std::shared_ptr<FilesystemImpl> fs, InodeNo ino, int flags, const Credentials& who)
    : fs_(std::move(fs)), ino_(ino), flags_(flags), who_(who) {}
File::File(File&& other) noexcept
    : fs_(std::move(other.fs_)),
      ino_(other.ino_),
      flags_(other.flags_),
      who_(other.who_),
      lock_id_(other.lock_id_.exchange(0)) {}
File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    (void)close();
    fs_ = std::move(other.fs_);
    ino_ = other.ino_;
    flags_ = other.flags_;
    who_ = other.who_;
    lock_id_ = other.lock_id_.exchange(0);
  }
  return *this;
}
File::~File() { (void)close(); }

Result<void> File::close() {
  return guarded([&]() -> Result<void> {
    auto volume = usable_volume(fs_);
    if (volume.ok()) {
      auto inode = (*volume)->inodes.get(ino_);
      if (inode.ok() && lock_id_ != 0) (*volume)->locks.release(locked_file(*inode), lock_owner());
      if (inode.ok()) (*volume)->inodes.drop_handle(*inode);
    }
    lock_id_ = 0;
    fs_.reset();
    return volume.ok() ? Result<void>() : volume.error();
  });
}

Result<std::size_t> File::read(u64 off, std::span<std::byte> out) const {
  return guarded([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(fs_));
    if ((flags_ & O_ACCMODE) == O_WRONLY) return Error{Errc::kBadHandle, "not opened for reading", 0};
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino_));
    return read_file(*volume, inode, off, out, (flags_ & O_NOATIME) != 0);
  });
}

Result<std::size_t> File::write(u64 off, std::span<const std::byte> in) const {
  return guarded([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(fs_));
    if ((flags_ & O_ACCMODE) == O_RDONLY) return Error{Errc::kBadHandle, "not opened for writing", 0};
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino_));
    return volume->with_space([&] { return write_file(*volume, inode, off, in, (flags_ & O_APPEND) != 0, who_); });
  });
}

Result<void> File::sync() const {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(fs_));
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino_));
    return sync_inode(*volume, inode);
  });
}

Result<Attributes> File::stat() const {
  return guarded([&]() -> Result<Attributes> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(fs_));
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino_));
    std::shared_lock lock(inode->lock);
    PMFS_TRY(check_alive(*volume, inode));
    return attributes_of(inode);
  });
}

Result<void> File::truncate(u64 size_bytes) const {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(fs_));
    if ((flags_ & O_ACCMODE) == O_RDONLY) return Error{Errc::kInvalid, "not opened for writing", 0};
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino_));
    SetAttributes change;
    change.size_bytes = size_bytes;
    PMFS_TRY(volume->with_space([&] { return set_attributes(*volume, inode, change, who_, true); }));
    return {};
  });
}

// --- Dir
// ---------------------------------------------------------------------------------------------------------------------

struct Dir::Stream {
  DirectoryListing listing;
};

Dir::Dir(std::shared_ptr<FilesystemImpl> fs, InodeNo ino)
    : fs_(std::move(fs)), ino_(ino), stream_(std::make_unique<Stream>()) {}
Dir::Dir() noexcept = default;
Dir::Dir(Dir&&) noexcept = default;
Dir& Dir::operator=(Dir&& other) noexcept {
  if (this != &other) {
    (void)close();
    fs_ = std::move(other.fs_);
    ino_ = other.ino_;
    stream_ = std::move(other.stream_);
  }
  return *this;
}
Dir::~Dir() { (void)close(); }

Result<void> Dir::close() {
  return guarded([&]() -> Result<void> {
    auto volume = usable_volume(fs_);
    if (volume.ok()) {
      auto inode = (*volume)->inodes.get(ino_);
      if (inode.ok()) (*volume)->inodes.drop_handle(*inode);
    }
    fs_.reset();
    stream_.reset();
    return volume.ok() ? Result<void>() : volume.error();
  });
}

void Dir::rewind() {
  if (stream_ != nullptr) stream_->listing.forget();
}

Result<bool> Dir::read(u64 cookie, DirEntry& out) {
  return guarded([&]() -> Result<bool> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(fs_));
    PMFS_ASSIGN(const InodeRef dir, volume->inodes.get(ino_));
    return read_unlocked(*volume, dir, dir->shape, [&](ReadSet* reads) -> Result<bool> {
      PMFS_TRY(check_alive(*volume, dir, reads));
      if (cookie >= kCookieDotDot) return stream_->listing.next(*volume, dir, cookie, out, reads);
      const bool dot = cookie < kCookieDot;
      out.ino = dot ? ino_ : InodeNo{dir.media().parent.get()};
      out.type = FileType::kDirectory;
      out.cookie = dot ? kCookieDot : kCookieDotDot;
      out.name_len = dot ? 1 : 2;
      std::strcpy(out.name, dot ? "." : "..");
      return true;
    });
  });
}

}  // namespace pmfs
