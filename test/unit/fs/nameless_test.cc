// Files without names (O_TMPFILE), and handles {inode, generation}.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "fs/volume.h"
#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

Credentials user(u32 id) {
  Credentials who;
  who.uid = who.gid = id;
  return who;
}

const std::vector<std::byte> kData(9000, std::byte{0x5a});

File nameless(MemoryFs& fs, int more = 0) { return must(fs->open_file("/", O_TMPFILE | O_RDWR | more, 0640, kRoot)); }

}  // namespace

TEST_CASE("nameless: it is a file like any other, without a link", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  Credentials who = user(7);
  who.umask = 027;
  must(fs->set_attributes("/", {.mode = 0777}, kRoot));
  const File file = must(fs->open_file("/", O_TMPFILE | O_RDWR, 06666, who));
  const Attributes a = must(file.stat());
  CHECK(a.mode == (S_IFREG | 06640));
  CHECK(a.links == 0);
  CHECK(a.uid == 7);
  must(file.write(0, kData));
  CHECK(must(file.stat()).size_bytes == kData.size());
  must(fs->set_attributes(At::inode(file.ino()), {.mode = 0600}, who));
  must(file.truncate(100));
  must(file.sync());
  CHECK(must(fs->stat("/", kRoot)).links == 2);
  fs.require_clean();
}

TEST_CASE("nameless: linked once, it is an ordinary file", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  InodeNo ino{};
  u64 generation = 0;
  {
    const File file = nameless(fs);
    must(file.write(0, kData));
    ino = file.ino();
    generation = must(file.stat()).generation;
    const Attributes a = must(fs->link(At::inode(ino), "/f", kRoot));
    CHECK(a.links == 1);
    must(fs->link(At::inode(ino), "/g", kRoot));
    CHECK(must(file.stat()).links == 2);
  }
  fs.require_clean();
  fs.reopen_after_kill();
  const Attributes a = must(fs->stat("/f", kRoot));
  CHECK(a.ino == ino);
  CHECK(a.generation == generation);
  CHECK(a.size_bytes == kData.size());
  must(fs->unlink("/f", kRoot));
  must(fs->unlink("/g", kRoot));
  fs.require_clean();
}

TEST_CASE("nameless: with O_EXCL, or once its names are gone, it gets no name", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const File exclusive = nameless(fs, O_EXCL);
  CHECK(code_of(fs->link(At::inode(exclusive.ino()), "/f", kRoot)) == Errc::kNotFound);
  const File file = nameless(fs);
  must(fs->link(At::inode(file.ino()), "/f", kRoot));
  must(fs->unlink("/f", kRoot));
  CHECK(code_of(fs->link(At::inode(file.ino()), "/f", kRoot)) == Errc::kNotFound);
  CHECK(code_of(fs->stat("/f", kRoot)) == Errc::kNotFound);
}

TEST_CASE("nameless: the last close gives all back, without a fence", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const SpaceInfo before = must(fs->space());
  {
    File file = nameless(fs);
    must(file.write(0, kData));
    CHECK(must(fs->space()).blocks_free < before.blocks_free);
    const u64 fences = thread_counters().fences;
    must(file.close());
    CHECK(thread_counters().fences == fences);
  }
  CHECK(must(fs->space()).blocks_free == before.blocks_free);
  CHECK(must(fs->space()).inodes_free == before.inodes_free);
  fs.require_clean();
}

TEST_CASE("nameless: a killed process leaves nothing of it", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const u64 before = must(fs->space()).blocks_free;
  static File* file;  // never closed, and not lost
  file = new File(nameless(fs));
  must(file->write(0, kData));
  fs.reopen_after_kill();
  CHECK(must(fs->space()).blocks_free == before);
  fs.require_clean();
}

TEST_CASE("nameless: one fence", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const u64 fences = thread_counters().fences;
  const File file = nameless(fs);
  CHECK(thread_counters().fences - fences == 1);
  must(fs->link(At::inode(file.ino()), "/f", kRoot));
  CHECK(thread_counters().fences - fences == 3);
}

TEST_CASE("nameless: who may not make files there, and what is no directory, is refused as Linux does", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  must(fs->mknod("/f", 0666, 0, kRoot));
  must(fs->mkdir("/d", 0555, kRoot));
  must(fs->symlink("d", "/link", kRoot));
  const auto open = [&](const char* path, int flags, const Credentials& who) {
    return code_of(fs->open_file(path, flags | O_TMPFILE, 0600, who));
  };
  CHECK(open("/", O_RDONLY, kRoot) == Errc::kInvalid);
  CHECK(open("/", O_RDWR | O_CREAT, kRoot) == Errc::kInvalid);
  CHECK(open("/f", O_RDWR, kRoot) == Errc::kNotDirectory);
  CHECK(open("/none", O_RDWR, kRoot) == Errc::kNotFound);
  CHECK(open("/d", O_RDWR, user(7)) == Errc::kAccess);
  CHECK(open("/link", O_RDWR | O_NOFOLLOW, kRoot) == Errc::kNotDirectory);
  CHECK(fs->open_file("/link", O_TMPFILE | O_WRONLY, 0600, kRoot).ok());
}

TEST_CASE("nameless: many, beside creates, while the inode file grows", "[unit][fs]") {
  MemoryFs fs(u64{16} << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::vector<File> files;
      for (int i = 0; i < 150; ++i) {
        auto file = fs->open_file("/", O_TMPFILE | O_RDWR, 0600, kRoot);
        if (!file.ok()) std::abort();
        const std::string name = "/" + std::to_string(t) + "-" + std::to_string(i);
        if (i % 3 == 0 && !fs->link(At::inode(file->ino()), name, kRoot).ok()) std::abort();
        if (i % 3 == 1 && !fs->mknod(name, 0600, 0, kRoot).ok()) std::abort();
        if (i % 3 == 2) files.push_back(std::move(*file));
      }
    });
  for (std::thread& thread : threads) thread.join();
  fs.require_clean();
  Dir dir = must(fs->open_dir("/", kRoot));
  DirEntry entry;
  int names = 0;
  for (u64 cookie = 0; must(dir.read(cookie, entry)); cookie = entry.cookie) ++names;
  CHECK(names == 2 + 300);
}

TEST_CASE("handles: they lead to the same inode after a remount, and to nobody else's", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const Attributes a = must(fs->mknod("/f", 0644, 0, kRoot));
  const Attributes d = must(fs->mkdir("/d", 0755, kRoot));
  const At file = At::handle(a.ino, a.generation);
  CHECK(must(fs->stat(file, kRoot)).ino == a.ino);
  fs.reopen();
  CHECK(must(fs->stat(file, kRoot)).generation == a.generation);
  fs.reopen_after_kill();
  must(must(fs->open_file(file, O_RDWR, 0, kRoot)).write(0, kData));
  must(fs->mknod(At(d.ino, "below"), 0644, 0, kRoot));
  must(fs->rename("/f", "/d/g", 0, kRoot));
  CHECK(must(fs->stat(file, kRoot)).size_bytes == kData.size());
  CHECK(code_of(fs->stat(At::handle(a.ino, a.generation + 1), kRoot)) == Errc::kStale);
  CHECK(code_of(fs->stat(At::handle(InodeNo{99999}, a.generation), kRoot)) == Errc::kStale);
  CHECK(code_of(fs->stat(At::handle(InodeNo{0}, a.generation), kRoot)) == Errc::kStale);

  must(fs->unlink("/d/g", kRoot));
  CHECK(code_of(fs->open_file(file, O_RDWR, 0, kRoot)) == Errc::kStale);
  volume_of(fs.fs()).quarantine.drain();
  bool reused = false;
  for (int i = 0; i < 200 && !reused; ++i)
    reused = must(fs->mknod("/n" + std::to_string(i), 0644, 0, kRoot)).ino == a.ino;
  CHECK(reused);
  CHECK(code_of(fs->stat(file, kRoot)) == Errc::kStale);
  CHECK(code_of(fs->set_attributes(file, {.mode = 0600}, kRoot)) == Errc::kStale);
  fs.reopen_after_kill();
  CHECK(code_of(fs->open_file(file, O_RDWR, 0, kRoot)) == Errc::kStale);
}

TEST_CASE("resolving: without links, and beneath, are refused where Linux refuses", "[unit][fs]") {
  for (const auto resolver :
       {OpenOptions::Resolver::kWalk, OpenOptions::Resolver::kStage, OpenOptions::Resolver::kFullpath}) {
    OpenOptions options;
    options.resolver = resolver;
    MemoryFs fs(u64{8} << 20, options);
    must(fs->mkdir("/d", 0755, kRoot));
    must(fs->mknod("/d/f", 0644, 0, kRoot));
    must(fs->symlink("d", "/dir", kRoot));
    must(fs->symlink("d/f", "/file", kRoot));
    const auto open = [&](const char* path, Follow follow) {
      At at(path);
      at.no_links = true;
      return code_of(fs->stat(at, kRoot, follow));
    };
    for (int twice = 0; twice < 2; ++twice) {
      CHECK(open("/d/f", Follow::kYes) == Errc{});
      CHECK(open("/dir/f", Follow::kYes) == Errc::kLoop);
      CHECK(open("/file", Follow::kYes) == Errc::kLoop);
      CHECK(open("/file", Follow::kNo) == Errc{});
      CHECK(open("/dir/", Follow::kNo) == Errc::kLoop);
      must(fs->stat("/dir/f", kRoot));
    }
    At create("/dir/new");
    create.no_links = true;
    CHECK(code_of(fs->open_file(create, O_CREAT | O_RDWR, 0644, kRoot)) == Errc::kLoop);
    At leaves(must(fs->stat("/d", kRoot)).ino, "../d/f");
    leaves.beneath = true;
    CHECK(code_of(fs->open_file(leaves, O_RDONLY, 0, kRoot)) == Errc::kCrossDevice);
    const std::string_view paths[] = {"/d/f", "/dir/f", "/file"};
    Resolved results[3];
    must(fs->resolve(paths, results, kRoot, {.no_links = true}));
    CHECK(!results[0].error.has_value());
    CHECK(results[1].error == Errc::kLoop);
    CHECK(results[2].error == Errc::kLoop);
  }
}

TEST_CASE("listing with attributes: each entry with its own", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  must(fs->mkdir("/d", 0755, kRoot));
  for (int i = 0; i < 100; ++i) must(fs->mknod("/d/" + std::to_string(i), 0600 + static_cast<u32>(i) % 8, 0, kRoot));
  Dir dir = must(fs->open_dir("/d", kRoot));
  DirEntry entry;
  Attributes a;
  int seen = 0;
  for (u64 cookie = 0; must(dir.read(cookie, entry, a)); cookie = entry.cookie, ++seen) {
    if (entry.view() == ".") CHECK(a.ino == must(fs->stat("/d", kRoot)).ino);
    if (entry.view() == "..") CHECK(a.ino == kRootIno);
    if (entry.name[0] != '.') CHECK((a.mode & 7) == std::stoul(entry.name) % 8);
    CHECK(entry.ino == a.ino);
  }
  CHECK(seen == 102);
}

TEST_CASE("special files: made and shown, and not opened", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const struct {
    const char* name;
    u32 type;
    Errc open;
  } kinds[] = {{"/fifo", S_IFIFO, Errc::kNotSupported},
               {"/char", S_IFCHR, Errc::kNotSupported},
               {"/block", S_IFBLK, Errc::kNotSupported},
               {"/socket", S_IFSOCK, Errc::kNoAddress}};
  for (const auto& [name, type, open] : kinds) {
    INFO(name);
    const Attributes a = must(fs->mknod(name, type | 0600, 0x12345, kRoot));
    CHECK((a.mode & S_IFMT) == type);
    CHECK(a.rdev == (type == S_IFCHR || type == S_IFBLK ? 0x12345 : 0));
    CHECK(code_of(fs->open_file(name, O_RDWR, 0, kRoot)) == open);
    must(fs->unlink(name, kRoot));
  }
}

TEST_CASE("limits: what pathconf asks", "[unit][fs]") {
  CHECK(must(Filesystem::limit(_PC_NAME_MAX)) == 255);
  CHECK(must(Filesystem::limit(_PC_PATH_MAX)) == 4096);
  CHECK(must(Filesystem::limit(_PC_LINK_MAX)) == 4294967295);
  CHECK(must(Filesystem::limit(_PC_FILESIZEBITS)) == 53);
  CHECK(must(Filesystem::limit(_PC_NO_TRUNC)) == 1);
  CHECK(code_of(Filesystem::limit(-1)) == Errc::kInvalid);
  CHECK(code_of(Filesystem::limit(_PC_REC_MAX_XFER_SIZE)) == Errc::kInvalid);
}
