#include "fs/acl.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "fs/resolve.h"

namespace pmfs {

namespace {

constexpr u32 kNoId = ~u32{0};

constexpr u8 number(AclKind kind) { return static_cast<u8>(kind); }

bool names_somebody(AclTag tag) { return tag == AclTag::kUser || tag == AclTag::kGroup; }

// Both lists as they are stored: of the access ACL kUser, kGroupObj and kGroup entries.
struct StoredAcls {
  Acl access;
  Acl defaults;
};

/// What is wrong with a complete list; null: nothing. In order, and no entry twice.
const char* list_problem(const Acl& acl) {
  u32 of[7] = {};
  for (std::size_t i = 0; i < acl.size(); ++i) {
    const AclEntry& e = acl[i];
    if (e.tag < AclTag::kUserObj || e.tag > AclTag::kOther || e.permissions > 7)
      return "an ACL has an entry that cannot be";
    if (names_somebody(e.tag) ? e.id == kNoId : e.id != 0) return "an ACL has an entry with an id that cannot be";
    if (i > 0 && std::pair(acl[i - 1].tag, acl[i - 1].id) >= std::pair(e.tag, e.id)) return "an ACL has an entry twice";
    of[static_cast<u8>(e.tag)] += 1;
  }
  const auto count = [&](AclTag tag) { return of[static_cast<u8>(tag)]; };
  if (count(AclTag::kUserObj) != 1 || count(AclTag::kGroupObj) != 1 || count(AclTag::kOther) != 1)
    return "an ACL lacks the owner, the owning group or others";
  if (count(AclTag::kMask) == 0 && count(AclTag::kUser) + count(AclTag::kGroup) != 0) return "an ACL lacks its mask";
  if (acl.size() > media::kAclEntriesMax) return "an ACL has more than 8191 entries";
  return nullptr;
}

u32 permissions_of(const Acl& acl, AclTag tag) {
  for (const AclEntry& e : acl)
    if (e.tag == tag) return e.permissions;
  return 0;
}

bool has_mask(const Acl& acl) {
  return std::any_of(acl.begin(), acl.end(), [](const AclEntry& e) { return e.tag == AclTag::kMask; });
}

// The stored entries of the access list, with what the mode says of the rest.
Acl complete(const Acl& stored, u32 mode) {
  Acl acl;
  acl.push_back({AclTag::kUserObj, mode >> 6 & 7, 0});
  acl.insert(acl.end(), stored.begin(), stored.end());
  if (stored.empty()) {
    acl.push_back({AclTag::kGroupObj, mode >> 3 & 7, 0});
  } else {
    acl.push_back({AclTag::kMask, mode >> 3 & 7, 0});
  }
  acl.push_back({AclTag::kOther, mode & 7, 0});
  return acl;
}

// What of a complete access list is stored beside the mode; empty: nothing, the mode says it all.
Acl beside_mode(const Acl& acl) {
  Acl stored;
  if (!has_mask(acl)) return stored;
  for (const AclEntry& e : acl)
    if (names_somebody(e.tag) || e.tag == AclTag::kGroupObj) stored.push_back(e);
  return stored;
}

u32 mode_bits_of(const Acl& acl) {
  return permissions_of(acl, AclTag::kUserObj) << 6 |
         permissions_of(acl, has_mask(acl) ? AclTag::kMask : AclTag::kGroupObj) << 3 |
         permissions_of(acl, AclTag::kOther);
}

std::string encode(const StoredAcls& acls) {
  std::string bytes;
  for (const AclKind kind : {AclKind::kAccess, AclKind::kDefault}) {
    for (const AclEntry& e : kind == AclKind::kAccess ? acls.access : acls.defaults) {
      media::AclEntry entry{};
      entry.list = number(kind);
      entry.tag = static_cast<u8>(e.tag);
      entry.permissions = static_cast<u8>(e.permissions);
      entry.id.set(e.id);
      bytes.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
    }
  }
  return bytes;
}

// What is wrong with bytes; null: nothing, and they are in `out`.
const char* decode(std::string_view bytes, StoredAcls& out) {
  if (bytes.size() % sizeof(media::AclEntry) != 0) return "an ACL is cut off";
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(media::AclEntry)) {
    media::AclEntry entry;
    std::memcpy(&entry, bytes.data() + at, sizeof(entry));
    if (entry.reserved != 0) return "an ACL has an entry that cannot be";
    if (entry.list == number(AclKind::kAccess) && out.defaults.empty()) {
      out.access.push_back({AclTag{entry.tag}, entry.permissions, entry.id.get()});
    } else if (entry.list == number(AclKind::kDefault)) {
      out.defaults.push_back({AclTag{entry.tag}, entry.permissions, entry.id.get()});
    } else {
      return "an ACL has an entry of no known list";
    }
  }
  if (!out.access.empty()) {
    for (const AclEntry& e : out.access)
      if (!names_somebody(e.tag) && e.tag != AclTag::kGroupObj) return "an access ACL has an entry that the mode has";
    if (const char* wrong = list_problem(complete(out.access, 0)); wrong != nullptr) return wrong;
  }
  return out.defaults.empty() ? nullptr : list_problem(out.defaults);
}

Result<StoredAcls> decoded(const Volume& volume, const InodeRef& ref, std::string_view bytes) {
  StoredAcls acls;
  if (const char* wrong = decode(bytes, acls); wrong != nullptr)
    return Error{Errc::kCorrupt, wrong, to_u64(volume.persist.memory().off_of(&ref.media()))};
  return acls;
}

Result<StoredAcls> stored_acls(const Volume& volume, const InodeRef& ref) {
  PMFS_ASSIGN(const std::string bytes, read_area(volume, ref.ino(), ref.media(), AreaKind::kAcl));
  return decoded(volume, ref, bytes);
}

bool in_groups(u32 gid, const Subject& who) {
  return gid == who.gid || std::find(who.groups.begin(), who.groups.end(), gid) != who.groups.end();
}

// An answer, and whether it is the same whatever other groups and privileges the subject has.
struct Verdict {
  bool permitted = false;
  bool certain = false;
};

// The owner is judged already. @param mode  its group bits are the mask.
Verdict judge(const Acl& stored, u32 mode, u32 owning_gid, unsigned wanted, const Subject& who) {
  const u32 mask = mode >> 3 & 7;
  bool in_group_class = false;
  for (const AclEntry& e : stored) {
    if (e.tag == AclTag::kUser) {
      if (e.id == who.uid) return {(e.permissions & mask & wanted) == wanted, true};
      continue;
    }
    const u32 gid = e.tag == AclTag::kGroupObj ? owning_gid : e.id;
    if (!in_groups(gid, who)) continue;
    in_group_class = true;
    if ((e.permissions & wanted) == wanted) return {(mask & wanted) == wanted, gid == who.gid};
  }
  return {!in_group_class && (mode & wanted) == wanted, false};
}

}  // namespace

Result<bool> permits(const Volume& volume, const InodeRef& ref, unsigned wanted, const Subject& who) {
  const media::Inode& inode = ref.media();
  const u32 mode = mode_of(inode);
  Verdict verdict;
  if (who.uid == uid_of(inode)) {
    verdict = {(mode >> 6 & wanted) == wanted, true};
  } else if (has_access_acl(inode) && (mode & 0070) != 0) {  // Linux does not look at an ACL whose mask is empty
    PMFS_ASSIGN(const StoredAcls acls, stored_acls(volume, ref));
    verdict = judge(acls.access, mode, gid_of(inode), wanted, who);
  } else {
    const u32 gid = gid_of(inode);
    const bool group_may = (mode >> 3 & wanted) == wanted;
    const bool others_may = (mode & wanted) == wanted;
    verdict = {in_groups(gid, who) ? group_may : others_may, group_may && (gid == who.gid || others_may)};
  }
  if (who.depends != nullptr && !(verdict.permitted && verdict.certain)) *who.depends = true;
  return verdict.permitted;
}

Result<Acl> acl_of(const Volume& volume, const InodeRef& ref, AclKind kind) {
  PMFS_ASSIGN(StoredAcls acls, stored_acls(volume, ref));
  if (kind == AclKind::kDefault) return std::move(acls.defaults);
  return complete(acls.access, mode_of(ref.media()));
}

Result<void> set_acl(Volume& volume, const InodeRef& ref, AclKind kind, const Acl& given, const Credentials& who) {
  Acl acl = given;
  std::sort(acl.begin(), acl.end(),
            [](const AclEntry& a, const AclEntry& b) { return std::pair(a.tag, a.id) < std::pair(b.tag, b.id); });
  if (!acl.empty())
    if (const char* wrong = list_problem(acl); wrong != nullptr) return Error{Errc::kInvalid, wrong, 0};
  std::unique_lock lock(ref->lock);
  PMFS_TRY(check_alive(volume, ref));
  media::Inode& inode = ref.media();
  const FileType type = type_of(inode);
  if (type == FileType::kSymlink) return Error{Errc::kNotSupported, "symbolic links have no ACLs", 0};
  if (!who.checked_elsewhere && who.uid != uid_of(inode) && !is_privileged(who))
    return Error{Errc::kPermission, "only the owner may change ACLs", 0};
  if (kind == AclKind::kDefault && type != FileType::kDirectory) {
    if (acl.empty()) return {};
    return Error{Errc::kAccess, "only directories have default ACLs", 0};
  }
  PMFS_TRY(check_areas_usable(volume));

  PMFS_ASSIGN(const Areas before, read_areas(volume, ref.ino(), inode));
  PMFS_ASSIGN(StoredAcls acls, decoded(volume, ref, before.acl));
  u32 mode = media::low_half(inode.mode_links.get());
  if (kind == AclKind::kDefault) {
    if (acl.empty() && acls.defaults.empty()) return {};
    acls.defaults = std::move(acl);
  } else {
    if (acl.empty() && acls.access.empty()) return {};
    acls.access = beside_mode(acl);
    if (!acl.empty()) {
      mode = (mode & ~u32{0777}) | mode_bits_of(acl);
      if (!is_privileged(who) && !is_member(gid_of(inode), who)) mode &= ~u32{S_ISGID};
    }
    mode = acls.access.empty() ? mode & ~media::kModeHasAcl : mode | media::kModeHasAcl;
  }
  Areas next = before;
  next.acl = encode(acls);
  return change_areas(volume, ref, before, next, mode);
}

Result<InheritedAcl> inherit_acl(const Volume& volume, const InodeRef& dir, u32 mode, u32 umask) {
  const FileType type = type_of_mode(mode);
  if (type == FileType::kSymlink) return InheritedAcl{mode};
  if (dir.media().acl_ref.get() == 0) return InheritedAcl{mode & ~(umask & 0777)};
  PMFS_ASSIGN(const StoredAcls of_dir, stored_acls(volume, dir));
  if (of_dir.defaults.empty()) return InheritedAcl{mode & ~(umask & 0777)};
  InheritedAcl inherited;
  inherited.mode = mode & (~u32{0777} | mode_bits_of(of_dir.defaults));
  StoredAcls acls;
  acls.access = beside_mode(of_dir.defaults);
  if (!acls.access.empty()) inherited.mode |= media::kModeHasAcl;
  if (type == FileType::kDirectory) acls.defaults = of_dir.defaults;
  inherited.acl = encode(acls);
  return inherited;
}

// --- Linux's form
// -------------------------------------------------------------------------------------------------------------

namespace {

struct LinuxEntry {
  Le16 tag;
  Le16 permissions;
  Le32 id;
};
constexpr u32 kLinuxVersion = 2;
constexpr u16 kLinuxTags[] = {0, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20};  // by AclTag

}  // namespace

std::string acl_to_linux(const Acl& acl) {
  Le32 version;
  version.set(kLinuxVersion);
  std::string bytes(reinterpret_cast<const char*>(&version), sizeof(version));
  for (const AclEntry& e : acl) {
    LinuxEntry entry;
    entry.tag.set(kLinuxTags[static_cast<u8>(e.tag)]);
    entry.permissions.set(static_cast<u16>(e.permissions));
    entry.id.set(names_somebody(e.tag) ? e.id : kNoId);
    bytes.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  }
  return bytes;
}

Result<Acl> acl_from_linux(std::span<const std::byte> bytes) {
  Acl acl;
  if (bytes.empty()) return acl;
  Le32 version;
  if (bytes.size() < sizeof(version)) return Error{Errc::kInvalid, "the ACL is cut off", 0};
  std::memcpy(&version, bytes.data(), sizeof(version));
  if (version.get() != kLinuxVersion) return Error{Errc::kNotSupported, "an ACL of an unknown version", 0};
  bytes = bytes.subspan(sizeof(version));
  if (bytes.size() % sizeof(LinuxEntry) != 0) return Error{Errc::kInvalid, "the ACL is cut off", 0};
  for (; !bytes.empty(); bytes = bytes.subspan(sizeof(LinuxEntry))) {
    LinuxEntry entry;
    std::memcpy(&entry, bytes.data(), sizeof(entry));
    const auto* const tag = std::find(std::begin(kLinuxTags) + 1, std::end(kLinuxTags), entry.tag.get());
    if (tag == std::end(kLinuxTags)) return Error{Errc::kInvalid, "the ACL has an unknown entry", 0};
    const auto ours = AclTag{static_cast<u8>(tag - kLinuxTags)};
    if (!acl.empty() && ours < acl.back().tag) return Error{Errc::kInvalid, "the ACL is not in order", 0};
    acl.push_back({ours, entry.permissions.get(), names_somebody(ours) ? entry.id.get() : 0});
  }
  return acl;
}

const char* acl_problem(std::string_view bytes, const media::Inode& inode) {
  StoredAcls acls;
  if (const char* wrong = decode(bytes, acls); wrong != nullptr) return wrong;
  if (!acls.defaults.empty() && type_of(inode) != FileType::kDirectory) return "a default ACL of no directory";
  if (acls.access.empty() == has_access_acl(inode)) return "the mode's flag says another thing than the ACL";
  return nullptr;
}

}  // namespace pmfs
