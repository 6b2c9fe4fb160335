// covered: the directories and files of this mount on which something else is mounted. The kernel would walk into that;
// the library cannot know of it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "pmfs/pmfs.hpp"

namespace pmfs::bridge {

class Covered {
 public:
  using Inodes = std::unordered_set<u64>;  // by number

  /// @param dir  where the pool is mounted.
  Covered(Filesystem& fs, std::string dir);
  Covered(const Covered&) = delete;
  Covered& operator=(const Covered&) = delete;
  ~Covered();

  /// As of an instant within the call. Null: it cannot be told. Cost: one poll(), unless the mount table has changed.
  /// Concurrency: from any thread.
  std::shared_ptr<const Inodes> now();

 private:
  std::shared_ptr<const Inodes> read();

  Filesystem& fs_;
  const std::string dir_;
  int changes_ = -1;  // /proc/self/mountinfo: urgent data when it has changed
  std::mutex lock_;
  std::shared_ptr<const Inodes> inodes_;  // guarded by lock_
};

}  // namespace pmfs::bridge
