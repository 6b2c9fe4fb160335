#include "test/bench/mounted_pool.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "pmfs/mounted.hpp"

namespace pmfs::bench {

namespace {

std::string pmfs_program() {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& folder : {here, here / "../../bin"}) {  // in the build tree; from libexec/pmfs
    const std::string program = (folder / "pmfs").string();
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  throw std::runtime_error("the pmfs program is not beside this one");
}

/// @return  the exit code; its standard output goes nowhere, it prints too much for a bench.
int run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return 127;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

MountedPool::MountedPool(const std::string& target, const std::string& options) : options_(options) {
  std::string name = (target.empty() ? "/dev/shm" : target) + "/pmfs-bench-mount.XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": cannot be made");
  folder_ = name;
  pool_ = folder_ + "/pool";
  dir_ = folder_ + "/mnt";
  std::filesystem::create_directory(dir_);
  FormatOptions format;
  format.size_bytes = u64{256} << 20;
  if (!Filesystem::format(pool_, format).ok()) throw std::runtime_error(pool_ + ": cannot be formatted");
  mount();
}

MountedPool::~MountedPool() {
  std::error_code ignored;
  if (mounted_) {
    try {
      unmount();
    } catch (const std::exception&) {
      return;  // still mounted: nothing below it may be removed
    }
  }
  std::filesystem::remove_all(folder_, ignored);
}

void MountedPool::mount() {
  std::vector<std::string> words{pmfs_program(), "mount", pool_, dir_};
  if (!options_.empty()) words.insert(words.end(), {"-o", options_});
  if (run(words) != 0) throw std::runtime_error("pmfs mount has failed");
  mounted_ = true;
}

void MountedPool::unmount() {
  if (run({pmfs_program(), "umount", dir_}) != 0) throw std::runtime_error("pmfs umount has failed");
  mounted_ = false;
}

void MountedPool::remount() {
  unmount();
  mount();
}

unsigned long long MountedPool::lookups() const {
  const auto statistics = mounted::statistics(dir_);
  if (!statistics.ok()) throw std::runtime_error("the mount does not say what it has counted");
  for (const auto& [name, value] : statistics->counts)
    if (name == "requests.lookup") return value;
  throw std::runtime_error("the mount does not count LOOKUPs");
}

}  // namespace pmfs::bench
