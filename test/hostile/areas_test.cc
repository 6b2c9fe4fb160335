// Damaged attributes and ACLs, with checksums made right: each field by itself, then random bytes. Every call answers
// with a typed error or an answer, check says what is wrong, and nothing crashes or hangs.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "base/checksum.h"
#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

Credentials somebody() {
  Credentials who;
  who.uid = 1000;
  who.gid = 1000;
  return who;
}

// A directory and a file with areas in blocks or in the inode, and ways to spoil them.
class Victim {
 public:
  explicit Victim(bool large) {
    must(memory->mkdir("/d", 0777, kRoot));
    must(memory->mknod("/d/f", 0666, 0, kRoot));
    for (const char* path : {"/d", "/d/f"}) {
      set(path, "user.a", large ? 5000 : 10);
      set(path, "trusted.b", 20);
      Acl acl{{AclTag::kUserObj, 7, 0}, {AclTag::kGroupObj, 5, 0}, {AclTag::kMask, 7, 0}, {AclTag::kOther, 5, 0}};
      for (u32 i = 0; i < (large ? 40 : 2); ++i) acl.push_back({AclTag::kUser, 7, 1000 + i});
      must(memory->set_acl(path, AclKind::kAccess, acl, kRoot));
    }
    memory.require_clean();
  }
  void set(const char* path, const char* name, std::size_t bytes) {
    const std::string value(bytes, 'v');
    must(memory->set_xattr(path, name, std::as_bytes(std::span(value)), 0, kRoot));
  }
  media::Inode& inode(std::string_view path) {
    return volume_of(memory.fs()).inodes.slot(to_u64(must(memory->stat(path, kRoot)).ino) - 1);
  }
  std::byte* area(u64 reference) { return memory.memory().at(PoolOff{(reference >> 23) * kBlockBytes}); }
  media::AreaHeader& header(u64 reference) { return *reinterpret_cast<media::AreaHeader*>(area(reference)); }
  void seal(u64 reference) {
    media::AreaHeader& h = header(reference);
    const u64 bytes = std::min<u64>(h.length_bytes.get(), 60000);
    h.checksum.set(checksum64(
        area(reference) + sizeof(h), bytes,
        checksum64(&h, offsetof(media::AreaHeader, checksum), volume_of(memory.fs()).superblock.hash_seed.get())));
  }
  bool finds(std::string_view code) {
    for (const Finding& finding : must(check(memory.fs())).findings)
      if (finding.code == code) return true;
    return false;
  }
  // Everything that reads or changes them. Answers do not matter.
  void use(const char* path) {
    Filesystem& fs = memory.fs();
    std::string room(65536, '\0');
    const auto bytes = std::as_writable_bytes(std::span(room));
    for (const Credentials& who : {kRoot, somebody()}) {
      for (const char* name : {"user.a", "trusted.b", "system.posix_acl_access", "system.posix_acl_default"})
        (void)fs.get_xattr(path, name, bytes, who);
      (void)fs.list_xattrs(path, room, who);
      (void)fs.access(path, R_OK | W_OK, who);
      (void)fs.stat("/d/f", who);
      (void)fs.stat("/d/missing", who);
      (void)fs.mknod("/d/new", 0644, 0, who);
      (void)fs.unlink("/d/new", who);
    }
    (void)check(fs);
    (void)survey(fs);
    (void)dump(fs, [](std::string_view) {});
  }

  MemoryFs memory{u64{8} << 20};
};

}  // namespace

TEST_CASE("hostile: each field of an area in blocks", "[hostile]") {
  const auto spoil = [](const char* what, auto&& change) {
    INFO(what);
    for (const bool acl : {false, true}) {
      Victim v(true);
      const u64 reference = acl ? v.inode("/d/f").acl_ref.get() : v.inode("/d/f").xattr_ref.get();
      REQUIRE((reference & 3) == 1);
      change(v, reference);
      CHECK(v.finds(acl ? "acl-damaged" : "xattr-damaged"));
      std::byte room[8];
      if (acl) {
        CHECK(code_of(v.memory->access("/d/f", R_OK, somebody())) == Errc::kCorrupt);
        CHECK(v.memory->access("/d/f", R_OK, kRoot).ok());
      } else {
        CHECK(code_of(v.memory->get_xattr("/d/f", "user.a", room, kRoot)) == Errc::kCorrupt);
        CHECK(code_of(v.memory->set_xattr("/d/f", "user.a", room, 0, kRoot)) == Errc::kCorrupt);
        CHECK(code_of(v.memory->remove_xattr("/d/f", "user.a", kRoot)) == Errc::kCorrupt);
      }
      CHECK(code_of(v.memory->list_xattrs("/d/f", {}, kRoot)) == Errc::kCorrupt);
      v.use("/d/f");
      must(v.memory->unlink("/d/f", kRoot));  // it can be got rid of
    }
  };
  spoil("magic", [](Victim& v, u64 r) { v.header(r).magic.set(1), v.seal(r); });
  spoil("kind", [](Victim& v, u64 r) { v.header(r).kind.set(3), v.seal(r); });
  spoil("owner", [](Victim& v, u64 r) { v.header(r).owner.set(7), v.seal(r); });
  spoil("length 0", [](Victim& v, u64 r) { v.header(r).length_bytes.set(0), v.seal(r); });
  spoil("length of a block more",
        [](Victim& v, u64 r) { v.header(r).length_bytes.set(v.header(r).length_bytes.get() + 4096), v.seal(r); });
  spoil("length without end", [](Victim& v, u64 r) { v.header(r).length_bytes.set(~u64{0}), v.seal(r); });
  spoil("length cut",
        [](Victim& v, u64 r) { v.header(r).length_bytes.set(v.header(r).length_bytes.get() - 3), v.seal(r); });
  spoil("checksum", [](Victim& v, u64 r) { v.header(r).checksum.set(1); });
  spoil("bytes", [](Victim& v, u64 r) { v.area(r)[40] ^= std::byte{1}; });
  spoil("first byte of an entry", [](Victim& v, u64 r) { v.area(r)[32] = std::byte{9}, v.seal(r); });
  spoil("second byte of an entry", [](Victim& v, u64 r) { v.area(r)[33] = std::byte{255}, v.seal(r); });
  spoil("second byte of an entry, zero", [](Victim& v, u64 r) { v.area(r)[33] = std::byte{0}, v.seal(r); });
  spoil("reserved byte of an entry", [](Victim& v, u64 r) { v.area(r)[35] = std::byte{1}, v.seal(r); });
  spoil("last word of an entry", [](Victim& v, u64 r) { std::memset(v.area(r) + 36, 255, 4), v.seal(r); });
}

TEST_CASE("hostile: reference words", "[hostile]") {
  const u64 words[] = {2,
                       7,
                       3 | 4 << 8 | 8 << 16,
                       3 | 120 << 8 | 16 << 16,
                       3 | 255 << 16,
                       3 | 0 << 16,
                       ~u64{0},
                       u64{1} << 40,
                       1 | 1 << 3,
                       1 | 1 << 3 | u64{1} << 50,
                       2 | 4096,
                       3 | 8 << 16 | u64{1} << 30,
                       1 | 1 << 3 | 1 << 2 | u64{3} << 23};
  for (const bool large : {false, true}) {
    for (const u64 word : words) {
      INFO(std::hex << word);
      Victim v(large);
      v.inode("/d/f").xattr_ref.set(word);
      CHECK(v.finds("xattr-damaged"));
      CHECK(code_of(v.memory->get_xattr("/d/f", "user.a", {}, kRoot)) == Errc::kCorrupt);
      v.use("/d/f");
    }
    for (const u64 word : words) {
      INFO("ACL " << std::hex << word);
      Victim v(large);
      v.inode("/d").acl_ref.set(word);
      CHECK(v.finds("acl-damaged"));
      CHECK(code_of(v.memory->stat("/d/f", somebody())) == Errc::kCorrupt);
      CHECK(v.memory->stat("/d/f", kRoot).ok());
      v.use("/d");
    }
  }
}

TEST_CASE("hostile: what two areas, or an area and a file, have in common", "[hostile]") {
  Victim v(true);
  SECTION("blocks of another inode") {
    v.inode("/d").xattr_ref.set(v.inode("/d/f").xattr_ref.get());
    CHECK(v.finds("block-owned-twice"));
    CHECK(v.finds("xattr-damaged"));
    CHECK(code_of(v.memory->get_xattr("/d", "user.a", {}, kRoot)) == Errc::kCorrupt);
  }
  SECTION("blocks of the other area") {
    v.inode("/d").acl_ref.set(v.inode("/d").xattr_ref.get());
    CHECK(v.finds("block-owned-twice"));
    CHECK(v.finds("acl-damaged"));
  }
  SECTION("a flag without its list") {
    Le64& word = v.inode("/d/f").mode_links;
    word.set(word.get() & ~u64{media::kModeHasAcl});
    CHECK(v.finds("acl-damaged"));
  }
  SECTION("a flag without its attribute") {
    Le64& word = v.inode("/d/f").mode_links;
    word.set(word.get() | media::kModeHasCapability);
    CHECK(v.finds("xattr-damaged"));
    must(v.memory->write(must(v.memory->stat("/d/f", kRoot)).ino, 0, std::as_bytes(std::span("x", 1)), kRoot));
  }
  SECTION("more blocks than are counted") {
    v.inode("/d/f").blocks.set(1);
    CHECK(v.finds("block-count"));
  }
  v.use("/d");
  v.use("/d/f");
}

TEST_CASE("hostile: two areas inside an inode lie over each other", "[hostile]") {
  Victim v(false);
  const u64 acl = v.inode("/d/f").acl_ref.get();
  REQUIRE((acl & 3) == 3);
  v.inode("/d/f").xattr_ref.set((acl & ~u64{0xff00}) | 8 << 8);
  CHECK(v.finds("xattr-damaged"));
  v.use("/d/f");
}

TEST_CASE("hostile: an attribute twice, and attributes out of order", "[hostile]") {
  Victim v(false);
  media::Inode& inode = v.inode("/d/f");
  u8* const second = inode.inline_data + (inode.xattr_ref.get() >> 8 & 255) + 8 + 1 + 10;
  REQUIRE(second[0] == media::kSpaceTrusted);
  REQUIRE(second[8] == 'b');
  second[0] = media::kSpaceUser;
  CHECK(!v.finds("xattr-damaged"));
  second[8] = 'a';
  CHECK(v.finds("xattr-damaged"));
  second[8] = 'A';
  CHECK(v.finds("xattr-damaged"));
  v.use("/d/f");
}

TEST_CASE("hostile: random bytes in areas and their words, sealed", "[hostile]") {
  const char* const given = std::getenv("PMFS_SEED");
  const u64 first = given != nullptr ? std::strtoull(given, nullptr, 0) : 1;
  const u64 rounds = given != nullptr ? 1 : std::getenv("PMFS_LONG") != nullptr ? 5000 : 150;
  for (u64 seed = first; seed < first + rounds; ++seed) {
    INFO("PMFS_SEED=" << seed);
    std::mt19937_64 random(seed);
    Victim v(seed % 2 == 0);
    for (u64 changes = 1 + random() % 4; changes > 0; --changes) {
      media::Inode& inode = v.inode(random() % 2 == 0 ? "/d" : "/d/f");
      const u64 reference = random() % 2 == 0 ? inode.acl_ref.get() : inode.xattr_ref.get();
      if (random() % 8 == 0) {
        Le64& word = random() % 2 == 0 ? inode.acl_ref : inode.xattr_ref;
        word.set(word.get() ^ u64{1} << random() % 64);
        break;  // where it leads is not ours to write to
      }
      const auto byte = static_cast<std::byte>(random());
      if ((reference & 3) == 1) {
        v.area(reference)[random() % 2 == 0 ? 32 + random() % 400 : 8 + random() % 16] = byte;
        v.seal(reference);
      } else {
        inode.inline_data[random() % sizeof(inode.inline_data)] = static_cast<u8>(byte);
      }
    }
    v.use("/d");
    v.use("/d/f");
    (void)v.memory->set_acl("/d/f", AclKind::kAccess, {}, kRoot);
    (void)v.memory->remove_xattr("/d/f", "user.a", kRoot);
    v.use("/d/f");
    (void)v.memory->unlink("/d/f", kRoot);
  }
}
