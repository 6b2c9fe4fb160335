// The C interface says what the C++ interface says: each call is made through one of them on one file system, and
// through the other on its twin, and the answers are compared.
#include <fcntl.h>
#include <libpmemobj.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "c_api/convert.h"
#include "test/support/catch.h"
#include "test/support/must.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

// The sizes that programs are compiled with. They may grow, and then kFirstBytes keeps these.
static_assert(sizeof(pmfs_location_t) == 32 && sizeof(pmfs_credentials) == 40 && sizeof(pmfs_attributes) == 96);
static_assert(sizeof(pmfs_format_options) == 48 && sizeof(pmfs_open_options) == 32 && sizeof(pmfs_changes) == 48);
static_assert(sizeof(pmfs_space) == 48 && sizeof(pmfs_info) == 120 && sizeof(pmfs_check_counts) == 64);
static_assert(sizeof(pmfs_dir_entry) == 288);
static_assert(sizeof(pmfs_survey) == 592 && sizeof(pmfs_lookup_statistics) == 200);

namespace {

const Credentials kRoot = Credentials::root();
const pmfs_credentials kCRoot = PMFS_CREDENTIALS_INIT;

Credentials user() {
  Credentials who;
  who.uid = who.gid = 1000;
  who.umask = 022;
  return who;
}
pmfs_credentials c_user() {
  pmfs_credentials who = PMFS_CREDENTIALS_INIT;
  who.uid = who.gid = 1000;
  who.umask = 022;
  return who;
}

pmfs_t* c_open(const std::string& path) {
  pmfs_t* fs = nullptr;
  REQUIRE(pmfs_open(path.c_str(), nullptr, &fs) == 0);
  return fs;
}

// A pool made and opened from C, and one made and opened from C++.
struct Twins {
  Scratch scratch;
  pmfs_t* c = nullptr;
  Filesystem cpp;

  Twins() {
    pmfs_format_options format = PMFS_FORMAT_OPTIONS_INIT;
    format.size_bytes = u64{32} << 20;
    format.label = "twin";
    REQUIRE(pmfs_format(scratch.file("c").c_str(), &format) == 0);
    FormatOptions options;
    options.size_bytes = format.size_bytes;
    options.label = format.label;
    must(Filesystem::format(scratch.file("cpp"), options));
    c = c_open(scratch.file("c"));
    cpp = must(Filesystem::open(scratch.file("cpp")));
  }
  ~Twins() { CHECK(pmfs_close(c) == 0); }
};

// What the C interface would say.
int number(const Result<void>& result) { return result.ok() ? 0 : -to_errno(result.error().code); }
template <class T>
int number(const Result<T>& result) {
  return result.ok() ? 0 : -to_errno(result.error().code);
}
std::int64_t counted(const Result<std::size_t>& result) {
  return result.ok() ? static_cast<std::int64_t>(*result) : -to_errno(result.error().code);
}

// Everything but what differs between twins: generations and times.
void same(const pmfs_attributes& c, const Attributes& cpp) {
  CHECK(c.inode == to_u64(cpp.ino));
  CHECK(c.mode == cpp.mode);
  CHECK(c.links == cpp.links);
  CHECK(c.uid == cpp.uid);
  CHECK(c.gid == cpp.gid);
  CHECK(c.size_bytes == cpp.size_bytes);
  CHECK(c.blocks_512 == cpp.blocks_512);
  CHECK(c.rdev == cpp.rdev);
}

// The same inode of the same file system, seen through both.
void identical(const pmfs_attributes& c, const Attributes& cpp) {
  same(c, cpp);
  CHECK(c.generation == cpp.generation);
  CHECK(c.atime_ns == cpp.atime_ns);
  CHECK(c.mtime_ns == cpp.mtime_ns);
  CHECK(c.ctime_ns == cpp.ctime_ns);
  CHECK(c.birth_ns == cpp.birth_ns);
}

pmfs_attributes made() { return PMFS_ATTRIBUTES_INIT; }

// A call that gives attributes, on both.
void both(int c, const pmfs_attributes& c_made, const Result<Attributes>& cpp) {
  CHECK(c == number(cpp));
  if (c == 0 && cpp.ok()) same(c_made, *cpp);
}

}  // namespace

TEST_CASE("C interface: changes of the tree answer as those of C++, errors included", "[unit][fs]") {
  Twins t;
  pmfs_attributes a = made();
  const pmfs_credentials user_c = c_user();
  const auto mkdir = [&](const char* path, u32 mode) {
    both(pmfs_mkdir(t.c, pmfs_path(path), mode, &kCRoot, &a), a, t.cpp.mkdir(path, mode, kRoot));
  };
  mkdir("/d", 01777);
  mkdir("/d", 0755);        // there already
  mkdir("/no/where", 0755);  // no parent
  mkdir("/closed", 0700);
  both(pmfs_mkdir(t.c, pmfs_path("/d/u"), 0777, &user_c, &a), a, t.cpp.mkdir("/d/u", 0777, user()));
  CHECK(a.mode == (S_IFDIR | 0755));  // the umask counts
  both(pmfs_mkdir(t.c, pmfs_path("/closed/x"), 0777, &user_c, &a), a, t.cpp.mkdir("/closed/x", 0777, user()));
  CHECK(pmfs_mkdir(t.c, pmfs_path("/closed/x"), 0777, &user_c, nullptr) == -EACCES);

  for (const u32 mode : {0644u, S_IFREG | 0600u, S_IFIFO | 0666u, S_IFSOCK | 0666u, S_IFCHR | 0600u, S_IFDIR | 0755u}) {
    const std::string path = "/d/n" + std::to_string(mode);
    both(pmfs_mknod(t.c, pmfs_path(path.c_str()), mode, 0x0103, &kCRoot, &a), a,
         t.cpp.mknod(path, mode, 0x0103, kRoot));
    both(pmfs_mknod(t.c, pmfs_path((path + "u").c_str()), mode, 0x0103, &user_c, &a), a,
         t.cpp.mknod(path + "u", mode, 0x0103, user()));
  }
  for (const char* target : {"n420", "", "/d"}) {
    const std::string path = std::string("/d/s") + std::to_string(std::strlen(target));
    both(pmfs_symlink(t.c, target, pmfs_path(path.c_str()), &kCRoot, &a), a, t.cpp.symlink(target, path, kRoot));
    char text[8] = {};
    const auto found = t.cpp.readlink(path, kRoot);
    const std::int64_t length = pmfs_readlink(t.c, pmfs_path(path.c_str()), &kCRoot, text, 3);
    REQUIRE((length >= 0) == found.ok());
    if (!found.ok()) continue;
    CHECK(length == static_cast<std::int64_t>(found->size()));  // also where the buffer is too short
    CHECK(std::string(text) == found->substr(0, 3));
  }
  // A link to the symbolic link itself, and to what it leads to.
  both(pmfs_link(t.c, pmfs_path("/d/s4"), pmfs_path("/d/l1"), &kCRoot, &a), a, t.cpp.link("/d/s4", "/d/l1", kRoot));
  CHECK(S_ISLNK(a.mode));
  both(pmfs_link(t.c, pmfs_path_at(PMFS_ROOT_INODE, "d/s4", PMFS_AT_FOLLOW), pmfs_path("/d/l2"), &kCRoot, &a), a,
       t.cpp.link("/d/s4", "/d/l2", kRoot, Follow::kYes));
  CHECK(S_ISREG(a.mode));
  both(pmfs_link(t.c, pmfs_path("/d"), pmfs_path("/d2"), &kCRoot, &a), a, t.cpp.link("/d", "/d2", kRoot));

  const auto rename = [&](const char* from, const char* to, unsigned flags) {
    const int c = pmfs_rename(t.c, pmfs_path(from), pmfs_path(to), flags, &kCRoot);
    CHECK(c == number(t.cpp.rename(from, to, flags, kRoot)));
    return c;
  };
  CHECK(rename("/d/l1", "/d/l2", RENAME_NOREPLACE) == -EEXIST);
  CHECK(rename("/d/l1", "/d/l2", RENAME_EXCHANGE) == 0);
  CHECK(rename("/d/l1", "/d/w", RENAME_WHITEOUT) == 0);
  CHECK(rename("/d", "/d/u/x", 0) == -EINVAL);
  CHECK(rename("/d/u", "/u", 0) == 0);
  CHECK(rename("/u", "/d/u", 1u << 20) == -EINVAL);

  const auto unlink = [&](const char* path) {
    const int c = pmfs_unlink(t.c, pmfs_path(path), &kCRoot);
    CHECK(c == number(t.cpp.unlink(path, kRoot)));
    return c;
  };
  CHECK(unlink("/d/w") == 0);
  CHECK(unlink("/d/w") == -ENOENT);
  CHECK(unlink("/u") == -EISDIR);
  CHECK(unlink("/d/n420/x") == -ENOTDIR);
  const auto rmdir = [&](const char* path) {
    const int c = pmfs_rmdir(t.c, pmfs_path(path), &kCRoot);
    CHECK(c == number(t.cpp.rmdir(path, kRoot)));
    return c;
  };
  CHECK(rmdir("/u") == 0);
  CHECK(rmdir("/d") == -ENOTEMPTY);
  CHECK(rmdir("/") == -EBUSY);

  // Both file systems hold the same now, and are sound.
  pmfs_check_counts counts = PMFS_CHECK_COUNTS_INIT;
  REQUIRE(pmfs_check(t.c, &counts, nullptr, nullptr) == 0);
  const CheckReport report = must(check(t.cpp));
  CHECK(counts.findings == 0);
  CHECK(report.clean());
  CHECK(counts.inodes == report.inodes);
  CHECK(counts.directories == report.directories);
  CHECK(counts.entries == report.entries);
  CHECK(counts.blocks_used == report.blocks_used);
  CHECK(counts.blocks_free == report.blocks_free);
}

TEST_CASE("C interface: attributes are set and seen as by C++", "[unit][fs]") {
  Twins t;
  must(t.cpp.mknod("/f", 0644, 0, kRoot));
  REQUIRE(pmfs_mknod(t.c, pmfs_path("/f"), 0644, 0, &kCRoot, nullptr) == 0);
  const pmfs_credentials user_c = c_user();
  pmfs_attributes a = made();

  SetAttributes all;
  all.mode = 04711;
  all.uid = 7;
  all.gid = 8;
  all.size_bytes = 12345;
  all.atime_ns = 1;
  all.mtime_ns = -2;
  pmfs_changes change = PMFS_CHANGES_INIT;
  change.set = PMFS_SET_MODE | PMFS_SET_UID | PMFS_SET_GID | PMFS_SET_SIZE | PMFS_SET_ATIME | PMFS_SET_MTIME;
  change.mode = 04711;
  change.uid = 7;
  change.gid = 8;
  change.size_bytes = 12345;
  change.atime_ns = 1;
  change.mtime_ns = -2;
  both(pmfs_set_attributes(t.c, pmfs_path("/f"), &change, &user_c, &a), a, t.cpp.set_attributes("/f", all, user()));
  both(pmfs_set_attributes(t.c, pmfs_path("/f"), &change, &kCRoot, &a), a, t.cpp.set_attributes("/f", all, kRoot));
  CHECK(a.atime_ns == 1);
  CHECK(a.mtime_ns == -2);
  CHECK(a.uid == 7);
  CHECK(a.gid == 8);
  CHECK(a.size_bytes == 12345);

  const auto seen = [&] {
    REQUIRE(pmfs_stat(t.c, pmfs_path("/f"), &kCRoot, &a) == 0);
    identical(a, must(t.c->fs.stat("/f", kRoot)));
    return a;
  };
  CHECK(pmfs_chmod(t.c, pmfs_path("/f"), 0600, &user_c) == -EPERM);
  CHECK(pmfs_chmod(t.c, pmfs_path("/f"), 0600, &kCRoot) == 0);
  CHECK(seen().mode == (S_IFREG | 0600));
  CHECK(pmfs_chown(t.c, pmfs_path("/f"), PMFS_KEEP_ID, 9, &kCRoot) == 0);
  CHECK(seen().uid == 7);
  CHECK(seen().gid == 9);
  CHECK(pmfs_truncate(t.c, pmfs_path("/f"), 100, &user_c) == -EACCES);
  CHECK(pmfs_truncate(t.c, pmfs_path("/f"), 100, &kCRoot) == 0);
  CHECK(seen().size_bytes == 100);
  CHECK(pmfs_utimens(t.c, pmfs_path("/f"), 5, PMFS_TIME_OMIT, &kCRoot) == 0);
  CHECK(seen().atime_ns == 5);
  CHECK(pmfs_utimens(t.c, pmfs_path("/f"), PMFS_TIME_OMIT, 6, &kCRoot) == 0);
  CHECK(seen().atime_ns == 5);
  CHECK(seen().mtime_ns == 6);
  CHECK(pmfs_utimens(t.c, pmfs_path("/f"), 5, PMFS_TIME_NOW, &kCRoot) == 0);
  CHECK(seen().mtime_ns != PMFS_TIME_NOW);
  CHECK(pmfs_utimens(t.c, pmfs_path("/f"), PMFS_TIME_NOW, PMFS_TIME_NOW, &kCRoot) == 0);
  CHECK(seen().atime_ns > 1'000'000'000);
  CHECK(seen().mtime_ns > 1'000'000'000);

  for (const int mode : {R_OK, W_OK, X_OK})
    CHECK(pmfs_access(t.c, pmfs_path("/f"), mode, &user_c) == number(t.c->fs.access("/f", mode, user())));
  pmfs_credentials member = c_user();
  const u32 group = 9;
  member.group_count = 1;
  member.groups = &group;
  REQUIRE(pmfs_chmod(t.c, pmfs_path("/f"), 0040, &kCRoot) == 0);
  CHECK(pmfs_access(t.c, pmfs_path("/f"), R_OK, &user_c) == -EACCES);
  CHECK(pmfs_access(t.c, pmfs_path("/f"), R_OK, &member) == 0);
  member.group_count = 0;
  member.privilege = PMFS_PRIVILEGE_ALL;
  CHECK(pmfs_access(t.c, pmfs_path("/f"), R_OK, &member) == 0);

  pmfs_space space = PMFS_SPACE_INIT;
  REQUIRE(pmfs_statfs(t.c, &space) == 0);
  const SpaceInfo now = must(t.c->fs.space());
  CHECK(space.block_bytes == now.block_bytes);
  CHECK(space.blocks == now.blocks);
  CHECK(space.blocks_free == now.blocks_free);
  CHECK(space.blocks_available == now.blocks_avail);
  CHECK(space.inodes == now.inodes);
  CHECK(space.inodes_free == now.inodes_free);

  pmfs_info info = PMFS_INFO_INIT;
  REQUIRE(pmfs_get_info(t.c, &info) == 0);
  const PoolInfo pool = t.c->fs.info();
  CHECK(info.label == std::string("twin"));
  CHECK(info.uuid == pool.uuid);
  CHECK(info.pool_bytes == pool.pool_bytes);
  CHECK(info.epoch == pool.epoch);
  CHECK(info.files == pool.files);
  CHECK(info.durability == std::string(describe(pool.durability)));
  CHECK(pmfs_limit(_PC_NAME_MAX) == must(Filesystem::limit(_PC_NAME_MAX)));
  CHECK(pmfs_limit(-1) == -EINVAL);
}

TEST_CASE("C interface: files are written, read, cut, copied and locked as by C++", "[unit][fs]") {
  Twins t;
  pmfs_file_t* c = nullptr;
  REQUIRE(pmfs_open_file(t.c, pmfs_path("/f"), O_CREAT | O_EXCL | O_RDWR, 0640, &kCRoot, &c) == 0);
  File cpp = must(t.cpp.open_file("/f", O_CREAT | O_EXCL | O_RDWR, 0640, kRoot));
  const auto see = [&] {
    pmfs_attributes a = made();
    REQUIRE(pmfs_file_stat(c, &a) == 0);
    same(a, must(cpp.stat()));
    std::vector<std::byte> got(a.size_bytes + 10, std::byte{9}), expected = got;
    CHECK(pmfs_file_read(c, 0, got.data(), got.size()) == counted(cpp.read(0, expected)));
    CHECK(got == expected);
  };
  CHECK(pmfs_file_inode(c) == to_u64(cpp.ino()));
  std::string text(10'000, 'x');
  CHECK(pmfs_file_write(c, 5000, text.data(), text.size()) == counted(cpp.write(5000, std::as_bytes(std::span(text)))));
  see();
  for (const int mode : {0, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE, FALLOC_FL_INSERT_RANGE,
                         FALLOC_FL_COLLAPSE_RANGE, 1 << 20}) {
    CHECK(pmfs_file_allocate(c, mode, 8192, 4096) == number(cpp.allocate(mode, 8192, 4096)));
    see();
  }
  for (const int whence : {SEEK_DATA, SEEK_HOLE, SEEK_SET})
    for (const u64 off : {u64{0}, u64{5000}, u64{1} << 30}) {
      const Result<u64> place = cpp.seek(off, whence);
      CHECK(pmfs_file_seek(c, off, whence) == (place.ok() ? static_cast<std::int64_t>(*place) : number(place)));
    }
  CHECK(pmfs_file_truncate(c, 6000) == number(cpp.truncate(6000)));
  see();
  CHECK(pmfs_file_copy(c, 0, c, 8000, 6000) == counted(cpp.copy_to(0, cpp, 8000, 6000)));
  see();
  CHECK(pmfs_file_copy(c, 0, c, 1000, 6000) == counted(cpp.copy_to(0, cpp, 1000, 6000)));  // they overlap
  CHECK(pmfs_file_sync(c) == 0);
  REQUIRE(pmfs_sync(t.c) == 0);

  pmfs_file_t* other = nullptr;
  CHECK(pmfs_file_append(c, "y", 1) == -EBADF);
  REQUIRE(pmfs_open_file(t.c, pmfs_path("/f"), O_WRONLY | O_APPEND, 0, &kCRoot, &other) == 0);
  CHECK(pmfs_file_append(other, "end", 3) == 3);
  char last[3] = {};
  CHECK(pmfs_file_read(c, 14'000, last, 3) == 3);
  CHECK(std::string_view(last, 3) == "end");
  CHECK(pmfs_file_read(other, 0, last, 3) == -EBADF);

  CHECK(pmfs_file_lock(c, PMFS_LOCK_EXCLUSIVE, 0) == 0);
  CHECK(pmfs_file_lock(other, PMFS_LOCK_SHARED, 0) == -EAGAIN);
  CHECK(pmfs_file_lock(c, PMFS_UNLOCK, 0) == 0);
  CHECK(pmfs_file_lock(other, PMFS_LOCK_SHARED, 0) == 0);
  CHECK(pmfs_file_lock(other, 3, 0) == -EINVAL);
  CHECK(pmfs_file_lock_range(c, PMFS_LOCK_EXCLUSIVE, 0, 9, 0) == 0);
  CHECK(pmfs_file_lock_range(other, PMFS_LOCK_EXCLUSIVE, 9, UINT64_MAX, 0) == -EAGAIN);
  CHECK(pmfs_file_lock_range(other, PMFS_LOCK_EXCLUSIVE, 10, UINT64_MAX, 0) == 0);
  CHECK(pmfs_file_lock_range(other, PMFS_LOCK_SHARED, 10, 20, 0) == -EBADF);  // not opened for reading
  int kind = PMFS_LOCK_SHARED;
  std::uint64_t first = 5, end = 6;
  CHECK(pmfs_file_test_lock(other, &kind, &first, &end) == 0);
  CHECK((kind == PMFS_LOCK_EXCLUSIVE && first == 0 && end == 9));
  kind = PMFS_LOCK_EXCLUSIVE;
  CHECK(pmfs_file_test_lock(c, &kind, &first, &end) == 0);  // his own stands in nobody's way
  CHECK((kind == PMFS_UNLOCK && first == 0 && end == 9));
  std::atomic<bool> answered{false};
  int answer = 1;
  std::thread waits([&] {
    answer = pmfs_file_lock(c, PMFS_LOCK_EXCLUSIVE, 1);
    answered = true;
  });
  for (int i = 0; i < 10'000 && !answered; ++i) std::this_thread::yield();  // one that does not wait says so by now
  CHECK(!answered);
  CHECK(pmfs_file_lock(other, PMFS_UNLOCK, 0) == 0);
  waits.join();
  CHECK(answer == 0);

  CHECK(pmfs_close(t.c) == -EBUSY);  // and the handle still serves:
  CHECK(pmfs_sync(t.c) == 0);
  CHECK(pmfs_file_close(other) == 0);
  CHECK(pmfs_file_close(c) == 0);
  for (const int flags : {O_CREAT | O_EXCL | O_RDWR, O_RDONLY | O_DIRECTORY, O_TMPFILE | O_RDONLY}) {
    CHECK(pmfs_open_file(t.c, pmfs_path("/f"), flags, 0600, &kCRoot, &c) ==
          number(t.cpp.open_file("/f", flags, 0600, kRoot)));
    CHECK(c == nullptr);
  }
  must(t.cpp.symlink("f", "/s", kRoot));
  REQUIRE(pmfs_symlink(t.c, "f", pmfs_path("/s"), &kCRoot, nullptr) == 0);
  CHECK(pmfs_open_file(t.c, pmfs_path_at(PMFS_ROOT_INODE, "s", PMFS_AT_NO_FOLLOW), O_RDONLY, 0, &kCRoot, &c) == -ELOOP);

  // A file without names gets one through its inode.
  REQUIRE(pmfs_open_file(t.c, pmfs_path("/"), O_TMPFILE | O_RDWR, 0600, &kCRoot, &c) == 0);
  pmfs_attributes a = made();
  CHECK(pmfs_link(t.c, pmfs_inode(pmfs_file_inode(c)), pmfs_path("/named"), &kCRoot, &a) == 0);
  CHECK(a.links == 1);
  CHECK(pmfs_file_close(c) == 0);
}

TEST_CASE("C interface: a wait for a lock is ended by another thread", "[unit][fs]") {
  Twins t;
  pmfs_file_t *c = nullptr, *other = nullptr;
  REQUIRE(pmfs_open_file(t.c, pmfs_path("/f"), O_CREAT | O_RDWR, 0644, &kCRoot, &c) == 0);
  REQUIRE(pmfs_open_file(t.c, pmfs_path("/f"), O_RDWR, 0, &kCRoot, &other) == 0);
  pmfs_lock_wait_t* wait = nullptr;
  REQUIRE(pmfs_lock_wait_new(&wait) == 0);
  CHECK(pmfs_file_lock_wait(c, PMFS_LOCK_EXCLUSIVE, wait) == 0);
  CHECK(pmfs_file_lock_range_wait(c, PMFS_LOCK_EXCLUSIVE, 0, 9, wait) == 0);
  for (const bool range : {false, true}) {
    std::atomic<int> answer{1};
    std::thread waits([&] {
      answer = range ? pmfs_file_lock_range_wait(other, PMFS_LOCK_EXCLUSIVE, 9, 9, wait)
                     : pmfs_file_lock_wait(other, PMFS_LOCK_EXCLUSIVE, wait);
    });
    pmfs_lock_wait_interrupt(wait);  // it waits, or it would
    waits.join();
    CHECK(answer == -EINTR);
  }
  CHECK(pmfs_file_lock_wait(c, PMFS_UNLOCK, wait) == 0);
  CHECK(pmfs_file_lock_wait(other, PMFS_LOCK_EXCLUSIVE, wait) == 0);
  CHECK(pmfs_file_lock_wait(other, PMFS_UNLOCK, nullptr) == -EINVAL);
  CHECK(pmfs_file_lock_range_wait(other, PMFS_UNLOCK, 0, 0, nullptr) == -EINVAL);
  pmfs_lock_wait_free(wait);
  pmfs_lock_wait_free(nullptr);
  CHECK(pmfs_file_close(c) == 0);
  CHECK(pmfs_file_close(other) == 0);
}

TEST_CASE("C interface: what a file system holds, and what looking up has cost, as in C++", "[unit][fs]") {
  Twins t;
  REQUIRE(pmfs_mkdir(t.c, pmfs_path("/d"), 0755, &kCRoot, nullptr) == 0);
  must(t.cpp.mkdir("/d", 0755, kRoot));
  REQUIRE(pmfs_symlink(t.c, "x", pmfs_path("/d/l"), &kCRoot, nullptr) == 0);
  must(t.cpp.symlink("x", "/d/l", kRoot));
  pmfs_attributes a = made();
  for (int i = 0; i < 3; ++i) {
    both(pmfs_stat(t.c, pmfs_path("/d"), &kCRoot, &a), a, t.cpp.stat("/d", kRoot));
    both(pmfs_stat(t.c, pmfs_path("/d/absent"), &kCRoot, &a), a, t.cpp.stat("/d/absent", kRoot));
  }

  pmfs_lookup_statistics c = PMFS_LOOKUP_STATISTICS_INIT;
  REQUIRE(pmfs_get_lookup_statistics(t.c, &c) == 0);
  const LookupStatistics cpp = t.cpp.lookup_statistics();
  CHECK(c.lookups == cpp.lookups);
  CHECK(c.hits == cpp.hits);
  CHECK(c.negative == cpp.negative);
  CHECK(c.negative >= 2);
  CHECK(c.entries == cpp.entries);
  CHECK(c.bytes_limit == cpp.bytes_limit);
  CHECK(pmfs_set_pivot_period(t.c, 50) == 0);
  CHECK(pmfs_get_lookup_statistics(t.c, &c) == 0);
  CHECK(c.pivot_period_ms == 50);
  CHECK(pmfs_set_pivot_period(t.c, 0) == -EINVAL);
  const auto seen = [](void* count, const char* path, std::uint32_t) { *static_cast<int*>(count) += path[0] == '/'; };
  int pivots = 0;
  CHECK(pmfs_pivots(t.c, seen, &pivots) == 0);
  CHECK(pmfs_pivots(t.c, nullptr, nullptr) == -EINVAL);

  pmfs_survey found = PMFS_SURVEY_INIT;
  REQUIRE(pmfs_get_survey(t.c, &found) == 0);
  const Survey expected = must(survey(t.cpp));
  CHECK(found.directories == expected.directories);
  CHECK(found.directories == 2);
  CHECK(found.symlinks == 1);
  CHECK(found.longest_free_run == expected.longest_free_run);
  CHECK(found.directories_by_depth[0] == expected.directories_by_depth[0]);
  u64 free_blocks = 0;
  for (const u64 blocks : found.free_blocks_by_run) free_blocks += blocks;
  CHECK(free_blocks == must(t.cpp.space()).blocks_free);

  // Line for line the same, but for what differs between any two pools.
  const auto lines_of = [](void* count, const char* text, std::size_t bytes) {
    *static_cast<std::size_t*>(count) += bytes > 0 && text[0] != 0;
  };
  std::size_t c_lines = 0, cpp_lines = 0;
  REQUIRE(pmfs_dump(t.c, lines_of, &c_lines) == 0);
  must(dump(t.cpp, [&](std::string_view line) { cpp_lines += line.empty() ? 0 : 1; }));
  CHECK(c_lines == cpp_lines);
  CHECK(c_lines > 3);
  CHECK(pmfs_dump(t.c, nullptr, nullptr) == -EINVAL);
  CHECK(pmfs_get_survey(nullptr, &found) == -EINVAL);
}

TEST_CASE("C interface: a lease is the file's bytes, and what is stored by it is the file's", "[unit][fs]") {
  Twins t;
  pmfs_file_t* file = nullptr;
  REQUIRE(pmfs_open_file(t.c, pmfs_path("/f"), O_CREAT | O_RDWR, 0640, &kCRoot, &file) == 0);
  const std::string text(10'000, 'x');
  REQUIRE(pmfs_file_write(file, 0, text.data(), text.size()) == 10'000);
  REQUIRE(pmfs_file_truncate(file, 20'000) == 0);
  pmfs_lease_t* lease = nullptr;
  CHECK(pmfs_file_direct(file, 0, 20'000, 4, &lease) == -EINVAL);
  CHECK(pmfs_file_direct(file, 0, 20'000, 0, &lease) == -ENXIO);  // a hole
  CHECK(lease == nullptr);
  REQUIRE(pmfs_file_direct(file, 5'000, 5'000, 0, &lease) == 0);
  CHECK(pmfs_lease_persist(lease, 0, 1) == -EBADF);  // taken for reading
  CHECK(pmfs_lease_close(lease) == 0);
  REQUIRE(pmfs_file_direct(file, 5'000, 100'000, PMFS_DIRECT_WRITE | PMFS_DIRECT_FILL_HOLES, &lease) == 0);
  const std::int64_t count = pmfs_lease_pieces(lease, nullptr, 0);
  REQUIRE(count > 0);
  std::vector<pmfs_piece> pieces(static_cast<std::size_t>(count) + 1, pmfs_piece{nullptr, 0});
  REQUIRE(pmfs_lease_pieces(lease, pieces.data(), pieces.size()) == count);
  u64 bytes = 0;
  for (const pmfs_piece& piece : pieces) {
    bytes += piece.bytes;
    if (piece.memory != nullptr) std::memset(piece.memory, 'y', piece.bytes);
  }
  CHECK(bytes == 15'000);
  CHECK(pmfs_lease_persist(lease, 0, UINT64_MAX) == 0);
  CHECK(pmfs_lease_close(lease) == 0);
  std::string got(20'001, '?');
  CHECK(pmfs_file_read(file, 0, got.data(), got.size()) == 20'000);
  CHECK(got == std::string(5'000, 'x') + std::string(15'000, 'y') + "?");
  CHECK(pmfs_file_close(file) == 0);
}

TEST_CASE("C interface: directories are listed as by C++, and go on at a cookie", "[unit][fs]") {
  Twins t;
  for (int i = 0; i < 300; ++i) must(t.c->fs.mknod("/n" + std::to_string(i), 0644, 0, kRoot));
  pmfs_dir_t* c = nullptr;
  REQUIRE(pmfs_open_dir(t.c, pmfs_path("/"), &kCRoot, &c) == 0);
  CHECK(pmfs_dir_inode(c) == PMFS_ROOT_INODE);
  Dir cpp = must(t.c->fs.open_dir("/", kRoot));
  pmfs_dir_entry entry = PMFS_DIR_ENTRY_INIT;
  pmfs_attributes about = made();
  DirEntry expected;
  int entries = 0;
  u64 middle = 0;
  for (u64 cookie = 0;; cookie = expected.cookie, ++entries) {
    Attributes attributes;
    const bool there = must(cpp.read(cookie, expected, attributes));
    REQUIRE(pmfs_dir_read(c, entry.cookie, &entry, &about) == (there ? 1 : 0));
    if (!there) break;
    CHECK(entry.name == std::string(expected.view()));
    CHECK(entry.name_bytes == expected.name_len);
    CHECK(entry.inode == to_u64(expected.ino));
    CHECK(entry.cookie == expected.cookie);
    CHECK(entry.type == mode_bits(expected.type));
    identical(about, attributes);
    if (entries == 150) middle = entry.cookie;
  }
  CHECK(entries == 302);
  int rest = 0;
  entry.cookie = middle;
  while (pmfs_dir_read(c, entry.cookie, &entry, nullptr) == 1) ++rest;
  CHECK(rest == 302 - 151);

  must(t.c->fs.mknod("/new", 0644, 0, kRoot));
  CHECK(pmfs_dir_rewind(c) == 0);
  rest = 0;
  for (entry.cookie = 0; pmfs_dir_read(c, entry.cookie, &entry, nullptr) == 1;) ++rest;
  CHECK(rest == 303);
  CHECK(pmfs_dir_close(c) == 0);
  CHECK(pmfs_open_dir(t.c, pmfs_path("/n1"), &kCRoot, &c) == -ENOTDIR);
  CHECK(c == nullptr);
  must(cpp.close());
}

TEST_CASE("C interface: extended attributes and batches answer as in C++", "[unit][fs]") {
  Twins t;
  for (Filesystem* fs : {&t.cpp, &t.c->fs}) {
    must(fs->mkdir("/d", 0755, kRoot));
    must(fs->mknod("/d/f", 0644, 0, kRoot));
    must(fs->symlink("d/f", "/s", kRoot));
    must(fs->mkdir("/closed", 0700, kRoot));
  }
  const auto set = [&](const char* path, const char* name, std::string_view value, int flags) {
    CHECK(pmfs_set_xattr(t.c, pmfs_path(path), name, value.data(), value.size(), flags, &kCRoot) ==
          number(t.cpp.set_xattr(path, name, std::as_bytes(std::span(value)), flags, kRoot)));
  };
  set("/d/f", "user.a", "value", 0);
  set("/d/f", "user.a", "value", XATTR_CREATE);
  set("/d/f", "user.b", "value", XATTR_REPLACE);
  set("/d/f", "odd.b", "value", 0);
  set("/d/f", "user.", "value", 0);
  set("/d/f", "user.large", std::string(5000, 'l'), 0);
  set("/d/f", "user.larger", std::string(70'000, 'l'), 0);
  for (const char* name : {"user.a", "user.none", "user.large"})
    for (const std::size_t room : {std::size_t{0}, std::size_t{3}, std::size_t{6000}}) {
      std::string c(room, '-'), cpp(room, '-');
      CHECK(pmfs_get_xattr(t.c, pmfs_path("/d/f"), name, c.data(), room, &kCRoot) ==
            counted(t.cpp.get_xattr("/d/f", name, std::as_writable_bytes(std::span(cpp)), kRoot)));
      CHECK(c == cpp);
    }
  std::string c(100, '-'), cpp(100, '-');
  CHECK(pmfs_list_xattrs(t.c, pmfs_path("/s"), c.data(), 100, &kCRoot) ==
        counted(t.cpp.list_xattrs("/s", cpp, kRoot)));
  CHECK(c == cpp);
  CHECK(c.find("user.large") != std::string::npos);
  CHECK(pmfs_list_xattrs(t.c, pmfs_path_at(PMFS_ROOT_INODE, "s", PMFS_AT_NO_FOLLOW), c.data(), 100, &kCRoot) == 0);
  for (int i = 0; i < 2; ++i)
    CHECK(pmfs_remove_xattr(t.c, pmfs_path("/d/f"), "user.a", &kCRoot) ==
          number(t.cpp.remove_xattr("/d/f", "user.a", kRoot)));

  // Batches, by both ways on one file system.
  const char* const paths[] = {"/d/f", "/s", "d", "/none", "/d/f/x", "/closed/x", "", "/s/.."};
  constexpr std::size_t kCount = std::size(paths);
  const std::vector<std::string_view> views(std::begin(paths), std::end(paths));
  const pmfs_credentials user_c = c_user();
  for (const u32 flags : {0u, u32{PMFS_AT_NO_FOLLOW}, u32{PMFS_AT_NO_SYMLINKS}, u32{PMFS_AT_BENEATH},
                          u32{PMFS_RESOLVE_NAMES_ONLY}}) {
    BatchOptions options;
    options.follow = flags == PMFS_AT_NO_FOLLOW ? Follow::kNo : Follow::kYes;
    options.no_links = flags == PMFS_AT_NO_SYMLINKS;
    options.beneath = flags == PMFS_AT_BENEATH;
    options.attributes = flags != PMFS_RESOLVE_NAMES_ONLY;
    std::vector<Resolved> expected(kCount);
    must(t.c->fs.resolve(views, expected, user(), options));
    pmfs_attributes found[kCount];
    std::memset(found, 0xee, sizeof found);
    std::int32_t errors[kCount];
    REQUIRE(pmfs_resolve(t.c, paths, kCount, PMFS_ROOT_INODE, flags, &user_c, errors, found, sizeof *found) == 0);
    for (std::size_t i = 0; i < kCount; ++i) {
      CHECK(errors[i] == (expected[i].error ? -to_errno(*expected[i].error) : 0));
      CHECK(found[i].struct_bytes == sizeof *found);
      if (errors[i] == 0) identical(found[i], expected[i].attributes);
      else CHECK((found[i].inode == 0 && found[i].mode == 0 && found[i].birth_ns == 0));
    }
  }
  CHECK(pmfs_resolve(t.c, nullptr, 0, PMFS_ROOT_INODE, 0, &kCRoot, nullptr, nullptr, sizeof(pmfs_attributes)) == 0);
}

TEST_CASE("C interface: a handle finds its inode after reopening, and never another", "[unit][fs]") {
  Twins t;
  pmfs_attributes kept = made(), a = made();
  REQUIRE(pmfs_mkdir(t.c, pmfs_path("/d"), 0755, &kCRoot, nullptr) == 0);
  REQUIRE(pmfs_mknod(t.c, pmfs_path("/d/f"), 0644, 0, &kCRoot, &kept) == 0);
  REQUIRE(pmfs_close(t.c) == 0);
  t.c = c_open(t.scratch.file("c"));
  const pmfs_location_t handle = pmfs_handle(kept.inode, kept.generation);
  REQUIRE(pmfs_stat(t.c, handle, &kCRoot, &a) == 0);
  CHECK(a.inode == kept.inode);
  CHECK(pmfs_stat(t.c, pmfs_handle(kept.inode, kept.generation + 1), &kCRoot, &a) == -ESTALE);

  // From a directory's number, and not out of it.
  REQUIRE(pmfs_stat(t.c, pmfs_path("/d"), &kCRoot, &a) == 0);
  const u64 dir = a.inode;
  REQUIRE(pmfs_stat(t.c, pmfs_path_at(dir, "f", 0), &kCRoot, &a) == 0);
  CHECK(a.inode == kept.inode);
  CHECK(pmfs_stat(t.c, pmfs_path_at(dir, "../d", 0), &kCRoot, &a) == 0);
  CHECK(pmfs_stat(t.c, pmfs_path_at(dir, "../d", PMFS_AT_BENEATH), &kCRoot, &a) == -EXDEV);

  REQUIRE(pmfs_pin(t.c, handle, &kCRoot, &a) == 0);
  REQUIRE(pmfs_unlink(t.c, pmfs_path("/d/f"), &kCRoot) == 0);
  CHECK(pmfs_stat(t.c, pmfs_inode(kept.inode), &kCRoot, &a) ==
        number(t.c->fs.stat(At::inode(InodeNo{kept.inode}), kRoot)));
  CHECK(pmfs_close(t.c) == -EBUSY);
  CHECK(pmfs_unpin(t.c, kept.inode, 2) == -EINVAL);
  CHECK(pmfs_unpin(t.c, kept.inode, 1) == 0);
  CHECK(pmfs_stat(t.c, handle, &kCRoot, &a) == -ESTALE);
}

TEST_CASE("C interface: NULL and nonsense give -EINVAL, and change nothing", "[unit][fs]") {
  Twins t;
  const pmfs_location_t root = pmfs_path("/"), name = pmfs_path("/x"), nowhere = pmfs_path(nullptr);
  pmfs_attributes a = made();
  pmfs_file_t* file = nullptr;
  pmfs_dir_t* dir = nullptr;
  pmfs_t* fs = nullptr;
  const std::vector<std::int64_t> answers{
      pmfs_format(nullptr, nullptr), pmfs_open(nullptr, nullptr, &fs), pmfs_open("/x", nullptr, nullptr),
      pmfs_format_in("/x", nullptr, 0, nullptr, nullptr), pmfs_attach("/x", nullptr, 0, nullptr, &fs),
      pmfs_grow(nullptr, 0, nullptr, nullptr), pmfs_close(nullptr), pmfs_sync(nullptr), pmfs_statfs(t.c, nullptr),
      pmfs_statfs(nullptr, nullptr), pmfs_get_info(t.c, nullptr), pmfs_get_info(nullptr, nullptr),
      pmfs_check(nullptr, nullptr, nullptr, nullptr), pmfs_stat(nullptr, root, &kCRoot, &a),
      pmfs_stat(t.c, nowhere, &kCRoot, &a), pmfs_stat(t.c, root, nullptr, &a), pmfs_stat(t.c, root, &kCRoot, nullptr),
      pmfs_pin(t.c, root, &kCRoot, nullptr), pmfs_unpin(nullptr, 1, 1), pmfs_access(t.c, nowhere, 0, &kCRoot),
      pmfs_readlink(t.c, root, &kCRoot, nullptr, 1), pmfs_mknod(t.c, name, 0, 0, nullptr, nullptr),
      pmfs_mkdir(t.c, nowhere, 0, &kCRoot, nullptr), pmfs_symlink(t.c, nullptr, name, &kCRoot, nullptr),
      pmfs_link(t.c, root, nowhere, &kCRoot, nullptr), pmfs_link(t.c, nowhere, name, &kCRoot, nullptr),
      pmfs_unlink(t.c, nowhere, &kCRoot), pmfs_rmdir(nullptr, name, &kCRoot),
      pmfs_rename(t.c, root, nowhere, 0, &kCRoot),
      pmfs_set_attributes(t.c, root, nullptr, &kCRoot, nullptr), pmfs_chmod(t.c, root, 0, nullptr),
      pmfs_chown(nullptr, root, 0, 0, &kCRoot), pmfs_utimens(nullptr, root, 0, 0, &kCRoot),
      pmfs_truncate(nullptr, root, 0, &kCRoot), pmfs_get_xattr(t.c, root, nullptr, nullptr, 0, &kCRoot),
      pmfs_get_xattr(t.c, root, "user.a", nullptr, 9, &kCRoot), pmfs_list_xattrs(t.c, root, nullptr, 9, &kCRoot),
      pmfs_set_xattr(t.c, root, "user.a", nullptr, 9, 0, &kCRoot), pmfs_remove_xattr(t.c, root, nullptr, &kCRoot),
      pmfs_open_file(t.c, name, O_CREAT | O_RDWR, 0600, nullptr, &file),
      pmfs_open_file(t.c, name, O_CREAT | O_RDWR, 0600, &kCRoot, nullptr), pmfs_file_close(nullptr),
      pmfs_file_read(nullptr, 0, nullptr, 0), pmfs_file_write(nullptr, 0, nullptr, 0),
      pmfs_file_append(nullptr, nullptr, 0), pmfs_file_sync(nullptr), pmfs_file_stat(nullptr, &a),
      pmfs_file_truncate(nullptr, 0), pmfs_file_allocate(nullptr, 0, 0, 1), pmfs_file_seek(nullptr, 0, SEEK_DATA),
      pmfs_file_copy(nullptr, 0, nullptr, 0, 0), pmfs_file_lock(nullptr, 0, 0),
      pmfs_file_lock_range(nullptr, 0, 0, 0, 0), pmfs_file_test_lock(nullptr, nullptr, nullptr, nullptr),
      pmfs_file_direct(nullptr, 0, 1, 0, nullptr), pmfs_lease_pieces(nullptr, nullptr, 0),
      pmfs_lease_persist(nullptr, 0, 0), pmfs_lease_close(nullptr), pmfs_open_dir(t.c, root, &kCRoot, nullptr),
      pmfs_open_dir(t.c, pmfs_path_at(1, "/", PMFS_AT_NO_FOLLOW), &kCRoot, &dir),
      pmfs_dir_read(nullptr, 0, nullptr, nullptr),
      pmfs_dir_rewind(nullptr), pmfs_dir_close(nullptr),
      pmfs_stat(t.c, pmfs_path_at(1, "/", 1u << 31), &kCRoot, &a),
      pmfs_stat(t.c, pmfs_path_at(1, "/", PMFS_AT_FOLLOW | PMFS_AT_NO_FOLLOW), &kCRoot, &a),
      pmfs_resolve(t.c, nullptr, 1, 1, 0, &kCRoot, nullptr, nullptr, sizeof a),
      pmfs_resolve(t.c, nullptr, 0, 1, 0, &kCRoot, nullptr, nullptr, 8),
      pmfs_resolve(t.c, nullptr, 0, 1, 1u << 31, &kCRoot, nullptr, nullptr, sizeof a)};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    INFO("call " << i);
    CHECK(answers[i] == -EINVAL);
  }
  CHECK(pmfs_file_inode(nullptr) == 0);
  CHECK(pmfs_dir_inode(nullptr) == 0);

  pmfs_changes change = PMFS_CHANGES_INIT;
  change.set = 1u << 31;
  CHECK(pmfs_set_attributes(t.c, root, &change, &kCRoot, nullptr) == -EINVAL);
  change.set = PMFS_SET_ATIME | PMFS_SET_ATIME_NOW;
  CHECK(pmfs_set_attributes(t.c, root, &change, &kCRoot, nullptr) == -EINVAL);
  pmfs_open_options options = PMFS_OPEN_OPTIONS_INIT;
  options.flags = 1u << 31;
  CHECK(pmfs_open("/x", &options, &fs) == -EINVAL);
  options.flags = 0;
  options.resolver = 4;
  CHECK(pmfs_open("/x", &options, &fs) == -EINVAL);
  for (const u32 bytes : {0u, 4u, static_cast<u32>(sizeof a) - 1, 1u << 20}) {
    a.struct_bytes = bytes;
    CHECK(pmfs_mkdir(t.c, name, 0755, &kCRoot, &a) == -EINVAL);  // before anything is made
  }
  a.struct_bytes = sizeof a;
  CHECK(pmfs_stat(t.c, name, &kCRoot, &a) == -ENOENT);
}

TEST_CASE("C interface: structs of a later version are understood as far as they go", "[unit][fs]") {
  Twins t;
  struct {
    pmfs_attributes known;
    u64 later[3];
  } out;
  std::memset(&out, 0xee, sizeof out);
  out.known.struct_bytes = sizeof out - 8;
  REQUIRE(pmfs_stat(t.c, pmfs_path("/"), &kCRoot, &out.known) == 0);
  CHECK(out.known.inode == PMFS_ROOT_INODE);
  CHECK(out.known.struct_bytes == sizeof out - 8);
  CHECK(out.later[0] == 0);
  CHECK(out.later[1] == 0);
  CHECK(out.later[2] == 0xeeeeeeeeeeeeeeee);  // behind what it was told of

  struct {
    pmfs_credentials known = PMFS_CREDENTIALS_INIT;
    u64 later = 0;
  } in;
  in.known.struct_bytes = sizeof in;
  pmfs_attributes a = made();
  CHECK(pmfs_stat(t.c, pmfs_path("/"), &in.known, &a) == 0);
  in.later = 1;
  CHECK(pmfs_stat(t.c, pmfs_path("/"), &in.known, &a) == -E2BIG);

  pmfs_attributes found[2 * sizeof out / sizeof(pmfs_attributes) + 1];
  const char* const paths[] = {"/", "/"};
  std::int32_t errors[2];
  REQUIRE(pmfs_resolve(t.c, paths, 2, PMFS_ROOT_INODE, 0, &kCRoot, errors, found, sizeof out) == 0);
  pmfs_attributes second;
  std::memcpy(&second, reinterpret_cast<std::byte*>(found) + sizeof out, sizeof second);
  CHECK(second.inode == PMFS_ROOT_INODE);
  CHECK(second.struct_bytes == sizeof out);
}

TEST_CASE("C interface: words for errors are the pool's own, each thread's own, and the general ones", "[unit][fs]") {
  Twins t;
  pmfs_t* fs = nullptr;
  const std::string gone = t.scratch.file("gone");
  const int missing = pmfs_open(gone.c_str(), nullptr, &fs);
  CHECK(missing == -ENOENT);
  CHECK(std::string(pmfs_strerror(missing)).find(gone) != std::string::npos);
  std::thread([&] { CHECK(std::string(pmfs_strerror(missing)) == "No such file or directory"); }).join();

  const int busy = pmfs_open(t.scratch.file("c").c_str(), nullptr, &fs);
  CHECK(busy == -EBUSY);
  CHECK(fs == nullptr);
  CHECK(std::string(pmfs_strerror(busy)).find(t.scratch.file("c")) != std::string::npos);

  pmfs_attributes a = made();
  const int absent = pmfs_stat(t.c, pmfs_path("/gone"), &kCRoot, &a);
  CHECK(absent == -ENOENT);
  CHECK(std::string(pmfs_strerror(absent)).find("pool") == std::string::npos);  // not those of the open before
  const auto cpp = t.c->fs.stat("/gone", kRoot);
  CHECK(std::string(pmfs_strerror(absent)) == cpp.error().what);

  CHECK(std::string(pmfs_strerror(0)) == "no error");
  CHECK(std::string(pmfs_strerror(-ESPIPE)) == "Illegal seek");
  CHECK(std::string(pmfs_strerror(ESPIPE)) == "Illegal seek");
  for (const std::int64_t nonsense : {INT64_MIN, std::int64_t{-4000}, std::int64_t{9999}, INT64_MAX})
    CHECK(std::string(pmfs_strerror(nonsense)) == "an error without a name");
}

TEST_CASE("C interface: pools are grown, opened for reading only, and attached", "[unit][fs]") {
  Twins t;
  const std::string path = t.scratch.file("c");
  REQUIRE(pmfs_mkdir(t.c, pmfs_path("/d"), 0755, &kCRoot, nullptr) == 0);
  REQUIRE(pmfs_close(t.c) == 0);
  u64 added = 0;
  CHECK(pmfs_grow(path.c_str(), u64{16} << 20, nullptr, &added) == -EINVAL);
  CHECK(pmfs_grow(path.c_str(), u64{48} << 20, nullptr, &added) == 0);
  CHECK(added > 3000);

  pmfs_open_options options = PMFS_OPEN_OPTIONS_INIT;
  options.flags = PMFS_OPEN_READ_ONLY | PMFS_OPEN_NO_CACHE;
  options.resolver = PMFS_RESOLVER_WALK;
  REQUIRE(pmfs_open(path.c_str(), &options, &t.c) == 0);
  pmfs_info info = PMFS_INFO_INIT;
  REQUIRE(pmfs_get_info(t.c, &info) == 0);
  CHECK(info.read_only == 1);
  CHECK(pmfs_mkdir(t.c, pmfs_path("/e"), 0755, &kCRoot, nullptr) == -EROFS);
  pmfs_attributes a = made();
  CHECK(pmfs_stat(t.c, pmfs_path("/d"), &kCRoot, &a) == 0);
  CHECK(t.c->fs.lookup_statistics().bytes_limit == 0);

  pmfs_format_options format = PMFS_FORMAT_OPTIONS_INIT;
  format.size_bytes = u64{32} << 20;
  CHECK(pmfs_format(path.c_str(), &format) == -EEXIST);

  const std::string mixed = t.scratch.file("mixed");
  PMEMobjpool* pool = pmemobj_create(mixed.c_str(), "ours", 64 << 20, 0600);
  REQUIRE(pool != nullptr);
  u64 locator = 0;
  pmfs_format_options inside = PMFS_FORMAT_OPTIONS_INIT;
  inside.root_uid = 77;
  REQUIRE(pmfs_format_in(mixed.c_str(), pool, 16 << 20, &inside, &locator) == 0);
  pmfs_t* fs = nullptr;
  REQUIRE(pmfs_attach(mixed.c_str(), pool, locator, nullptr, &fs) == 0);
  REQUIRE(pmfs_stat(fs, pmfs_path("/"), &kCRoot, &a) == 0);
  CHECK(a.uid == 77);
  CHECK(pmfs_close(fs) == 0);
  CHECK(pmfs_attach(mixed.c_str(), pool, 64, nullptr, &fs) < 0);
  CHECK(fs == nullptr);
  pmemobj_close(pool);
}

TEST_CASE("C interface: a forked child owns nothing", "[unit][fs]") {
  Twins t;
  pmfs_file_t* file = nullptr;
  REQUIRE(pmfs_open_file(t.c, pmfs_path("/f"), O_CREAT | O_RDWR, 0600, &kCRoot, &file) == 0);
  CHECK(in_child([&] {
          pmfs_attributes a = made();
          if (pmfs_stat(t.c, pmfs_path("/f"), &kCRoot, &a) != -EOWNERDEAD) return 1;
          if (pmfs_file_write(file, 0, "x", 1) != -EOWNERDEAD) return 2;
          if (pmfs_file_close(file) != -EOWNERDEAD) return 3;
          if (pmfs_close(t.c) != -EOWNERDEAD) return 4;
          return 0;
        }) == 0);
  CHECK(pmfs_file_write(file, 0, "x", 1) == 1);
  CHECK(pmfs_file_close(file) == 0);
}
