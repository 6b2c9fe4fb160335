// The public face of extended attributes and ACLs: find the inode, hand over.
#include "fs/acl.h"
#include "fs/api_call.h"
#include "fs/resolve.h"
#include "fs/xattr.h"

namespace pmfs {

namespace {

// `find(volume, call)` does `call(inode)` with an inode, found in its own way.
template <class Find, class Call>
auto look(const std::shared_ptr<FilesystemImpl>& impl, Find&& find, Call&& call) {
  using Answer = decltype(call(std::declval<Volume&>(), std::declval<const InodeRef&>()));
  return guarded([&]() -> Answer {
    PMFS_ASSIGN(Volume* const volume, usable_volume(impl));
    return find(*volume, [&](const InodeRef& inode) { return call(*volume, inode); });
  });
}

template <class Find, class Call>
Result<void> change(const std::shared_ptr<FilesystemImpl>& impl, Find&& find, Call&& call) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const volume, writable_volume(impl));
    return volume->with_space(
        [&] { return find(*volume, [&](const InodeRef& inode) { return call(*volume, inode); }); });
  });
}

auto by_path(const At& at, const Credentials& who, Follow follow) {
  return [&at, &who, follow](Volume& volume, auto&& call) { return with_found(volume, at, who, follow, call); };
}

auto by_number(InodeNo ino) {
  return [ino](Volume& volume, auto&& call) -> decltype(call(std::declval<const InodeRef&>())) {
    PMFS_ASSIGN(const InodeRef inode, volume.inodes.get(ino));
    return call(inode);
  };
}

auto getting(std::string_view name, std::span<std::byte> value, const Credentials& who) {
  return [=, &who](Volume& volume, const InodeRef& inode) { return pmfs::get_xattr(volume, inode, name, value, who); };
}

auto listing(std::span<char> names, const Credentials& who) {
  return [=, &who](Volume& volume, const InodeRef& inode) { return pmfs::list_xattrs(volume, inode, names, who); };
}

auto setting(std::string_view name, std::span<const std::byte> value, int flags, const Credentials& who) {
  return [=, &who](Volume& volume, const InodeRef& inode) {
    return pmfs::set_xattr(volume, inode, name, value, flags, who);
  };
}

auto removing(std::string_view name, const Credentials& who) {
  return [=, &who](Volume& volume, const InodeRef& inode) { return pmfs::remove_xattr(volume, inode, name, who); };
}

auto getting_acl(AclKind kind) {
  return [=](Volume& volume, const InodeRef& inode) -> Result<Acl> {
    std::shared_lock lock(inode->lock);
    PMFS_TRY(check_alive(volume, inode));
    if (type_of(inode.media()) == FileType::kSymlink)
      return Error{Errc::kNotSupported, "symbolic links have no ACLs", 0};
    return acl_of(volume, inode, kind);
  };
}

auto setting_acl(AclKind kind, const Acl& acl, const Credentials& who) {
  return [kind, &acl, &who](Volume& volume, const InodeRef& inode) {
    return pmfs::set_acl(volume, inode, kind, acl, who);
  };
}

}  // namespace

Result<std::size_t> Filesystem::get_xattr(At at, std::string_view name, std::span<std::byte> value,
                                          const Credentials& who, Follow follow) {
  return look(impl_, by_path(at, who, follow), getting(name, value, who));
}
Result<std::size_t> Filesystem::list_xattrs(At at, std::span<char> names, const Credentials& who, Follow follow) {
  return look(impl_, by_path(at, who, follow), listing(names, who));
}
Result<void> Filesystem::set_xattr(At at, std::string_view name, std::span<const std::byte> value, int flags,
                                   const Credentials& who, Follow follow) {
  return change(impl_, by_path(at, who, follow), setting(name, value, flags, who));
}
Result<void> Filesystem::remove_xattr(At at, std::string_view name, const Credentials& who, Follow follow) {
  return change(impl_, by_path(at, who, follow), removing(name, who));
}
Result<Acl> Filesystem::get_acl(At at, AclKind kind, const Credentials& who, Follow follow) {
  return look(impl_, by_path(at, who, follow), getting_acl(kind));
}
Result<void> Filesystem::set_acl(At at, AclKind kind, const Acl& acl, const Credentials& who, Follow follow) {
  return change(impl_, by_path(at, who, follow), setting_acl(kind, acl, who));
}

Result<std::size_t> File::get_xattr(std::string_view name, std::span<std::byte> value, const Credentials& who) const {
  return look(fs_, by_number(ino_), getting(name, value, who));
}
Result<std::size_t> File::list_xattrs(std::span<char> names, const Credentials& who) const {
  return look(fs_, by_number(ino_), listing(names, who));
}
Result<void> File::set_xattr(std::string_view name, std::span<const std::byte> value, int flags,
                             const Credentials& who) const {
  return change(fs_, by_number(ino_), setting(name, value, flags, who));
}
Result<void> File::remove_xattr(std::string_view name, const Credentials& who) const {
  return change(fs_, by_number(ino_), removing(name, who));
}
Result<Acl> File::get_acl(AclKind kind) const { return look(fs_, by_number(ino_), getting_acl(kind)); }
Result<void> File::set_acl(AclKind kind, const Acl& acl, const Credentials& who) const {
  return change(fs_, by_number(ino_), setting_acl(kind, acl, who));
}

}  // namespace pmfs
