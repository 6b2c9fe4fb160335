#include "fs/xattr.h"

#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cstring>

#include "fs/acl.h"
#include "fs/resolve.h"

namespace pmfs {

namespace {

struct Space {
  u8 number;
  std::string_view prefix;
};
constexpr Space kSpaces[] = {
    {media::kSpaceUser, "user."}, {media::kSpaceTrusted, "trusted."}, {media::kSpaceSecurity, "security."}};
constexpr std::string_view kCapability = "capability";

struct AclName {
  AclKind kind;
  std::string_view name;
};
constexpr AclName kAclNames[] = {{AclKind::kAccess, "system.posix_acl_access"},
                                 {AclKind::kDefault, "system.posix_acl_default"}};

// A name as a caller gives it.
struct Name {
  u8 space = 0;  // 0: none that is stored
  std::string_view rest;
  std::optional<AclKind> acl;
  bool system = false;

  bool is_capability() const { return space == media::kSpaceSecurity && rest == kCapability; }
};

Result<Name> parse(std::string_view text) {
  if (text.empty() || text.size() > kXattrNameMax || text.find('\0') != std::string_view::npos)
    return Error{Errc::kRange, "the name of an attribute has 1 to 255 bytes", 0};
  Name name;
  for (const AclName& acl : kAclNames)
    if (text == acl.name) name.acl = acl.kind;
  name.system = text.starts_with("system.");
  for (const Space& space : kSpaces)
    if (text.starts_with(space.prefix)) name = {space.number, text.substr(space.prefix.size()), {}, false};
  return name;
}

// What is wrong with a name beside whether one may use it. Asked behind permissions, as Linux does.
Result<void> check_known(const Name& name) {
  if (name.space == 0) return Error{Errc::kNotSupported, "attributes of that name space do not exist", 0};
  if (name.rest.empty()) return Error{Errc::kInvalid, "the name of the attribute ends behind its name space", 0};
  return {};
}

enum class Access : bool { kRead, kWrite };

// REQUIRES: the lock.
Result<void> check_permission(const Volume& volume, const InodeRef& ref, const Name& name, Access access,
                              const Credentials& who) {
  const media::Inode& inode = ref.media();
  const FileType type = type_of(inode);
  const bool writes = access == Access::kWrite;
  if (name.space == media::kSpaceUser && type != FileType::kRegular && type != FileType::kDirectory) {
    if (writes) return Error{Errc::kPermission, "only files and directories have attributes of users", 0};
    return Error{Errc::kNoAttribute, "only files and directories have attributes of users", 0};
  }
  if (who.checked_elsewhere || name.system) return {};
  switch (name.space) {
    case media::kSpaceTrusted:
      if (is_privileged(who)) return {};
      if (writes) return Error{Errc::kPermission, "trusted attributes are for root", 0};
      return Error{Errc::kNoAttribute, "trusted attributes are for root", 0};
    case media::kSpaceSecurity:
      if (!writes || is_privileged(who)) return {};
      return Error{Errc::kPermission, "only root may change security attributes", 0};
    case media::kSpaceUser:
      if (writes && type == FileType::kDirectory && (mode_of(inode) & S_ISVTX) != 0 && who.uid != uid_of(inode) &&
          !is_privileged(who))
        return Error{Errc::kPermission, "only its owner may change attributes of a sticky directory", 0};
      break;
    default: break;
  }
  return check_access(volume, ref, writes ? kMayWrite : kMayRead, who);
}

std::string_view prefix_of(u8 space) {
  for (const Space& known : kSpaces)
    if (known.number == space) return known.prefix;
  return {};
}

void append(std::string& bytes, const Xattr& attribute) {
  media::XattrEntry entry{};
  entry.space = attribute.space;
  entry.name_bytes = static_cast<u8>(attribute.name.size());
  entry.value_bytes.set(static_cast<u32>(attribute.value.size()));
  bytes.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  bytes.append(attribute.name);
  bytes.append(attribute.value);
}

std::string encode(const std::vector<Xattr>& attributes) {
  std::string bytes;
  for (const Xattr& attribute : attributes) append(bytes, attribute);
  return bytes;
}

Result<std::vector<Xattr>> decoded(const Volume& volume, const InodeRef& ref, std::string_view bytes) {
  std::vector<Xattr> attributes;
  if (const char* wrong = decode_xattrs(bytes, attributes); wrong != nullptr)
    return Error{Errc::kCorrupt, wrong, to_u64(volume.persist.memory().off_of(&ref.media()))};
  return attributes;
}

std::vector<Xattr>::iterator place_of(std::vector<Xattr>& attributes, const Name& name) {
  return std::lower_bound(attributes.begin(), attributes.end(), name, [](const Xattr& a, const Name& n) {
    return std::pair(a.space, a.name) < std::pair(n.space, n.rest);
  });
}

bool is_at(const std::vector<Xattr>& attributes, std::vector<Xattr>::iterator at, const Name& name) {
  return at != attributes.end() && at->space == name.space && at->name == name.rest;
}

std::size_t list_bytes(const std::vector<Xattr>& attributes) {
  std::size_t bytes = 0;
  for (const Xattr& a : attributes) bytes += prefix_of(a.space).size() + a.name.size() + 1;
  for (const AclName& acl : kAclNames) bytes += acl.name.size() + 1;
  return bytes;
}

// Copies an answer out, or says how long it is.
template <class Byte>
Result<std::size_t> give(std::string_view bytes, std::span<Byte> out) {
  if (out.empty()) return bytes.size();
  if (bytes.size() > out.size()) return Error{Errc::kRange, "the buffer is too small for it", 0};
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return bytes.size();
}

const Error kMissing{Errc::kNoAttribute, "there is no attribute of that name", 0};

// The ACL as an attribute: there is one only if it says more than the mode. REQUIRES: the lock.
Result<std::optional<std::string>> acl_attribute(const Volume& volume, const InodeRef& ref, AclKind kind) {
  if (kind == AclKind::kAccess && !has_access_acl(ref.media())) return std::optional<std::string>();
  PMFS_ASSIGN(const Acl acl, acl_of(volume, ref, kind));
  if (acl.empty()) return std::optional<std::string>();
  return std::optional(acl_to_linux(acl));
}

}  // namespace

std::string Xattr::full_name() const { return std::string(prefix_of(space)) + std::string(name); }

const char* decode_xattrs(std::string_view bytes, std::vector<Xattr>& out) {
  while (!bytes.empty()) {
    media::XattrEntry entry;
    if (bytes.size() < sizeof(entry)) return "an attribute is cut off";
    std::memcpy(&entry, bytes.data(), sizeof(entry));
    bytes.remove_prefix(sizeof(entry));
    const std::string_view prefix = prefix_of(entry.space);
    const u64 name_bytes = entry.name_bytes;
    const u64 value_bytes = entry.value_bytes.get();
    if (prefix.empty() || name_bytes == 0 || prefix.size() + name_bytes > kXattrNameMax ||
        value_bytes > kXattrValueMax || entry.reserved.get() != 0)
      return "an attribute has a head that cannot be";
    if (bytes.size() < name_bytes + value_bytes) return "an attribute is cut off";
    const Xattr attribute{entry.space, bytes.substr(0, name_bytes), bytes.substr(name_bytes, value_bytes)};
    if (attribute.name.find('\0') != std::string_view::npos) return "an attribute has a name that cannot be";
    if (!out.empty() && std::pair(out.back().space, out.back().name) >= std::pair(attribute.space, attribute.name))
      return "attributes are not in order";
    out.push_back(attribute);
    bytes.remove_prefix(name_bytes + value_bytes);
  }
  return nullptr;
}

const char* xattr_problem(std::string_view bytes, const media::Inode& inode) {
  std::vector<Xattr> attributes;
  if (const char* wrong = decode_xattrs(bytes, attributes); wrong != nullptr) return wrong;
  const bool flag = (media::low_half(inode.mode_links.get()) & media::kModeHasCapability) != 0;
  bool capability = false;
  for (const Xattr& a : attributes) capability |= a.space == media::kSpaceSecurity && a.name == kCapability;
  if (flag != capability) return "the mode's flag says another thing than the attributes";
  return nullptr;
}

Result<void> plan_without_capability(Volume& volume, Commit& commit, const InodeRef& ref, BlockHold& hold,
                                     Freed& freed) {
  if (!has_capability(ref.media())) return {};
  PMFS_ASSIGN(const Areas before, read_areas(volume, ref.ino(), ref.media()));
  PMFS_ASSIGN(std::vector<Xattr> attributes, decoded(volume, ref, before.xattrs));
  std::erase_if(attributes, [](const Xattr& a) { return a.space == media::kSpaceSecurity && a.name == kCapability; });
  Areas next = before;
  next.xattrs = encode(attributes);
  return plan_areas(volume, commit, ref, before, next, hold, freed);
}

Result<std::size_t> get_xattr(Volume& volume, const InodeRef& ref, std::string_view text, std::span<std::byte> value,
                              const Credentials& who) {
  PMFS_ASSIGN(const Name name, parse(text));
  std::shared_lock lock(ref->lock);
  PMFS_TRY(check_alive(volume, ref));
  if (name.acl.has_value()) {
    if (type_of(ref.media()) == FileType::kSymlink) return Error{Errc::kNotSupported, "symbolic links have no ACLs", 0};
    PMFS_ASSIGN(const auto acl, acl_attribute(volume, ref, *name.acl));
    return acl.has_value() ? give(*acl, value) : kMissing;
  }
  PMFS_TRY(check_permission(volume, ref, name, Access::kRead, who));
  PMFS_TRY(check_known(name));
  if (ref.media().xattr_ref.get() == 0) return kMissing;
  PMFS_ASSIGN(const std::string bytes, read_area(volume, ref.ino(), ref.media(), AreaKind::kXattrs));
  PMFS_ASSIGN(std::vector<Xattr> attributes, decoded(volume, ref, bytes));
  const auto at = place_of(attributes, name);
  if (!is_at(attributes, at, name)) return kMissing;
  return give(at->value, value);
}

Result<std::size_t> list_xattrs(Volume& volume, const InodeRef& ref, std::span<char> names, const Credentials& who) {
  std::shared_lock lock(ref->lock);
  PMFS_TRY(check_alive(volume, ref));
  std::string list;
  const auto add = [&](std::string_view name) {
    list += name;
    list += '\0';
  };
  for (const AclName& acl : kAclNames) {
    PMFS_ASSIGN(const auto there, acl_attribute(volume, ref, acl.kind));
    if (there.has_value()) add(acl.name);
  }
  PMFS_ASSIGN(const std::string bytes, read_area(volume, ref.ino(), ref.media(), AreaKind::kXattrs));
  PMFS_ASSIGN(const std::vector<Xattr> attributes, decoded(volume, ref, bytes));
  for (const Xattr& a : attributes)
    if (a.space != media::kSpaceTrusted || is_privileged(who)) add(a.full_name());
  return give(list, names);
}

Result<void> set_xattr(Volume& volume, const InodeRef& ref, std::string_view text, std::span<const std::byte> value,
                       int flags, const Credentials& who) {
  if ((flags & ~(XATTR_CREATE | XATTR_REPLACE)) != 0) return Error{Errc::kInvalid, "unknown flags", 0};
  PMFS_ASSIGN(const Name name, parse(text));
  if (value.size() > kXattrValueMax) return Error{Errc::kTooLarge, "a value has at most 65536 bytes", 0};
  if (name.acl.has_value()) {
    PMFS_ASSIGN(const Acl acl, acl_from_linux(value));
    return set_acl(volume, ref, *name.acl, acl, who);
  }
  std::unique_lock lock(ref->lock);
  PMFS_TRY(check_alive(volume, ref));
  PMFS_TRY(check_permission(volume, ref, name, Access::kWrite, who));
  PMFS_TRY(check_known(name));
  PMFS_TRY(check_areas_usable(volume));
  PMFS_ASSIGN(const Areas before, read_areas(volume, ref.ino(), ref.media()));
  PMFS_ASSIGN(std::vector<Xattr> attributes, decoded(volume, ref, before.xattrs));
  const Xattr attribute{name.space, name.rest, {reinterpret_cast<const char*>(value.data()), value.size()}};
  const auto at = place_of(attributes, name);
  if (is_at(attributes, at, name)) {
    if ((flags & XATTR_CREATE) != 0) return Error{Errc::kExists, "the attribute is there already", 0};
    *at = attribute;
  } else {
    if ((flags & XATTR_REPLACE) != 0) return kMissing;
    attributes.insert(at, attribute);
  }
  Areas next = before;
  next.xattrs = encode(attributes);
  if (next.xattrs.size() > media::kXattrBytesMax || list_bytes(attributes) > kXattrListMax)
    return Error{Errc::kNoSpace, "the inode has as many attributes as it can have", 0};
  u32 mode = media::low_half(ref.media().mode_links.get());
  if (name.is_capability()) mode |= media::kModeHasCapability;
  return change_areas(volume, ref, before, next, mode);
}

Result<void> remove_xattr(Volume& volume, const InodeRef& ref, std::string_view text, const Credentials& who) {
  PMFS_ASSIGN(const Name name, parse(text));
  if (name.acl.has_value()) return set_acl(volume, ref, *name.acl, {}, who);
  std::unique_lock lock(ref->lock);
  PMFS_TRY(check_alive(volume, ref));
  PMFS_TRY(check_permission(volume, ref, name, Access::kWrite, who));
  PMFS_TRY(check_known(name));
  PMFS_ASSIGN(const Areas before, read_areas(volume, ref.ino(), ref.media()));
  PMFS_ASSIGN(std::vector<Xattr> attributes, decoded(volume, ref, before.xattrs));
  const auto at = place_of(attributes, name);
  if (!is_at(attributes, at, name)) return kMissing;
  attributes.erase(at);
  Areas next = before;
  next.xattrs = encode(attributes);
  u32 mode = media::low_half(ref.media().mode_links.get());
  if (name.is_capability()) mode &= ~media::kModeHasCapability;
  return change_areas(volume, ref, before, next, mode);
}

}  // namespace pmfs
