#include "fuse_bridge/mount_table.h"

#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <climits>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

namespace pmfs::bridge {

namespace {

/// Undoes the table's \ooo for space, tab, newline and backslash.
std::string unescape(const std::string& field) {
  std::string out;
  out.reserve(field.size());
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size() && is_octal(field[i + 1]) && is_octal(field[i + 2]) &&
        is_octal(field[i + 3])) {
      out += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0'));
      i += 3;
    } else {
      out += field[i];
    }
  }
  return out;
}

}  // namespace

std::vector<MountEntry> read_mount_table() {
  std::vector<MountEntry> table;
  std::ifstream file("/proc/self/mountinfo");
  std::string line;
  while (std::getline(file, line)) {
    // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue    (proc(5))
    std::istringstream fields(line);
    std::string id, parent, root, dir, options, optional, type, source;
    MountEntry entry;
    fields >> id >> parent >> entry.device >> root >> dir >> options;
    while (fields >> optional && optional != "-") {
    }
    if (!(fields >> type >> source)) continue;
    entry.dir = unescape(dir);
    entry.type = unescape(type);
    entry.source = unescape(source);
    table.push_back(std::move(entry));
  }
  return table;
}

std::optional<MountEntry> mount_at(const std::string& dir) {
  std::optional<MountEntry> found;
  for (MountEntry& entry : read_mount_table()) {
    if (entry.dir == dir) found = std::move(entry);
  }
  return found;
}

std::string resolve_mount_point(const std::string& dir) {
  const auto canonical = [](const std::string& path) {
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    return resolved ? std::string(resolved.get()) : std::string();
  };
  // A symbolic link to the mount point is followed; a dead mount is no link, and its parent can be resolved.
  if (std::string whole = canonical(dir); !whole.empty()) return whole;
  if (errno != ENOTCONN && errno != ECONNABORTED && errno != EIO) return {};
  std::string path = dir;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.rfind('/');
  const std::string parent = canonical(slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash));
  if (parent.empty()) return {};
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return parent == "/" ? parent + name : parent + "/" + name;
}

int detach(const std::string& dir, bool lazy) {
  if (geteuid() == 0) return ::umount2(dir.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0 ? 0 : errno;
  std::string program = "fusermount3", flag = lazy ? "-uz" : "-u", end_of_options = "--", target = dir;
  char* const argv[] = {program.data(), flag.data(), end_of_options.data(), target.data(), nullptr};
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, program.c_str(), nullptr, nullptr, argv, environ); error != 0)
    return error;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EBUSY;
}

}  // namespace pmfs::bridge
