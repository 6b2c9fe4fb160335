#include "fuse_bridge/caller.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

namespace pmfs::bridge {

namespace {

/// A name space, as the kernel names it: "mnt:[4026531841]". Empty: it cannot be known. (Reading the link takes half
/// the time of a stat() behind it.)
std::string name_space(const char* path) {
  char text[64];
  const ssize_t length = ::readlink(path, text, sizeof text);
  return length <= 0 || length == sizeof text ? std::string() : std::string(text, static_cast<std::size_t>(length));
}

bool same_name_space(pid_t tid, const char* kind, const std::string& own) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/ns/%s", static_cast<int>(tid), kind);
  return tid > 0 && !own.empty() && name_space(path) == own;
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
  static const std::string own = name_space("/proc/self/ns/mnt");
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
  static const std::string own = name_space("/proc/self/ns/user");
  const auto has = [&](unsigned capability) { return ((capabilities >> capability) & 1) != 0; };
  if ((has(CAP_DAC_OVERRIDE) || has(CAP_DAC_READ_SEARCH)) && same_name_space(tid, "user", own)) {
    details.may_change_all = has(CAP_DAC_OVERRIDE);
    details.may_search_all = true;
  }
  return details;
}

}  // namespace pmfs::bridge
