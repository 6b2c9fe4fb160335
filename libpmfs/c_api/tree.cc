// The C interface: looking at the tree and changing it.
#include "c_api/convert.h"

using namespace pmfs;
using namespace pmfs::c_api;

namespace {

// The calls that give attributes: what to fill is looked at before anything is changed.
template <class Run>
int attributes_answer(pmfs_attributes* out, Given given, Run&& run) {
  return answer([&]() -> Result<void> {
    PMFS_TRY(fillable(out, given));
    PMFS_ASSIGN(const Attributes found, run());
    put(attributes_of(found), out);
    return {};
  });
}

int stat_answer(pmfs_t* fs, const pmfs_location_t& at, const pmfs_credentials* who, pmfs_attributes* out, Ref ref) {
  return attributes_answer(out, Given::kMust, [&]() -> Result<Attributes> {
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.stat(call.where.at, call.who, call.where.follow, ref);
  });
}

}  // namespace

int pmfs_stat(pmfs_t* fs, pmfs_location_t at, const pmfs_credentials* who, pmfs_attributes* attributes) {
  return stat_answer(fs, at, who, attributes, Ref::kNone);
}

int pmfs_pin(pmfs_t* fs, pmfs_location_t at, const pmfs_credentials* who, pmfs_attributes* attributes) {
  return stat_answer(fs, at, who, attributes, Ref::kPin);
}

int pmfs_unpin(pmfs_t* fs, std::uint64_t inode, std::uint64_t count) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    return open->unpin(InodeNo{inode}, count);
  });
}

int pmfs_access(pmfs_t* fs, pmfs_location_t at, int mode, const pmfs_credentials* who) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.access(call.where.at, mode, call.who, call.where.follow);
  });
}

std::int64_t pmfs_readlink(pmfs_t* fs, pmfs_location_t at, const pmfs_credentials* who, char* target,
                           std::size_t bytes) {
  return answer([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(const std::span<char> out, buffer<char>(target, bytes));
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    PMFS_ASSIGN(const std::string found, call.fs.readlink(call.where.at, call.who));
    if (!out.empty()) found.copy(out.data(), out.size());
    return found.size();
  });
}

int pmfs_resolve(pmfs_t* fs, const char* const* paths, std::size_t count, std::uint64_t dir, std::uint32_t flags,
                 const pmfs_credentials* who, std::int32_t* errors, pmfs_attributes* attributes,
                 std::size_t attributes_bytes) {
  return answer([&]() -> Result<void> {
    constexpr u32 kFlags =
        PMFS_AT_NO_FOLLOW | PMFS_AT_NO_SYMLINKS | PMFS_AT_BENEATH | PMFS_RESOLVE_NAMES_ONLY;
    PMFS_ASSIGN(Filesystem* const open, open_of(fs));
    PMFS_ASSIGN(const Credentials caller, credentials_of(who));
    if ((flags & ~kFlags) != 0) return invalid("a flag is unknown");
    if (attributes_bytes < kFirstBytes<pmfs_attributes> || attributes_bytes > kMostBytes ||
        attributes_bytes % alignof(pmfs_attributes) != 0)
      return invalid("attributes_bytes is not the size of that struct");
    if (count == 0) return {};
    if (paths == nullptr || errors == nullptr || attributes == nullptr) return invalid("an array is NULL");
    if (count > std::numeric_limits<std::size_t>::max() / kMostBytes) return no_memory();

    BatchOptions options;
    options.start = InodeNo{dir};
    options.follow = (flags & PMFS_AT_NO_FOLLOW) != 0 ? Follow::kNo : Follow::kYes;
    options.attributes = (flags & PMFS_RESOLVE_NAMES_ONLY) == 0;
    options.beneath = (flags & PMFS_AT_BENEATH) != 0;
    options.no_links = (flags & PMFS_AT_NO_SYMLINKS) != 0;

    std::vector<std::string_view> names(count);
    for (std::size_t i = 0; i < count; ++i) {
      PMFS_ASSIGN(names[i], text(paths[i]));
    }
    std::vector<Resolved> results(count);
    PMFS_TRY(open->resolve(names, results, caller, options));

    auto* to = reinterpret_cast<unsigned char*>(attributes);
    for (std::size_t i = 0; i < count; ++i, to += attributes_bytes) {
      const Resolved& from = results[i];
      errors[i] = from.error ? -to_errno(*from.error) : 0;
      auto* const slot = reinterpret_cast<pmfs_attributes*>(to);
      slot->struct_bytes = static_cast<u32>(attributes_bytes);
      put(from.error ? pmfs_attributes{} : attributes_of(from.attributes), slot);
    }
    return {};
  });
}

int pmfs_mknod(pmfs_t* fs, pmfs_location_t at, std::uint32_t mode, std::uint64_t rdev, const pmfs_credentials* who,
               pmfs_attributes* made) {
  return attributes_answer(made, Given::kMay, [&]() -> Result<Attributes> {
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.mknod(call.where.at, mode, rdev, call.who);
  });
}

int pmfs_mkdir(pmfs_t* fs, pmfs_location_t at, std::uint32_t mode, const pmfs_credentials* who, pmfs_attributes* made) {
  return attributes_answer(made, Given::kMay, [&]() -> Result<Attributes> {
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.mkdir(call.where.at, mode, call.who);
  });
}

int pmfs_symlink(pmfs_t* fs, const char* target, pmfs_location_t at, const pmfs_credentials* who,
                 pmfs_attributes* made) {
  return attributes_answer(made, Given::kMay, [&]() -> Result<Attributes> {
    PMFS_ASSIGN(const std::string_view points_to, text(target));
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.symlink(points_to, call.where.at, call.who);
  });
}

int pmfs_link(pmfs_t* fs, pmfs_location_t from, pmfs_location_t to, const pmfs_credentials* who,
              pmfs_attributes* made) {
  return attributes_answer(made, Given::kMay, [&]() -> Result<Attributes> {
    PMFS_ASSIGN(const Call call, call_on(fs, from, who, Follow::kNo));
    PMFS_ASSIGN(const Where name, where_of(to));
    return call.fs.link(call.where.at, name.at, call.who, call.where.follow);
  });
}

int pmfs_unlink(pmfs_t* fs, pmfs_location_t at, const pmfs_credentials* who) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.unlink(call.where.at, call.who);
  });
}

int pmfs_rmdir(pmfs_t* fs, pmfs_location_t at, const pmfs_credentials* who) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.rmdir(call.where.at, call.who);
  });
}

int pmfs_rename(pmfs_t* fs, pmfs_location_t from, pmfs_location_t to, std::uint32_t flags,
                const pmfs_credentials* who) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const Call call, call_on(fs, from, who));
    PMFS_ASSIGN(const Where name, where_of(to));
    return call.fs.rename(call.where.at, name.at, flags, call.who);
  });
}

int pmfs_set_attributes(pmfs_t* fs, pmfs_location_t at, const pmfs_changes* change,
                        const pmfs_credentials* who, pmfs_attributes* after) {
  return attributes_answer(after, Given::kMay, [&]() -> Result<Attributes> {
    constexpr u32 kAll = PMFS_SET_MODE | PMFS_SET_UID | PMFS_SET_GID | PMFS_SET_SIZE | PMFS_SET_ATIME | PMFS_SET_MTIME |
                         PMFS_SET_ATIME_NOW | PMFS_SET_MTIME_NOW;
    constexpr u32 kBothAtimes = PMFS_SET_ATIME | PMFS_SET_ATIME_NOW;
    constexpr u32 kBothMtimes = PMFS_SET_MTIME | PMFS_SET_MTIME_NOW;
    pmfs_changes given;
    PMFS_TRY(take(change, given));
    if ((given.set & ~kAll) != 0 || given.unused != 0) return invalid("there is no such attribute to set");
    if ((given.set & kBothAtimes) == kBothAtimes || (given.set & kBothMtimes) == kBothMtimes)
      return invalid("a time is either given or the current one");
    SetAttributes to;
    if ((given.set & PMFS_SET_MODE) != 0) to.mode = given.mode;
    if ((given.set & PMFS_SET_UID) != 0) to.uid = given.uid;
    if ((given.set & PMFS_SET_GID) != 0) to.gid = given.gid;
    if ((given.set & PMFS_SET_SIZE) != 0) to.size_bytes = given.size_bytes;
    if ((given.set & PMFS_SET_ATIME) != 0) to.atime_ns = given.atime_ns;
    if ((given.set & PMFS_SET_MTIME) != 0) to.mtime_ns = given.mtime_ns;
    to.atime_now = (given.set & PMFS_SET_ATIME_NOW) != 0;
    to.mtime_now = (given.set & PMFS_SET_MTIME_NOW) != 0;
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.set_attributes(call.where.at, to, call.who, call.where.follow);
  });
}

int pmfs_chmod(pmfs_t* fs, pmfs_location_t at, std::uint32_t mode, const pmfs_credentials* who) {
  pmfs_changes change = PMFS_CHANGES_INIT;
  change.set = PMFS_SET_MODE;
  change.mode = mode;
  return pmfs_set_attributes(fs, at, &change, who, nullptr);
}

int pmfs_chown(pmfs_t* fs, pmfs_location_t at, std::uint32_t uid, std::uint32_t gid, const pmfs_credentials* who) {
  pmfs_changes change = PMFS_CHANGES_INIT;
  if (uid != PMFS_KEEP_ID) change.set |= PMFS_SET_UID;
  if (gid != PMFS_KEEP_ID) change.set |= PMFS_SET_GID;
  change.uid = uid;
  change.gid = gid;
  return pmfs_set_attributes(fs, at, &change, who, nullptr);
}

int pmfs_utimens(pmfs_t* fs, pmfs_location_t at, std::int64_t atime_ns, std::int64_t mtime_ns,
                 const pmfs_credentials* who) {
  pmfs_changes change = PMFS_CHANGES_INIT;
  if (atime_ns != PMFS_TIME_OMIT) change.set |= atime_ns == PMFS_TIME_NOW ? PMFS_SET_ATIME_NOW : PMFS_SET_ATIME;
  if (mtime_ns != PMFS_TIME_OMIT) change.set |= mtime_ns == PMFS_TIME_NOW ? PMFS_SET_MTIME_NOW : PMFS_SET_MTIME;
  change.atime_ns = atime_ns;
  change.mtime_ns = mtime_ns;
  return pmfs_set_attributes(fs, at, &change, who, nullptr);
}

int pmfs_truncate(pmfs_t* fs, pmfs_location_t at, std::uint64_t size_bytes, const pmfs_credentials* who) {
  pmfs_changes change = PMFS_CHANGES_INIT;
  change.set = PMFS_SET_SIZE;
  change.size_bytes = size_bytes;
  return pmfs_set_attributes(fs, at, &change, who, nullptr);
}

std::int64_t pmfs_get_xattr(pmfs_t* fs, pmfs_location_t at, const char* name, void* value, std::size_t bytes,
                            const pmfs_credentials* who) {
  return answer([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(const std::string_view named, text(name));
    PMFS_ASSIGN(const std::span<std::byte> out, buffer<std::byte>(value, bytes));
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.get_xattr(call.where.at, named, out, call.who, call.where.follow);
  });
}

std::int64_t pmfs_list_xattrs(pmfs_t* fs, pmfs_location_t at, char* names, std::size_t bytes,
                              const pmfs_credentials* who) {
  return answer([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(const std::span<char> out, buffer<char>(names, bytes));
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.list_xattrs(call.where.at, out, call.who, call.where.follow);
  });
}

int pmfs_set_xattr(pmfs_t* fs, pmfs_location_t at, const char* name, const void* value, std::size_t bytes, int flags,
                   const pmfs_credentials* who) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const std::string_view named, text(name));
    PMFS_ASSIGN(const std::span<const std::byte> in, buffer<const std::byte>(value, bytes));
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.set_xattr(call.where.at, named, in, flags, call.who, call.where.follow);
  });
}

int pmfs_remove_xattr(pmfs_t* fs, pmfs_location_t at, const char* name, const pmfs_credentials* who) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const std::string_view named, text(name));
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    return call.fs.remove_xattr(call.where.at, named, call.who, call.where.follow);
  });
}
