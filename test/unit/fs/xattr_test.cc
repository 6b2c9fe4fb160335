// Extended attributes: names, values, limits and errors as Linux has them (xattr(7), setxattr(2)), what is stored
// where, and that everything comes back.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <map>
#include <random>

#include "fs/xattr.h"
#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

Credentials user(u32 uid, u32 gid = 900) {
  Credentials who;
  who.uid = uid;
  who.gid = gid;
  return who;
}

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::string value_of(Filesystem& fs, At at, std::string_view name, const Credentials& who = kRoot,
                     Follow follow = Follow::kYes) {
  std::string value(must(fs.get_xattr(at, name, {}, who, follow)), '\0');
  if (value.empty()) return value;
  must(fs.get_xattr(at, name, std::as_writable_bytes(std::span(value)), who, follow));
  return value;
}

// Names, a comma behind each.
std::string names_of(Filesystem& fs, At at, const Credentials& who = kRoot, Follow follow = Follow::kYes) {
  std::string names(must(fs.list_xattrs(at, {}, who, follow)), '\0');
  if (!names.empty()) must(fs.list_xattrs(at, names, who, follow));
  for (char& c : names)
    if (c == '\0') c = ',';
  return names;
}

Errc set(Filesystem& fs, At at, std::string_view name, std::string_view value, int flags = 0,
         const Credentials& who = kRoot, Follow follow = Follow::kYes) {
  return code_of(fs.set_xattr(at, name, bytes(value), flags, who, follow));
}

Errc get(Filesystem& fs, At at, std::string_view name, const Credentials& who = kRoot, Follow follow = Follow::kYes) {
  return code_of(fs.get_xattr(at, name, {}, who, follow));
}

const media::Inode& inode_of(Filesystem& fs, std::string_view path) {
  Volume& volume = volume_of(fs);
  return volume.inodes.slot(to_u64(must(fs.stat(path, kRoot, Follow::kNo)).ino) - 1);
}

constexpr Errc kNone{};

}  // namespace

TEST_CASE("xattr: set, get, list, remove; with the flags of setxattr", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  Filesystem& fs = memory.fs();
  must(fs.mknod("/f", 0644, 0, kRoot));
  CHECK(get(fs, "/f", "user.a") == Errc::kNoAttribute);
  CHECK(names_of(fs, "/f").empty());
  CHECK(set(fs, "/f", "user.a", "1", XATTR_REPLACE) == Errc::kNoAttribute);
  CHECK(set(fs, "/f", "user.a", "1", XATTR_CREATE) == kNone);
  CHECK(set(fs, "/f", "user.a", "2", XATTR_CREATE) == Errc::kExists);
  CHECK(value_of(fs, "/f", "user.a") == "1");
  CHECK(set(fs, "/f", "user.a", "22", XATTR_REPLACE) == kNone);
  CHECK(value_of(fs, "/f", "user.a") == "22");
  CHECK(set(fs, "/f", "user.a", "3", 4) == Errc::kInvalid);
  CHECK(set(fs, "/f", "user.b", "") == kNone);
  CHECK(value_of(fs, "/f", "user.b").empty());
  CHECK(set(fs, "/f", "trusted.t", std::string("\0x", 2)) == kNone);
  CHECK(set(fs, "/f", "security.s", "s") == kNone);
  CHECK(names_of(fs, "/f") == "user.a,user.b,trusted.t,security.s,");
  CHECK(value_of(fs, "/f", "trusted.t") == std::string("\0x", 2));
  memory.require_clean();
  must(fs.remove_xattr("/f", "user.a", kRoot));
  CHECK(code_of(fs.remove_xattr("/f", "user.a", kRoot)) == Errc::kNoAttribute);
  CHECK(names_of(fs, "/f") == "user.b,trusted.t,security.s,");
  for (const char* name : {"user.b", "trusted.t", "security.s"}) must(fs.remove_xattr("/f", name, kRoot));
  CHECK(inode_of(fs, "/f").xattr_ref.get() == 0);
  memory.require_clean();
}

TEST_CASE("xattr: a buffer too small is ERANGE and none at all asks for the length", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  Filesystem& fs = memory.fs();
  must(fs.mknod("/f", 0644, 0, kRoot));
  REQUIRE(set(fs, "/f", "user.a", "12345") == kNone);
  std::byte small[4], enough[9];
  CHECK(must(fs.get_xattr("/f", "user.a", {}, kRoot)) == 5);
  CHECK(code_of(fs.get_xattr("/f", "user.a", small, kRoot)) == Errc::kRange);
  CHECK(must(fs.get_xattr("/f", "user.a", enough, kRoot)) == 5);
  char few[6], many[7];
  CHECK(code_of(fs.list_xattrs("/f", few, kRoot)) == Errc::kRange);
  CHECK(must(fs.list_xattrs("/f", many, kRoot)) == 7);
}

TEST_CASE("xattr: names and values have Linux's limits and errors", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  Filesystem& fs = memory.fs();
  must(fs.mknod("/f", 0644, 0, kRoot));
  const std::string longest = "user." + std::string(250, 'n');
  CHECK(set(fs, "/f", longest, "x") == kNone);
  CHECK(value_of(fs, "/f", longest) == "x");
  CHECK(set(fs, "/f", longest + "n", "x") == Errc::kRange);
  CHECK(get(fs, "/f", longest + "n") == Errc::kRange);
  CHECK(set(fs, "/f", "", "x") == Errc::kRange);
  CHECK(set(fs, "/f", "user.", "x") == Errc::kInvalid);
  CHECK(get(fs, "/f", "trusted.") == Errc::kInvalid);
  for (const char* name : {"user", "usera", "system.other", "nothing.a", "User.a", "system."}) {
    INFO(name);
    CHECK(set(fs, "/f", name, "x") == Errc::kNotSupported);
    CHECK(get(fs, "/f", name) == Errc::kNotSupported);
    CHECK(code_of(fs.remove_xattr("/f", name, kRoot)) == Errc::kNotSupported);
  }
  const std::string largest(65536, 'v');
  CHECK(set(fs, "/f", "user.large", largest) == kNone);
  CHECK(value_of(fs, "/f", "user.large") == largest);
  CHECK(set(fs, "/f", "user.large", largest + "v") == Errc::kTooLarge);
  CHECK(to_errno(Errc::kNoAttribute) == ENODATA);
  CHECK(to_errno(Errc::kRange) == ERANGE);
  CHECK(to_errno(Errc::kTooLarge) == E2BIG);
  CHECK(code_of(fs.get_xattr("/missing", "user.a", {}, kRoot)) == Errc::kNotFound);
  // All values together, and all names.
  Errc last = kNone;
  int count = 0;
  for (; last == kNone && count < 100; ++count) last = set(fs, "/f", "user.x" + std::to_string(count), largest);
  CHECK(last == Errc::kNoSpace);
  CHECK(count == 15);  // with the one above
  must(fs.mknod("/g", 0644, 0, kRoot));
  last = kNone;
  for (count = 0; last == kNone && count < 1000; ++count)
    last = set(fs, "/g", "user." + std::string(246, 'n') + std::to_string(1000 + count), "");
  CHECK(last == Errc::kNoSpace);
  CHECK(must(fs.list_xattrs("/g", {}, kRoot)) <= kXattrListMax);
  CHECK(count > 250);
  memory.require_clean();
}

TEST_CASE("xattr: who may, by name space, type and permission", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  Filesystem& fs = memory.fs();
  must(fs.mkdir("/d", 0777, kRoot));
  must(fs.mknod("/d/f", 0640, 0, user(5)));
  must(fs.mknod("/d/fifo", S_IFIFO | 0666, 0, user(5)));
  must(fs.symlink("f", "/d/link", user(5)));
  must(fs.mkdir("/sticky", 01777, kRoot));
  {
    SetAttributes change;
    change.mode = 01777;
    change.uid = 5;
    must(fs.set_attributes("/sticky", change, kRoot));
  }
  // user.: by the permissions of the file.
  CHECK(set(fs, "/d/f", "user.a", "x", 0, user(5)) == kNone);
  CHECK(set(fs, "/d/f", "user.a", "x", 0, user(6)) == Errc::kAccess);
  CHECK(get(fs, "/d/f", "user.a", user(6)) == kNone);  // the group reads
  CHECK(get(fs, "/d/f", "user.a", user(6, 7)) == Errc::kAccess);
  CHECK(code_of(fs.remove_xattr("/d/f", "user.a", user(6))) == Errc::kAccess);
  // Only files and directories.
  CHECK(set(fs, "/d/fifo", "user.a", "x", 0, kRoot) == Errc::kPermission);
  CHECK(get(fs, "/d/fifo", "user.a", kRoot) == Errc::kNoAttribute);
  CHECK(set(fs, "/d/link", "user.a", "x", 0, kRoot, Follow::kNo) == Errc::kPermission);
  CHECK(get(fs, "/d/link", "user.a", kRoot, Follow::kNo) == Errc::kNoAttribute);
  CHECK(value_of(fs, "/d/link", "user.a") == "x");
  CHECK(set(fs, "/d", "user.a", "x", 0, user(9)) == kNone);
  // trusted.: root only, also on links and pipes; to others it is not there.
  CHECK(set(fs, "/d/f", "trusted.a", "x", 0, user(5)) == Errc::kPermission);
  CHECK(set(fs, "/d/f", "trusted.a", "x") == kNone);
  CHECK(get(fs, "/d/f", "trusted.a", user(5)) == Errc::kNoAttribute);
  CHECK(code_of(fs.remove_xattr("/d/f", "trusted.a", user(5))) == Errc::kPermission);
  CHECK(names_of(fs, "/d/f", user(5)) == "user.a,");
  CHECK(names_of(fs, "/d/f") == "user.a,trusted.a,");
  CHECK(set(fs, "/d/link", "trusted.a", "of the link", 0, kRoot, Follow::kNo) == kNone);
  CHECK(value_of(fs, "/d/link", "trusted.a", kRoot, Follow::kNo) == "of the link");
  CHECK(must(fs.readlink("/d/link", kRoot)) == "f");
  CHECK(set(fs, "/d/fifo", "trusted.a", "x") == kNone);
  // security.: everybody reads, root writes.
  CHECK(set(fs, "/d/f", "security.a", "x", 0, user(5)) == Errc::kPermission);
  CHECK(set(fs, "/d/f", "security.a", "x") == kNone);
  CHECK(get(fs, "/d/f", "security.a", user(6, 7)) == kNone);
  // A sticky directory: its owner alone.
  CHECK(set(fs, "/sticky", "user.a", "x", 0, user(6)) == Errc::kPermission);
  CHECK(set(fs, "/sticky", "user.a", "x", 0, user(5)) == kNone);
  CHECK(set(fs, "/sticky", "user.b", "x") == kNone);
  memory.require_clean();
}

TEST_CASE("xattr: the change time moves, and nothing else", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  Filesystem& fs = memory.fs();
  Attributes before = must(fs.mknod("/f", 0644, 0, kRoot));
  const auto moves = [&](auto&& call) {
    call();
    const Attributes now = must(fs.stat("/f", kRoot));
    CHECK(now.ctime_ns > before.ctime_ns);
    CHECK(now.mtime_ns == before.mtime_ns);
    CHECK(now.atime_ns == before.atime_ns);
    CHECK(now.mode == before.mode);
    CHECK(now.size_bytes == before.size_bytes);
    before = now;
  };
  moves([&] { REQUIRE(set(fs, "/f", "user.a", "1") == kNone); });
  moves([&] { REQUIRE(set(fs, "/f", "user.a", std::string(9000, 'x')) == kNone); });
  CHECK(before.blocks_512 == 3 * 8);
  moves([&] { must(fs.remove_xattr("/f", "user.a", kRoot)); });
  CHECK(before.blocks_512 == 0);
  (void)get(fs, "/f", "user.a");
  CHECK(must(fs.stat("/f", kRoot)).ctime_ns == before.ctime_ns);
}

TEST_CASE("xattr: two fences, inline or not; looking costs none", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  Filesystem& fs = memory.fs();
  must(fs.mknod("/f", 0644, 0, kRoot));
  const auto fences = [](auto&& call) {
    const u64 before = thread_counters().fences;
    call();
    return thread_counters().fences - before;
  };
  CHECK(fences([&] { must(fs.set_xattr("/f", "user.a", bytes("x"), 0, kRoot)); }) == 2);
  CHECK(inode_of(fs, "/f").blocks.get() == 0);
  const std::string large(65536, 'v');
  CHECK(fences([&] { must(fs.set_xattr("/f", "user.a", bytes(large), 0, kRoot)); }) == 2);
  CHECK(inode_of(fs, "/f").blocks.get() == 17);
  CHECK(fences([&] { CHECK(value_of(fs, "/f", "user.a") == large); }) == 0);
  CHECK(fences([&] { CHECK(names_of(fs, "/f") == "user.a,"); }) == 0);
  CHECK(fences([&] { must(fs.remove_xattr("/f", "user.a", kRoot)); }) == 2);
}

TEST_CASE("xattr: small ones lie in the inode, large ones in blocks that are given back", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  Filesystem& fs = memory.fs();
  must(fs.mknod("/other", 0644, 0, kRoot));
  volume_of(fs).quarantine.drain();
  const u64 free = must(fs.space()).blocks_free;
  must(fs.mknod("/f", 0644, 0, kRoot));
  const auto tag = [&] { return inode_of(fs, "/f").xattr_ref.get() & 3; };
  // 8 bytes of head and a name of one byte: 119 bytes of value fill the inode.
  REQUIRE(set(fs, "/f", "user.a", std::string(119, 'v')) == kNone);
  CHECK(tag() == 3);
  CHECK(must(fs.space()).blocks_free == free);
  REQUIRE(set(fs, "/f", "user.a", std::string(120, 'v')) == kNone);
  CHECK(tag() == 1);
  CHECK(must(fs.space()).blocks_free == free - 1);
  REQUIRE(set(fs, "/f", "user.b", std::string(30000, 'w')) == kNone);
  CHECK(must(fs.space()).blocks_free == free - 8);
  CHECK(value_of(fs, "/f", "user.a") == std::string(120, 'v'));
  memory.require_clean();
  SECTION("by removing the attribute") {
    must(fs.remove_xattr("/f", "user.b", kRoot));
    CHECK(must(fs.space()).blocks_free == free - 1);
    REQUIRE(set(fs, "/f", "user.a", "v") == kNone);
    CHECK(tag() == 3);
  }
  SECTION("by removing the file") { must(fs.unlink("/f", kRoot)); }
  SECTION("by removing the file while it is open") {
    File file = must(fs.open_file("/f", O_RDWR, 0, kRoot));
    must(fs.unlink("/f", kRoot));
    CHECK(must(fs.space()).blocks_free == free - 8);
    std::string value(120, '\0');
    must(file.get_xattr("user.a", std::as_writable_bytes(std::span(value)), kRoot));
    CHECK(value == std::string(120, 'v'));
    must(file.set_xattr("user.c", bytes("c"), 0, kRoot));
    CHECK(must(file.list_xattrs({}, kRoot)) == 21);
    memory.require_clean();
  }
  SECTION("by a rename over the file") {
    must(fs.mknod("/g", 0644, 0, kRoot));
    must(fs.rename("/g", "/f", 0, kRoot));
    CHECK(names_of(fs, "/f").empty());
  }
  memory.require_clean();
  CHECK(must(fs.space()).blocks_free == free);
}

TEST_CASE("xattr: they survive a clean close, a kill, and a rebuild of what is in use", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  std::map<std::string, std::string> expected;
  std::mt19937_64 random(7);
  for (int i = 0; i < 12; ++i) {
    const std::string path = "/f" + std::to_string(i);
    must(memory->mknod(path, 0644, 0, kRoot));
    expected[path] = std::string(1 + random() % (i % 2 == 0 ? 100 : 20000), static_cast<char>('a' + i));
    REQUIRE(set(memory.fs(), path, "user.name", expected[path]) == kNone);
  }
  must(memory->mkdir("/d", 0755, kRoot));
  REQUIRE(set(memory.fs(), "/d", "user.name", std::string(5000, 'd')) == kNone);
  const auto look = [&] {
    for (const auto& [path, value] : expected) CHECK(value_of(memory.fs(), path, "user.name") == value);
    CHECK(value_of(memory.fs(), "/d", "user.name") == std::string(5000, 'd'));
    memory.require_clean();
  };
  look();
  memory.reopen();
  CHECK(memory->info().saved_map_used);
  look();
  memory.reopen_after_kill();
  CHECK(!memory->info().saved_map_used);
  look();
  const Survey found = must(survey(memory.fs()));
  CHECK(found.with_xattrs == 13);
  CHECK(found.with_acls == 0);
  CHECK(found.attribute_blocks >= 2);
  must(dump(memory.fs(), [&](std::string_view line) { CHECK(line.find("DAMAGED") == std::string_view::npos); }));
}

TEST_CASE("xattr: random ones of several inodes, against a map", "[fs]") {
  MemoryFs memory(u64{16} << 20);
  Filesystem& fs = memory.fs();
  std::map<std::string, std::map<std::string, std::string>> model;
  for (const char* path : {"/a", "/b"}) must(fs.mknod(path, 0644, 0, kRoot)), model[path];
  must(fs.mkdir("/d", 0755, kRoot)), model["/d"];
  std::mt19937_64 random(11);
  const auto pick = [&](u64 n) { return random() % n; };
  const char* const spaces[] = {"user.", "trusted.", "security."};
  for (int i = 0; i < 3000; ++i) {
    auto& [path, attributes] = *std::next(model.begin(), static_cast<long>(pick(3)));
    const std::string name = spaces[pick(3)] + std::string(1 + pick(3), static_cast<char>('a' + pick(3)));
    if (pick(3) == 0) {
      const Errc code = code_of(fs.remove_xattr(path, name, kRoot));
      REQUIRE(code == (attributes.erase(name) == 0 ? Errc::kNoAttribute : kNone));
    } else {
      const u64 sizes[] = {0, 5, 40, 100, 4000, 20000};
      const std::string value(sizes[pick(6)] + pick(9), static_cast<char>(pick(256)));
      const int flags = static_cast<int>(pick(3));
      const bool there = attributes.contains(name);
      const Errc code = set(fs, path, name, value, flags);
      if (flags == XATTR_CREATE && there) {
        REQUIRE(code == Errc::kExists);
      } else if (flags == XATTR_REPLACE && !there) {
        REQUIRE(code == Errc::kNoAttribute);
      } else {
        REQUIRE(code == kNone);
        attributes[name] = value;
      }
    }
    if (pick(40) == 0) {
      std::size_t length = 0;
      for (const auto& [known, value] : attributes) {
        REQUIRE(value_of(fs, path, known) == value);
        length += known.size() + 1;
      }
      REQUIRE(names_of(fs, path).size() == length);
    }
    if (pick(300) == 0) memory.require_clean();
  }
  memory.require_clean();
}

TEST_CASE("xattr: contents and attributes of a file share its block count and nothing else", "[fs]") {
  MemoryFs memory(u64{16} << 20);
  Filesystem& fs = memory.fs();
  const Attributes file = must(fs.mknod("/f", 0644, 0, kRoot));
  const std::string contents(20000, 'c');
  REQUIRE(set(fs, "/f", "user.a", std::string(5000, 'x')) == kNone);
  must(fs.write(file.ino, 0, bytes(contents), kRoot));
  CHECK(must(fs.stat("/f", kRoot)).blocks_512 == (5 + 2) * 8);
  SetAttributes change;
  change.size_bytes = 100;
  must(fs.set_attributes("/f", change, kRoot));
  CHECK(must(fs.stat("/f", kRoot)).blocks_512 == (1 + 2) * 8);
  CHECK(value_of(fs, "/f", "user.a") == std::string(5000, 'x'));
  // A directory that gets an index keeps its attributes and their blocks.
  must(fs.mkdir("/d", 0755, kRoot));
  REQUIRE(set(fs, "/d", "user.a", std::string(5000, 'x')) == kNone);
  for (int i = 0; i < 400; ++i) must(fs.mknod("/d/name" + std::to_string(i), 0644, 0, kRoot));
  CHECK(must(fs.directory_info("/d", kRoot)).index_levels > 0);
  memory.require_clean();
  OpenOptions scanned;
  scanned.dir_index = false;
  memory.reopen(scanned);
  must(memory->mknod("/d/another", 0644, 0, kRoot));  // the index goes
  memory.require_clean();
  memory.reopen();
  must(memory->mknod("/d/one more", 0644, 0, kRoot));  // and is made anew
  memory.require_clean();
  CHECK(value_of(memory.fs(), "/d", "user.a") == std::string(5000, 'x'));
}

TEST_CASE("xattr: a change of owner takes security.capability from all but directories, as Linux does", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  Filesystem& fs = memory.fs();
  must(fs.mkdir("/d", 0755, kRoot));
  must(fs.mknod("/p", S_IFIFO | 0755, 0, kRoot));
  SetAttributes change;
  change.gid = 5;
  for (const char* path : {"/d", "/p"}) {
    REQUIRE(set(fs, path, "security.capability", "caps") == kNone);
    must(fs.set_attributes(path, change, kRoot));
    memory.require_clean();
  }
  CHECK(value_of(fs, "/d", "security.capability") == "caps");
  CHECK(get(fs, "/p", "security.capability") == Errc::kNoAttribute);
}

TEST_CASE("xattr: security.capability goes when contents or owner change, in the same commit", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  Filesystem& fs = memory.fs();
  const Attributes file = must(fs.mknod("/f", 0755, 0, kRoot));
  must(fs.write(file.ino, 0, bytes("contents"), kRoot));
  const auto with = [&](std::size_t bytes_of_other) {
    REQUIRE(set(fs, "/f", "security.capability", "caps") == kNone);
    REQUIRE(set(fs, "/f", "user.other", std::string(bytes_of_other, 'o')) == kNone);
    memory.require_clean();
  };
  const auto gone = [&] {
    CHECK(get(fs, "/f", "security.capability") == Errc::kNoAttribute);
    CHECK(get(fs, "/f", "user.other") == kNone);
    memory.require_clean();
  };
  SetAttributes change;
  for (const std::size_t other : {std::size_t{3}, std::size_t{3000}}) {
    with(other);
    const u64 before = thread_counters().fences;
    must(fs.write(file.ino, 0, bytes("C"), kRoot));
    CHECK(thread_counters().fences - before == 2);
    gone();
    with(other);
    must(fs.write(file.ino, 20000, bytes("far"), kRoot));
    gone();
    with(other);
    must(fs.allocate(file.ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096, kRoot));
    gone();
    with(other);
    {
      File open = must(fs.open_file("/f", O_RDWR, 0, kRoot));
      must(fs.write(file.ino, 0, bytes("data"), kRoot));
      REQUIRE(set(fs, "/f", "security.capability", "caps") == kNone);
      must(open.direct(0, 4, DirectUse::kWrite));
    }
    gone();
    with(other);
    change = {};
    change.size_bytes = 4;
    must(fs.set_attributes("/f", change, kRoot));
    gone();
    with(other);
    change = {};
    change.uid = 5;
    must(fs.set_attributes("/f", change, kRoot));
    gone();
  }
  with(3);
  change = {};
  change.mode = 0700;
  must(fs.set_attributes("/f", change, kRoot));
  CHECK(get(fs, "/f", "security.capability") == kNone);
}

TEST_CASE("xattr: a pool made without them has none, and says so", "[fs]") {
  MemoryFs memory(u64{8} << 20);
  must(memory->mknod("/f", 0644, 0, kRoot));
  REQUIRE(set(memory.fs(), "/f", "user.a", "x") == kNone);
  // As an older mkfs made it.
  media::Superblock& sb = volume_of(memory.fs()).superblock;
  sb.ro_compat.set(0);
  CHECK(set(memory.fs(), "/f", "user.b", "x") == Errc::kNotSupported);
  CHECK(code_of(memory->set_acl("/", AclKind::kAccess,
                                {{AclTag::kUserObj, 7, 0}, {AclTag::kGroupObj, 5, 0}, {AclTag::kOther, 5, 0}},
                                kRoot)) == Errc::kNotSupported);
  const CheckReport report = must(check(memory.fs()));
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].code == "inode-reserved");
  sb.ro_compat.set(media::kRoCompatAreas);
  memory.require_clean();
}
