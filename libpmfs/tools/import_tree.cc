// The tree walk of `pmfs import`.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "file_copy.h"
#include "interrupt.h"
#include "report.h"
#include "tree_copy.h"
#include "xattr_copy.h"

namespace pmfs::tools {

namespace {

struct DirCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};
using HostDir = std::unique_ptr<DIR, DirCloser>;

bool is_dot(const char* name) { return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0; }

/// Opens for reading, without leaving a new access time where that is allowed.
int open_quietly(int dir, const char* name, int flags) {
  const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME | flags);
  if (fd >= 0 || errno != EPERM) return fd;
  return openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags);
}

/// Nanoseconds since 1970, at the ends of the range where a time lies outside of it (before 1677 or after 2262).
i64 to_ns(const struct timespec& time) {
  i64 ns = 0;
  if (__builtin_mul_overflow(i64{time.tv_sec}, i64{1'000'000'000}, &ns) ||
      __builtin_add_overflow(ns, i64{time.tv_nsec}, &ns)) {
    return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
  }
  return ns;
}

/// What there is to copy of a file, for the progress bar: without holes.
u64 copy_bytes(const struct stat& st) {
  return S_ISREG(st.st_mode) ? static_cast<u64>(std::min<off_t>(st.st_size, st.st_blocks * 512)) : 0;
}

struct HostId {
  dev_t dev = 0;
  ino_t ino = 0;
  bool operator==(const HostId&) const = default;
};
struct HostIdHash {
  std::size_t operator()(const HostId& id) const { return std::hash<u64>{}(id.ino * 31 + id.dev); }
};

class Importer {
 public:
  Importer(Filesystem& fs, const std::string& host_name, const std::string& pool, bool resume, Progress& progress)
      : fs_(fs),
        path_(host_name),
        pool_(pool),
        resume_(resume),
        progress_(progress),
        as_root_(geteuid() == 0),
        buffer_(kCopyBytes) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    struct stat st {};
    if (stat(pool.c_str(), &st) == 0) pool_file_ = {st.st_dev, st.st_ino};
  }

  /// Gives the directory all but its times, before anything is in it: who resumes finds one that holds something, and
  /// cannot know any more that it was new.
  void begin(int host_dir, InodeNo pool_dir) {
    struct stat st {};
    if (fstat(host_dir, &st) != 0) return host_failed("cannot examine it", errno);
    set_owner_and_mode(pool_dir, st);
    keep_xattrs({host_dir, nullptr}, pool_dir);
    counts_.with_xattrs = 0;  // counted at the end
  }

  /// Contents first, then the directory's own attributes, because filling it changes its times.
  void directory(HostFd fd, InodeNo pool_dir, bool all_attributes) {
    struct stat st {};
    if (fstat(fd.get(), &st) != 0) return host_failed("cannot examine it", errno);
    const HostDir dir(fdopendir(fd.get()));
    if (!dir) return host_failed("cannot read the directory", errno);
    fd.release();  // now dir's
    for (;;) {
      if (stops()) return;
      errno = 0;
      const struct dirent* const found = readdir(dir.get());
      if (found == nullptr) break;
      if (is_dot(found->d_name)) continue;
      const std::size_t length = path_.size();
      if (path_.back() != '/') path_ += '/';
      path_ += found->d_name;
      entry(dirfd(dir.get()), found->d_name, pool_dir);
      path_.resize(length);
    }
    if (errno != 0) host_failed("cannot read the directory", errno);
    if (all_attributes) {
      set_owner_and_mode(pool_dir, st);
      keep_xattrs({dirfd(dir.get()), nullptr}, pool_dir);
    }
    set_times(pool_dir, st);
  }

  TreeCounts counts() const { return counts_; }

 private:
  // --- What failed: said, counted; `return pool_failed(...)` leaves the object
  // -------------------------------------------

  void host_failed(const char* doing, int error_number) {
    progress_.hide();
    report_errno(path_, doing, error_number);
    ++counts_.failed;
  }

  void pool_failed(const Error& error) {
    progress_.hide();
    report(pool_ + ": importing " + path_, error);
    ++counts_.failed;
    full_ = full_ || error.code == Errc::kNoSpace || error.code == Errc::kIo || error.code == Errc::kReadOnly ||
            error.code == Errc::kNoMemory;
  }

  void skipped(const char* why) {
    progress_.hide();
    report_text(path_, why);
    ++counts_.skipped;
  }

  void copied(u64& kind) {
    ++kind;
    progress_.add(1, 0);
  }

  void already_there(const struct stat& st) {
    ++counts_.already;
    progress_.add_skipped(1, copy_bytes(st));
  }

  /// Whether to end: nothing more can be stored, or a signal came.
  bool stops() {
    if (!full_ && counts_.interrupted == 0) counts_.interrupted = Interruptible::signal();
    return full_ || counts_.interrupted != 0;
  }

  // --- One object of each kind
  // ------------------------------------------------------------------------------------------------

  void entry(int host_dir, const char* name, InodeNo pool_dir) {
    struct stat st {};
    if (fstatat(host_dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return host_failed("cannot examine it", errno);
    if (HostId{st.st_dev, st.st_ino} == pool_file_) return skipped("this is the pool itself; left out");
    if (S_ISDIR(st.st_mode)) return subdirectory(host_dir, name, pool_dir, st);
    if (st.st_nlink > 1) {
      const auto known = linked_.find({st.st_dev, st.st_ino});
      if (known != linked_.end()) return hard_link(known->second, name, pool_dir, st);
    }
    if (resume_ && is_complete(host_dir, name, pool_dir, st)) return already_there(st);
    if (S_ISREG(st.st_mode)) return file(host_dir, name, pool_dir);
    if (S_ISLNK(st.st_mode)) return symlink(host_dir, name, pool_dir, st);
    special(host_dir, name, pool_dir, st);
  }

  void subdirectory(int host_dir, const char* name, InodeNo pool_dir, const struct stat& st) {
    HostFd fd(open_quietly(host_dir, name, O_DIRECTORY));
    if (!fd.is_open()) return host_failed("cannot open the directory", errno);
    const At at{pool_dir, name};
    Result<Attributes> made = fs_.mkdir(at, 0700, owner_of(st));
    if (!made.ok() && made.error().code == Errc::kExists) {
      made = fs_.stat(at, Credentials::root(), Follow::kNo);
      if (made.ok() && made->type() != FileType::kDirectory) {
        made = Error{Errc::kNotDirectory, "something else has that name in the pool"};
      }
    }
    if (!made.ok()) return pool_failed(made.error());
    directory(std::move(fd), made->ino, true);
    if (!stops()) copied(counts_.directories);
  }

  void hard_link(InodeNo ino, const char* name, InodeNo pool_dir, const struct stat& st) {
    if (resume_) {
      const Result<Attributes> found = fs_.stat(At{pool_dir, name}, Credentials::root(), Follow::kNo);
      if (found.ok() && found->ino == ino) return already_there(st);
    }
    const Result<Attributes> made = replacing(pool_dir, name, [&] {
      return fs_.link(At::inode(ino), At{pool_dir, name}, Credentials::root());
    });
    if (!made.ok()) return pool_failed(made.error());
    copied(counts_.hard_links);
  }

  void file(int host_dir, const char* name, InodeNo pool_dir) {
    const HostFd fd(open_quietly(host_dir, name, O_NONBLOCK));  // should a FIFO have taken its place: do not wait
    struct stat st {};
    if (!fd.is_open()) return host_failed("cannot open it", errno);
    if (fstat(fd.get(), &st) != 0) return host_failed("cannot examine it", errno);
    if (!S_ISREG(st.st_mode)) return skipped("it was replaced by something else meanwhile; left out");

    const Result<Attributes> made = replacing(pool_dir, name, [&] {
      return fs_.mknod(At{pool_dir, name}, S_IFREG | mode_of(st), 0, owner_of(st));
    });
    if (!made.ok()) return pool_failed(made.error());
    if (!contents(fd.get(), st, made->ino)) {
      if (counts_.interrupted != 0) (void)fs_.unlink(At{pool_dir, name}, Credentials::root());
      return;
    }
    remember(st, made->ino);
    finish(*made, st, {fd.get(), nullptr});
    copied(counts_.files);
  }

  void symlink(int host_dir, const char* name, InodeNo pool_dir, const struct stat& st) {
    std::array<char, PATH_MAX> target;
    const ssize_t length = readlinkat(host_dir, name, target.data(), target.size());
    if (length < 0) return host_failed("cannot read the symbolic link", errno);
    const Result<Attributes> made = replacing(pool_dir, name, [&] {
      return fs_.symlink({target.data(), static_cast<std::size_t>(length)}, At{pool_dir, name}, owner_of(st));
    });
    if (!made.ok()) return pool_failed(made.error());
    remember(st, made->ino);
    finish(*made, st, {host_dir, name});
    copied(counts_.symlinks);
  }

  void special(int host_dir, const char* name, InodeNo pool_dir, const struct stat& st) {
    if (!as_root_ && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))) return skipped("only root copies devices; left out");
    const Result<Attributes> made = replacing(pool_dir, name, [&] {
      return fs_.mknod(At{pool_dir, name}, (st.st_mode & S_IFMT) | mode_of(st), st.st_rdev, owner_of(st));
    });
    if (!made.ok()) return pool_failed(made.error());
    remember(st, made->ino);
    finish(*made, st, {host_dir, name});
    copied(counts_.specials);
  }

  // --- Parts of them
  // ------------------------------------------------------------------------------------------------------------

  /// Runs `make`; if the name is taken, by anything but a directory, removes that first.
  template <class Make>
  Result<Attributes> replacing(InodeNo pool_dir, const char* name, Make make) {
    Result<Attributes> made = make();
    if (made.ok() || made.error().code != Errc::kExists) return made;
    PMFS_TRY(fs_.unlink(At{pool_dir, name}, Credentials::root()));
    return make();
  }

  void remember(const struct stat& st, InodeNo ino) {
    if (st.st_nlink <= 1) return;
    linked_.emplace(HostId{st.st_dev, st.st_ino}, ino);
    taken_.insert(to_u64(ino));
  }

  /// Whether an earlier run has copied it to the end, so that only its further names are left to do.
  bool is_complete(int host_dir, const char* name, InodeNo pool_dir, const struct stat& st) {
    const Result<Attributes> found = fs_.stat(At{pool_dir, name}, Credentials::root(), Follow::kNo);
    if (!found.ok()) return false;
    const Credentials owner = owner_of(st);
    if (found->mtime_ns != to_ns(st.st_mtim)) return false;
    if (found->uid != owner.uid || found->gid != owner.gid) return false;
    if (!S_ISLNK(st.st_mode) && (found->mode & 07777u) != mode_of(st)) return false;
    if (!holds_the_same(fs_, *found, host_dir, name, st)) return false;
    // Linked to something that it is not linked to on the host: an older tree, in which it was.
    if (st.st_nlink == 1 ? found->links != 1 : taken_.contains(to_u64(found->ino))) return false;
    remember(st, found->ino);
    return true;
  }

  /// Who the new object belongs to from its first moment on: the host's owner if root copies, else who runs this.
  Credentials owner_of(const struct stat& st) const {
    Credentials who;
    who.uid = as_root_ ? st.st_uid : geteuid();
    who.gid = as_root_ ? st.st_gid : getegid();
    who.checked_elsewhere = true;
    return who;
  }

  /// The mode in full. Set-id bits stay only with the owner they were given by.
  u32 mode_of(const struct stat& st) const {
    const Credentials owner = owner_of(st);
    u32 mode = st.st_mode & 07777u;
    if (owner.uid != st.st_uid) mode &= ~u32{S_ISUID};
    if (owner.gid != st.st_gid && !S_ISDIR(st.st_mode)) mode &= ~u32{S_ISGID};
    return mode;
  }

  /// What an object made as `made` still lacks; times last, which say that it is complete.
  void finish(const Attributes& made, const struct stat& st, const HostPlace& from) {
    const Credentials owner = owner_of(st);
    const bool mode_differs = !S_ISLNK(st.st_mode) && (made.mode & 07777u) != mode_of(st);
    const bool differs = mode_differs || made.uid != owner.uid || made.gid != owner.gid;  // inherited from above
    if (differs && !set_owner_and_mode(made.ino, st)) return;
    if (keep_xattrs(from, made.ino)) set_times(made.ino, st);
  }

  bool set_owner_and_mode(InodeNo ino, const struct stat& st) {
    SetAttributes change;
    const Credentials owner = owner_of(st);
    change.uid = owner.uid;
    change.gid = owner.gid;
    if (!S_ISLNK(st.st_mode)) change.mode = mode_of(st);
    return set(ino, change);
  }

  void set_times(InodeNo ino, const struct stat& st) {
    SetAttributes change;
    change.atime_ns = to_ns(st.st_atim);
    change.mtime_ns = to_ns(st.st_mtim);
    set(ino, change);
  }

  bool set(InodeNo ino, const SetAttributes& change) {
    const Result<Attributes> done = fs_.set_attributes(At::inode(ino), change, Credentials::root(), Follow::kNo);
    if (!done.ok()) pool_failed(done.error());
    return done.ok();
  }

  /// Behind owner and mode: a new owner takes capabilities away, and an ACL sets the mode. @return false: the pool
  /// failed, which has been said.
  bool keep_xattrs(const HostPlace& from, InodeNo ino) {
    bool complete = true;
    const Result<void> kept = import_xattrs(fs_, from, ino, complete);
    if (!kept.ok()) pool_failed(kept.error());
    if (!complete) ++counts_.with_xattrs;
    return kept.ok();
  }

  /// Copies a file's bytes; what is a hole on the host stays one. @return false if that failed, which has been said, or
  /// was interrupted.
  bool contents(int fd, const struct stat& st, InodeNo ino) {
    Result<File> file = fs_.open_file(At::inode(ino), O_WRONLY, 0, Credentials::root());
    if (!file.ok()) return pool_failed(file.error()), false;
    const bool sparse = st.st_blocks * 512 < st.st_size;
    off_t end = 0;
    if (!sparse) {
      if (!span(fd, *file, 0, LLONG_MAX, end)) return false;
    } else {
      for (off_t off = 0; off < st.st_size;) {
        off_t data = lseek(fd, off, SEEK_DATA);
        if (data < 0 && errno == ENXIO) break;  // a hole to the end
        off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        if (data < 0 || hole < 0) {  // the host's file system does not know its holes
          data = off;
          hole = st.st_size;
        }
        if (!span(fd, *file, data, hole, end)) return false;
        off = hole;
      }
    }
    if (end < st.st_size && sparse) {
      const Result<void> grown = file->truncate(static_cast<u64>(st.st_size));
      if (!grown.ok()) return pool_failed(grown.error()), false;
      end = st.st_size;
    }
    counts_.bytes += static_cast<u64>(end);
    const Result<void> closed = file->close();
    if (!closed.ok()) return pool_failed(closed.error()), false;
    return true;
  }

  /// Copies the bytes [from, to) or up to the end of the file; `end` is where it came to.
  bool span(int fd, const File& file, off_t from, off_t to, off_t& end) {
    end = from;
    while (end < to) {
      if (stops()) return false;
      const std::size_t wanted = std::min(buffer_.size(), static_cast<std::size_t>(to - end));
      const ssize_t count = pread(fd, buffer_.data(), wanted, end);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return host_failed("cannot read it", errno), false;
      if (count == 0) break;
      const auto length = static_cast<std::size_t>(count);
      const Result<std::size_t> written = file.write(static_cast<u64>(end), {buffer_.data(), length});
      if (!written.ok()) return pool_failed(written.error()), false;
      if (*written < length) return pool_failed({Errc::kNoSpace, "only a part of the file was written"}), false;
      end += count;
      progress_.add(0, length);
    }
    return true;
  }

  Filesystem& fs_;
  std::string path_;  ///< of the object at hand, for messages
  const std::string& pool_;
  const bool resume_;
  Progress& progress_;
  const bool as_root_;
  HostId pool_file_;
  std::vector<std::byte> buffer_;
  std::unordered_map<HostId, InodeNo, HostIdHash> linked_;  ///< objects of several names, by their host identity
  std::unordered_set<u64> taken_;                           ///< the inodes in linked_
  TreeCounts counts_;
  bool full_ = false;  ///< nothing more can be stored
};

/// Counts what there is to copy, for the progress bar; what cannot be read counts nothing.
void count_tree(HostFd fd, u64& objects, u64& bytes) {
  const HostDir dir(fdopendir(fd.get()));
  if (!dir) return;
  fd.release();
  while (const struct dirent* const found = readdir(dir.get())) {
    if (Interruptible::signal() != 0) return;
    struct stat st {};
    if (is_dot(found->d_name) || fstatat(dirfd(dir.get()), found->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    ++objects;
    bytes += copy_bytes(st);
    if (S_ISDIR(st.st_mode))
      count_tree(HostFd(open_quietly(dirfd(dir.get()), found->d_name, O_DIRECTORY)), objects, bytes);
  }
}

}  // namespace

TreeCounts import_tree(Filesystem& fs, HostFd host_dir, const std::string& host_name, InodeNo pool_dir,
                       const std::string& pool, const TreeOptions& options, Progress& progress) {
  allow_deep_trees();
  if (progress.is_wanted()) {
    u64 objects = 0, bytes = 0;
    count_tree(HostFd(openat(host_dir.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), objects, bytes);
    progress.set_total(objects, bytes);
  }
  Importer importer(fs, host_name, pool, options.resume, progress);
  if (options.top == TopAttributes::kAll) importer.begin(host_dir.get(), pool_dir);
  importer.directory(std::move(host_dir), pool_dir, options.top == TopAttributes::kAll);
  progress.hide();
  return importer.counts();
}

}  // namespace pmfs::tools
