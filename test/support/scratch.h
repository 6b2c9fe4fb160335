// A directory for one test, and small things around files and processes that several tests want.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "pmfs/types.h"

namespace pmfs::test {

/// A new directory, removed with all it holds at the end: under /dev/shm where that can be written, otherwise under
/// TMPDIR. In a forked child it is not removed.
class Scratch {
 public:
  enum class Place { kMemory, kDisk };
  explicit Scratch(Place place = Place::kMemory);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& dir() const { return dir_; }
  std::string file(std::string_view name) const { return dir_ + "/" + std::string(name); }

 private:
  std::string dir_;
  int owner_;
};

void write_file(const std::string& path, std::string_view contents);
std::string read_file(const std::string& path);

/// Overwrites some bytes.
void patch_file(const std::string& path, u64 off, std::string_view bytes);

/// A cheap fingerprint of a file's contents.
u64 hash_file(const std::string& path);

/// Runs `body` in a forked child and returns its exit status, 128 + signal if it was killed, 200 if it hung (it is then
/// killed). `body` must not use Catch's macros.
int in_child(const std::function<int()>& body, unsigned seconds = 20);

/// A forked child that runs `body` and then waits until it is told to end.
class LivingChild {
 public:
  /// Returns after `body` has run.
  /// @param exits_normally  by exit(), so that destructors of libraries run; otherwise by _exit().
  explicit LivingChild(const std::function<int()>& body, bool exits_normally = false);
  ~LivingChild();
  LivingChild(const LivingChild&) = delete;
  LivingChild& operator=(const LivingChild&) = delete;
  int body_result() const { return body_result_; }
  /// Ends the child; its exit status, as in_child().
  int end();

 private:
  int pid_ = -1;
  int to_child_ = -1;
  int body_result_ = -1;
};

/// Acts as an unprivileged user while it lives, if the test runs as root. May be used by one thread at a time.
class Unprivileged {
 public:
  Unprivileged();
  ~Unprivileged();
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace pmfs::test
