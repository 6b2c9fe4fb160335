// The tree walk of `pmfs export`. The pool's names are input: one that is not a plain name is refused.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <unordered_map>

#include "file_copy.h"
#include "interrupt.h"
#include "report.h"
#include "tree_copy.h"
#include "walk.h"
#include "xattr_copy.h"

namespace pmfs::tools {

namespace {

struct timespec to_timespec(i64 ns) {
  constexpr i64 kSecond = 1'000'000'000;
  struct timespec time {};
  time.tv_sec = ns / kSecond - (ns % kSecond < 0 ? 1 : 0);
  time.tv_nsec = ns % kSecond + (ns % kSecond < 0 ? kSecond : 0);
  return time;
}

/// Where the first name of an object went, from the top of the destination, and what was made there.
struct LinkSource {
  std::string path;
  dev_t dev = 0;
  ino_t ino = 0;

  bool is(const struct stat& st) const { return st.st_dev == dev && st.st_ino == ino; }
};

/// What there is to copy of a file, for the progress bar: without holes.
u64 copy_bytes(const Attributes& attributes) {
  return attributes.type() == FileType::kRegular ? std::min(attributes.size_bytes, attributes.blocks_512 * 512) : 0;
}

class Exporter {
 public:
  Exporter(Filesystem& fs, const std::string& pool, int top, const std::string& host_name, bool resume,
           Progress& progress)
      : fs_(fs),
        pool_(pool),
        top_(top),
        host_name_(host_name),
        resume_(resume),
        progress_(progress),
        as_root_(geteuid() == 0),
        uid_(geteuid()),
        gid_(getegid()),
        buffer_(kCopyBytes) {
    while (host_name_.size() > 1 && host_name_.back() == '/') host_name_.pop_back();
  }

  /// Gives the top all but its times, before anything is in it: who resumes finds one that holds something, and cannot
  /// know any more that it was new.
  void begin(InodeNo pool_dir) {
    const Result<Attributes> attributes = fs_.stat(At::inode(pool_dir), Credentials::root(), Follow::kNo);
    if (!attributes.ok()) return pool_failed(attributes.error());
    set_owner_and_mode(top_, *attributes, first_mode(*attributes));
    counts_.with_xattrs = 0;  // counted at the end
  }

  /// Contents first, then the directory's own attributes, because filling it changes its times.
  void directory(InodeNo pool_dir, int host_fd, bool all_attributes) {
    const Result<Attributes> attributes = fs_.stat(At::inode(pool_dir), Credentials::root(), Follow::kNo);
    if (!attributes.ok()) return pool_failed(attributes.error());
    Result<Dir> dir = fs_.open_dir(At::inode(pool_dir), Credentials::root());
    if (!dir.ok()) return pool_failed(dir.error());
    DirEntry found;
    for (u64 cookie = 0;; cookie = found.cookie) {
      if (stops()) return;
      const Result<bool> more = dir->read(cookie, found);
      if (!more.ok()) {
        pool_failed(more.error());
        break;
      }
      if (!*more) break;
      const std::string name(found.view());
      if (name == "." || name == "..") continue;
      const std::size_t length = path_.size();
      if (!path_.empty()) path_ += '/';
      path_ += name;
      if (is_plain_name(name)) {
        entry(found.ino, name.c_str(), host_fd);
      } else {
        pool_failed({Errc::kCorrupt, "a name that cannot be a file's name; left out"});
      }
      path_.resize(length);
    }
    struct stat st {};
    const bool begun = resume_ && fstat(host_fd, &st) == 0 && (st.st_mode & 07777u) == first_mode(*attributes);
    if (all_attributes) {
      set_owner_and_mode(host_fd, *attributes, mode_for_host(*attributes));
    } else if (begun && fchmod(host_fd, mode_for_host(*attributes)) != 0) {
      host_failed("cannot set its mode", errno);
    }
    set_times(host_fd, *attributes);
  }

  TreeCounts counts() const { return counts_; }

 private:
  // --- What failed: said, counted; `return host_failed(...)` leaves the object
  // -------------------------------------------

  void host_failed(const char* doing, int error_number) {
    progress_.hide();
    report_errno(host_name_ + "/" + path_, doing, error_number);
    ++counts_.failed;
    full_ = full_ || error_number == ENOSPC || error_number == EDQUOT || error_number == EROFS || error_number == EIO;
  }

  void pool_failed(const Error& error) {
    progress_.hide();
    report(pool_ + ": exporting " + path_, error);
    ++counts_.failed;
  }

  void skipped(const char* why) {
    progress_.hide();
    report_text(pool_ + ": " + path_, why);
    ++counts_.skipped;
  }

  void copied(u64& kind) {
    ++kind;
    progress_.add(1, 0);
  }

  void already_there(const Attributes& attributes) {
    ++counts_.already;
    progress_.add_skipped(1, copy_bytes(attributes));
  }

  /// Whether to end: nothing more can be written, or a signal came.
  bool stops() {
    if (!full_ && counts_.interrupted == 0) counts_.interrupted = Interruptible::signal();
    return full_ || counts_.interrupted != 0;
  }

  // --- One object of each kind
  // ------------------------------------------------------------------------------------------------

  void entry(InodeNo ino, const char* name, int host_dir) {
    const Result<Attributes> found = fs_.stat(At::inode(ino), Credentials::root(), Follow::kNo);
    if (!found.ok()) return pool_failed(found.error());
    const Attributes& attributes = *found;
    if (attributes.type() == FileType::kDirectory) return subdirectory(attributes, name, host_dir);
    if (attributes.links > 1) {
      const auto known = linked_.find(to_u64(attributes.ino));
      if (known != linked_.end()) return hard_link(known->second, attributes, name, host_dir);
    }
    if (resume_ && is_complete(attributes, name, host_dir)) return already_there(attributes);
    // Whatever else stands there goes; a directory makes this fail, and so does everything after it, with EEXIST.
    if (unlinkat(host_dir, name, 0) != 0 && errno != ENOENT) return host_failed("cannot replace it", errno);
    switch (attributes.type()) {
      case FileType::kRegular: return file(attributes, name, host_dir);
      case FileType::kSymlink: return symlink(attributes, name, host_dir);
      case FileType::kFifo:
      case FileType::kSocket:
      case FileType::kCharDevice:
      case FileType::kBlockDevice: return special(attributes, name, host_dir);
      case FileType::kDirectory:
      case FileType::kNone: break;
    }
    pool_failed({Errc::kCorrupt, "an inode of no known type; left out"});
  }

  void subdirectory(const Attributes& attributes, const char* name, int host_dir) {
    if (mkdirat(host_dir, name, 0700) != 0 && errno != EEXIST) return host_failed("cannot make the directory", errno);
    const HostFd fd(openat(host_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.is_open()) return host_failed("cannot use it as a directory", errno);
    directory(attributes.ino, fd.get(), true);
    if (!stops()) copied(counts_.directories);
  }

  void file(const Attributes& attributes, const char* name, int host_dir) {
    Result<File> source = fs_.open_file(At::inode(attributes.ino), O_RDONLY | O_NOATIME, 0, Credentials::root());
    if (!source.ok()) return pool_failed(source.error());
    HostFd fd(openat(host_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.is_open()) return host_failed("cannot create it", errno);
    if (!contents(attributes, *source, fd.get())) {
      if (counts_.interrupted != 0) (void)unlinkat(host_dir, name, 0);
      return;
    }
    if (set_owner_and_mode(fd.get(), attributes, mode_for_host(attributes))) set_times(fd.get(), attributes);
    remember(attributes, fd.get());
    if (const int failed = fd.close_now(); failed != 0) return host_failed("cannot write it", failed);
    copied(counts_.files);
  }

  void symlink(const Attributes& attributes, const char* name, int host_dir) {
    const Result<std::string> target = fs_.readlink(At::inode(attributes.ino), Credentials::root());
    if (!target.ok()) return pool_failed(target.error());
    if (symlinkat(target->c_str(), host_dir, name) != 0) return host_failed("cannot make the symbolic link", errno);
    finish_by_name(attributes, name, host_dir);
    copied(counts_.symlinks);
  }

  void special(const Attributes& attributes, const char* name, int host_dir) {
    const bool device = attributes.type() == FileType::kCharDevice || attributes.type() == FileType::kBlockDevice;
    if (device && !as_root_) return skipped("only root copies devices; left out");
    if (mknodat(host_dir, name, (attributes.mode & S_IFMT) | 0600u, device ? attributes.rdev : 0) != 0) {
      return host_failed("cannot make it", errno);
    }
    finish_by_name(attributes, name, host_dir);
    copied(counts_.specials);
  }

  /// Another name for an object exported before. The path to its first name is walked again without following anything,
  /// and what is there must still be that object.
  void hard_link(const LinkSource& source, const Attributes& attributes, const char* name, int host_dir) {
    struct stat st {};
    if (resume_ && fstatat(host_dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && source.is(st)) {
      return already_there(attributes);
    }
    if (unlinkat(host_dir, name, 0) != 0 && errno != ENOENT) return host_failed("cannot replace it", errno);
    HostFd parent;
    std::string_view rest = source.path;
    for (std::size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
      const std::string step(rest.substr(0, slash));
      const int from = parent.is_open() ? parent.get() : top_;
      parent = HostFd(openat(from, step.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!parent.is_open()) return host_failed("cannot reach the file it is a hard link to", errno);
      rest.remove_prefix(slash + 1);
    }
    const std::string last(rest);
    const int from = parent.is_open() ? parent.get() : top_;
    if (fstatat(from, last.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      return host_failed("cannot examine the file it is a hard link to", errno);
    }
    if (!source.is(st)) return host_failed("the file it is a hard link to changed", ESTALE);
    if (linkat(from, last.c_str(), host_dir, name, 0) != 0) return host_failed("cannot make the hard link", errno);
    copied(counts_.hard_links);
  }

  // --- Parts of them
  // ------------------------------------------------------------------------------------------------------------

  void remember(const Attributes& attributes, int fd) {
    struct stat st {};
    if (attributes.links > 1 && fstat(fd, &st) == 0) remember(attributes, st);
  }
  void remember(const Attributes& attributes, const struct stat& st) {
    if (attributes.links <= 1) return;
    linked_.emplace(to_u64(attributes.ino), LinkSource{path_, st.st_dev, st.st_ino});
    taken_.emplace(st.st_dev, st.st_ino);
  }

  /// Whether an earlier run has copied it to the end, so that only its further names are left to do.
  bool is_complete(const Attributes& attributes, const char* name, int host_dir) {
    struct stat st {};
    if (fstatat(host_dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return false;
    const struct timespec mtime = to_timespec(attributes.mtime_ns);
    if (st.st_mtim.tv_sec != mtime.tv_sec || st.st_mtim.tv_nsec != mtime.tv_nsec) return false;
    if (st.st_uid != (as_root_ ? attributes.uid : uid_) || (as_root_ && st.st_gid != attributes.gid)) return false;
    if (!S_ISLNK(st.st_mode) && (st.st_mode & 07777u) != mode_for_host(attributes)) return false;
    if (!holds_the_same(fs_, attributes, host_dir, name, st)) return false;
    // Linked to something that it is not linked to in the pool: an older tree, in which it was.
    if (attributes.links == 1 ? st.st_nlink != 1 : taken_.contains({st.st_dev, st.st_ino})) return false;
    remember(attributes, st);
    return true;
  }

  /// Copies a file's bytes. Of a file with holes, blocks of zeroes are left out. @return false if that failed, which
  /// has been said, or was interrupted.
  bool contents(const Attributes& attributes, const File& source, int fd) {
    const bool sparse = attributes.blocks_512 * 512 < attributes.size_bytes;
    u64 off = 0;
    for (;;) {
      if (stops()) return false;
      const Result<std::size_t> count = source.read(off, buffer_);
      if (!count.ok()) return pool_failed(count.error()), false;
      if (*count == 0) break;
      const std::span<const std::byte> bytes{buffer_.data(), *count};
      const int failed = sparse ? write_around_holes(fd, off, bytes) : write_all(fd, bytes);
      if (failed != 0) return host_failed("cannot write it", failed), false;
      off += *count;
      progress_.add(0, *count);
    }
    if (sparse && ftruncate(fd, static_cast<off_t>(off)) != 0) return host_failed("cannot set its size", errno), false;
    counts_.bytes += off;
    return true;
  }

  static int write_around_holes(int fd, u64 off, std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
      const auto block = bytes.subspan(at, std::min<std::size_t>(kBlockBytes, bytes.size() - at));
      if (std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{}; })) continue;
      if (lseek(fd, static_cast<off_t>(off + at), SEEK_SET) < 0) return errno;
      if (const int failed = write_all(fd, block); failed != 0) return failed;
    }
    return 0;
  }

  /// Permission bits for the host: set-id bits stay only with the owner they were given by.
  mode_t mode_for_host(const Attributes& attributes) const {
    u32 mode = attributes.mode & 07777u;
    if (!as_root_ && attributes.uid != uid_) mode &= ~u32{S_ISUID};
    if (!as_root_ && attributes.gid != gid_ && attributes.type() != FileType::kDirectory) mode &= ~u32{S_ISGID};
    return mode;
  }

  /// What the top gets before anything is in it: everything to the one who fills it, and no group for what is made in
  /// it.
  mode_t first_mode(const Attributes& attributes) const {
    const mode_t mode = mode_for_host(attributes);
    return as_root_ ? mode : (mode & 01777u) | 0700u;
  }

  /// Also ACLs. Behind the owner: a new one takes capabilities away.
  void keep_xattrs(InodeNo ino, int fd) {
    bool complete = true;
    const Result<void> kept = export_xattrs(fs_, ino, fd, complete);
    if (!kept.ok()) pool_failed(kept.error());
    if (!complete) ++counts_.with_xattrs;
  }

  /// Owner, extended attributes, mode, in this order: a new owner clears set-id bits. @return false: failed, and said.
  bool set_owner_and_mode(int fd, const Attributes& attributes, mode_t mode) {
    if (as_root_ && fchown(fd, attributes.uid, attributes.gid) != 0) {
      return host_failed("cannot set its owner", errno), false;
    }
    keep_xattrs(attributes.ino, fd);
    if (fchmod(fd, mode) != 0) return host_failed("cannot set its mode", errno), false;
    return true;
  }

  void set_times(int fd, const Attributes& attributes) {
    const struct timespec times[2] = {to_timespec(attributes.atime_ns), to_timespec(attributes.mtime_ns)};
    if (futimens(fd, times) != 0) host_failed("cannot set its times", errno);
  }

  /// The same for what cannot be opened. The name is resolved once; what it led to must be the object just made, or
  /// somebody who may write here could have put a hard link to another's file in its place.
  void finish_by_name(const Attributes& attributes, const char* name, int host_dir) {
    const HostFd fd(openat(host_dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat st {};
    if (!fd.is_open() || fstat(fd.get(), &st) != 0) return host_failed("cannot examine it", errno);
    if ((st.st_mode & S_IFMT) != (attributes.mode & S_IFMT) || st.st_nlink != 1 || st.st_uid != uid_) {
      return host_failed("it was replaced meanwhile", ESTALE);
    }
    if (as_root_ && fchownat(fd.get(), "", attributes.uid, attributes.gid, AT_EMPTY_PATH) != 0) {
      host_failed("cannot set its owner", errno);
    }
    keep_xattrs(attributes.ino, fd.get());
    const std::string itself = fmt::format("/proc/self/fd/{}", fd.get());  // chmod knows no O_PATH descriptor
    if (!S_ISLNK(st.st_mode) && chmod(itself.c_str(), mode_for_host(attributes)) != 0) {
      host_failed("cannot set its mode", errno);
    }
    const struct timespec times[2] = {to_timespec(attributes.atime_ns), to_timespec(attributes.mtime_ns)};
    if (utimensat(fd.get(), "", times, AT_EMPTY_PATH) != 0 &&
        utimensat(host_dir, name, times, AT_SYMLINK_NOFOLLOW) != 0) {  // kernels before 5.8 refuse the first
      host_failed("cannot set its times", errno);
    }
    remember(attributes, fd.get());
  }

  Filesystem& fs_;
  const std::string& pool_;
  const int top_;  ///< the destination, where relative paths start
  std::string host_name_;
  std::string path_;  ///< of the object at hand, relative to both tops
  const bool resume_;
  Progress& progress_;
  const bool as_root_;
  const uid_t uid_;
  const gid_t gid_;
  std::vector<std::byte> buffer_;
  std::unordered_map<u64, LinkSource> linked_;  ///< first names of inodes that have several
  std::set<std::pair<dev_t, ino_t>> taken_;     ///< what they are on the host
  TreeCounts counts_;
  bool full_ = false;  ///< nothing more can be written on the host
};

/// Counts what there is to copy, for the progress bar; what cannot be read counts nothing.
void count_tree(Filesystem& fs, InodeNo ino, u64& objects, u64& bytes) {
  Result<Dir> dir = fs.open_dir(At::inode(ino), Credentials::root());
  if (!dir.ok()) return;
  DirEntry found;
  for (u64 cookie = 0;; cookie = found.cookie) {
    const Result<bool> more = dir->read(cookie, found);
    if (!more.ok() || !*more || Interruptible::signal() != 0) return;
    if (!is_plain_name(found.view())) continue;
    ++objects;
    if (found.type == FileType::kDirectory) count_tree(fs, found.ino, objects, bytes);
    if (found.type != FileType::kRegular) continue;
    const Result<Attributes> attributes = fs.stat(At::inode(found.ino), Credentials::root(), Follow::kNo);
    if (attributes.ok()) bytes += copy_bytes(*attributes);
  }
}

}  // namespace

TreeCounts export_tree(Filesystem& fs, InodeNo pool_dir, const std::string& pool, HostFd host_dir,
                       const std::string& host_name, const TreeOptions& options, Progress& progress) {
  allow_deep_trees();
  if (progress.is_wanted()) {
    u64 objects = 0, bytes = 0;
    count_tree(fs, pool_dir, objects, bytes);
    progress.set_total(objects, bytes);
  }
  Exporter exporter(fs, pool, host_dir.get(), host_name, options.resume, progress);
  if (options.top == TopAttributes::kAll) exporter.begin(pool_dir);
  exporter.directory(pool_dir, host_dir.get(), options.top == TopAttributes::kAll);
  progress.hide();
  return exporter.counts();
}

}  // namespace pmfs::tools
