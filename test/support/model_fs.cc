#include "test/support/model_fs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <vector>

#include "base/checksum.h"
#include "test/support/must.h"

namespace pmfs::test {

namespace {
constexpr unsigned kNoReplace = 1;
constexpr unsigned kExchange = 2;

std::string describe_node(const std::string& path, FileType type, u32 mode, u32 links, std::string_view data) {
  char line[512];
  std::snprintf(line, sizeof(line), "%s type %u mode %o links %u size %zu sum %016llx\n", path.c_str(),
                static_cast<unsigned>(type), mode & 07777, links, data.size(),
                static_cast<unsigned long long>(checksum64(data.data(), data.size())));
  return line;
}
}  // namespace

ModelFs::ModelFs() : root_(std::make_shared<Node>()) {
  root_->type = FileType::kDirectory;
  root_->mode = 0755;
  root_->links = 2;
}

ModelFs::NodePtr ModelFs::Place::there() const {
  const auto it = dir->names.find(name);
  return it == dir->names.end() ? nullptr : it->second;
}

ModelFs::Place ModelFs::place(const std::string& path) const {
  NodePtr dir = root_;
  std::size_t pos = 1;
  for (std::size_t slash; (slash = path.find('/', pos)) != std::string::npos; pos = slash + 1) {
    if (!dir->is_directory()) return {nullptr, "", Errc::kNotDirectory};
    const auto it = dir->names.find(path.substr(pos, slash - pos));
    if (it == dir->names.end()) return {nullptr, "", Errc::kNotFound};
    dir = it->second;
  }
  if (!dir->is_directory()) return {nullptr, "", Errc::kNotDirectory};
  return {dir, path.substr(pos), kFine};
}

Errc ModelFs::add(const std::string& path, FileType type, u32 mode, std::string data) {
  const Place at = place(path);
  if (at.dir == nullptr) return at.error;
  if (at.there() != nullptr) return Errc::kExists;
  auto node = std::make_shared<Node>();
  node->type = type;
  node->mode = mode;
  node->data = std::move(data);
  node->links = type == FileType::kDirectory ? 2 : 1;
  if (type == FileType::kDirectory) at.dir->links += 1;
  at.dir->names[at.name] = node;
  return kFine;
}

Errc ModelFs::mknod(const std::string& path) { return add(path, FileType::kRegular, 0644, ""); }
Errc ModelFs::mkdir(const std::string& path) { return add(path, FileType::kDirectory, 0755, ""); }
Errc ModelFs::symlink(const std::string& target, const std::string& path) {
  return add(path, FileType::kSymlink, 0777, target);
}

Errc ModelFs::link(const std::string& from, const std::string& to) {
  const Place a = place(from);
  if (a.dir == nullptr) return a.error;
  if (a.there() == nullptr) return Errc::kNotFound;
  const Place b = place(to);
  if (b.dir == nullptr) return b.error;
  if (b.there() != nullptr) return Errc::kExists;
  if (a.there()->is_directory()) return Errc::kPermission;
  a.there()->links += 1;
  b.dir->names[b.name] = a.there();
  return kFine;
}

Errc ModelFs::unlink(const std::string& path) {
  const Place at = place(path);
  if (at.dir == nullptr) return at.error;
  if (at.there() == nullptr) return Errc::kNotFound;
  if (at.there()->is_directory()) return Errc::kIsDirectory;
  at.there()->links -= 1;
  at.dir->names.erase(at.name);
  return kFine;
}

Errc ModelFs::rmdir(const std::string& path) {
  const Place at = place(path);
  if (at.dir == nullptr) return at.error;
  if (at.there() == nullptr) return Errc::kNotFound;
  if (!at.there()->is_directory()) return Errc::kNotDirectory;
  if (!at.there()->names.empty()) return Errc::kNotEmpty;
  at.dir->links -= 1;
  at.dir->names.erase(at.name);
  return kFine;
}

bool ModelFs::below(const NodePtr& root, const NodePtr& node) const {
  if (root == node) return true;
  for (const auto& [name, child] : root->names)
    if (child->is_directory() && below(child, node)) return true;
  return false;
}

Errc ModelFs::rename(const std::string& from, const std::string& to, unsigned flags) {
  const Place a = place(from);
  if (a.dir == nullptr) return a.error;
  const Place b = place(to);
  if (b.dir == nullptr) return b.error;
  const NodePtr moved = a.there();
  const NodePtr other = b.there();
  const bool exchange = flags == kExchange;
  if (moved == nullptr || (exchange && other == nullptr)) return Errc::kNotFound;
  if (flags == kNoReplace && other != nullptr) return Errc::kExists;
  if (moved->is_directory() && a.dir != b.dir && below(moved, b.dir)) return Errc::kInvalid;
  if (other != nullptr && other->is_directory() && a.dir != b.dir && below(other, a.dir))
    return exchange ? Errc::kInvalid : Errc::kNotEmpty;
  if (other != nullptr && !exchange) {
    if (moved->is_directory() && !other->is_directory()) return Errc::kNotDirectory;
    if (!moved->is_directory() && other->is_directory()) return Errc::kIsDirectory;
    if (other->is_directory() && other != moved && !other->names.empty()) return Errc::kNotEmpty;
  }
  if (moved == other) return kFine;
  const auto count = [](const NodePtr& dir, const NodePtr& node, int delta) {
    if (node->is_directory()) dir->links += static_cast<u32>(delta);
  };
  count(a.dir, moved, -1);
  count(b.dir, moved, +1);
  if (other != nullptr) count(b.dir, other, -1);
  if (exchange) {
    count(a.dir, other, +1);
    a.dir->names[a.name] = other;
  } else {
    if (other != nullptr && !other->is_directory()) other->links -= 1;
    a.dir->names.erase(a.name);
  }
  b.dir->names[b.name] = moved;
  return kFine;
}

Errc ModelFs::write(const std::string& path, u64 off, std::string_view data) {
  const Place at = place(path);
  if (at.dir == nullptr) return at.error;
  const NodePtr node = at.there();
  if (node == nullptr) return Errc::kNotFound;
  if (node->is_directory()) return Errc::kIsDirectory;
  if (node->type != FileType::kRegular) return Errc::kLoop;
  if (node->data.size() < off + data.size()) node->data.resize(off + data.size());
  node->data.replace(off, data.size(), data);
  return kFine;
}

Errc ModelFs::truncate(const std::string& path, u64 size) {
  const Place at = place(path);
  if (at.dir == nullptr) return at.error;
  const NodePtr node = at.there();
  if (node == nullptr) return Errc::kNotFound;
  if (node->is_directory()) return Errc::kIsDirectory;
  if (node->type != FileType::kRegular) return Errc::kInvalid;
  node->data.resize(size);
  return kFine;
}

Errc ModelFs::chmod(const std::string& path, u32 mode) {
  const Place at = place(path);
  if (at.dir == nullptr) return at.error;
  if (at.there() == nullptr) return Errc::kNotFound;
  at.there()->mode = mode;
  return kFine;
}

void ModelFs::show(const NodePtr& dir, const std::string& path, std::string& out) const {
  for (const auto& [name, node] : dir->names) {
    out += describe_node(path + name, node->type, node->mode, node->links, node->data);
    if (node->is_directory()) show(node, path + name + "/", out);
  }
}

std::string ModelFs::tree() const {
  std::string out = describe_node("/", FileType::kDirectory, root_->mode, root_->links, "");
  show(root_, "/", out);
  return out;
}

namespace {

void show_real(Filesystem& fs, const std::string& path, std::string& out) {
  Dir dir = must(fs.open_dir(path, Credentials::root()));
  std::map<std::string, InodeNo> names;
  DirEntry entry;
  for (u64 cookie = 0; must(dir.read(cookie, entry)); cookie = entry.cookie) {
    if (entry.view() == "." || entry.view() == "..") continue;
    REQUIRE(names.emplace(std::string(entry.view()), entry.ino).second);  // listed exactly once
  }
  for (const auto& [name, ino] : names) {
    const std::string child = path + (path == "/" ? "" : "/") + name;
    const Attributes a = must(fs.stat(child, Credentials::root(), Follow::kNo));
    REQUIRE(a.ino == ino);
    std::string data;
    if (a.type() == FileType::kSymlink) data = must(fs.readlink(child, Credentials::root()));
    if (a.type() == FileType::kRegular) {
      data.resize(a.size_bytes);
      File file = must(fs.open_file(child, O_RDONLY | O_NOATIME, 0, Credentials::root()));
      REQUIRE(must(file.read(0, std::as_writable_bytes(std::span(data)))) == data.size());
    }
    out += describe_node(child, a.type(), a.mode, a.links, data);
    if (a.type() == FileType::kDirectory) show_real(fs, child, out);
  }
}

}  // namespace

std::string tree_of(Filesystem& fs) {
  const Attributes root = must(fs.stat("/", Credentials::root()));
  std::string out = describe_node("/", FileType::kDirectory, root.mode, root.links, "");
  show_real(fs, "/", out);
  return out;
}

}  // namespace pmfs::test
