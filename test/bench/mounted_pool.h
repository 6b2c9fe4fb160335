// A throw-away pool, mounted through FUSE by the pmfs program that was built with this one.
#pragma once

#include <string>

namespace pmfs::bench {

class MountedPool {
 public:
  /// Throws std::runtime_error: no pmfs program beside this one, or it could not mount (no /dev/fuse, no rights).
  /// @param target   folder to make it in; empty: /dev/shm.
  /// @param options  for -o; empty: none.
  MountedPool(const std::string& target, const std::string& options);
  MountedPool(const MountedPool&) = delete;
  MountedPool& operator=(const MountedPool&) = delete;
  ~MountedPool();  ///< unmounts and removes everything

  const std::string& dir() const { return dir_; }
  /// Unmounts and mounts again: nothing is cached in the kernel.
  void remount();
  /// How many LOOKUPs the server has answered since it was mounted.
  unsigned long long lookups() const;

 private:
  void mount();
  void unmount();

  std::string folder_, pool_, dir_, options_;
  bool mounted_ = false;
};

}  // namespace pmfs::bench
