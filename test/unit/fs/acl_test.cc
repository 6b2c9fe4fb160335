// POSIX ACLs: who may what, what chmod and setting one do to mode and mask, what is inherited; and the same asked of
// the kernel, where it has ACLs on a file system of its own.
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <random>

#include "fs/acl.h"
#include "test/support/memory_fs.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();
constexpr Errc kNone{};

Credentials user(u32 uid, u32 gid = 900, std::span<const u32> groups = {}) {
  Credentials who;
  who.uid = uid;
  who.gid = gid;
  who.groups = groups;
  return who;
}

// "u::rwx,u:5:r--,g::r-x,g:6:---,m::rwx,o::---"
Acl acl(std::string_view text) {
  Acl list;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t second = one.find(':', 2);
    const std::string id(one.substr(2, second - 2));
    AclEntry e;
    e.tag = one[0] == 'u'   ? (id.empty() ? AclTag::kUserObj : AclTag::kUser)
            : one[0] == 'g' ? (id.empty() ? AclTag::kGroupObj : AclTag::kGroup)
            : one[0] == 'm' ? AclTag::kMask
                            : AclTag::kOther;
    if (!id.empty()) e.id = static_cast<u32>(std::stoul(id));
    const std::string_view p = one.substr(second + 1);
    e.permissions = (p[0] == 'r' ? 4u : 0) | (p[1] == 'w' ? 2u : 0) | (p[2] == 'x' ? 1u : 0);
    list.push_back(e);
  }
  return list;
}

std::string text(const Acl& list) {
  std::string out;
  for (const AclEntry& e : list) {
    const char* const tags[] = {"", "u", "u", "g", "g", "m", "o"};
    const bool named = e.tag == AclTag::kUser || e.tag == AclTag::kGroup;
    out += std::string(out.empty() ? "" : ",") + tags[static_cast<int>(e.tag)] + ":" +
           (named ? std::to_string(e.id) : "") + ":" + ((e.permissions & 4) != 0 ? 'r' : '-') +
           ((e.permissions & 2) != 0 ? 'w' : '-') + ((e.permissions & 1) != 0 ? 'x' : '-');
  }
  return out;
}

struct World {
  MemoryFs memory{u64{8} << 20};
  Filesystem& fs = memory.fs();

  World() {
    must(fs.mknod("/f", 0640, 0, kRoot));
    SetAttributes change;
    change.uid = 1;
    change.gid = 10;
    must(fs.set_attributes("/f", change, kRoot));
  }
  u32 mode(std::string_view path) { return must(fs.stat(path, kRoot)).mode & 07777; }
  Errc set(std::string_view path, AclKind kind, std::string_view list, const Credentials& who = kRoot) {
    return code_of(fs.set_acl(path, kind, acl(list), who));
  }
  std::string get(std::string_view path, AclKind kind = AclKind::kAccess) {
    return text(must(fs.get_acl(path, kind, kRoot)));
  }
  // What somebody may, as "rwx".
  std::string may(std::string_view path, const Credentials& who) {
    std::string out;
    for (const auto& [bit, letter] : {std::pair(R_OK, 'r'), std::pair(W_OK, 'w'), std::pair(X_OK, 'x')})
      out += fs.access(path, bit, who).ok() ? letter : '-';
    return out;
  }
  void chmod(std::string_view path, u32 to) {
    SetAttributes change;
    change.mode = to;
    must(fs.set_attributes(path, change, kRoot));
  }
};

}  // namespace

TEST_CASE("acl: owner, named users, the group class under the mask, others", "[fs]") {
  World w;
  REQUIRE(w.set("/f", AclKind::kAccess, "u::rw-,u:5:rwx,u:6:---,g::r--,g:20:rw-,g:21:--x,m::rw-,o::--x") == kNone);
  CHECK(w.mode("/f") == 0661);
  const u32 in_20[] = {20}, in_21[] = {21}, in_both[] = {20, 21};
  CHECK(w.may("/f", user(1, 10)) == "rw-");  // the owner: not under the mask
  CHECK(w.may("/f", user(5)) == "rw-");      // rwx under rw-
  CHECK(w.may("/f", user(6)) == "---");      // denied, though others may execute
  CHECK(w.may("/f", user(6, 20)) == "---");  // and though his group may read and write
  CHECK(w.may("/f", user(7, 10)) == "r--");
  CHECK(w.may("/f", user(7, 900, in_20)) == "rw-");
  CHECK(w.may("/f", user(7, 900, in_21)) == "---");  // x under rw-; in the group class, so not as others
  CHECK(w.may("/f", user(7, 10, in_both)) == "rw-");
  CHECK(code_of(w.fs.access("/f", R_OK | X_OK, user(7, 10, in_both))) == Errc::kAccess);
  CHECK(w.may("/f", user(7)) == "--x");
  CHECK(w.may("/f", kRoot) == "rwx");
  w.memory.require_clean();
}

TEST_CASE("acl: entries of several groups are not added up", "[fs]") {
  World w;
  REQUIRE(w.set("/f", AclKind::kAccess, "u::rw-,g::---,g:20:r--,g:21:-w-,m::rwx,o::---") == kNone);
  const u32 both[] = {20, 21};
  CHECK(w.may("/f", user(7, 900, both)) == "rw-");
  CHECK(code_of(w.fs.access("/f", R_OK | W_OK, user(7, 900, both))) == Errc::kAccess);
}

TEST_CASE("acl: chmod is the owner, mask and other entries", "[fs]") {
  World w;
  REQUIRE(w.set("/f", AclKind::kAccess, "u::rw-,u:5:rw-,g::r-x,m::rwx,o::---") == kNone);
  CHECK(w.mode("/f") == 0670);
  w.chmod("/f", 0741);
  CHECK(w.get("/f") == "u::rwx,u:5:rw-,g::r-x,m::r--,o::--x");
  CHECK(w.may("/f", user(5)) == "r--");
  w.chmod("/f", 0770);
  CHECK(w.get("/f") == "u::rwx,u:5:rw-,g::r-x,m::rwx,o::---");
  CHECK(w.may("/f", user(5)) == "rw-");
  w.memory.require_clean();
}

TEST_CASE("acl: one that says no more than a mode is a mode", "[fs]") {
  World w;
  CHECK(w.get("/f") == "u::rw-,g::r--,o::---");
  REQUIRE(w.set("/f", AclKind::kAccess, "u::rwx,g::-w-,o::--x") == kNone);
  CHECK(w.mode("/f") == 0721);
  CHECK(must(w.fs.list_xattrs("/f", {}, kRoot)) == 0);
  CHECK(code_of(w.fs.get_xattr("/f", "system.posix_acl_access", {}, kRoot)) == Errc::kNoAttribute);
  // With a mask it is more, also without anybody named.
  REQUIRE(w.set("/f", AclKind::kAccess, "u::rwx,g::rwx,m::r--,o::---") == kNone);
  CHECK(w.get("/f") == "u::rwx,g::rwx,m::r--,o::---");
  CHECK(w.may("/f", user(7, 10)) == "r--");
  CHECK(must(w.fs.list_xattrs("/f", {}, kRoot)) == sizeof("system.posix_acl_access"));
  // Removed, the mode stays: what was the mask is the group's now.
  must(w.fs.set_acl("/f", AclKind::kAccess, {}, kRoot));
  CHECK(w.mode("/f") == 0740);
  CHECK(w.get("/f") == "u::rwx,g::r--,o::---");
  must(w.fs.remove_xattr("/f", "system.posix_acl_access", kRoot));  // there is none: nothing to complain of
  w.memory.require_clean();
}

TEST_CASE("acl: what is no list is refused, and changes nothing", "[fs]") {
  World w;
  const Attributes before = must(w.fs.stat("/f", kRoot));
  for (const char* wrong : {"u::rwx", "u::rwx,g::rwx", "u::rwx,u::r--,g::rwx,o::---", "u::rwx,u:5:r--,g::rwx,o::---",
                            "u::rwx,u:5:r--,u:5:r--,g::rwx,m::rwx,o::---", "u::rwx,g::rwx,m::rwx,m::rwx,o::---",
                            "u::rwx,u:4294967295:r--,g::rwx,m::rwx,o::---"}) {
    INFO(wrong);
    CHECK(w.set("/f", AclKind::kAccess, wrong) == Errc::kInvalid);
  }
  Acl list = acl("u::rwx,g::rwx,o::---");
  list[0].permissions = 8;
  CHECK(code_of(w.fs.set_acl("/f", AclKind::kAccess, list, kRoot)) == Errc::kInvalid);
  list[0] = {AclTag{9}, 7, 0};
  CHECK(code_of(w.fs.set_acl("/f", AclKind::kAccess, list, kRoot)) == Errc::kInvalid);
  CHECK(w.set("/f", AclKind::kAccess, "u::rwx,g::rwx,o::---", user(2)) == Errc::kPermission);
  CHECK(w.set("/f", AclKind::kDefault, "u::rwx,g::rwx,o::---") == Errc::kAccess);
  must(w.fs.set_acl("/f", AclKind::kDefault, {}, kRoot));
  CHECK(w.get("/f", AclKind::kDefault).empty());
  const Attributes after = must(w.fs.stat("/f", kRoot));
  CHECK(after.ctime_ns == before.ctime_ns);
  CHECK(after.mode == before.mode);
  must(w.fs.symlink("f", "/link", kRoot));
  CHECK(code_of(w.fs.set_acl("/link", AclKind::kAccess, acl("u::rwx,g::rwx,o::---"), kRoot, Follow::kNo)) ==
        Errc::kNotSupported);
  CHECK(code_of(w.fs.get_acl("/link", AclKind::kAccess, kRoot, Follow::kNo)) == Errc::kNotSupported);
  CHECK(w.set("/f", AclKind::kAccess, "o::---,m::rwx,g::rwx,u:7:r--,u:5:r--,u::rwx") == kNone);  // any order will do
  CHECK(w.get("/f") == "u::rwx,u:5:r--,u:7:r--,g::rwx,m::rwx,o::---");
  CHECK(w.set("/f", AclKind::kAccess, "u::r--,g::r--,o::r--", user(1, 10)) == kNone);  // the owner may
  CHECK(w.mode("/f") == 0444);
}

TEST_CASE("acl: setting one takes the set-group-id bit from who is not in the group", "[fs]") {
  World w;
  w.chmod("/f", 02755);
  CHECK(w.set("/f", AclKind::kAccess, "u::rwx,u:5:rwx,g::r-x,m::rwx,o::r-x", user(1, 10)) == kNone);
  CHECK(w.mode("/f") == 02775);
  CHECK(w.set("/f", AclKind::kAccess, "u::rwx,u:5:rwx,g::r-x,m::r-x,o::r-x", user(1, 11)) == kNone);
  CHECK(w.mode("/f") == 0755);
  w.chmod("/f", 02755);
  CHECK(w.set("/f", AclKind::kAccess, "u::rwx,g::r-x,o::r-x") == kNone);
  CHECK(w.mode("/f") == 02755);
}

TEST_CASE("acl: what is made in a directory begins with its default list, whatever the umask", "[fs]") {
  World w;
  Credentials who = user(3, 30);
  who.umask = 077;
  must(w.fs.mkdir("/d", 0777, kRoot));
  must(w.fs.mknod("/d/before", 0666, 0, who));
  CHECK(w.mode("/d/before") == 0600);
  REQUIRE(w.set("/d", AclKind::kDefault, "u::rwx,u:5:rwx,g::r-x,g:20:-wx,m::rwx,o::--x") == kNone);
  CHECK(w.get("/d") == "u::rwx,g::rwx,o::rwx");
  CHECK(w.mode("/d") == 0777);

  must(w.fs.mknod("/d/file", 0666, 0, who));
  CHECK(w.mode("/d/file") == 0660);
  CHECK(w.get("/d/file") == "u::rw-,u:5:rwx,g::r-x,g:20:-wx,m::rw-,o::---");
  CHECK(w.get("/d/file", AclKind::kDefault).empty());
  CHECK(w.may("/d/file", user(5)) == "rw-");
  must(w.fs.open_file("/d/opened", O_CREAT | O_RDWR, 0640, who).value().close());
  CHECK(w.get("/d/opened") == "u::rw-,u:5:rwx,g::r-x,g:20:-wx,m::r--,o::---");

  must(w.fs.mkdir("/d/sub", 0755, who));
  CHECK(w.mode("/d/sub") == 0751);
  CHECK(w.get("/d/sub") == "u::rwx,u:5:rwx,g::r-x,g:20:-wx,m::r-x,o::--x");
  CHECK(w.get("/d/sub", AclKind::kDefault) == "u::rwx,u:5:rwx,g::r-x,g:20:-wx,m::rwx,o::--x");
  must(w.fs.mknod("/d/sub/fifo", S_IFIFO | 0777, 0, who));
  CHECK(w.get("/d/sub/fifo") == "u::rwx,u:5:rwx,g::r-x,g:20:-wx,m::rwx,o::--x");
  must(w.fs.symlink("file", "/d/link", who));
  CHECK((must(w.fs.stat("/d/link", kRoot, Follow::kNo)).mode & 07777) == 0777);
  w.memory.require_clean();

  // A default list that is a mode: still in place of the umask.
  REQUIRE(w.set("/d", AclKind::kDefault, "u::rwx,g::r-x,o::r--") == kNone);
  must(w.fs.mknod("/d/plain", 0666, 0, who));
  CHECK(w.mode("/d/plain") == 0644);
  CHECK(must(w.fs.list_xattrs("/d/plain", {}, kRoot)) == 0);
  must(w.fs.mkdir("/d/dir", 0777, who));
  CHECK(w.mode("/d/dir") == 0754);
  CHECK(w.get("/d/dir", AclKind::kDefault) == "u::rwx,g::r-x,o::r--");

  must(w.fs.remove_xattr("/d", "system.posix_acl_default", kRoot));
  must(w.fs.mknod("/d/after", 0666, 0, who));
  CHECK(w.mode("/d/after") == 0600);
  w.memory.require_clean();
  w.memory.reopen_after_kill();
  CHECK(text(must(w.memory->get_acl("/d/sub", AclKind::kDefault, kRoot))) ==
        "u::rwx,u:5:rwx,g::r-x,g:20:-wx,m::rwx,o::--x");
  w.memory.require_clean();
}

TEST_CASE("acl: many entries lie in blocks, beside attributes; all of it moves in and out", "[fs]") {
  World w;
  must(w.fs.mkdir("/d", 0777, kRoot));
  std::string many = "u::rwx";
  for (int i = 0; i < 3000; ++i) many += ",u:" + std::to_string(1000 + i) + ":r-x";
  many += ",g::r-x,m::rwx,o::---";
  const std::string few = "u::rwx,u:5:rwx,g::r-x,m::rwx,o::---";
  const std::string value(60, 'v');
  const auto attribute = [&](const char* path) {
    std::string out(60, '\0');
    must(w.fs.get_xattr(path, "user.a", std::as_writable_bytes(std::span(out)), kRoot));
    CHECK(out == value);
    w.memory.require_clean();
  };
  must(w.fs.set_xattr("/d", "user.a", std::as_bytes(std::span(value)), 0, kRoot));
  for (const std::string& access : {few, many, few}) {
    for (const std::string& defaults : {few, many, few, std::string()}) {
      REQUIRE(w.set("/d", AclKind::kAccess, access) == kNone);
      REQUIRE(w.set("/d", AclKind::kDefault, defaults) == kNone);
      CHECK(w.get("/d") == access);
      CHECK(w.get("/d", AclKind::kDefault) == defaults);
      attribute("/d");
      const std::string name = "/d/" + std::to_string(access.size()) + "-" + std::to_string(defaults.size());
      must(w.fs.mkdir(name, 0777, kRoot));
      if (!defaults.empty()) CHECK(w.get(name) == defaults);
      w.memory.require_clean();
      must(w.fs.rmdir(name, kRoot));
    }
  }
  CHECK(w.may("/d", user(2000)) == "---");
  REQUIRE(w.set("/d", AclKind::kAccess, many) == kNone);
  CHECK(w.may("/d", user(2000)) == "r-x");
  std::string too_many = "u::rwx";
  for (int i = 0; i < 8188; ++i) too_many += ",u:" + std::to_string(1000 + i) + ":r-x";
  too_many += ",g::r-x,m::rwx,o::---";
  CHECK(w.set("/d", AclKind::kAccess, too_many) == Errc::kInvalid);
}

TEST_CASE("acl: a nameless file begins with the default list, too, and keeps its blocks", "[fs]") {
  World w;
  must(w.fs.mkdir("/d", 0777, kRoot));
  std::string many = "u::rwx";
  for (int i = 0; i < 100; ++i) many += ",u:" + std::to_string(1000 + i) + ":r-x";
  many += ",g::r-x,m::rwx,o::---";
  REQUIRE(w.set("/d", AclKind::kDefault, many) == kNone);
  File file = must(w.fs.open_file("/d", O_TMPFILE | O_RDWR, 0666, kRoot));
  w.memory.require_clean();
  // Blocks that are taken meanwhile are not its own.
  const Attributes other = must(w.fs.mknod("/other", 0644, 0, kRoot));
  const std::string data(200'000, 'x');
  must(w.fs.write(other.ino, 0, std::as_bytes(std::span(data)), kRoot));
  CHECK(must(file.get_acl(AclKind::kAccess)).size() == 104);
  must(w.fs.link(At::inode(file.ino()), "/d/name", kRoot));
  CHECK(w.may("/d/name", user(1001)) == "r--");
  w.memory.require_clean();
  must(file.close());
  w.memory.reopen_after_kill();
  CHECK(must(w.memory->get_acl("/d/name", AclKind::kAccess, kRoot)).size() == 104);
  w.memory.require_clean();
}

TEST_CASE("acl: as Linux's attributes", "[fs]") {
  World w;
  const auto bytes = [](std::initializer_list<int> list) {
    std::vector<std::byte> out;
    for (const int b : list) out.push_back(static_cast<std::byte>(b));
    return out;
  };
  const auto good =
      bytes({2, 0, 0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 2,   0,   4,  0, 5, 1, 0,   0,   4,   0,
             5, 0, 255, 255, 255, 255, 16, 0, 7,   0,   255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255});
  must(w.fs.set_xattr("/f", "system.posix_acl_access", good, 0, kRoot));
  CHECK(w.get("/f") == "u::rw-,u:261:r--,g::r-x,m::rwx,o::---");
  std::vector<std::byte> back(100);
  back.resize(must(w.fs.get_xattr("/f", "system.posix_acl_access", back, kRoot)));
  CHECK(back == good);
  const auto refused = [&](std::vector<std::byte> list) {
    return code_of(w.fs.set_xattr("/f", "system.posix_acl_access", list, 0, kRoot));
  };
  auto wrong = good;
  wrong[0] = std::byte{1};
  CHECK(refused(wrong) == Errc::kNotSupported);
  wrong = good;
  wrong.pop_back();
  CHECK(refused(wrong) == Errc::kInvalid);
  wrong = good;
  wrong[4] = std::byte{3};
  CHECK(refused(wrong) == Errc::kInvalid);
  wrong = good;
  std::swap_ranges(wrong.begin() + 4, wrong.begin() + 12, wrong.begin() + 12);
  CHECK(refused(wrong) == Errc::kInvalid);
  CHECK(refused(bytes({2, 0})) == Errc::kInvalid);
  CHECK(code_of(w.fs.set_xattr("/f", "system.posix_acl_access", good, 0, user(2))) == Errc::kPermission);
  CHECK(w.get("/f") == "u::rw-,u:261:r--,g::r-x,m::rwx,o::---");
  must(w.fs.set_xattr("/f", "system.posix_acl_access", bytes({2, 0, 0, 0}), 0, kRoot));  // an empty one: none
  CHECK(w.get("/f") == "u::rw-,g::rwx,o::---");
  CHECK(code_of(w.fs.get_xattr("/f", "system.posix_acl_default", {}, kRoot)) == Errc::kNoAttribute);
}

TEST_CASE("acl: decides in every operation on a directory, not in look-ups alone", "[fs]") {
  World w;
  must(w.fs.mkdir("/d", 0700, kRoot));
  must(w.fs.mknod("/d/f", 0600, 0, kRoot));
  const Credentials bob = user(5);
  const auto tries = [&] {
    std::string out;
    const auto note = [&](const auto& result) { out += result.ok() ? '+' : '-'; };
    note(w.fs.stat("/d/f", bob));
    note(w.fs.open_dir("/d", bob));
    note(w.fs.mknod("/d/new", 0644, 0, bob));
    note(w.fs.link("/d/f", "/d/other", bob));
    note(w.fs.rename("/d/f", "/d/g", 0, bob));
    note(w.fs.rename("/d/g", "/d/f", 0, bob));
    note(w.fs.unlink("/d/other", bob));
    note(w.fs.unlink("/d/new", bob));
    note(w.fs.open_file("/d/f", O_RDONLY, 0, bob));
    SetAttributes cut;
    cut.size_bytes = 0;
    note(w.fs.set_attributes("/d/f", cut, bob));
    (void)w.fs.rename("/d/g", "/d/f", 0, kRoot);
    (void)w.fs.unlink("/d/other", kRoot);
    (void)w.fs.unlink("/d/new", kRoot);
    return out;
  };
  CHECK(tries() == "----------");
  REQUIRE(w.set("/d", AclKind::kAccess, "u::rwx,u:5:--x,g::---,m::rwx,o::---") == kNone);
  CHECK(tries() == "+---------");
  REQUIRE(w.set("/d", AclKind::kAccess, "u::rwx,u:5:rwx,g::---,m::rwx,o::---") == kNone);
  CHECK(tries() == "++++++++--");
  REQUIRE(w.set("/d/f", AclKind::kAccess, "u::rw-,u:5:r--,g::---,m::rwx,o::---") == kNone);
  CHECK(tries() == "+++++++++-");
  REQUIRE(w.set("/d/f", AclKind::kAccess, "u::rw-,u:5:rw-,g::---,m::rwx,o::---") == kNone);
  CHECK(tries() == "++++++++++");
  w.chmod("/d", 0710);  // the mask
  CHECK(tries() == "+-------++");
  w.memory.require_clean();
}

TEST_CASE("acl: the kernel gives the same answers", "[fs]") {
  // On a file system of the kernel's, as root, switching identity: each of many random lists, for several people.
  Scratch scratch;
  const std::string file = scratch.file("file");
  const int fd = ::open(file.c_str(), O_CREAT | O_RDWR, 0640);
  REQUIRE(fd >= 0);
  ::close(fd);
  if (::geteuid() != 0 || ::chown(file.c_str(), 1, 10) != 0 || ::chmod(scratch.dir().c_str(), 0755) != 0) {
    WARN("not compared with the kernel: needs root");
    return;
  }
  const std::string probe = acl_to_linux(acl("u::rw-,u:5:r--,g::r--,m::rwx,o::---"));
  if (::setxattr(file.c_str(), "system.posix_acl_access", probe.data(), probe.size(), 0) != 0) {
    WARN("not compared with the kernel: no ACLs in " << scratch.dir());
    return;
  }
  const u32 in_20[] = {20}, in_both[] = {20, 21};
  struct Person {
    u32 uid, gid;
    std::span<const u32> groups;
  };
  const Person people[] = {{1, 10, {}}, {5, 900, {}},      {6, 10, {}},  {7, 10, {}},      {7, 900, in_20},
                           {8, 20, {}}, {7, 900, in_both}, {9, 900, {}}, {5, 10, in_both}, {6, 21, in_20}};
  World w;
  std::mt19937_64 random(3);
  const auto pick = [&](u64 n) { return static_cast<u32>(random() % n); };
  for (int i = 0; i < 150; ++i) {
    Acl list{{AclTag::kUserObj, pick(8), 0}, {AclTag::kGroupObj, pick(8), 0}, {AclTag::kOther, pick(8), 0}};
    if (pick(8) != 0) {
      list.push_back({AclTag::kMask, pick(8), 0});
      for (const u32 id : {5u, 6u})
        if (pick(2) == 0) list.push_back({AclTag::kUser, pick(8), id});
      for (const u32 id : {20u, 21u})
        if (pick(2) == 0) list.push_back({AclTag::kGroup, pick(8), id});
    }
    must(w.fs.set_acl("/f", AclKind::kAccess, list, kRoot));
    const Acl sorted = must(w.fs.get_acl("/f", AclKind::kAccess, kRoot));
    INFO(text(sorted));
    const std::string theirs = acl_to_linux(sorted);
    REQUIRE(::setxattr(file.c_str(), "system.posix_acl_access", theirs.data(), theirs.size(), 0) == 0);
    if (pick(4) == 0) {
      const u32 to = pick(01000);
      w.chmod("/f", to);
      REQUIRE(::chmod(file.c_str(), to) == 0);
    }
    struct stat seen {};
    REQUIRE(::stat(file.c_str(), &seen) == 0);
    REQUIRE((seen.st_mode & 07777) == w.mode("/f"));
    // Asked in a child that takes each identity in turn.
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      for (const Person& p : people) {
        std::vector<gid_t> groups(p.groups.begin(), p.groups.end());
        if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(p.gid, p.gid, 0) != 0 ||
            ::setresuid(p.uid, p.uid, 0) != 0)
          ::_exit(1);
        for (int wanted = 1; wanted < 8; ++wanted) {
          const char answer = ::faccessat(AT_FDCWD, file.c_str(), wanted, AT_EACCESS) == 0 ? '+' : '-';
          if (::write(ends[1], &answer, 1) != 1) ::_exit(1);
        }
        if (::setresuid(0, 0, 0) != 0 || ::setresgid(0, 0, 0) != 0) ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(ends[1]);
    std::string kernel;
    char buffer[256];
    for (ssize_t n; (n = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
      kernel.append(buffer, static_cast<std::size_t>(n));
    ::close(ends[0]);
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
    std::string ours;
    for (const Person& p : people)
      for (int wanted = 1; wanted < 8; ++wanted)
        ours += w.fs.access("/f", wanted, user(p.uid, p.gid, p.groups)).ok() ? '+' : '-';
    REQUIRE(ours == kernel);
  }
}
