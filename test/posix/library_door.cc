#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <span>

#include "test/posix/door.h"

namespace pmfs::test {

namespace {

template <class T>
int error_of(const Result<T>& result) {
  return result.ok() ? 0 : to_errno(result.error().code);
}

void take(const Attributes& a, Facts& facts, Times* times) {
  facts = {a.mode, a.uid, a.gid, a.links, a.type() == FileType::kDirectory ? 0 : a.size_bytes, a.rdev};
  if (times != nullptr) *times = {a.atime_ns, a.mtime_ns, a.ctime_ns};
}

Follow follow_if(bool follow) { return follow ? Follow::kYes : Follow::kNo; }

class LibraryDoor final : public Door {
 public:
  explicit LibraryDoor(Filesystem& fs) : fs_(fs) {}

  int stat(const std::string& path, bool follow, Facts& facts, Times* times) override {
    const auto found = fs_.stat(path, who_, follow_if(follow));
    if (found.ok()) take(*found, facts, times);
    return error_of(found);
  }
  int access(const std::string& path, int mode) override { return error_of(fs_.access(path, mode, who_)); }
  int mkdir(const std::string& path, u32 mode) override { return error_of(fs_.mkdir(path, mode, who_)); }
  int mknod(const std::string& path, u32 mode, u64 rdev) override {
    return error_of(fs_.mknod(path, mode, rdev, who_));
  }
  int symlink(const std::string& target, const std::string& path) override {
    return error_of(fs_.symlink(target, path, who_));
  }
  int readlink(const std::string& path, std::string& target) override {
    const auto found = fs_.readlink(path, who_);
    if (found.ok()) target = *found;
    return error_of(found);
  }
  int link(const std::string& from, const std::string& to, bool follow) override {
    return error_of(fs_.link(from, to, who_, follow_if(follow)));
  }
  int unlink(const std::string& path) override { return error_of(fs_.unlink(path, who_)); }
  int rmdir(const std::string& path) override { return error_of(fs_.rmdir(path, who_)); }
  int rename(const std::string& from, const std::string& to, unsigned flags) override {
    return error_of(fs_.rename(from, to, flags, who_));
  }
  int chmod(const std::string& path, u32 mode) override {
    SetAttributes change;
    change.mode = mode;
    return error_of(fs_.set_attributes(path, change, who_));
  }
  int chown(const std::string& path, u32 uid, u32 gid, bool follow) override {
    SetAttributes change;
    change.uid = uid;
    change.gid = gid;
    return error_of(fs_.set_attributes(path, change, who_, follow_if(follow)));
  }
  int truncate(const std::string& path, u64 size) override {
    SetAttributes change;
    change.size_bytes = size;
    return error_of(fs_.set_attributes(path, change, who_));
  }
  int utimens(const std::string& path, i64 atime_ns, i64 mtime_ns, bool follow) override {
    SetAttributes change;
    change.atime_ns = atime_ns;
    change.mtime_ns = mtime_ns;
    return error_of(fs_.set_attributes(path, change, who_, follow_if(follow)));
  }
  int list(const std::string& path, std::vector<std::string>& names) override {
    auto dir = fs_.open_dir(path, who_);
    if (!dir.ok()) return error_of(dir);
    names.clear();
    DirEntry entry;
    for (u64 cookie = 0;; cookie = entry.cookie) {
      const auto more = dir->read(cookie, entry);
      if (!more.ok()) return error_of(more);
      if (!*more) break;
      if (entry.view() != "." && entry.view() != "..") names.emplace_back(entry.view());
    }
    std::sort(names.begin(), names.end());
    return 0;
  }
  int open(const std::string& path, int flags, u32 mode, int& handle) override {
    auto file = fs_.open_file(path, flags, mode, who_);
    if (!file.ok()) return error_of(file);
    files_.emplace(++last_, std::move(*file));
    handle = last_;
    return 0;
  }
  int close(int handle) override {
    files_.erase(handle);
    return 0;
  }
  int read(int handle, u64 off, std::size_t bytes, std::string& data) override {
    data.assign(bytes, '?');
    const auto got = files_.at(handle).read(off, std::as_writable_bytes(std::span(data)));
    data.resize(got.ok() ? *got : 0);
    return error_of(got);
  }
  int write(int handle, u64 off, const std::string& data, std::size_t& written) override {
    const auto put = files_.at(handle).write(off, std::as_bytes(std::span(data)));
    written = put.ok() ? *put : 0;
    return error_of(put);
  }
  int fstat(int handle, Facts& facts) override {
    const auto found = files_.at(handle).stat();
    if (found.ok()) take(*found, facts, nullptr);
    return error_of(found);
  }
  int ftruncate(int handle, u64 size) override { return error_of(files_.at(handle).truncate(size)); }
  void set_umask(u32 mask) override { who_.umask = mask; }

 private:
  Filesystem& fs_;
  Credentials who_ = Credentials::root();
  std::map<int, File> files_;
  int last_ = 0;
};

}  // namespace

std::unique_ptr<Door> library_door(Filesystem& fs) { return std::make_unique<LibraryDoor>(fs); }

}  // namespace pmfs::test
