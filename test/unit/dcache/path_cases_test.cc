// The rules of path resolution, one by one: with every resolver, cold, warm, and through pivots; and without a cache.
#include <fcntl.h>

#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

// A file system of each kind that looks up the same way.
class EveryResolver {
 public:
  EveryResolver() {
    for (int kind = 0; kind < 5; ++kind) {
      OpenOptions options;
      options.pivots_adaptive = false;
      options.pivot_period_ms = 60'000;
      if (kind == 0) options.dcache_bytes = 0;
      if (kind == 1) options.resolver = OpenOptions::Resolver::kWalk;
      if (kind == 2) options.resolver = OpenOptions::Resolver::kFullpath;
      if (kind == 3) options.pivots = 256;
      if (kind == 4) options.pivots = 256, options.pivots_hashed = false;
      systems_.push_back(std::make_unique<MemoryFs>(u64{16} << 20, options));
    }
  }

  /// Does something to each of them.
  template <class Body>
  void each(Body&& body) {
    for (const auto& system : systems_) body(system->fs());
  }

  /// What the path leads to, or the error: the same everywhere, cold, warm and behind the end of a period.
  void expect(At at, const Credentials& who, Errc error, u64 ino = 0, Follow follow = Follow::kYes) {
    INFO("path \"" << at.path.substr(0, 100) << "\" from inode " << to_u64(at.dir) << " as " << who.uid);
    for (std::size_t kind = 0; kind < systems_.size(); ++kind)
      for (int round = 0; round < 6; ++round) {
        INFO("system " << kind << ", round " << round);
        Filesystem& fs = systems_[kind]->fs();
        const auto found = fs.stat(at, who, follow);
        REQUIRE(static_cast<int>(found.ok() ? Errc{} : found.error().code) == static_cast<int>(error));
        if (found.ok()) REQUIRE(to_u64(found->ino) == ino);
        // A batch says the same, and so does the walk that tells every component.
        if (!at.path.empty()) {
          std::vector<std::string_view> paths(5, at.path);
          std::vector<Resolved> results(5);
          BatchOptions options;
          options.start = at.dir;
          options.follow = follow;
          must(fs.resolve(paths, results, who, options));
          for (const Resolved& result : results) {
            REQUIRE(static_cast<int>(result.error.value_or(Errc{})) == static_cast<int>(error));
            if (found.ok()) REQUIRE(to_u64(result.attributes.ino) == ino);
          }
          const ResolvedComponents components = must(fs.resolve_components(at, who, follow));
          REQUIRE(static_cast<int>(components.error.value_or(Errc{})) == static_cast<int>(error));
          if (found.ok() && !components.passed.empty()) REQUIRE(to_u64(components.passed.back().attributes.ino) == ino);
        }
        if (round == 3) volume_of(fs).paths.maintain_now();
      }
  }
  u64 ino(std::string_view path) { return to_u64(must(systems_[0]->fs().stat(path, kRoot, Follow::kNo)).ino); }
  void is(At at, const Credentials& who, std::string_view same_as, Follow follow = Follow::kYes) {
    expect(at, who, Errc{}, ino(same_as), follow);
  }
  void mkdir(std::string_view path, u32 mode = 0755) {
    each([&](Filesystem& fs) { must(fs.mkdir(path, mode, kRoot)); });
  }
  void file(std::string_view path) {
    each([&](Filesystem& fs) { must(fs.mknod(path, 0644, 0, kRoot)); });
  }
  void link(std::string_view target, std::string_view path) {
    each([&](Filesystem& fs) { must(fs.symlink(target, path, kRoot)); });
  }
  void set(std::string_view path, u32 mode, u32 uid, u32 gid) {
    SetAttributes change;
    change.mode = mode;
    change.uid = uid;
    change.gid = gid;
    each([&](Filesystem& fs) { must(fs.set_attributes(path, change, kRoot)); });
  }

 private:
  std::vector<std::unique_ptr<MemoryFs>> systems_;
};

Credentials user(u32 uid, u32 gid, std::span<const u32> groups = {}) {
  Credentials who;
  who.uid = uid;
  who.gid = gid;
  who.groups = groups;
  return who;
}

}  // namespace

TEST_CASE("paths: the first class that fits decides: the owner is denied though others are allowed", "[dcache]") {
  EveryResolver all;
  all.mkdir("/a");
  all.mkdir("/a/b");
  all.file("/a/b/f");
  all.set("/a", 0077, 5, 6);
  all.expect("/a/b/f", user(5, 9), Errc::kAccess);
  all.is("/a/b/f", user(9, 6), "/a/b/f");
  all.is("/a/b/f", user(9, 9), "/a/b/f");
  all.set("/a", 0705, 5, 6);
  const u32 group[] = {1, 2, 6};
  all.expect("/a/b/f", user(9, 9, group), Errc::kAccess);  // a supplementary group counts as the group
  all.is("/a/b/f", user(9, 9), "/a/b/f");
  all.set("/a", 0711, 5, 6);
  all.set("/a/b", 0000, 5, 6);
  all.is("/a/b", user(9, 9), "/a/b");
  all.expect("/a/b/f", user(5, 6), Errc::kAccess);
  all.expect("/a/b/missing", user(5, 6), Errc::kAccess);
  all.is("/a/b/f", kRoot, "/a/b/f");
}

TEST_CASE("paths: \"..\" and \".\" need search permission where they stand", "[dcache]") {
  EveryResolver all;
  all.mkdir("/a");
  all.mkdir("/a/d");
  all.mkdir("/b");
  all.file("/f");
  all.is("/a/../b", user(9, 9), "/b");
  all.is("/a/d/../../b/.", user(9, 9), "/b");
  all.is("/..", user(9, 9), "/");
  all.is("/../../b", user(9, 9), "/b");
  all.is("/a/.", user(9, 9), "/a");
  all.expect("/f/.", user(9, 9), Errc::kNotDirectory);
  all.expect("/f/..", user(9, 9), Errc::kNotDirectory);
  all.set("/a", 0600, 9, 9);
  all.expect("/a/../b", user(9, 9), Errc::kAccess);
  all.expect("/a/.", user(9, 9), Errc::kAccess);
  all.is("/a", user(9, 9), "/a");
  all.is("/a/../b", kRoot, "/b");
}

TEST_CASE("paths: slashes", "[dcache]") {
  EveryResolver all;
  all.mkdir("/dir");
  all.file("/dir/file");
  all.link("dir", "/link");
  all.link("dir/file", "/to_file");
  all.is("//dir///file", kRoot, "/dir/file");
  all.is("/dir/", kRoot, "/dir");
  all.is("/dir//", kRoot, "/dir");
  all.is("/", kRoot, "/");
  all.is("///", kRoot, "/");
  all.expect("/dir/file/", kRoot, Errc::kNotDirectory);
  all.expect("/dir/missing/", kRoot, Errc::kNotFound);
  all.is("/link/", kRoot, "/dir", Follow::kNo);  // a slash follows the link
  all.is("/link", kRoot, "/link", Follow::kNo);
  all.expect("/to_file/", kRoot, Errc::kNotDirectory);
  all.expect("", kRoot, Errc::kNotFound);
}

TEST_CASE("paths: a popular file with components left is no directory, and names that begin alike differ", "[dcache]") {
  EveryResolver all;
  all.mkdir("/p");
  all.mkdir("/p/sub");
  all.file("/p/sub/file");
  all.mkdir("/p/subway");
  all.file("/p/subway/file");
  all.is("/p/sub/file", kRoot, "/p/sub/file");  // a pivot from here on
  all.expect("/p/sub/file/below", kRoot, Errc::kNotDirectory);
  all.expect("/p/sub/file/", kRoot, Errc::kNotDirectory);
  all.is("/p/subway/file", kRoot, "/p/subway/file");
  all.expect("/p/su/file", kRoot, Errc::kNotFound);
  all.expect("/p/sub/fil", kRoot, Errc::kNotFound);
  all.expect("/p/sub/file2", kRoot, Errc::kNotFound);
  all.is("/p/sub", kRoot, "/p/sub");
}

TEST_CASE("paths: an ACL names a user and denies what others may, or grants what they may not", "[dcache]") {
  EveryResolver all;
  all.mkdir("/a");
  all.mkdir("/a/b");
  all.mkdir("/a/b/c");
  all.file("/a/b/c/f");
  const u32 in_20[] = {20};
  const auto acl = [&](std::string_view path, u32 bob, u32 group20, u32 mask, u32 other) {
    all.each([&](Filesystem& fs) {
      must(fs.set_acl(path, AclKind::kAccess,
                      {{AclTag::kUserObj, 7, 0}, {AclTag::kUser, bob, 5}, {AclTag::kGroupObj, 0, 0},
                       {AclTag::kGroup, group20, 20}, {AclTag::kMask, mask, 0}, {AclTag::kOther, other, 0}},
                      kRoot));
    });
  };
  const auto mode = [&](std::string_view path, u32 to) {
    SetAttributes change;
    change.mode = to;
    all.each([&](Filesystem& fs) { must(fs.set_attributes(path, change, kRoot)); });
  };
  all.is("/a/b/c/f", user(5, 9), "/a/b/c/f");  // warm, and behind a pivot
  acl("/a/b", 0, 1, 7, 1);
  all.expect("/a/b/c/f", user(5, 9), Errc::kAccess);
  all.expect("/a/b/missing", user(5, 9), Errc::kAccess);
  all.expect("/a/b/.", user(5, 9), Errc::kAccess);
  all.expect("/a/b/..", user(5, 9), Errc::kAccess);
  all.is("/a/b", user(5, 9), "/a/b");
  all.is("/a/b/c/f", user(6, 9), "/a/b/c/f");
  all.is("/a/b/c/f", user(6, 9, in_20), "/a/b/c/f");
  all.expect("/a/b/c/f", user(5, 9, in_20), Errc::kAccess);  // who is named is not judged by groups
  all.is("/a/b/c/f", kRoot, "/a/b/c/f");
  acl("/a/b", 1, 0, 7, 0);
  all.is("/a/b/c/f", user(5, 9), "/a/b/c/f");
  all.expect("/a/b/c/f", user(6, 9), Errc::kAccess);
  all.expect("/a/b/c/f", user(6, 9, in_20), Errc::kAccess);
  acl("/a/b", 1, 1, 6, 0);  // the mask takes it
  all.expect("/a/b/c/f", user(5, 9), Errc::kAccess);
  all.expect("/a/b/c/f", user(6, 9, in_20), Errc::kAccess);
  mode("/a/b", 0710);  // which chmod changes
  all.is("/a/b/c/f", user(5, 9), "/a/b/c/f");
  all.is("/a/b/c/f", user(6, 9, in_20), "/a/b/c/f");
  all.expect("/a/b/c/f", user(6, 9), Errc::kAccess);
  // Without its ACL what was the mask is the group's.
  all.each([&](Filesystem& fs) { must(fs.set_acl("/a/b", AclKind::kAccess, {}, kRoot)); });
  all.expect("/a/b/c/f", user(5, 9), Errc::kAccess);
  mode("/a/b", 0755);
  all.is("/a/b/c/f", user(5, 9), "/a/b/c/f");
  // Two on the way, and one inherited.
  acl("/", 1, 1, 7, 1);
  acl("/a", 1, 1, 7, 1);
  all.is("/a/b/c/f", user(5, 9), "/a/b/c/f");
  acl("/", 0, 1, 7, 1);
  all.expect("/a/b/c/f", user(5, 9), Errc::kAccess);
  all.is({InodeNo{all.ino("/a/b")}, "c/f"}, user(5, 9), "/a/b/c/f");
  acl("/", 1, 1, 7, 1);
  all.each([&](Filesystem& fs) {
    must(fs.set_acl("/a", AclKind::kDefault,
                    {{AclTag::kUserObj, 7, 0}, {AclTag::kUser, 0, 5}, {AclTag::kGroupObj, 5, 0}, {AclTag::kMask, 7, 0},
                     {AclTag::kOther, 5, 0}},
                    kRoot));
  });
  all.mkdir("/a/new");
  all.file("/a/new/f");
  all.is("/a/new/f", user(6, 9), "/a/new/f");
  all.expect("/a/new/f", user(5, 9), Errc::kAccess);
}

TEST_CASE("paths: whether an answer by uid and gid alone holds for whatever else is true of who asks", "[dcache]") {
  EveryResolver all;
  all.mkdir("/a");
  all.file("/a/f");
  all.each([&](Filesystem& fs) {
    must(fs.set_acl("/a", AclKind::kAccess,
                    {{AclTag::kUserObj, 7, 0}, {AclTag::kUser, 1, 5}, {AclTag::kUser, 0, 6}, {AclTag::kGroupObj, 1, 0},
                     {AclTag::kGroup, 0, 20}, {AclTag::kMask, 7, 0}, {AclTag::kOther, 1, 0}},
                    kRoot));
    const auto depends = [&](u32 uid, u32 gid) {
      bool answer = false;
      Credentials who = user(uid, gid);
      who.privilege = Credentials::Privilege::kNone;
      who.depends = &answer;
      for (int round = 0; round < 3; ++round) (void)fs.stat("/a/f", who);
      return answer;
    };
    REQUIRE(!depends(5, 9));   // named, and granted
    REQUIRE(depends(6, 9));    // named, and denied: privileges could lead to another answer
    REQUIRE(!depends(7, 0));   // his own group is the owning one, and may
    REQUIRE(depends(7, 20));   // his own group may not; another could
    REQUIRE(depends(7, 9));    // as one of the others he may, but he could be in group 20
    REQUIRE(!depends(0, 9));   // the owner
  });
}

TEST_CASE("paths: a relative path is not checked above its start", "[dcache]") {
  EveryResolver all;
  all.mkdir("/shut");
  all.mkdir("/shut/in");
  all.mkdir("/shut/in/deep");
  all.file("/shut/in/deep/f");
  const InodeNo in{all.ino("/shut/in")};
  all.set("/shut", 0700, 5, 5);
  all.expect("/shut/in/deep/f", user(9, 9), Errc::kAccess);
  all.is({in, "deep/f"}, user(9, 9), "/shut/in/deep/f");
  all.is({in, "./deep/../deep"}, user(9, 9), "/shut/in/deep");
  all.is({in, ".."}, user(9, 9), "/shut");
  all.expect({in, "../in"}, user(9, 9), Errc::kAccess);
  all.is({in, "/"}, user(9, 9), "/");
  all.is({kRootIno, "shut"}, user(9, 9), "/shut");
  all.expect({InodeNo{all.ino("/shut/in/deep/f")}, "x"}, user(9, 9), Errc::kNotDirectory);
  all.expect({InodeNo{1 << 20}, "x"}, user(9, 9), Errc::kStale);
  all.expect({kNoInode, "x"}, user(9, 9), Errc::kStale);
}

TEST_CASE("paths: symbolic links, absolute and relative, forty hops and a loop", "[dcache]") {
  EveryResolver all;
  all.mkdir("/d");
  all.mkdir("/d/e");
  all.file("/d/e/f");
  all.link("e/f", "/d/relative");
  all.link("../d/e", "/d/up");
  all.link("/d/e", "/absolute");
  all.link("/", "/top");
  all.link("nowhere/x", "/dangling");
  all.link("self", "/self");
  all.is("/d/relative", kRoot, "/d/e/f");
  all.is("/d/relative", kRoot, "/d/relative", Follow::kNo);
  all.is("/d/up/f", kRoot, "/d/e/f");
  all.is("/absolute/f", kRoot, "/d/e/f");
  all.is({InodeNo{all.ino("/d")}, "../absolute/f"}, kRoot, "/d/e/f");
  all.is("/top", kRoot, "/");
  all.is("/top/top/d/up/../relative", kRoot, "/d/e/f");
  all.expect("/dangling", kRoot, Errc::kNotFound);
  all.is("/dangling", kRoot, "/dangling", Follow::kNo);
  all.expect("/self", kRoot, Errc::kLoop);
  all.expect("/self/x", kRoot, Errc::kLoop);
  all.is("/self", kRoot, "/self", Follow::kNo);
  all.link("d/e/f", "/hop1");
  for (int i = 2; i <= 41; ++i) all.link("hop" + std::to_string(i - 1), "/hop" + std::to_string(i));
  all.is("/hop40", kRoot, "/d/e/f");
  all.expect("/hop41", kRoot, Errc::kLoop);
}

TEST_CASE("paths: an over-long name is only seen where the walk gets to", "[dcache]") {
  EveryResolver all;
  const std::string longest(kNameMax, 'n'), over(kNameMax + 1, 'n');
  all.mkdir("/d");
  all.file("/d/" + longest);
  all.is("/d/" + longest, kRoot, "/d/" + longest);
  all.expect("/d/" + over, kRoot, Errc::kNameTooLong);
  all.expect("/d/" + over + "/x", kRoot, Errc::kNameTooLong);
  all.expect("/missing/" + over, kRoot, Errc::kNotFound);
  all.expect("/d/" + longest + "/" + over, kRoot, Errc::kNotDirectory);
  all.expect("/" + std::string(kPathMax, 'x'), kRoot, Errc::kNameTooLong);
}

TEST_CASE("paths: a deep tree, beyond what a pivot or one piece of a scan holds", "[dcache]") {
  EveryResolver all;
  std::string path;
  for (int i = 0; i < 70; ++i) {
    path += "/level" + std::to_string(i);
    all.mkdir(path);
    if (i % 7 == 0) all.is(path, user(9, 9), path);
  }
  all.file(path + "/file");
  all.is(path + "/file", user(9, 9), path + "/file");
  all.expect(path + "/missing", user(9, 9), Errc::kNotFound);
  all.is(path + "/../../level68/level69/file", user(9, 9), path + "/file");
}

TEST_CASE("paths: what was swapped, re-created or reused is never mistaken for what was there", "[dcache]") {
  EveryResolver all;
  all.mkdir("/d");
  all.file("/one");
  all.file("/two");
  all.link("/one", "/link");
  all.is("/link", kRoot, "/one");
  all.link("/two", "/link2");
  all.each([](Filesystem& fs) { must(fs.rename("/link2", "/link", 0, kRoot)); });
  all.is("/link", kRoot, "/two");

  // A directory removed and made again has the same name and perhaps the same inode number; its names are gone.
  for (int round = 0; round < 4; ++round) {
    all.file("/d/f");
    all.is("/d/f", kRoot, "/d/f");
    all.expect("/d/g", kRoot, Errc::kNotFound);
    all.each([](Filesystem& fs) {
      must(fs.unlink("/d/f", kRoot));
      must(fs.rmdir("/d", kRoot));
    });
    all.expect("/d/f", kRoot, Errc::kNotFound);
    all.expect("/d", kRoot, Errc::kNotFound);
    all.mkdir("/d");
    all.expect("/d/f", kRoot, Errc::kNotFound);
    all.file("/d/g");
    all.is("/d/g", kRoot, "/d/g");
    all.each([](Filesystem& fs) { must(fs.unlink("/d/g", kRoot)); });
  }

  // Inode numbers are reused: by a file for a directory's, by a directory for a file's.
  for (int round = 0; round < 8; ++round) {
    const std::string a = "/reuse" + std::to_string(round), b = "/other" + std::to_string(round);
    all.mkdir(a);
    all.expect(a + "/x", kRoot, Errc::kNotFound);
    all.each([&](Filesystem& fs) { must(fs.rmdir(a, kRoot)); });
    all.file(b);
    all.expect(b + "/x", kRoot, Errc::kNotDirectory);
    all.expect(a + "/x", kRoot, Errc::kNotFound);
    all.each([&](Filesystem& fs) { must(fs.unlink(b, kRoot)); });
    all.mkdir(b);
    all.expect(b + "/x", kRoot, Errc::kNotFound);
  }

  // A renamed directory takes what is below along; its old name leads nowhere.
  all.mkdir("/from");
  all.mkdir("/from/sub");
  all.file("/from/sub/f");
  all.mkdir("/to");
  all.is("/from/sub/f", kRoot, "/from/sub/f");
  all.is("/from/sub/..", kRoot, "/from");
  all.each([](Filesystem& fs) { must(fs.rename("/from/sub", "/to/sub", 0, kRoot)); });
  all.expect("/from/sub/f", kRoot, Errc::kNotFound);
  all.is("/to/sub/f", kRoot, "/to/sub/f");
  all.is("/to/sub/..", kRoot, "/to");
  all.each([](Filesystem& fs) { must(fs.rename("/to", "/from", 1 << 1, kRoot)); });
  all.is("/from/sub/f", kRoot, "/from/sub/f");
  all.expect("/to/sub/f", kRoot, Errc::kNotFound);
}

TEST_CASE("paths: resolve_components tells every component, links and their targets' components included", "[dcache]") {
  EveryResolver all;
  all.mkdir("/a");
  all.mkdir("/a/b");
  all.file("/a/b/f");
  all.link("/a", "/link");
  all.each([&](Filesystem& fs) {
    for (int round = 0; round < 3; ++round) {
      const ResolvedComponents c = must(fs.resolve_components("/link/b/f", kRoot));
      REQUIRE(!c.error.has_value());
      std::vector<std::string> names;
      for (const PassedComponent& passed : c.passed) names.push_back(passed.name);
      REQUIRE(names == std::vector<std::string>{"link", "a", "b", "f"});
      REQUIRE(c.passed[0].attributes.type() == FileType::kSymlink);
      REQUIRE(to_u64(c.passed[2].attributes.ino) == all.ino("/a/b"));
      REQUIRE(c.passed[3].attributes.type() == FileType::kRegular);
      const ResolvedComponents missing = must(fs.resolve_components("/a/b/x/y", kRoot));
      REQUIRE(missing.error == Errc::kNotFound);
      REQUIRE(missing.passed.size() == 2);
    }
  });
}
