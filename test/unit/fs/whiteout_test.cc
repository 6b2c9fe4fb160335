// RENAME_WHITEOUT: what was renamed leaves a character device 0:0 behind. The same calls are made on the machine's own
// file system in memory, and answered alike.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "test/support/memory_fs.h"
#include "test/support/scratch.h"
#include "test/support/text.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE (1 << 1)
#endif
#ifndef RENAME_WHITEOUT
#define RENAME_WHITEOUT (1 << 2)
#endif

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

Credentials user(u32 id) {
  Credentials who;
  who.uid = who.gid = id;
  return who;
}

// What two file systems show of a name: its type, mode, device, links; or nothing.
std::string shown(const struct stat& s) { return text(std::oct, s.st_mode, std::dec, " ", s.st_rdev, " ", s.st_nlink); }
std::string shown(Filesystem& fs, const std::string& path) {
  const auto a = fs.stat(path, kRoot, Follow::kNo);
  return a.ok() ? text(std::oct, a->mode, std::dec, " ", a->rdev, " ", a->links) : "nothing";
}
std::string shown(const std::string& path) {
  struct stat s {};
  return ::lstat(path.c_str(), &s) == 0 ? shown(s) : "nothing";
}

}  // namespace

TEST_CASE("whiteout: the flags and what they leave are Linux's", "[unit][fs]") {
  struct Call {
    const char* from;
    const char* to;
    unsigned flags;
  };
  const Call calls[] = {
      {"/a", "/n", RENAME_WHITEOUT},
      {"/a", "/b", RENAME_WHITEOUT},
      {"/a", "/b", RENAME_WHITEOUT | RENAME_NOREPLACE},
      {"/a", "/n", RENAME_WHITEOUT | RENAME_NOREPLACE},
      {"/a", "/b", RENAME_WHITEOUT | RENAME_EXCHANGE},
      {"/a", "/b", RENAME_WHITEOUT | RENAME_EXCHANGE | RENAME_NOREPLACE},
      {"/a", "/b", 8},
      {"/none", "/n", RENAME_WHITEOUT},
      {"/a", "/d/n", RENAME_WHITEOUT},
      {"/a", "/d/c", RENAME_WHITEOUT},
      {"/a", "/d", RENAME_WHITEOUT},
      {"/d", "/b", RENAME_WHITEOUT},
      {"/d", "/n", RENAME_WHITEOUT},
      {"/d", "/e/n", RENAME_WHITEOUT},
      {"/d", "/e", RENAME_WHITEOUT},
      {"/d", "/d/n", RENAME_WHITEOUT},
      {"/a", "/a", RENAME_WHITEOUT},
      {"/hard", "/a", RENAME_WHITEOUT},  // two names of one file: nothing happens
  };
  for (const Call& call : calls) {
    INFO(call.from << " to " << call.to << ", flags " << call.flags);
    MemoryFs fs(u64{8} << 20);
    const Scratch host;
    REQUIRE(::chmod(host.dir().c_str(), 0755) == 0);
    for (const char* dir : {"/d", "/e"}) {
      must(fs->mkdir(dir, 0755, kRoot));
      REQUIRE(::mkdir((host.dir() + dir).c_str(), 0755) == 0);
    }
    for (const char* file : {"/a", "/b", "/d/c"}) {
      must(fs->mknod(file, 0644, 0, kRoot));
      REQUIRE(::mknod((host.dir() + file).c_str(), S_IFREG | 0644, 0) == 0);
    }
    must(fs->link("/a", "/hard", kRoot));
    REQUIRE(::link((host.dir() + "/a").c_str(), (host.dir() + "/hard").c_str()) == 0);
    const auto ours = fs->rename(call.from, call.to, call.flags, kRoot);
    const long theirs = ::syscall(SYS_renameat2, AT_FDCWD, (host.dir() + call.from).c_str(), AT_FDCWD,
                                  (host.dir() + call.to).c_str(), call.flags);
    CHECK((ours.ok() ? 0 : to_errno(ours.error().code)) == (theirs == 0 ? 0 : errno));
    for (const std::string name : {"/a", "/b", "/d", "/d/c", "/d/n", "/e", "/e/n", "/n", "/n/c", "/hard", "/"}) {
      INFO(name);
      CHECK(shown(fs.fs(), name) == shown(host.dir() + name));
    }
    fs.require_clean();
  }
}

TEST_CASE("whiteout: it belongs to who renames, and the group to a set-group-id directory", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  must(fs->mkdir("/d", 0777, kRoot));
  must(fs->mknod("/d/f", 0644, 0, user(7)));
  must(fs->rename("/d/f", "/d/g", RENAME_WHITEOUT, user(7)));
  Attributes a = must(fs->stat("/d/f", kRoot, Follow::kNo));
  CHECK(a.uid == 7);
  CHECK(a.gid == 7);
  CHECK(a.mode == S_IFCHR);
  must(fs->set_attributes("/d", {.mode = 02777, .gid = 5}, kRoot));
  must(fs->rename("/d/g", "/d/h", RENAME_WHITEOUT, user(7)));
  a = must(fs->stat("/d/g", kRoot, Follow::kNo));
  CHECK(a.gid == 5);
}

TEST_CASE("whiteout: any user may make one by mknod, and no other device", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  must(fs->set_attributes("/", {.mode = 0777}, kRoot));
  CHECK(fs->mknod("/w", S_IFCHR | 0600, 0, user(7)).ok());
  CHECK(code_of(fs->mknod("/x", S_IFCHR | 0600, 1, user(7))) == Errc::kPermission);
  CHECK(code_of(fs->mknod("/x", S_IFBLK | 0600, 0, user(7))) == Errc::kPermission);
}

TEST_CASE("whiteout: the old name is never missing from the cache of paths", "[unit][fs]") {
  for (const auto resolver :
       {OpenOptions::Resolver::kWalk, OpenOptions::Resolver::kStage, OpenOptions::Resolver::kFullpath}) {
    OpenOptions options;
    options.resolver = resolver;
    MemoryFs fs(u64{8} << 20, options);
    must(fs->mkdir("/d", 0755, kRoot));
    for (int i = 0; i < 300; ++i) {  // leaves are split under the entries that are renamed
      const std::string from = text("/d/", std::string(60, 'f'), i), to = text("/d/", std::string(200, 't'), i);
      must(fs->mknod(from, 0644, 0, kRoot));
      const InodeNo ino = must(fs->stat(from, kRoot)).ino;
      must(fs->rename(from, to, RENAME_WHITEOUT, kRoot));
      CHECK(must(fs->stat(to, kRoot)).ino == ino);
      const Attributes white = must(fs->stat(from, kRoot, Follow::kNo));
      CHECK(white.mode == S_IFCHR);
      CHECK(white.rdev == 0);
    }
    fs.require_clean();
  }
}
