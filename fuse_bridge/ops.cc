#include "fuse_bridge/ops.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "fuse_bridge/batch.h"
#include "fuse_bridge/caller.h"
#include "fuse_bridge/parallel_dirops.h"
#include "fuse_bridge/statistics.h"
#include "mounted/wire.h"

namespace pmfs::bridge {

// --- The state behind the handlers
// ----------------------------------------------------------------------------------------

CountsReply Bridge::counts() const {
  CountsReply reply;
  reply.kinds = kRequestKinds;
  for (std::size_t i = 0; i < kRequestKinds; ++i) reply.counts[i] = counts_[i].load(std::memory_order_relaxed);
  return reply;
}

DirStream* Bridge::keep(Dir dir) {
  auto stream = std::make_unique<DirStream>(std::move(dir));
  DirStream* const address = stream.get();
  const std::lock_guard guard(streams_lock_);
  streams_.emplace(address, std::move(stream));
  return address;
}

bool Bridge::release(DirStream* stream) {
  std::unique_ptr<DirStream> released;  // closed behind the lock
  const std::lock_guard guard(streams_lock_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return false;
  released = std::move(found->second);
  streams_.erase(found);
  return true;
}

void Bridge::release_all() {
  {
    const std::lock_guard guard(streams_lock_);
    streams_.clear();
  }
  fs_.unpin_all();
}

namespace {

// --- Translation: the library's values to the kernel's, and back
// --------------------------------------------------------

constexpr i64 kNsPerSecond = 1'000'000'000;

InodeNo ino_of(fuse_ino_t nodeid) { return InodeNo{nodeid}; }

/// Nanoseconds since the epoch; what does not fit (before 1678, after 2261) becomes the nearest that does.
i64 to_ns(const timespec& time) {
  i64 ns = 0;
  if (__builtin_mul_overflow(static_cast<i64>(time.tv_sec), kNsPerSecond, &ns) ||
      __builtin_add_overflow(ns, static_cast<i64>(time.tv_nsec), &ns))
    return time.tv_sec < 0 ? std::numeric_limits<i64>::min() : std::numeric_limits<i64>::max();
  return ns;
}

timespec to_timespec(i64 ns) {
  i64 seconds = ns / kNsPerSecond;
  i64 rest = ns % kNsPerSecond;
  if (rest < 0) {
    rest += kNsPerSecond;
    seconds -= 1;
  }
  timespec time{};
  time.tv_sec = seconds;
  time.tv_nsec = rest;
  return time;
}

struct stat to_stat(const Bridge& bridge, const Attributes& from) {
  struct stat to {};
  to.st_ino = to_u64(from.ino);
  to.st_mode = from.mode;
  to.st_nlink = from.links;
  to.st_uid = bridge.owner().uid.value_or(from.uid);
  to.st_gid = bridge.owner().gid.value_or(from.gid);
  to.st_rdev = from.rdev;
  to.st_size = static_cast<off_t>(from.size_bytes);
  to.st_blksize = static_cast<blksize_t>(kBlockBytes);
  to.st_blocks = static_cast<blkcnt_t>(from.blocks_512);
  to.st_atim = to_timespec(from.atime_ns);
  to.st_mtim = to_timespec(from.mtime_ns);
  to.st_ctim = to_timespec(from.ctime_ns);
  return to;
}

fuse_entry_param to_entry(const Bridge& bridge, const Attributes& attributes) {
  fuse_entry_param entry{};
  entry.ino = to_u64(attributes.ino);
  entry.generation = attributes.ino == kRootIno ? 0 : attributes.generation;  // the kernel wants the root's to be zero
  entry.attr = to_stat(bridge, attributes);
  entry.attr_timeout = bridge.timeouts().attr_s;
  entry.entry_timeout = bridge.timeouts().entry_s;
  return entry;
}

/// The caller. The kernel has checked already; what counts here is who owns what is created, and its mode.
Credentials caller_of(fuse_req_t req) {
  const fuse_ctx* const ctx = fuse_req_ctx(req);
  Credentials who;
  who.uid = ctx->uid;
  who.gid = ctx->gid;
  who.umask = ctx->umask & 0777u;  // set for what creates; DONT_MASK leaves its use to the file system
  who.checked_elsewhere = true;
  return who;
}

Bridge& bridge_of(fuse_req_t req) { return *static_cast<Bridge*>(fuse_req_userdata(req)); }

// --- Replies
// ----------------------------------------------------------------------------------------------------------------

void reply_error(fuse_req_t req, const Error& error) {
  if (error.code == Errc::kCorrupt || error.code == Errc::kIo) {  // the medium's fault, not the caller's: leave a trace
    fuse_log(FUSE_LOG_ERR, "pmfs: %s (%s), at byte %llu of the pool\n", describe(error.code), error.what,
             static_cast<unsigned long long>(error.media_off));
  }
  fuse_reply_err(req, to_errno(error.code));
}

template <class T>
void reply_done(fuse_req_t req, const Result<T>& result) {
  if (result.ok()) {
    fuse_reply_err(req, 0);
  } else {
    reply_error(req, result.error());
  }
}

void reply_attributes(Bridge& bridge, fuse_req_t req, const Result<Attributes>& result) {
  if (!result.ok()) return reply_error(req, result.error());
  const struct stat attributes = to_stat(bridge, *result);
  fuse_reply_attr(req, &attributes, bridge.timeouts().attr_s);
}

/// A pin that stands for a look-up count of the kernel; given back unless the answer has reached it (B2).
class Pin {
 public:
  Pin(Bridge& bridge, InodeNo ino) : bridge_(bridge), ino_(ino) {}
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() {
    // An error here says that it was not held; the library has then changed nothing.
    if (!handed_over_) (void)bridge_.fs().unpin(ino_, 1);
  }

  /// @param reply  what fuse_reply_*() returned.
  void hand_over_if(int reply) { handed_over_ = reply == 0 && ino_ != kRootIno; }

 private:
  Bridge& bridge_;
  const InodeNo ino_;
  bool handed_over_ = false;
};

/// Answers with an entry. REQUIRES: the call that gave `result` took a pin.
void reply_entry(Bridge& bridge, fuse_req_t req, const Result<Attributes>& result) {
  if (!result.ok()) return reply_error(req, result.error());
  Pin pin(bridge, result->ino);
  const fuse_entry_param entry = to_entry(bridge, *result);
  pin.hand_over_if(fuse_reply_entry(req, &entry));
}

/// Memory of this thread for building a reply. Its contents are whatever they were.
std::span<char> scratch(std::size_t bytes) {
  thread_local std::unique_ptr<char[]> memory;
  thread_local std::size_t capacity = 0;
  if (capacity < bytes) {
    memory.reset();
    capacity = 0;
    memory = std::make_unique_for_overwrite<char[]>(bytes);
    capacity = bytes;
  }
  return {memory.get(), bytes};
}

/// Runs a handler's body. What it throws before it has replied becomes the reply: libfuse is C.
template <class Body>
void answer(fuse_req_t req, Request request, Body&& body) noexcept {
  Bridge& bridge = bridge_of(req);
  try {
    if (bridge.count(request) && bridge.hooks().first_request) bridge.hooks().first_request();
    body(bridge);
  } catch (const std::bad_alloc&) {
    fuse_reply_err(req, ENOMEM);
  } catch (const std::exception&) {
    fuse_reply_err(req, EIO);
  }
}

// --- Session
// ---------------------------------------------------------------------------------------------------------------

constexpr unsigned kMaxWriteBytes = 1u << 20;
constexpr unsigned kMaxBackground = 64;

void on_init(void* userdata, fuse_conn_info* conn) noexcept {
  static constexpr u64 kWanted[] = {
      FUSE_CAP_ASYNC_READ,       FUSE_CAP_ASYNC_DIO, FUSE_CAP_PARALLEL_DIROPS, FUSE_CAP_READDIRPLUS,
      FUSE_CAP_READDIRPLUS_AUTO, FUSE_CAP_DONT_MASK, FUSE_CAP_CACHE_SYMLINKS,  FUSE_CAP_EXPORT_SUPPORT,
      FUSE_CAP_NO_OPEN_SUPPORT,  FUSE_CAP_IOCTL_DIR, FUSE_CAP_POSIX_ACL,
  };
  static constexpr u64 kDeclined[] = {
      FUSE_CAP_ATOMIC_O_TRUNC,   // B3
      FUSE_CAP_WRITEBACK_CACHE,  // a write is durable when it returns
      FUSE_CAP_AUTO_INVAL_DATA,  // nobody else writes
      FUSE_CAP_HANDLE_KILLPRIV,  // the kernel removes set-id bits itself, by SETATTR: then it knows the new mode
      FUSE_CAP_SPLICE_READ,        FUSE_CAP_SPLICE_WRITE, FUSE_CAP_SPLICE_MOVE,  // data is in memory: nothing to splice
      FUSE_CAP_POSIX_LOCKS,        FUSE_CAP_FLOCK_LOCKS,                         // one kernel: its own locks serve
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
      FUSE_CAP_HANDLE_KILLPRIV_V2,
#endif
  };
  for (const u64 capability : kWanted) ask_for(*conn, capability);
  for (const u64 capability : kDeclined) decline(*conn, capability);
  conn->max_write = kMaxWriteBytes;
  conn->max_background = kMaxBackground;
  conn->congestion_threshold = kMaxBackground * 3 / 4;
  conn->time_gran = 1;  // nanoseconds
  expect_init_reply(*conn);

  Bridge& bridge = *static_cast<Bridge*>(userdata);
#if PMFS_FUSE_HAS_URING
  if (bridge.wants_uring() && is_offered(*conn, FUSE_CAP_OVER_IO_URING)) bridge.say_uses_uring();
#endif
  if (bridge.hooks().served_init) bridge.hooks().served_init();
}

void on_destroy(void* userdata) noexcept { static_cast<Bridge*>(userdata)->release_all(); }

// --- Names
// -------------------------------------------------------------------------------------------------------------------

void on_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) noexcept {
  answer(req, Request::kLookup, [&](Bridge& bridge) {
    // "." and ".." come from file handles (EXPORT_SUPPORT). The nodeid of "." may be of any type, and of any value.
    const At at = std::strcmp(name, ".") == 0 ? At::inode(ino_of(parent)) : At(ino_of(parent), name);
    const Result<Attributes> found = bridge.fs().stat(at, caller_of(req), Follow::kNo, Ref::kPin);
    if (!found.ok() && found.error().code == Errc::kNotFound && bridge.timeouts().negative_s > 0) {
      fuse_entry_param absent{};  // ino 0: the kernel remembers that there is no such name
      absent.entry_timeout = bridge.timeouts().negative_s;
      fuse_reply_entry(req, &absent);
      return;
    }
    reply_entry(bridge, req, found);
  });
}

void give_back(Bridge& bridge, fuse_ino_t nodeid, u64 count) {
  // The kernel cannot be told of an error; more than it was given is refused by the library, and then nothing changes.
  if (ino_of(nodeid) != kRootIno) (void)bridge.fs().unpin(ino_of(nodeid), count);
}

void on_forget(fuse_req_t req, fuse_ino_t nodeid, u64 count) noexcept {
  Bridge& bridge = bridge_of(req);
  bridge.count(Request::kForget);
  give_back(bridge, nodeid, count);
  fuse_reply_none(req);
}

void on_forget_multi(fuse_req_t req, std::size_t count, fuse_forget_data* forgets) noexcept {
  Bridge& bridge = bridge_of(req);
  bridge.count(Request::kForget);
  for (const fuse_forget_data& forget : std::span(forgets, count)) give_back(bridge, forget.ino, forget.nlookup);
  fuse_reply_none(req);
}

void on_mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev) noexcept {
  answer(req, Request::kMknod, [&](Bridge& bridge) {
    reply_entry(bridge, req, bridge.fs().mknod({ino_of(parent), name}, mode, rdev, caller_of(req), Ref::kPin));
  });
}

void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) noexcept {
  answer(req, Request::kMkdir, [&](Bridge& bridge) {
    reply_entry(bridge, req, bridge.fs().mkdir({ino_of(parent), name}, mode, caller_of(req), Ref::kPin));
  });
}

void on_symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) noexcept {
  answer(req, Request::kSymlink, [&](Bridge& bridge) {
    reply_entry(bridge, req, bridge.fs().symlink(target, {ino_of(parent), name}, caller_of(req), Ref::kPin));
  });
}

void on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char* new_name) noexcept {
  answer(req, Request::kLink, [&](Bridge& bridge) {
    reply_entry(bridge, req,
                bridge.fs().link(At::inode(ino_of(ino)), {ino_of(new_parent), new_name}, caller_of(req), Follow::kNo,
                                 Ref::kPin));
  });
}

void on_create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* fi) noexcept {
  answer(req, Request::kCreate, [&](Bridge& bridge) {
    const Result<Attributes> made =
        bridge.fs().mknod({ino_of(parent), name}, S_IFREG | (mode & 07777u), 0, caller_of(req), Ref::kPin);
    if (!made.ok()) {
      // The kernel asks only for names that it believes absent, and does not check permissions on what it gets. If
      // somebody was faster, ESTALE makes it look the name up and open that file in the ordinary way.
      if (made.error().code == Errc::kExists && (fi->flags & O_EXCL) == 0) {
        fuse_reply_err(req, ESTALE);
      } else {
        reply_error(req, made.error());
      }
      return;
    }
    Pin pin(bridge, made->ino);
    const fuse_entry_param entry = to_entry(bridge, *made);
    fi->fh = 0;
    fi->keep_cache = 1;
    pin.hand_over_if(fuse_reply_create(req, &entry, fi));
  });
}

#if PMFS_FUSE_HAS_TMPFILE
void on_tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode, fuse_file_info* fi) noexcept {
  answer(req, Request::kTmpfile, [&](Bridge& bridge) {
    const int flags = O_TMPFILE | O_RDWR | (fi->flags & O_EXCL);
    const Result<File> file = bridge.fs().open_file(At::inode(ino_of(parent)), flags, mode & 07777u, caller_of(req));
    if (!file.ok()) return reply_error(req, file.error());
    // The pin keeps it when the handle goes.
    const Result<Attributes> made = bridge.fs().stat(At::inode(file->ino()), caller_of(req), Follow::kNo, Ref::kPin);
    if (!made.ok()) return reply_error(req, made.error());
    Pin pin(bridge, made->ino);
    const fuse_entry_param entry = to_entry(bridge, *made);
    fi->fh = 0;
    fi->keep_cache = 1;
    pin.hand_over_if(fuse_reply_create(req, &entry, fi));
  });
}
#endif

void on_unlink(fuse_req_t req, fuse_ino_t parent, const char* name) noexcept {
  answer(req, Request::kUnlink, [&](Bridge& bridge) {
    reply_done(req, bridge.fs().unlink({ino_of(parent), name}, caller_of(req)));
  });
}

void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) noexcept {
  answer(req, Request::kRmdir, [&](Bridge& bridge) {
    reply_done(req, bridge.fs().rmdir({ino_of(parent), name}, caller_of(req)));
  });
}

void on_rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
               unsigned flags) noexcept {
  answer(req, Request::kRename, [&](Bridge& bridge) {
    reply_done(req, bridge.fs().rename({ino_of(parent), name}, {ino_of(new_parent), new_name}, flags, caller_of(req)));
  });
}

void on_readlink(fuse_req_t req, fuse_ino_t ino) noexcept {
  answer(req, Request::kReadlink, [&](Bridge& bridge) {
    const Result<std::string> target = bridge.fs().readlink(At::inode(ino_of(ino)), caller_of(req));
    if (!target.ok()) return reply_error(req, target.error());
    fuse_reply_readlink(req, target->c_str());
  });
}

// --- Attributes
// ---------------------------------------------------------------------------------------------------------------

void on_getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) noexcept {
  answer(req, Request::kGetattr, [&](Bridge& bridge) {
    reply_attributes(bridge, req, bridge.fs().stat(At::inode(ino_of(ino)), caller_of(req), Follow::kNo));
  });
}

#if PMFS_FUSE_HAS_STATX
struct statx_timestamp to_statx_time(i64 ns) {
  const timespec time = to_timespec(ns);
  struct statx_timestamp out {};
  out.tv_sec = time.tv_sec;
  out.tv_nsec = static_cast<u32>(time.tv_nsec);
  return out;
}

void on_statx(fuse_req_t req, fuse_ino_t ino, int, int, fuse_file_info*) noexcept {
  answer(req, Request::kStatx, [&](Bridge& bridge) {
    const Result<Attributes> found = bridge.fs().stat(At::inode(ino_of(ino)), caller_of(req), Follow::kNo);
    if (!found.ok()) return reply_error(req, found.error());
    const struct stat from = to_stat(bridge, *found);
    struct statx to {};
    to.stx_mask = STATX_BASIC_STATS | STATX_BTIME;
    to.stx_blksize = static_cast<u32>(from.st_blksize);
    to.stx_nlink = static_cast<u32>(from.st_nlink);
    to.stx_uid = from.st_uid;
    to.stx_gid = from.st_gid;
    to.stx_mode = static_cast<u16>(from.st_mode);
    to.stx_ino = from.st_ino;
    to.stx_size = static_cast<u64>(from.st_size);
    to.stx_blocks = static_cast<u64>(from.st_blocks);
    to.stx_rdev_major = major(from.st_rdev);
    to.stx_rdev_minor = minor(from.st_rdev);
    to.stx_atime = to_statx_time(found->atime_ns);
    to.stx_mtime = to_statx_time(found->mtime_ns);
    to.stx_ctime = to_statx_time(found->ctime_ns);
    to.stx_btime = to_statx_time(found->birth_ns);
    fuse_reply_statx(req, 0, &to, bridge.timeouts().attr_s);
  });
}
#endif

void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat* wanted, int to_set, fuse_file_info*) noexcept {
  answer(req, Request::kSetattr, [&](Bridge& bridge) {
    const auto is_set = [to_set](int bit) { return (to_set & bit) != 0; };
    SetAttributes change;
    if (is_set(FUSE_SET_ATTR_MODE)) change.mode = wanted->st_mode & 07777u;
    if (is_set(FUSE_SET_ATTR_UID)) change.uid = wanted->st_uid;
    if (is_set(FUSE_SET_ATTR_GID)) change.gid = wanted->st_gid;
    // Where owners are hidden (-o uid=, gid=), the one that is shown may be "given", and nothing changes.
    const auto drop_shown = [](std::optional<u32>& given, const std::optional<u32>& shown) {
      if (given == shown) given.reset();
      return !given || !shown;
    };
    if (!drop_shown(change.uid, bridge.owner().uid) || !drop_shown(change.gid, bridge.owner().gid)) {
      fuse_reply_err(req, EPERM);
      return;
    }
    if (is_set(FUSE_SET_ATTR_SIZE)) change.size_bytes = static_cast<u64>(wanted->st_size);
    if (is_set(FUSE_SET_ATTR_ATIME_NOW)) {  // comes together with FUSE_SET_ATTR_ATIME
      change.atime_now = true;
    } else if (is_set(FUSE_SET_ATTR_ATIME)) {
      change.atime_ns = to_ns(wanted->st_atim);
    }
    if (is_set(FUSE_SET_ATTR_MTIME_NOW)) {
      change.mtime_now = true;
    } else if (is_set(FUSE_SET_ATTR_MTIME)) {
      change.mtime_ns = to_ns(wanted->st_mtim);
    }
    // FUSE_SET_ATTR_CTIME is left alone: the change time is the library's to set.
    reply_attributes(bridge, req,
                     bridge.fs().set_attributes(At::inode(ino_of(ino)), change, caller_of(req), Follow::kNo));
  });
}

void on_statfs(fuse_req_t req, fuse_ino_t) noexcept {
  answer(req, Request::kStatfs, [&](Bridge& bridge) {
    const Result<SpaceInfo> space = bridge.fs().space();
    if (!space.ok()) return reply_error(req, space.error());
    struct statvfs out {};
    out.f_bsize = space->block_bytes;
    out.f_frsize = space->block_bytes;
    out.f_blocks = space->blocks;
    out.f_bfree = space->blocks_free;
    out.f_bavail = space->blocks_avail;
    out.f_files = space->inodes;
    out.f_ffree = space->inodes_free;
    out.f_favail = space->inodes_free;
    out.f_namemax = kNameMax;
    fuse_reply_statfs(req, &out);
  });
}

// --- Extended attributes; among them ACLs, which the kernel asks for, keeps, and judges by
// ------------------------------------------------------------------------------------------------------------

/// Answers a question for bytes: how many there are if the kernel offers no room, else the bytes.
/// @param ask  gets the room, which is empty for the former, and gives the length.
template <class Ask>
void reply_bytes(fuse_req_t req, std::size_t size, Ask&& ask) {
  const std::span<char> room = scratch(size);
  const Result<std::size_t> length = ask(room);
  if (!length.ok()) return reply_error(req, length.error());
  if (size == 0) {
    fuse_reply_xattr(req, *length);
  } else {
    fuse_reply_buf(req, room.data(), *length);
  }
}

void on_getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size) noexcept {
  answer(req, Request::kGetxattr, [&](Bridge& bridge) {
    reply_bytes(req, size, [&](std::span<char> room) {
      return bridge.fs().get_xattr(At::inode(ino_of(ino)), name, std::as_writable_bytes(room), caller_of(req));
    });
  });
}

void on_listxattr(fuse_req_t req, fuse_ino_t ino, std::size_t size) noexcept {
  answer(req, Request::kListxattr, [&](Bridge& bridge) {
    reply_bytes(req, size, [&](std::span<char> room) {
      return bridge.fs().list_xattrs(At::inode(ino_of(ino)), room, caller_of(req));
    });
  });
}

void on_setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value, std::size_t size,
                 int flags) noexcept {
  answer(req, Request::kSetxattr, [&](Bridge& bridge) {
    Credentials who = caller_of(req);
    std::optional<CallerDetails> details;
    // Whether an ACL takes S_ISGID away depends on the caller's groups, which the request does not tell.
    if (who.uid != 0 && std::strcmp(name, "system.posix_acl_access") == 0)
      details = details_of(fuse_req_ctx(req)->pid);
    if (details) who.groups = details->groups;
    reply_done(req, bridge.fs().set_xattr(At::inode(ino_of(ino)), name, std::as_bytes(std::span(value, size)), flags,
                                          who));
  });
}

void on_removexattr(fuse_req_t req, fuse_ino_t ino, const char* name) noexcept {
  answer(req, Request::kRemovexattr, [&](Bridge& bridge) {
    reply_done(req, bridge.fs().remove_xattr(At::inode(ino_of(ino)), name, caller_of(req)));
  });
}

// --- File contents
// ------------------------------------------------------------------------------------------------------------

void on_open(fuse_req_t req, fuse_ino_t, fuse_file_info*) noexcept {
  answer(req, Request::kOpen, [&](Bridge&) { fuse_reply_err(req, ENOSYS); });  // B3
}

void on_read(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t off, fuse_file_info*) noexcept {
  answer(req, Request::kRead, [&](Bridge& bridge) {
    const std::span<char> buffer = scratch(size);
    const Result<std::size_t> got =
        bridge.fs().read(ino_of(ino), static_cast<u64>(off), std::as_writable_bytes(buffer));
    if (!got.ok()) return reply_error(req, got.error());
    fuse_reply_buf(req, buffer.data(), *got);
  });
}

void on_write(fuse_req_t req, fuse_ino_t ino, const char* data, std::size_t size, off_t off,
              fuse_file_info* fi) noexcept {
  answer(req, Request::kWrite, [&](Bridge& bridge) {
    Credentials who = caller_of(req);
    if (fi->writepage != 0) who.uid = 0;  // pages that were stored to through mmap come from the kernel, for nobody
    const Result<std::size_t> written =
        bridge.fs().write(ino_of(ino), static_cast<u64>(off), std::as_bytes(std::span(data, size)), who);
    if (!written.ok()) return reply_error(req, written.error());
    fuse_reply_write(req, *written);
  });
}

void on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t length, fuse_file_info*) noexcept {
  answer(req, Request::kFallocate, [&](Bridge& bridge) {
    // What is negative is too large as an unsigned number, and refused as that.
    reply_done(req, bridge.fs().allocate(ino_of(ino), mode, static_cast<u64>(off), static_cast<u64>(length),
                                         caller_of(req)));
  });
}

void on_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, fuse_file_info*) noexcept {
  answer(req, Request::kLseek, [&](Bridge& bridge) {
    const Result<u64> found = bridge.fs().seek(ino_of(ino), static_cast<u64>(off), whence);
    if (!found.ok()) return reply_error(req, found.error());
    fuse_reply_lseek(req, static_cast<off_t>(*found));
  });
}

void on_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_off, fuse_file_info*, fuse_ino_t to, off_t to_off,
                        fuse_file_info*, std::size_t length, int) noexcept {
  answer(req, Request::kCopyFileRange, [&](Bridge& bridge) {
    const Result<std::size_t> copied = bridge.fs().copy_range(ino_of(from), static_cast<u64>(from_off), ino_of(to),
                                                              static_cast<u64>(to_off), length, caller_of(req));
    if (!copied.ok()) return reply_error(req, copied.error());
    fuse_reply_write(req, *copied);
  });
}

void on_fsync(fuse_req_t req, fuse_ino_t ino, int, fuse_file_info*) noexcept {
  answer(req, Request::kFsync, [&](Bridge& bridge) { reply_done(req, bridge.fs().sync(ino_of(ino))); });
}

// --- Directories
// --------------------------------------------------------------------------------------------------------------

DirStream* stream_of(const fuse_file_info* fi) { return reinterpret_cast<DirStream*>(fi->fh); }

void on_opendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) noexcept {
  answer(req, Request::kOpendir, [&](Bridge& bridge) {
    Result<Dir> dir = bridge.fs().open_dir(At::inode(ino_of(ino)), caller_of(req));
    if (!dir.ok()) return reply_error(req, dir.error());
    DirStream* const stream = bridge.keep(std::move(*dir));
    fi->fh = reinterpret_cast<u64>(stream);
    if (fuse_reply_open(req, fi) != 0) bridge.release(stream);  // no RELEASEDIR will come
  });
}

void on_releasedir(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) noexcept {
  answer(req, Request::kReleasedir, [&](Bridge& bridge) {
    bridge.release(stream_of(fi));
    fuse_reply_err(req, 0);
  });
}

void on_fsyncdir(fuse_req_t req, fuse_ino_t ino, int, fuse_file_info*) noexcept {
  answer(req, Request::kFsyncdir, [&](Bridge& bridge) { reply_done(req, bridge.fs().sync(ino_of(ino))); });
}

/// Fills a buffer with entries behind a cookie and sends it. An entry that does not fit is read again next time.
class Listing {
 public:
  Listing(Bridge& bridge, fuse_req_t req, InodeNo dir, std::size_t size)
      : bridge_(bridge), req_(req), dir_(dir), buffer_(scratch(size)) {}
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;
  ~Listing() {
    for (const InodeNo ino : pinned_) (void)bridge_.fs().unpin(ino, 1);  // the answer did not reach the kernel
  }

  /// @return false if there is no room.
  bool add(const DirEntry& entry) {
    struct stat kind {};
    kind.st_ino = to_u64(entry.ino);
    kind.st_mode = mode_bits(entry.type);
    const std::span<char> room = buffer_.subspan(used_);
    const std::size_t need =
        fuse_add_direntry(req_, room.data(), room.size(), entry.name, &kind, static_cast<off_t>(entry.cookie));
    if (need > room.size()) return false;
    used_ += need;
    return true;
  }

  /// As add(), with the inode's attributes; "." and ".." carry none and no look-up count.
  bool add_plus(const DirEntry& entry) {
    const std::span<char> room = buffer_.subspan(used_);
    if (fuse_add_direntry_plus(req_, nullptr, 0, entry.name, nullptr, 0) > room.size()) return false;
    fuse_entry_param full{};
    if (entry.view() == "." || entry.view() == "..") {
      full.attr.st_ino = to_u64(entry.ino);
      full.attr.st_mode = mode_bits(entry.type);
    } else {
      // By name and not by number: what the kernel is told is then true at one instant, whatever happens meanwhile.
      pinned_.reserve(kMostPlusEntries);  // before there is a pin to lose
      const Result<Attributes> found = bridge_.fs().stat({dir_, entry.view()}, caller_of(req_), Follow::kNo, Ref::kPin);
      if (found.ok()) {
        pinned_.push_back(found->ino);
        full = to_entry(bridge_, *found);
      } else if (found.error().code == Errc::kNotFound) {
        return true;  // removed meanwhile: left out
      } else {
        full.attr.st_ino = to_u64(entry.ino);  // a name without a nodeid: who looks it up gets the error
        full.attr.st_mode = mode_bits(entry.type);
      }
    }
    used_ +=
        fuse_add_direntry_plus(req_, room.data(), room.size(), entry.name, &full, static_cast<off_t>(entry.cookie));
    return true;
  }

  bool empty() const { return used_ == 0; }

  /// Sends what is there; nothing means the end of the directory.
  void send() {
    if (fuse_reply_buf(req_, buffer_.data(), used_) == 0) pinned_.clear();
  }

 private:
  /// No reply holds more: the kernel asks for at most 256 pages, and an entry takes 152 bytes or more.
  static constexpr std::size_t kMostPlusEntries = 8192;

  Bridge& bridge_;
  fuse_req_t req_;
  const InodeNo dir_;
  const std::span<char> buffer_;
  std::size_t used_ = 0;
  std::vector<InodeNo> pinned_;  ///< one look-up count each, ours until the answer is sent
};

using AddEntry = bool (Listing::*)(const DirEntry&);

/// Adds entries behind `cookie` until there is no room or no entry left.
Result<void> fill(Listing& listing, DirStream& stream, u64 cookie, AddEntry add) {
  const std::lock_guard guard(stream.lock);
  if (cookie == 0) stream.dir.rewind();
  DirEntry entry;
  for (;;) {
    const Result<bool> more = stream.dir.read(cookie, entry);
    if (!more.ok()) return more.error();
    if (!*more || !(listing.*add)(entry)) return {};
    cookie = entry.cookie;
  }
}

void list(Bridge& bridge, fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t off, fuse_file_info* fi,
          AddEntry add) {
  Listing listing(bridge, req, ino_of(ino), size);
  const Result<void> filled = fill(listing, *stream_of(fi), static_cast<u64>(off), add);
  // From the reply on the kernel may release the stream: it must not be touched any more.
  if (!filled.ok() && listing.empty()) return reply_error(req, filled.error());
  listing.send();  // what was found before an error first; the next request meets the error again
}

void on_readdir(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t off, fuse_file_info* fi) noexcept {
  answer(req, Request::kReaddir, [&](Bridge& bridge) { list(bridge, req, ino, size, off, fi, &Listing::add); });
}

void on_readdirplus(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t off, fuse_file_info* fi) noexcept {
  answer(req, Request::kReaddirplus,
         [&](Bridge& bridge) { list(bridge, req, ino, size, off, fi, &Listing::add_plus); });
}

// --- Questions about the mount
// ----------------------------------------------------------------------------------------------

void on_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void*, fuse_file_info*, unsigned flags, const void* in,
              std::size_t in_size, std::size_t out_size) noexcept {
  answer(req, Request::kIoctl, [&](Bridge& bridge) {
    if ((flags & FUSE_IOCTL_UNRESTRICTED) != 0) {
      fuse_reply_err(req, ENOTTY);
    } else if (mounted::is_batch_ioctl(command)) {
      answer_batch(bridge, req, ino_of(ino), {static_cast<const char*>(in), in_size}, out_size);
    } else if (command == mounted::kStatisticsIoctl && out_size >= sizeof(mounted::StatisticsReply)) {
      const mounted::StatisticsReply reply = statistics_of(bridge);
      fuse_reply_ioctl(req, 0, &reply, sizeof reply);
    } else if (command == mounted::kPivotsIoctl && out_size >= sizeof(mounted::PivotsReply)) {
      const mounted::PivotsReply reply = pivots_of(bridge);
      fuse_reply_ioctl(req, 0, &reply, sizeof reply);
    } else if (command == kServerIoctl && out_size >= sizeof(ServerReply)) {
      struct stat name_space {};
      ServerReply reply;
      reply.pid = static_cast<u32>(getpid());
      if (::stat("/proc/self/ns/pid", &name_space) == 0) reply.pid_namespace = name_space.st_ino;
      fuse_reply_ioctl(req, 0, &reply, sizeof reply);
    } else if (command == kCountsIoctl && out_size >= sizeof(CountsReply)) {
      const CountsReply reply = bridge.counts();
      fuse_reply_ioctl(req, 0, &reply, sizeof reply);
    } else {
      fuse_reply_err(req, ENOTTY);
    }
  });
}

fuse_lowlevel_ops make_handlers() {
  fuse_lowlevel_ops ops{};
  ops.init = on_init;
  ops.destroy = on_destroy;
  ops.lookup = on_lookup;
  ops.forget = on_forget;
  ops.forget_multi = on_forget_multi;
  ops.getattr = on_getattr;
  ops.setattr = on_setattr;
  ops.readlink = on_readlink;
  ops.mknod = on_mknod;
  ops.mkdir = on_mkdir;
  ops.unlink = on_unlink;
  ops.rmdir = on_rmdir;
  ops.symlink = on_symlink;
  ops.rename = on_rename;
  ops.link = on_link;
  ops.open = on_open;
  ops.create = on_create;
  ops.read = on_read;
  ops.write = on_write;
  ops.fsync = on_fsync;
  ops.fallocate = on_fallocate;
  ops.lseek = on_lseek;
  ops.copy_file_range = on_copy_file_range;
  ops.opendir = on_opendir;
  ops.readdir = on_readdir;
  ops.readdirplus = on_readdirplus;
  ops.releasedir = on_releasedir;
  ops.fsyncdir = on_fsyncdir;
  ops.statfs = on_statfs;
  ops.ioctl = on_ioctl;
  ops.getxattr = on_getxattr;
  ops.listxattr = on_listxattr;
  ops.setxattr = on_setxattr;
  ops.removexattr = on_removexattr;
#if PMFS_FUSE_HAS_TMPFILE
  ops.tmpfile = on_tmpfile;
#endif
#if PMFS_FUSE_HAS_STATX
  ops.statx = on_statx;
#endif
  return ops;
}

}  // namespace

const fuse_lowlevel_ops& handlers() {
  static const fuse_lowlevel_ops ops = make_handlers();
  return ops;
}

}  // namespace pmfs::bridge
