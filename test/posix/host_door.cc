#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "test/posix/door.h"

namespace pmfs::test {

namespace {

int error_of(long result) { return result < 0 ? errno : 0; }

i64 to_ns(const timespec& time) { return i64{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }
timespec from_ns(i64 ns) { return {ns / 1'000'000'000, ns % 1'000'000'000}; }

void take(const struct stat& st, Facts& facts, Times* times) {
  facts = {st.st_mode,
           st.st_uid,
           st.st_gid,
           st.st_nlink,
           S_ISDIR(st.st_mode) ? 0 : static_cast<u64>(st.st_size),
           S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) ? st.st_rdev : 0};
  if (times != nullptr) *times = {to_ns(st.st_atim), to_ns(st.st_mtim), to_ns(st.st_ctim)};
}

class HostDoor final : public Door {
 public:
  explicit HostDoor(std::string folder) : folder_(std::move(folder)) { ::umask(0); }
  ~HostDoor() override {
    for (const int fd : open_) ::close(fd);
  }

  int stat(const std::string& path, bool follow, Facts& facts, Times* times) override {
    struct stat st {};
    const int error = error_of(::fstatat(AT_FDCWD, at(path), &st, follow ? 0 : AT_SYMLINK_NOFOLLOW));
    if (error == 0) take(st, facts, times);
    return error;
  }
  int access(const std::string& path, int mode) override { return error_of(::access(at(path), mode)); }
  int mkdir(const std::string& path, u32 mode) override { return error_of(::mkdir(at(path), mode)); }
  int mknod(const std::string& path, u32 mode, u64 rdev) override { return error_of(::mknod(at(path), mode, rdev)); }
  int symlink(const std::string& target, const std::string& path) override {
    return error_of(::symlink(target.c_str(), at(path)));
  }
  int readlink(const std::string& path, std::string& target) override {
    target.assign(4096, '\0');
    const ssize_t length = ::readlink(at(path), target.data(), target.size());
    target.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return error_of(length);
  }
  int link(const std::string& from, const std::string& to, bool follow) override {
    const std::string first = at(from);
    return error_of(::linkat(AT_FDCWD, first.c_str(), AT_FDCWD, at(to), follow ? AT_SYMLINK_FOLLOW : 0));
  }
  int unlink(const std::string& path) override { return error_of(::unlink(at(path))); }
  int rmdir(const std::string& path) override { return error_of(::rmdir(at(path))); }
  int rename(const std::string& from, const std::string& to, unsigned flags) override {
    const std::string first = at(from);
    return error_of(::syscall(SYS_renameat2, AT_FDCWD, first.c_str(), AT_FDCWD, at(to), flags));
  }
  int chmod(const std::string& path, u32 mode) override { return error_of(::chmod(at(path), mode)); }
  int chown(const std::string& path, u32 uid, u32 gid, bool follow) override {
    return error_of(::fchownat(AT_FDCWD, at(path), uid, gid, follow ? 0 : AT_SYMLINK_NOFOLLOW));
  }
  int truncate(const std::string& path, u64 size) override {
    return error_of(::truncate(at(path), static_cast<off_t>(size)));
  }
  int utimens(const std::string& path, i64 atime_ns, i64 mtime_ns, bool follow) override {
    const timespec times[2] = {from_ns(atime_ns), from_ns(mtime_ns)};
    return error_of(::utimensat(AT_FDCWD, at(path), times, follow ? 0 : AT_SYMLINK_NOFOLLOW));
  }
  int list(const std::string& path, std::vector<std::string>& names) override {
    DIR* const dir = ::opendir(at(path));
    if (dir == nullptr) return errno;
    names.clear();
    while (const dirent* const entry = ::readdir(dir)) names.emplace_back(entry->d_name);
    ::closedir(dir);
    std::erase(names, ".");
    std::erase(names, "..");
    std::sort(names.begin(), names.end());
    return 0;
  }
  int open(const std::string& path, int flags, u32 mode, int& handle) override {
    handle = ::open(at(path), flags | O_CLOEXEC, mode);
    if (handle >= 0) open_.push_back(handle);
    return error_of(handle);
  }
  int close(int handle) override {
    std::erase(open_, handle);
    return error_of(::close(handle));
  }
  int read(int handle, u64 off, std::size_t bytes, std::string& data) override {
    data.assign(bytes, '?');
    const ssize_t got = ::pread(handle, data.data(), bytes, static_cast<off_t>(off));
    data.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return error_of(got);
  }
  int write(int handle, u64 off, const std::string& data, std::size_t& written) override {
    const ssize_t put = ::pwrite(handle, data.data(), data.size(), static_cast<off_t>(off));
    written = put < 0 ? 0 : static_cast<std::size_t>(put);
    return error_of(put);
  }
  int fstat(int handle, Facts& facts) override {
    struct stat st {};
    const int error = error_of(::fstat(handle, &st));
    if (error == 0) take(st, facts, nullptr);
    return error;
  }
  int ftruncate(int handle, u64 size) override { return error_of(::ftruncate(handle, static_cast<off_t>(size))); }
  void set_umask(u32 mask) override { ::umask(mask); }

 private:
  /// The path below the folder. Relative to it, so that long ones are as long for the kernel as they are here.
  const char* at(const std::string& path) {
    if (::chdir(folder_.c_str()) != 0) return "/nowhere";
    text_ = path.substr(std::min(path.find_first_not_of('/'), path.size()));
    if (text_.empty() && !path.empty()) text_ = ".";
    // As long as it was, where that matters.
    if (path.size() > 4000) text_.replace(text_.find('/'), 1, 1 + path.size() - text_.size(), '/');
    return text_.c_str();
  }

  std::string folder_, text_;
  std::vector<int> open_;
};

}  // namespace

std::unique_ptr<Door> host_door(const std::string& folder) { return std::make_unique<HostDoor>(folder); }

}  // namespace pmfs::test
