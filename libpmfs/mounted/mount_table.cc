#include "mounted/mount_table.h"

#include <fstream>
#include <sstream>

namespace pmfs::mounted {

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
    std::string root, dir, options, optional, type, source;
    MountEntry entry;
    fields >> entry.id >> entry.parent >> entry.device >> root >> dir >> options;
    while (fields >> optional && optional != "-") {
    }
    if (!(fields >> type >> source)) continue;
    entry.root = unescape(root);
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

}  // namespace pmfs::mounted
