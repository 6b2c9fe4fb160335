// One way into a file system, as POSIX has it: through the library, or through the kernel. What is asked of one can be
// asked of the other, and the answers compared.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pmfs/pmfs.hpp"

namespace pmfs::test {

/// What stat tells and what does not depend on where the file lies. Sizes of directories do.
struct Facts {
  u32 mode = 0, uid = 0, gid = 0;
  u64 links = 0, size = 0, rdev = 0;
};
struct Times {
  i64 atime_ns = 0, mtime_ns = 0, ctime_ns = 0;
};

/// Paths begin with a slash, which stands for the top. Every call returns an errno, 0 if it has worked.
class Door {
 public:
  virtual ~Door() = default;
  virtual int stat(const std::string& path, bool follow, Facts& facts, Times* times = nullptr) = 0;
  virtual int access(const std::string& path, int mode) = 0;
  virtual int mkdir(const std::string& path, u32 mode) = 0;
  virtual int mknod(const std::string& path, u32 mode, u64 rdev) = 0;
  virtual int symlink(const std::string& target, const std::string& path) = 0;
  virtual int readlink(const std::string& path, std::string& target) = 0;
  virtual int link(const std::string& from, const std::string& to, bool follow) = 0;
  virtual int unlink(const std::string& path) = 0;
  virtual int rmdir(const std::string& path) = 0;
  virtual int rename(const std::string& from, const std::string& to, unsigned flags) = 0;
  virtual int chmod(const std::string& path, u32 mode) = 0;
  virtual int chown(const std::string& path, u32 uid, u32 gid, bool follow) = 0;
  virtual int truncate(const std::string& path, u64 size) = 0;
  virtual int utimens(const std::string& path, i64 atime_ns, i64 mtime_ns, bool follow) = 0;
  /// Names without "." and "..", sorted.
  virtual int list(const std::string& path, std::vector<std::string>& names) = 0;
  virtual int open(const std::string& path, int flags, u32 mode, int& handle) = 0;
  virtual int close(int handle) = 0;
  virtual int read(int handle, u64 off, std::size_t bytes, std::string& data) = 0;
  virtual int write(int handle, u64 off, const std::string& data, std::size_t& written) = 0;
  virtual int fstat(int handle, Facts& facts) = 0;
  virtual int ftruncate(int handle, u64 size) = 0;
  virtual void set_umask(u32 mask) = 0;
};

/// As root; nothing is left open at the end.
std::unique_ptr<Door> library_door(Filesystem& fs);
/// Below a folder, as this process.
std::unique_ptr<Door> host_door(const std::string& folder);

}  // namespace pmfs::test
