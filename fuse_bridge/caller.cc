#include "fuse_bridge/caller.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

namespace pmfs::bridge {

namespace {

/// Whether a thread's name space of that kind is this process's.
bool same_name_space(pid_t tid, const char* kind, const struct stat& own) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/ns/%s", static_cast<int>(tid), kind);
  struct stat theirs {};
  return tid > 0 && ::stat(path, &theirs) == 0 && theirs.st_ino == own.st_ino && theirs.st_dev == own.st_dev;
}

/// This process's name space of that kind: it never changes.
struct stat own_name_space(const char* path) {
  struct stat own {};
  if (::stat(path, &own) != 0) own.st_ino = 0;
  return own;
}

/// The value of "key:\t..." in /proc/TID/status; empty if it is not there.
std::string_view field(std::string_view status, std::string_view key) {
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + key.size();
  return status.substr(begin, status.find('\n', begin) - begin);
}

}  // namespace

bool sees_our_mounts(pid_t tid) {
  static const struct stat own = own_name_space("/proc/self/ns/mnt");
  return same_name_space(tid, "mnt", own);
}

std::optional<CallerDetails> details_of(pid_t tid) {
  if (tid <= 0) return {};
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/status", static_cast<int>(tid));
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string status;
  char chunk[4096];
  ssize_t length = 0;
  while ((length = ::read(fd, chunk, sizeof chunk)) > 0) status.append(chunk, static_cast<std::size_t>(length));
  ::close(fd);
  if (length < 0) return {};

  CallerDetails details;
  std::string_view groups = field(status, "\nGroups:\t");
  while (!groups.empty()) {
    u32 group = 0;
    const auto [end, error] = std::from_chars(groups.data(), groups.data() + groups.size(), group);
    if (error != std::errc()) break;
    details.groups.push_back(group);
    groups.remove_prefix(static_cast<std::size_t>(end - groups.data()));
    while (groups.starts_with(' ')) groups.remove_prefix(1);
  }
  u64 capabilities = 0;
  const std::string_view text = field(status, "\nCapEff:\t");
  if (std::from_chars(text.data(), text.data() + text.size(), capabilities, 16).ec != std::errc()) return {};
  static const struct stat own = own_name_space("/proc/self/ns/user");
  const auto has = [&](unsigned capability) { return ((capabilities >> capability) & 1) != 0; };
  if ((has(CAP_DAC_OVERRIDE) || has(CAP_DAC_READ_SEARCH)) && same_name_space(tid, "user", own)) {
    details.may_change_all = has(CAP_DAC_OVERRIDE);
    details.may_search_all = true;
  }
  return details;
}

}  // namespace pmfs::bridge
