#include "xattr_copy.h"

#include <fmt/format.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>

namespace pmfs::tools {

namespace {

constexpr std::size_t kMost = 65536;  // of a value, and of all names: Linux's limits
constexpr const char* kAcls[] = {"system.posix_acl_access", "system.posix_acl_default"};
const Credentials kRoot = Credentials::root();

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::string> split(std::string_view names) {
  std::vector<std::string> list;
  for (std::size_t at = 0; at < names.size();) {
    list.emplace_back(names.data() + at);  // each ends with a NUL
    at += list.back().size() + 1;
  }
  return list;
}

// A name in a directory is reached through the descriptor's entry in /proc: there is no lgetxattrat.
std::string path_of(const HostPlace& place) { return fmt::format("/proc/self/fd/{}/{}", place.fd, place.name); }

ssize_t list(const HostPlace& place, std::string& out) {
  out.resize(kMost);
  return place.name == nullptr ? flistxattr(place.fd, out.data(), out.size())
                               : llistxattr(path_of(place).c_str(), out.data(), out.size());
}

ssize_t get(const HostPlace& place, const std::string& name, std::string& out) {
  out.resize(kMost);
  return place.name == nullptr ? fgetxattr(place.fd, name.c_str(), out.data(), out.size())
                               : lgetxattr(path_of(place).c_str(), name.c_str(), out.data(), out.size());
}

}  // namespace

bool is_worth_keeping(std::string_view name) {
  return name.starts_with("user.") || name.starts_with("trusted.") || name == "security.capability" ||
         name == kAcls[0] || name == kAcls[1];
}

Result<std::vector<std::string>> xattr_names(Filesystem& fs, InodeNo ino) {
  std::string names(kMost, '\0');
  PMFS_ASSIGN(const std::size_t length, fs.list_xattrs(At::inode(ino), names, kRoot));
  return split(std::string_view(names).substr(0, length));
}

Result<std::string> xattr_value(Filesystem& fs, InodeNo ino, const std::string& name) {
  std::string value(kMost, '\0');
  PMFS_ASSIGN(const std::size_t length,
              fs.get_xattr(At::inode(ino), name, std::as_writable_bytes(std::span(value)), kRoot));
  value.resize(length);
  return value;
}

Result<void> import_xattrs(Filesystem& fs, const HostPlace& from, InodeNo ino, bool& complete) {
  PMFS_ASSIGN(const std::vector<std::string> inherited, xattr_names(fs, ino));
  for (const std::string& name : inherited) PMFS_TRY(fs.remove_xattr(At::inode(ino), name, kRoot));
  std::string names;
  const ssize_t length = list(from, names);
  if (length < 0 && errno != ENOTSUP) complete = false;
  if (length <= 0) return {};
  for (const std::string& name : split(std::string_view(names).substr(0, static_cast<std::size_t>(length)))) {
    if (!is_worth_keeping(name)) continue;
    std::string value;
    const ssize_t got = get(from, name, value);
    if (got < 0) {
      complete = false;
      continue;
    }
    PMFS_TRY(fs.set_xattr(At::inode(ino), name, bytes_of(value).first(static_cast<std::size_t>(got)), 0, kRoot));
  }
  return {};
}

Result<void> export_xattrs(Filesystem& fs, InodeNo ino, int fd, bool& complete) {
  PMFS_ASSIGN(const std::vector<std::string> names, xattr_names(fs, ino));
  const std::string itself = fmt::format("/proc/self/fd/{}", fd);  // fsetxattr knows no O_PATH descriptor
  for (const char* acl : kAcls)                                    // what it has inherited on the host
    if (std::find(names.begin(), names.end(), acl) == names.end()) (void)removexattr(itself.c_str(), acl);
  for (const std::string& name : names) {
    PMFS_ASSIGN(const std::string value, xattr_value(fs, ino, name));
    if (setxattr(itself.c_str(), name.c_str(), value.data(), value.size(), 0) != 0) complete = false;
  }
  return {};
}

Result<void> copy_xattrs(Filesystem& fs, InodeNo from, InodeNo to) {
  PMFS_ASSIGN(const std::vector<std::string> names, xattr_names(fs, from));
  PMFS_ASSIGN(const std::vector<std::string> there, xattr_names(fs, to));
  for (const char* acl : kAcls) {
    const bool inherited = std::find(there.begin(), there.end(), acl) != there.end();
    if (inherited && std::find(names.begin(), names.end(), acl) == names.end()) {
      PMFS_TRY(fs.remove_xattr(At::inode(to), acl, kRoot, Follow::kNo));
    }
  }
  for (const std::string& name : names) {
    PMFS_ASSIGN(const std::string value, xattr_value(fs, from, name));
    PMFS_TRY(fs.set_xattr(At::inode(to), name, bytes_of(value), 0, kRoot, Follow::kNo));
  }
  return {};
}

}  // namespace pmfs::tools
