// The public face, second part: what is done to open files beside reading and writing. (The first: filesystem.cc.)
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "fs/attributes.h"
#include "fs/copy_range.h"
#include "fs/fallocate.h"
#include "fs/file_io.h"
#include "fs/api_call.h"
#include "fs/lease.h"
#include "fs/locks.h"
#include "fs/resolve.h"
#include "fs/xattr.h"

namespace pmfs {

namespace {

bool may_read(int flags) { return (flags & O_ACCMODE) != O_WRONLY; }
bool may_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

const Error kNotForReading{Errc::kBadHandle, "not opened for reading", 0};
const Error kNotForWriting{Errc::kBadHandle, "not opened for writing", 0};

// What the locks of an inode are kept under, if it is there.
Result<LockedFile> lockable(Volume& volume, InodeNo ino) {
  PMFS_ASSIGN(const InodeRef inode, volume.inodes.get(ino));
  std::shared_lock lock(inode->lock);
  PMFS_TRY(check_alive(volume, inode));
  return locked_file(inode);
}

}  // namespace

// --- Space
// -----------------------------------------------------------------------------------------------------------

Result<void> Filesystem::allocate(InodeNo ino, int mode, u64 off, u64 len, const Credentials& who) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino));
    return volume->with_space([&] { return allocate_range(*volume, inode, mode, off, len, who); });
  });
}

Result<void> File::allocate(int mode, u64 off, u64 len) const {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(fs_));
    if (!may_write(flags_)) return kNotForWriting;
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino_));
    return volume->with_space([&] { return allocate_range(*volume, inode, mode, off, len, who_); });
  });
}

Result<u64> Filesystem::seek(InodeNo ino, u64 off, int whence) {
  return guarded([&]() -> Result<u64> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino));
    return seek_file(*volume, inode, off, whence);
  });
}

Result<u64> File::seek(u64 off, int whence) const {
  return guarded([&]() -> Result<u64> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(fs_));
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino_));
    return seek_file(*volume, inode, off, whence);
  });
}

Result<std::size_t> Filesystem::copy_range(InodeNo from, u64 from_off, InodeNo to, u64 to_off, u64 len,
                                           const Credentials& who) {
  return guarded([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl_));
    PMFS_ASSIGN(const InodeRef source, volume->inodes.get(from));
    PMFS_ASSIGN(const InodeRef target, volume->inodes.get(to));
    return volume->with_space([&] { return pmfs::copy_range(*volume, source, from_off, target, to_off, len, who); });
  });
}

Result<std::size_t> File::copy_to(u64 off, const File& to, u64 to_off, u64 len) const {
  return guarded([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(fs_));
    PMFS_TRY(usable_volume(to.fs_));
    if (!may_read(flags_)) return kNotForReading;
    if (!may_write(to.flags_)) return kNotForWriting;
    if ((to.flags_ & O_APPEND) != 0) return Error{Errc::kBadHandle, "opened for appending", 0};
    if (to.fs_ != fs_) return Error{Errc::kCrossDevice, "the files are of different file systems", 0};
    PMFS_ASSIGN(const InodeRef source, volume->inodes.get(ino_));
    PMFS_ASSIGN(const InodeRef target, volume->inodes.get(to.ino_));
    return volume->with_space([&] { return pmfs::copy_range(*volume, source, off, target, to_off, len, to.who_); });
  });
}

// --- Leases
// ----------------------------------------------------------------------------------------------------------

Result<Lease> File::direct(u64 off, u64 len, DirectUse use, Holes holes) const {
  return guarded([&]() -> Result<Lease> {
    const bool writes = use == DirectUse::kWrite, fills = holes == Holes::kFill;
    PMFS_ASSIGN(Volume* const volume, writes || fills ? writable_volume(fs_) : usable_volume(fs_));
    if (!may_read(flags_)) return kNotForReading;
    if ((writes || fills) && !may_write(flags_)) return kNotForWriting;
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino_));
    if (writes) {  // as a write would: set-id bits and security.capability go before anything can be stored
      PMFS_ASSIGN(const Attributes now, stat());
      SetAttributes change;
      change.mode = without_set_id(now.mode, now.gid, who_);
      if (*change.mode != now.mode) PMFS_TRY(set_attributes(*volume, inode, change, Credentials::root(), true));
      if (has_capability(inode.media())) {
        const auto removed = volume->with_space(
            [&] { return pmfs::remove_xattr(*volume, inode, "security.capability", Credentials::root()); });
        if (!removed.ok() && removed.error().code != Errc::kNoAttribute) return removed.error();
      }
    }
    PMFS_ASSIGN(auto pieces,
                volume->with_space([&] { return take_lease(*volume, inode, off, len, fills); }));
    Lease lease;
    lease.pieces_.assign(pieces.begin(), pieces.end());
    for (const auto& piece : pieces) lease.bytes_ += piece.size();
    if (writes) lease.writable_ = std::move(pieces);
    lease.ino_ = ino_;
    lease.fs_ = fs_;
    return lease;
  });
}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    (void)give_back();
    fs_ = std::move(other.fs_);
    ino_ = other.ino_;
    bytes_ = other.bytes_;
    pieces_ = std::move(other.pieces_);
    writable_ = std::move(other.writable_);
  }
  return *this;
}
Lease::~Lease() { (void)give_back(); }

Result<void> Lease::give_back() {
  return guarded([&]() -> Result<void> {
    auto volume = usable_volume(fs_);
    if (volume.ok())
      if (auto inode = (*volume)->inodes.get(ino_); inode.ok()) end_lease(**volume, *inode, pieces_);
    pieces_.clear();
    writable_.clear();
    bytes_ = 0;
    fs_.reset();
    return volume.ok() ? Result<void>() : volume.error();
  });
}

Result<void> Lease::persist(u64 from, u64 bytes) const {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(fs_));
    if (writable_.empty() && bytes_ != 0) return kNotForWriting;
    PMFS_ASSIGN(const InodeRef inode, volume->inodes.get(ino_));
    return persist_lease(*volume, inode, writable_, from, bytes);
  });
}

// --- Locks
// -----------------------------------------------------------------------------------------------------------

LockOwner File::lock_owner() const {
  static std::atomic<u64> next{1};
  u64 id = lock_id_.load();
  if (id == 0) {
    const u64 fresh = next.fetch_add(1);
    if (lock_id_.compare_exchange_strong(id, fresh)) id = fresh;
  }
  return {LockOwner::Kind::kOpenFile, id, static_cast<u32>(::getpid())};
}

Result<void> File::lock(LockKind kind, Wait wait, LockWait* interruptible) const {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(fs_));
    PMFS_ASSIGN(const LockedFile file, lockable(*volume, ino_));
    return volume->locks.set_whole(file, kind, lock_owner(), wait, interruptible);
  });
}

Result<void> File::lock_range(const RangeLock& range, Wait wait, LockWait* interruptible) const {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(fs_));
    if (range.kind == LockKind::kShared && !may_read(flags_)) return kNotForReading;
    if (range.kind == LockKind::kExclusive && !may_write(flags_)) return kNotForWriting;
    PMFS_ASSIGN(const LockedFile file, lockable(*volume, ino_));
    return volume->locks.set_range(file, range, lock_owner(), wait, interruptible);
  });
}

Result<std::optional<HeldLock>> File::test_lock(const RangeLock& range) const {
  return guarded([&]() -> Result<std::optional<HeldLock>> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(fs_));
    PMFS_ASSIGN(const LockedFile file, lockable(*volume, ino_));
    return volume->locks.test_range(file, range, lock_owner());
  });
}

Result<void> Filesystem::lock_range(InodeNo ino, const RangeLock& range, const LockOwner& owner, Wait wait,
                                    LockWait* interruptible) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    PMFS_ASSIGN(const LockedFile file, lockable(*volume, ino));
    return volume->locks.set_range(file, range, owner, wait, interruptible);
  });
}

Result<std::optional<HeldLock>> Filesystem::test_lock(InodeNo ino, const RangeLock& range, const LockOwner& owner) {
  return guarded([&]() -> Result<std::optional<HeldLock>> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    PMFS_ASSIGN(const LockedFile file, lockable(*volume, ino));
    return volume->locks.test_range(file, range, owner);
  });
}

Result<void> Filesystem::lock(InodeNo ino, LockKind kind, const LockOwner& owner, Wait wait, LockWait* interruptible) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    PMFS_ASSIGN(const LockedFile file, lockable(*volume, ino));
    return volume->locks.set_whole(file, kind, owner, wait, interruptible);
  });
}

Result<void> Filesystem::release_locks(InodeNo ino, const LockOwner& owner) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl_));
    PMFS_ASSIGN(const LockedFile file, lockable(*volume, ino));
    volume->locks.release(file, owner);
    return {};
  });
}

// --- Directories and limits
// ------------------------------------------------------------------------------------------

Result<bool> Dir::read(u64 cookie, DirEntry& out, Attributes& attributes) {
  return guarded([&]() -> Result<bool> {
    PMFS_ASSIGN(Volume* const volume, usable_volume(fs_));
    for (;; cookie = out.cookie) {
      PMFS_ASSIGN(const bool more, read(cookie, out));
      if (!more) return false;
      // By name and not by number: so entry and attributes are true at one instant.
      const bool dots = out.view() == "." || out.view() == "..";
      const At at = dots ? At::inode(out.ino) : At(ino_, out.view());
      auto inode = resolve(*volume, at, Credentials::root(), Follow::kNo);
      if (inode.ok()) {
        std::shared_lock lock((*inode)->lock);
        if (const auto alive = check_alive(*volume, *inode); alive.ok()) {
          attributes = attributes_of(*inode);
          out.ino = attributes.ino;
          out.type = attributes.type();
          return true;
        }
      } else if (inode.error().code != Errc::kNotFound && inode.error().code != Errc::kStale) {
        return inode.error();
      }
    }
  });
}

Result<i64> Filesystem::limit(int name) {
  switch (name) {
    case _PC_NAME_MAX: return i64{kNameMax};
    case _PC_PATH_MAX: return i64{kPathMax + 1};  // with the zero at its end
    case _PC_SYMLINK_MAX: return i64{kPathMax};
    case _PC_LINK_MAX: return i64{~u32{0}};
    case _PC_FILESIZEBITS: return i64{53};  // 2^52 - 1, and a sign
    case _PC_NO_TRUNC:
    case _PC_CHOWN_RESTRICTED:
    case _PC_2_SYMLINKS:
    case _PC_SYNC_IO: return i64{1};
    case _PC_ALLOC_SIZE_MIN:
    case _PC_REC_MIN_XFER_SIZE:
    case _PC_REC_INCR_XFER_SIZE:
    case _PC_REC_XFER_ALIGN: return static_cast<i64>(kBlockBytes);
    case _PC_PIPE_BUF: return i64{PIPE_BUF};
    default: return Error{Errc::kInvalid, "no such limit", 0};
  }
}

}  // namespace pmfs
