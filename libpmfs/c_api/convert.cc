#include "c_api/convert.h"

#include <cerrno>

namespace pmfs::c_api {
namespace {

thread_local Error last;
thread_local Words last_words = Words::kOwn;

}  // namespace

int failed(const Error& error, Words words) {
  last = error;
  last_words = words;
  return -to_errno(error.code);
}

pmfs_attributes attributes_of(const Attributes& from) {
  pmfs_attributes to{};
  to.mode = from.mode;
  to.inode = to_u64(from.ino);
  to.generation = from.generation;
  to.links = from.links;
  to.uid = from.uid;
  to.gid = from.gid;
  to.size_bytes = from.size_bytes;
  to.blocks_512 = from.blocks_512;
  to.rdev = from.rdev;
  to.atime_ns = from.atime_ns;
  to.mtime_ns = from.mtime_ns;
  to.ctime_ns = from.ctime_ns;
  to.birth_ns = from.birth_ns;
  return to;
}

static_assert(static_cast<u32>(Credentials::Privilege::kByUid) == PMFS_PRIVILEGE_BY_UID);
static_assert(static_cast<u32>(Credentials::Privilege::kNone) == PMFS_PRIVILEGE_NONE);
static_assert(static_cast<u32>(Credentials::Privilege::kSearch) == PMFS_PRIVILEGE_SEARCH);
static_assert(static_cast<u32>(Credentials::Privilege::kAll) == PMFS_PRIVILEGE_ALL);

Result<Credentials> credentials_of(const pmfs_credentials* who) {
  constexpr u64 kMostGroups = 65536;  // Linux: NGROUPS_MAX
  pmfs_credentials given;
  PMFS_TRY(take(who, given));
  if (given.privilege > PMFS_PRIVILEGE_ALL) return invalid("there is no such privilege");
  if (given.group_count > kMostGroups || (given.group_count > 0 && given.groups == nullptr))
    return invalid("the groups are NULL, or too many");
  Credentials to;
  to.uid = given.uid;
  to.gid = given.gid;
  to.umask = given.umask;
  to.privilege = static_cast<Credentials::Privilege>(given.privilege);
  to.checked_elsewhere = given.checked_elsewhere != 0;
  if (given.group_count > 0) to.groups = {given.groups, static_cast<std::size_t>(given.group_count)};
  return to;
}

Result<Where> where_of(const pmfs_location_t& location, Follow otherwise) {
  constexpr u32 kFollowing = PMFS_AT_NO_FOLLOW | PMFS_AT_FOLLOW;
  constexpr u32 kOfPaths = PMFS_AT_NO_SYMLINKS | PMFS_AT_BENEATH;
  const u32 flags = location.flags;
  if ((flags & ~(kFollowing | kOfPaths | PMFS_AT_INODE)) != 0 || location.unused != 0)
    return invalid("a location has an unknown flag");
  if ((flags & kFollowing) == kFollowing) return invalid("a link is either followed or not");
  Follow follow = otherwise;
  if ((flags & PMFS_AT_NO_FOLLOW) != 0) follow = Follow::kNo;
  if ((flags & PMFS_AT_FOLLOW) != 0) follow = Follow::kYes;

  if ((flags & PMFS_AT_INODE) != 0) {
    if (location.path != nullptr || (flags & kOfPaths) != 0) return invalid("an inode itself has no path");
    return Where{At::handle(InodeNo{location.dir}, location.generation), follow};
  }
  if (location.path == nullptr || location.generation != 0) return invalid("the path is NULL, or has a generation");
  Where where{At(InodeNo{location.dir}, location.path), follow};
  where.at.no_links = (flags & PMFS_AT_NO_SYMLINKS) != 0;
  where.at.beneath = (flags & PMFS_AT_BENEATH) != 0;
  return where;
}

Result<Call> call_on(pmfs_t* fs, const pmfs_location_t& location, const pmfs_credentials* who, Follow otherwise) {
  PMFS_ASSIGN(Filesystem* const open, open_of(fs));
  PMFS_ASSIGN(const Where where, where_of(location, otherwise));
  PMFS_ASSIGN(const Credentials caller, credentials_of(who));
  return Call{*open, where, caller};
}

}  // namespace pmfs::c_api

using namespace pmfs;

const char* pmfs_strerror(std::int64_t result) {
  if (result == 0) return "no error";
  constexpr std::int64_t kMost = 4095;  // errnos are smaller
  if (result < -kMost || result > kMost) return "an error without a name";
  const int number = static_cast<int>(result < 0 ? -result : result);
  if (c_api::last.code != Errc{} && to_errno(c_api::last.code) == number) {
    if (c_api::last_words == c_api::Words::kPool && *error_detail() != '\0') return error_detail();
    return *c_api::last.what != '\0' ? c_api::last.what : describe(c_api::last.code);
  }
  const char* const general = strerrordesc_np(number);
  return general != nullptr ? general : "an error without a name";
}

pmfs_location_t pmfs_path(const char* path) { return pmfs_path_at(PMFS_ROOT_INODE, path, 0); }

pmfs_location_t pmfs_path_at(std::uint64_t dir, const char* path, std::uint32_t flags) {
  return {dir, 0, path, flags, 0};
}

pmfs_location_t pmfs_inode(std::uint64_t inode) { return pmfs_handle(inode, 0); }

pmfs_location_t pmfs_handle(std::uint64_t inode, std::uint64_t generation) {
  return {inode, generation, nullptr, PMFS_AT_INODE, 0};
}
