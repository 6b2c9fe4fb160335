#include "test/support/model_fs.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>

namespace pmfs::test {

namespace {

using Node = ModelFs::Node;
constexpr std::string_view kCapability = "security.capability";
constexpr u64 kXattrBytes = u64{1} << 20;
constexpr u64 kListBytes = u64{64} << 10;

u64 block_of(u64 off) { return off / kBlockBytes; }
u64 block_behind(u64 off) { return (off + kBlockBytes - 1) / kBlockBytes; }

u32& permissions(Acl& acl, AclTag tag) {
  return std::find_if(acl.begin(), acl.end(), [&](const AclEntry& e) { return e.tag == tag; })->permissions;
}
bool has(const Acl& acl, AclTag tag) {
  return std::any_of(acl.begin(), acl.end(), [&](const AclEntry& e) { return e.tag == tag; });
}
AclTag group_class(const Acl& acl) { return has(acl, AclTag::kMask) ? AclTag::kMask : AclTag::kGroupObj; }

u32 mode_of(Acl acl) {
  return permissions(acl, AclTag::kUserObj) << 6 | permissions(acl, group_class(acl)) << 3 |
         permissions(acl, AclTag::kOther);
}

// The ACL says what the mode's nine bits say.
void mode_into(Acl& acl, u32 mode) {
  if (acl.empty()) return;
  permissions(acl, AclTag::kUserObj) = mode >> 6 & 7;
  permissions(acl, group_class(acl)) = mode >> 3 & 7;
  permissions(acl, AclTag::kOther) = mode & 7;
}

// Where the group may not execute, who may set the set-group-id bit keeps it.
void drop_set_id(Node& node, bool may_set) {
  node.mode &= ~u32{S_ISUID};
  if ((node.mode & S_IXGRP) != 0 || !may_set) node.mode &= ~u32{S_ISGID};
}

// Contents have changed. A user is in group 0 alone.
void changed(Node& node, bool by_user) {
  node.mtime_ns = kTimeIsNow;
  node.xattrs.erase(std::string(kCapability));
  if (by_user) drop_set_id(node, node.gid == 0);
}

void resize(Node& node, u64 size) {
  node.data.resize(size);
  node.written.resize(block_behind(size));
}

void put(Node& node, u64 off, std::string_view data) {
  if (node.data.size() < off + data.size()) resize(node, off + data.size());
  node.data.replace(off, data.size(), data);
  for (u64 b = block_of(off); b < block_behind(off + data.size()); ++b) node.written[b] = true;
}

// Zeroes a range; whole blocks of it are holes then, also the last one if the file ends in it.
void zero(Node& node, u64 off, u64 end) {
  const u64 size = node.data.size();
  if (off >= size) return;
  std::fill(node.data.begin() + static_cast<i64>(off), node.data.begin() + static_cast<i64>(std::min(end, size)), '\0');
  const u64 to = end >= size ? block_behind(size) : block_of(end);
  for (u64 b = block_behind(off); b < to; ++b) node.written[b] = false;
}

Errc only_files(const Node& node, Errc otherwise) {
  if (node.is_file()) return kFine;
  return node.is_directory() ? Errc::kIsDirectory : otherwise;
}

}  // namespace

// --- Names ---------------------------------------------------------------------------------------------------------

ModelFs::ModelFs() : root_(std::make_shared<Node>()) {
  root_->type = FileType::kDirectory;
  root_->mode = 0755;
  root_->links = 2;
  root_->atime_ns = root_->mtime_ns = kTimeIsNow;
}

ModelFs::NodePtr ModelFs::Place::there() const {
  const auto it = dir->names.find(name);
  return it == dir->names.end() ? nullptr : it->second;
}

ModelFs::Place ModelFs::place(const std::string& path) const {
  const auto no_way = [](const Node& node) {
    return node.type == FileType::kSymlink ? Errc::kNotFound : Errc::kNotDirectory;  // links lead nowhere
  };
  NodePtr dir = root_;
  std::size_t pos = 1;
  for (std::size_t slash; (slash = path.find('/', pos)) != std::string::npos; pos = slash + 1) {
    if (!dir->is_directory()) return {nullptr, "", no_way(*dir)};
    const auto it = dir->names.find(path.substr(pos, slash - pos));
    if (it == dir->names.end()) return {nullptr, "", Errc::kNotFound};
    dir = it->second;
  }
  if (!dir->is_directory()) return {nullptr, "", no_way(*dir)};
  return {dir, path.substr(pos), kFine};
}

ModelFs::Found ModelFs::find(const std::string& path) const {
  if (path == "/") return {root_, kFine};
  const Place at = place(path);
  if (at.dir == nullptr) return {nullptr, at.error};
  const NodePtr node = at.there();
  return {node, node == nullptr ? Errc::kNotFound : kFine};
}

ModelFs::NodePtr ModelFs::new_node(const Node& dir, u32 mode, u64 rdev, u32 umask) {
  auto node = std::make_shared<Node>();
  node->type = type_of_mode(mode);
  node->links = node->is_directory() ? 2 : 1;
  node->mode = mode & 07777;
  node->rdev = rdev;
  node->atime_ns = node->mtime_ns = kTimeIsNow;
  if ((dir.mode & S_ISGID) != 0) {
    node->gid = dir.gid;
    if (node->is_directory()) node->mode |= S_ISGID;
  }
  if (node->type == FileType::kSymlink) return node;
  if (dir.defaults.empty()) {
    node->mode &= ~umask;
    return node;
  }
  node->mode &= ~u32{0777} | mode_of(dir.defaults);
  if (has(dir.defaults, AclTag::kMask)) node->access = dir.defaults;
  mode_into(node->access, node->mode);
  if (node->is_directory()) node->defaults = dir.defaults;
  return node;
}

Errc ModelFs::make(const std::string& path, u32 mode, u64 rdev, u32 umask, std::string target) {
  const Place at = place(path);
  if (at.dir == nullptr) return at.error;
  if (at.there() != nullptr) return Errc::kExists;
  const NodePtr node = new_node(*at.dir, mode, rdev, umask);
  node->data = std::move(target);
  if (node->is_directory()) at.dir->links += 1;
  at.dir->names[at.name] = node;
  at.dir->mtime_ns = kTimeIsNow;
  return kFine;
}

Errc ModelFs::link(const NodePtr& node, const std::string& to) {
  const Place at = place(to);
  if (at.dir == nullptr) return at.error;
  if (at.there() != nullptr) return Errc::kExists;
  if (node->links == 0 && !node->linkable) return Errc::kNotFound;
  if (node->is_directory()) return Errc::kPermission;
  node->links += 1;
  node->linkable = false;
  at.dir->names[at.name] = node;
  at.dir->mtime_ns = kTimeIsNow;
  return kFine;
}

Errc ModelFs::unlink(const std::string& path) {
  const Place at = place(path);
  if (at.dir == nullptr) return at.error;
  if (at.there() == nullptr) return Errc::kNotFound;
  if (at.there()->is_directory()) return Errc::kIsDirectory;
  at.there()->links -= 1;
  at.dir->names.erase(at.name);
  at.dir->mtime_ns = kTimeIsNow;
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
  at.dir->mtime_ns = kTimeIsNow;
  return kFine;
}

namespace {
bool below(const ModelFs::NodePtr& root, const ModelFs::NodePtr& node) {
  if (root == node) return true;
  return std::any_of(root->names.begin(), root->names.end(),
                     [&](const auto& child) { return child.second->is_directory() && below(child.second, node); });
}
}  // namespace

Errc ModelFs::rename(const std::string& from, const std::string& to, unsigned flags) {
  const bool exchange = (flags & RENAME_EXCHANGE) != 0;
  if (exchange && flags != RENAME_EXCHANGE) return Errc::kInvalid;
  const Place a = place(from);
  if (a.dir == nullptr) return a.error;
  const Place b = place(to);
  if (b.dir == nullptr) return b.error;
  const NodePtr moved = a.there();
  const NodePtr other = b.there();
  if (moved == nullptr || (exchange && other == nullptr)) return Errc::kNotFound;
  if ((flags & RENAME_NOREPLACE) != 0 && other != nullptr) return Errc::kExists;
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
    if (other != nullptr) other->links -= other->is_directory() ? 2 : 1;
    a.dir->names.erase(a.name);
    if ((flags & RENAME_WHITEOUT) != 0) a.dir->names[a.name] = new_node(*a.dir, S_IFCHR, 0, 0);
  }
  b.dir->names[b.name] = moved;
  a.dir->mtime_ns = b.dir->mtime_ns = kTimeIsNow;
  return kFine;
}

Errc ModelFs::tmpfile(const std::string& dir, u32 mode, u32 umask, bool linkable, NodePtr& out) {
  const Found in = find(dir);
  if (in.node == nullptr) return in.error;
  if (in.node->type == FileType::kSymlink) return Errc::kNotFound;  // it leads nowhere
  if (!in.node->is_directory()) return Errc::kNotDirectory;
  out = new_node(*in.node, S_IFREG | mode, 0, umask);
  out->links = 0;
  out->linkable = linkable;
  return kFine;
}

Errc ModelFs::open(const std::string& path, int flags, u32 mode, u32 umask) {
  const Found found = find(path);
  if (found.node == nullptr) {
    if (found.error != Errc::kNotFound || (flags & O_CREAT) == 0) return found.error;
    return make(path, S_IFREG | mode, 0, umask);
  }
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return Errc::kExists;
  switch (found.node->type) {
    case FileType::kRegular: break;
    case FileType::kDirectory: return Errc::kIsDirectory;
    case FileType::kSymlink: return Errc::kLoop;
    case FileType::kSocket: return Errc::kNoAddress;
    default: return Errc::kNotSupported;
  }
  if ((flags & O_TRUNC) != 0) {
    resize(*found.node, 0);
    changed(*found.node, false);
  }
  return kFine;
}

// --- Nodes ---------------------------------------------------------------------------------------------------------

Errc ModelFs::set(Node& node, const SetAttributes& change) {
  if (change.size_bytes.has_value()) {
    if (const Errc wrong = only_files(node, Errc::kInvalid); wrong != kFine) return wrong;
    resize(node, *change.size_bytes);
    changed(node, false);
  }
  if (change.uid.has_value() || change.gid.has_value()) {
    node.uid = change.uid.value_or(node.uid);
    node.gid = change.gid.value_or(node.gid);
    if (!node.is_directory()) {
      node.xattrs.erase(std::string(kCapability));
      drop_set_id(node, true);
    }
  }
  if (change.mode.has_value()) {
    node.mode = *change.mode;
    mode_into(node.access, node.mode);
  }
  if (change.atime_now) node.atime_ns = kTimeIsNow;
  if (change.mtime_now) node.mtime_ns = kTimeIsNow;
  node.atime_ns = change.atime_ns.value_or(node.atime_ns);
  node.mtime_ns = change.mtime_ns.value_or(node.mtime_ns);
  return kFine;
}

Errc ModelFs::write(Node& node, u64 off, std::string_view data, bool by_user) {
  if (const Errc wrong = only_files(node, Errc::kInvalid); wrong != kFine) return wrong;
  put(node, off, data);
  changed(node, by_user);
  return kFine;
}

Errc ModelFs::allocate(Node& node, int mode, u64 off, u64 len, bool by_user) {
  const u64 end = off + len;
  const u64 size = node.data.size();
  const bool keep_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const int what = mode & ~FALLOC_FL_KEEP_SIZE;
  const bool moves = what == FALLOC_FL_COLLAPSE_RANGE || what == FALLOC_FL_INSERT_RANGE;
  if (len == 0) return Errc::kInvalid;
  if ((moves && keep_size) || (what == FALLOC_FL_PUNCH_HOLE && !keep_size)) return Errc::kNotSupported;
  if (node.type == FileType::kFifo) return Errc::kNotSeekable;
  if (const Errc wrong = only_files(node, Errc::kNoDevice); wrong != kFine) return wrong;
  if (moves && (off % kBlockBytes != 0 || len % kBlockBytes != 0)) return Errc::kInvalid;
  const auto block = [&](u64 at) { return node.written.begin() + static_cast<i64>(block_of(at)); };
  if (what == FALLOC_FL_COLLAPSE_RANGE) {
    if (end >= size) return Errc::kInvalid;
    node.data.erase(off, len);
    node.written.erase(block(off), block(end));
  } else if (what == FALLOC_FL_INSERT_RANGE) {
    if (off >= size) return Errc::kInvalid;
    node.data.insert(off, len, '\0');
    node.written.insert(block(off), block_of(len), false);
  } else {
    if (what != 0) zero(node, off, end);
    if (!keep_size && end > size) resize(node, end);
  }
  changed(node, by_user);
  return kFine;
}

Errc ModelFs::copy_range(const Node& from, u64 from_off, Node& to, u64 to_off, u64 len, bool by_user, u64& copied) {
  copied = 0;
  if (const Errc wrong = only_files(from, Errc::kInvalid); wrong != kFine) return wrong;
  if (const Errc wrong = only_files(to, Errc::kInvalid); wrong != kFine) return wrong;
  const u64 size = from.data.size();
  len = from_off >= size ? 0 : std::min(len, size - from_off);
  if (&from == &to && to_off < from_off + len && from_off < to_off + len) return Errc::kInvalid;
  copied = len;
  if (len == 0) return kFine;
  put(to, to_off, from.data.substr(from_off, len));
  changed(to, by_user);
  return kFine;
}

namespace {

// What is wrong with a name, for whoever sets or removes (`writes`) or looks.
Errc name_problem(const Node& node, const std::string& name, bool writes) {
  if (name.empty() || name.size() > 255) return Errc::kRange;
  const std::string space = name.substr(0, name.find('.') + 1);
  const bool of_users = node.is_file() || node.is_directory();
  if (space == "user." && !of_users) return writes ? Errc::kPermission : Errc::kNoAttribute;
  if (space != "user." && space != "trusted." && space != "security.") return Errc::kNotSupported;
  return name == space ? Errc::kInvalid : kFine;
}

bool too_many(const std::map<std::string, std::string>& xattrs) {
  u64 bytes = 0;
  u64 list = sizeof("system.posix_acl_access") + sizeof("system.posix_acl_default");
  for (const auto& [name, value] : xattrs) {
    bytes += 8 + name.size() - (name.find('.') + 1) + value.size();
    list += name.size() + 1;
  }
  return bytes > kXattrBytes || list > kListBytes;
}

}  // namespace

Errc ModelFs::set_xattr(Node& node, const std::string& name, const std::string& value, int flags) {
  if (!name.empty() && name.size() <= 255 && value.size() > 65536) return Errc::kTooLarge;
  if (const Errc wrong = name_problem(node, name, true); wrong != kFine) return wrong;
  const bool there = node.xattrs.contains(name);
  if (there && (flags & XATTR_CREATE) != 0) return Errc::kExists;
  if (!there && (flags & XATTR_REPLACE) != 0) return Errc::kNoAttribute;
  auto next = node.xattrs;
  next[name] = value;
  if (too_many(next)) return Errc::kNoSpace;
  node.xattrs = std::move(next);
  return kFine;
}

Errc ModelFs::remove_xattr(Node& node, const std::string& name) {
  if (const Errc wrong = name_problem(node, name, true); wrong != kFine) return wrong;
  return node.xattrs.erase(name) == 1 ? kFine : Errc::kNoAttribute;
}

Errc ModelFs::get_xattr(const Node& node, const std::string& name, std::string& value) {
  if (const Errc wrong = name_problem(node, name, false); wrong != kFine) return wrong;
  const auto it = node.xattrs.find(name);
  if (it == node.xattrs.end()) return Errc::kNoAttribute;
  value = it->second;
  return kFine;
}

Errc ModelFs::set_acl(Node& node, AclKind kind, const Acl& acl) {
  const bool named = has(acl, AclTag::kUser) || has(acl, AclTag::kGroup);
  if (named && !has(acl, AclTag::kMask)) return Errc::kInvalid;
  if (node.type == FileType::kSymlink) return Errc::kNotSupported;
  if (kind == AclKind::kDefault) {
    if (!node.is_directory()) return acl.empty() ? kFine : Errc::kAccess;
    node.defaults = acl;
    return kFine;
  }
  node.access = has(acl, AclTag::kMask) ? acl : Acl{};
  if (!acl.empty()) node.mode = (node.mode & ~u32{0777}) | mode_of(acl);
  return kFine;
}

Errc ModelFs::seek(const Node& node, u64 off, bool data, u64& at) {
  if (!node.is_file()) return Errc::kInvalid;
  const u64 size = node.data.size();
  if (off >= size) return Errc::kNoAddress;
  for (at = off; at < size; at = (block_of(at) + 1) * kBlockBytes)
    if (node.written[block_of(at)] == data) return kFine;
  at = size;  // a hole
  return data ? Errc::kNoAddress : kFine;
}

// --- Text ----------------------------------------------------------------------------------------------------------

std::string ModelFs::Node::line(const std::string& path) const {
  NodeText text = *this;
  for (u64 at = 0, end = 0; is_file() && seek(*this, end, true, at) == kFine;) {
    (void)seek(*this, at, false, end);
    text.ranges += std::to_string(at) + "-" + std::to_string(end) + " ";
  }
  if (!access.empty()) text.xattrs["system.posix_acl_access"] = text_of(access);
  if (!defaults.empty()) text.xattrs["system.posix_acl_default"] = text_of(defaults);
  return text.line(path);
}

namespace {
void show(const Node& dir, const std::string& path, std::string& out) {
  for (const auto& [name, node] : dir.names) {
    out += node->line(path + name);
    if (node->is_directory()) show(*node, path + name + "/", out);
  }
}
}  // namespace

std::string ModelFs::tree() const {
  std::string out = root_->line("/");
  show(*root_, "/", out);
  return out;
}

}  // namespace pmfs::test
