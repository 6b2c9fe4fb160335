#include "test/support/tree_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/checksum.h"
#include "test/support/must.h"

namespace pmfs::test {

namespace {

const Credentials kRoot = Credentials::root();
constexpr std::string_view kAccessName = "system.posix_acl_access";
constexpr std::string_view kDefaultName = "system.posix_acl_default";

std::string time_text(i64 ns) { return ns < kTimeIsNow ? std::to_string(ns) : "now"; }

std::string sum_text(std::string_view bytes) {
  char text[64];
  std::snprintf(text, sizeof(text), "%zu:%016llx", bytes.size(),
                static_cast<unsigned long long>(checksum64(bytes.data(), bytes.size())));
  return text;
}

std::string xattr_value(Filesystem& fs, At at, const std::string& name) {
  std::string value(must(fs.get_xattr(at, name, {}, kRoot, Follow::kNo)), '\0');
  if (value.empty()) return value;
  REQUIRE(must(fs.get_xattr(at, name, std::as_writable_bytes(std::span(value)), kRoot, Follow::kNo)) == value.size());
  return value;
}

std::string read_range(Filesystem& fs, InodeNo ino, u64 off, u64 len) {
  std::string data(len, '\0');
  REQUIRE(must(fs.read(ino, off, std::as_writable_bytes(std::span(data)))) == data.size());
  return data;
}

// Of a very long file only what is no hole.
void read_contents(Filesystem& fs, const Attributes& a, NodeText& node) {
  constexpr u64 kLong = u64{1} << 30;
  if (a.size_bytes < kLong) node.data = read_range(fs, a.ino, 0, a.size_bytes);
  for (u64 at = 0;;) {
    const auto from = fs.seek(a.ino, at, SEEK_DATA);
    if (!from.ok()) return;
    at = must(fs.seek(a.ino, *from, SEEK_HOLE));
    node.ranges += std::to_string(*from) + "-" + std::to_string(at) + " ";
    if (a.size_bytes >= kLong) node.data += read_range(fs, a.ino, *from, at - *from);
  }
}

void show(Filesystem& fs, const std::string& path, std::string& out) {
  Dir dir = must(fs.open_dir(path, kRoot));
  std::map<std::string, InodeNo> names;
  DirEntry entry;
  for (u64 cookie = 0; must(dir.read(cookie, entry)); cookie = entry.cookie) {
    if (entry.view() == "." || entry.view() == "..") continue;
    REQUIRE(names.emplace(std::string(entry.view()), entry.ino).second);  // listed exactly once
  }
  for (const auto& [name, ino] : names) {
    const std::string child = path + (path == "/" ? "" : "/") + name;
    REQUIRE(must(fs.stat(child, kRoot, Follow::kNo)).ino == ino);
    const NodeText node = look_at(fs, child);
    out += node.line(child);
    if (node.type == FileType::kDirectory) show(fs, child, out);
  }
}

}  // namespace

std::string text_of(const Acl& acl) {
  std::string text;
  for (const AclEntry& e : acl) {
    const bool named = e.tag == AclTag::kUser || e.tag == AclTag::kGroup;
    text += "?UuGgmo"[static_cast<unsigned>(e.tag)];
    if (named) text += std::to_string(e.id);
    text += ':' + std::to_string(e.permissions) + ',';
  }
  return text;
}

std::string NodeText::line(const std::string& path) const {
  char text[256];
  std::snprintf(text, sizeof(text), " type %u mode %o links %u owner %u:%u rdev %llu", static_cast<unsigned>(type),
                mode & 07777, links, uid, gid, static_cast<unsigned long long>(rdev));
  std::string out = path + text + " atime " + time_text(atime_ns) + " mtime " + time_text(mtime_ns) + " data " +
                    sum_text(data) + " " + ranges;
  for (const auto& [name, value] : xattrs)
    out += " " + name + "=" + (name == kAccessName || name == kDefaultName ? value : sum_text(value));
  return out + "\n";
}

NodeText look_at(Filesystem& fs, At at) {
  const Attributes a = must(fs.stat(at, kRoot, Follow::kNo));
  NodeText node{a.type(), a.mode & 07777, a.links, a.uid, a.gid, a.rdev, a.atime_ns, a.mtime_ns, {}, {}, {}};
  if (node.type == FileType::kSymlink) node.data = must(fs.readlink(at, kRoot));
  if (node.type == FileType::kRegular) read_contents(fs, a, node);
  std::string names(must(fs.list_xattrs(at, {}, kRoot, Follow::kNo)), '\0');
  if (names.empty()) return node;
  REQUIRE(must(fs.list_xattrs(at, names, kRoot, Follow::kNo)) == names.size());
  for (std::size_t pos = 0; pos < names.size();) {
    const std::string name = names.c_str() + pos;
    pos += name.size() + 1;
    std::string value = xattr_value(fs, at, name);
    if (name == kAccessName) value = text_of(must(fs.get_acl(at, AclKind::kAccess, kRoot, Follow::kNo)));
    if (name == kDefaultName) value = text_of(must(fs.get_acl(at, AclKind::kDefault, kRoot, Follow::kNo)));
    REQUIRE(node.xattrs.emplace(name, value).second);
  }
  return node;
}

std::string tree_of(Filesystem& fs) {
  std::string out = look_at(fs, "/").line("/");
  show(fs, "/", out);
  return out;
}

std::pair<std::string, std::string> first_difference(std::string_view a, std::string_view b) {
  while (a != b) {
    const std::string_view line_a = a.substr(0, a.find('\n'));
    const std::string_view line_b = b.substr(0, b.find('\n'));
    if (line_a != line_b) return {std::string(line_a), std::string(line_b)};
    a.remove_prefix(std::min(a.size(), line_a.size() + 1));
    b.remove_prefix(std::min(b.size(), line_b.size() + 1));
  }
  return {};
}

}  // namespace pmfs::test
