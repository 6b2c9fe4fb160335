#include "copy_within.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <unordered_map>
#include <unordered_set>

#include "walk.h"
#include "xattr_copy.h"

namespace pmfs::tools {

namespace {

const Credentials kRoot = Credentials::root();

}  // namespace

class CopyWithin::Impl {
 public:
  Impl(Filesystem& fs, const CopyOptions& options, Failures& failures)
      : fs_(fs), options_(options), failures_(failures), who_(creator_credentials()) {}

  Result<void> copy(const std::string& from, const std::string& to) {
    PMFS_ASSIGN(const Attributes source, options_.recursive ? look(fs_, from) : fs_.stat(from, kRoot));
    if (source.type() == FileType::kDirectory) {
      if (!options_.recursive) {
        failures_.add(from, "this is a directory; -r copies it with everything in it");
        return {};
      }
      PMFS_ASSIGN(const bool inside, lies_inside(source.ino, to));
      if (inside) return Error{Errc::kInvalid, "a directory cannot be copied into itself"};
    }
    directories_.clear();
    Walk on;
    on.enter = [&](const Met& met) {
      const Result<void> done = one(met, met.depth == 0 ? At(to) : At(directories_[met.depth - 1], met.name));
      if (!done.ok()) failures_.add(met.path, done.error());
      return done.ok();
    };
    on.leave = [&](const Met& met) {
      const Result<void> done = keep_attributes(met.attributes, directories_[met.depth]);
      if (!done.ok()) failures_.add(met.path, done.error());
    };
    walk(fs_, from, source, failures_, on);
    return {};
  }

 private:
  /// Whether `to`, or where it will be made, is the directory `source` or lies below it.
  Result<bool> lies_inside(InodeNo source, const std::string& to) {
    Result<Attributes> at = fs_.stat(to, kRoot);
    if (!at.ok() && at.error().code == Errc::kNotFound) at = fs_.stat(parent_of(to), kRoot);
    if (!at.ok()) return at.error();
    std::unordered_set<u64> seen;  // in a damaged pool the way up may not end
    while (seen.insert(to_u64(at->ino)).second) {
      if (at->ino == source) return true;
      if (at->ino == kRootIno || at->type() != FileType::kDirectory) return false;
      at = fs_.stat(At(at->ino, ".."), kRoot);
      if (!at.ok()) return at.error();
    }
    return Error{Errc::kCorrupt, "directories that lie in each other"};
  }

  Result<void> one(const Met& met, const At& at) {
    const Attributes& source = met.attributes;
    if (source.type() == FileType::kDirectory) return directory(met, at);
    if (options_.archive && source.links > 1) {
      const auto known = linked_.find(to_u64(source.ino));
      if (known != linked_.end()) return hard_link(known->second, source, at);
    }
    Result<Attributes> made = source.type() == FileType::kRegular ? file(source, at) : other(source, at);
    if (!made.ok()) return made.error();
    created_.insert(to_u64(made->ino));
    if (source.links > 1) linked_.emplace(to_u64(source.ino), made->ino);
    return keep_attributes(source, made->ino);
  }

  Result<void> directory(const Met& met, const At& at) {
    Result<Attributes> made = fs_.stat(at, kRoot, Follow::kNo);
    if (made.ok() && made->type() != FileType::kDirectory) {
      return Error{Errc::kNotDirectory, "something else has that name at the destination"};
    }
    if (!made.ok()) made = fs_.mkdir(at, met.attributes.mode & 01777u, who_);
    if (!made.ok()) return made.error();
    directories_.resize(met.depth);
    directories_.push_back(made->ino);
    return {};
  }

  Result<void> hard_link(InodeNo copy, const Attributes& source, const At& at) {
    const Result<Attributes> there = fs_.stat(at, kRoot, Follow::kNo);
    if (there.ok() && there->ino == copy) return {};
    PMFS_TRY(make_room(source, at));
    PMFS_TRY(fs_.link(At::inode(copy), at, kRoot));
    return {};
  }

  /// An existing file, also one that a symbolic link leads to, gets the contents; its mode and its names stay.
  Result<Attributes> file(const Attributes& source, const At& at) {
    const Result<Attributes> there = fs_.stat(at, kRoot);
    if (!there.ok() && there.error().code != Errc::kNotFound) return there.error();
    if (there.ok()) PMFS_TRY(may_replace(source, *there));
    Result<File> copy = there.ok() ? fs_.open_file(at, O_WRONLY | O_TRUNC, 0, kRoot)
                                   : fs_.open_file(at, O_WRONLY | O_CREAT | O_EXCL, source.mode & 0777u, who_);
    if (!copy.ok()) {
      const bool dangling = !there.ok() && copy.error().code == Errc::kExists;
      return dangling ? Error{Errc::kExists, "a symbolic link that leads nowhere"} : copy.error();
    }
    PMFS_TRY(contents(source, *copy));
    PMFS_ASSIGN(const Attributes made, copy->stat());
    PMFS_TRY(copy->close());
    return made;
  }

  /// Data goes where it was; between, and behind it to the end, nothing is stored.
  Result<void> contents(const Attributes& source, const File& copy) {
    for (u64 off = 0; off < source.size_bytes;) {
      const Result<u64> data = fs_.seek(source.ino, off, SEEK_DATA);
      if (!data.ok() && data.error().code == Errc::kNoAddress) break;  // a hole to the end
      if (!data.ok()) return data.error();
      PMFS_ASSIGN(const u64 hole, fs_.seek(source.ino, *data, SEEK_HOLE));
      for (off = *data; off < hole;) {
        PMFS_ASSIGN(const std::size_t count, fs_.copy_range(source.ino, off, copy.ino(), off, hole - off, kRoot));
        if (count == 0) return Error{Errc::kNoSpace, "only a part was copied"};
        off += count;
      }
    }
    PMFS_ASSIGN(const Attributes now, copy.stat());
    if (now.size_bytes != source.size_bytes) PMFS_TRY(copy.truncate(source.size_bytes));
    return {};
  }

  Result<Attributes> other(const Attributes& source, const At& at) {
    if (!options_.recursive)
      return Error{Errc::kNotSupported, "neither file nor directory; -r copies it as what it is"};
    PMFS_TRY(make_room(source, at));
    if (source.type() != FileType::kSymlink) {
      return fs_.mknod(at, source.mode & (S_IFMT | 0777u), source.rdev, who_);
    }
    PMFS_ASSIGN(const std::string target, fs_.readlink(At::inode(source.ino), kRoot));
    return fs_.symlink(target, at, who_);
  }

  /// Removes what has the name, unless it is a directory.
  Result<void> make_room(const Attributes& source, const At& at) {
    const Result<Attributes> there = fs_.stat(at, kRoot, Follow::kNo);
    if (!there.ok()) return there.error().code == Errc::kNotFound ? Result<void>() : there.error();
    PMFS_TRY(may_replace(source, *there));
    return fs_.unlink(at, kRoot);
  }

  Result<void> may_replace(const Attributes& source, const Attributes& there) {
    if (there.ino == source.ino) return Error{Errc::kInvalid, "source and destination are the same"};
    if (there.type() == FileType::kDirectory) return Error{Errc::kIsDirectory, "a directory is at the destination"};
    if (created_.contains(to_u64(there.ino))) return Error{Errc::kExists, "what was copied just now has that name"};
    return {};
  }

  /// Owner, mode and times in one commit; behind it extended attributes: a new owner takes capabilities away, and an
  /// ACL sets the mode.
  Result<void> keep_attributes(const Attributes& source, InodeNo copy) {
    if (!options_.archive) return {};
    SetAttributes change;
    change.uid = source.uid;
    change.gid = source.gid;
    if (source.type() != FileType::kSymlink) change.mode = source.mode & 07777u;
    change.atime_ns = source.atime_ns;
    change.mtime_ns = source.mtime_ns;
    PMFS_TRY(fs_.set_attributes(At::inode(copy), change, kRoot, Follow::kNo));
    return copy_xattrs(fs_, source.ino, copy);
  }

  Filesystem& fs_;
  const CopyOptions options_;
  Failures& failures_;
  const Credentials who_;
  std::vector<InodeNo> directories_;         ///< copies of the directories that the walk is in, outermost first
  std::unordered_map<u64, InodeNo> linked_;  ///< copies of inodes that have several names
  std::unordered_set<u64> created_;          ///< no second source may overwrite them
};

CopyWithin::CopyWithin(Filesystem& fs, const CopyOptions& options, Failures& failures)
    : impl_(std::make_unique<Impl>(fs, options, failures)) {}

CopyWithin::~CopyWithin() = default;

Result<void> CopyWithin::copy(const std::string& from, const std::string& to) { return impl_->copy(from, to); }

}  // namespace pmfs::tools
