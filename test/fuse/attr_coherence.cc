// attr_coherence DIR: with attributes cached for ever, what a program sees after each call is what the library has.
// The oracle: for every file that a call can change, statx() from the kernel's cache equals statx() asked of the server
// (AT_STATX_FORCE_SYNC). Link counts and sizes are compared with what POSIX says, too.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

int failures = 0;

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "attr_coherence: not so: %s (%s)\n", what.c_str(), std::strerror(errno));
  ++failures;
}

struct statx look(const std::string& path, int sync) {
  struct statx st {};
  require(::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW | sync, STATX_BASIC_STATS, &st) == 0, "statx " + path);
  return st;
}

bool same(const statx_timestamp& a, const statx_timestamp& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

bool later(const statx_timestamp& a, const statx_timestamp& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/// Warms the cache, runs the call, then compares what is cached with what is so.
void step(const std::string& name, const std::vector<std::string>& watched, const std::function<void()>& call) {
  for (const std::string& path : watched) {
    struct statx st {};
    (void)::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st);
  }
  usleep(2000);  // so that times differ
  call();
  for (const std::string& path : watched) {
    struct stat exists {};
    if (lstat(path.c_str(), &exists) != 0 && errno == ENOENT) continue;
    const struct statx cached = look(path, AT_STATX_SYNC_AS_STAT);
    const struct statx asked = look(path, AT_STATX_FORCE_SYNC);
    const auto agree = [&](bool equal, const char* field) { require(equal, name + ": " + field + " of " + path); };
    agree(cached.stx_mode == asked.stx_mode, "mode");
    agree(cached.stx_nlink == asked.stx_nlink, "nlink");
    agree(cached.stx_uid == asked.stx_uid && cached.stx_gid == asked.stx_gid, "owner");
    agree(cached.stx_size == asked.stx_size, "size");
    agree(cached.stx_blocks == asked.stx_blocks, "blocks");
    agree(same(cached.stx_atime, asked.stx_atime), "atime");
    agree(same(cached.stx_mtime, asked.stx_mtime), "mtime");
    agree(same(cached.stx_ctime, asked.stx_ctime), "ctime");
  }
}

void put(const std::string& path, const std::string& text, int flags, off_t off = 0) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
  require(fd >= 0, "open " + path);
  require(pwrite(fd, text.data(), text.size(), off) == static_cast<ssize_t>(text.size()), "write " + path);
  close(fd);
}

unsigned links(const std::string& path) { return look(path, AT_STATX_SYNC_AS_STAT).stx_nlink; }

int rename_flags(const std::string& from, const std::string& to, unsigned flags) {
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string top = std::string(argv[1]) + "/coherence";
  require(mkdir(top.c_str(), 0755) == 0, "mkdir " + top);
  const std::string a = top + "/a", b = top + "/b", c = top + "/c", d1 = top + "/d1", d2 = top + "/d2";

  step("create", {top, a}, [&] { put(a, "aaaa", O_CREAT | O_EXCL | O_WRONLY); });
  step("mkdir", {top, d1}, [&] { require(mkdir(d1.c_str(), 0755) == 0, "mkdir"); });
  step("mkdir 2", {top, d2}, [&] { require(mkdir(d2.c_str(), 0755) == 0, "mkdir"); });
  require(links(top) == 4, "a directory's link count is 2 and its subdirectories");

  step("link", {top, a, b}, [&] { require(link(a.c_str(), b.c_str()) == 0, "link"); });
  require(links(a) == 2 && links(b) == 2, "two links after link()");
  step("link elsewhere", {top, d1, a, b, d1 + "/a"},
       [&] { require(link(a.c_str(), (d1 + "/a").c_str()) == 0, "link"); });
  require(links(b) == 3, "three links");

  struct statx before = look(a, AT_STATX_SYNC_AS_STAT);
  step("unlink one name", {top, a, d1}, [&] { require(unlink(b.c_str()) == 0, "unlink"); });
  require(links(a) == 2 && links(d1 + "/a") == 2, "two links after unlink()");
  require(later(look(a, AT_STATX_SYNC_AS_STAT).stx_ctime, before.stx_ctime), "unlink() of another name changes ctime");

  put(c, "cc", O_CREAT | O_WRONLY);
  before = look(a, AT_STATX_SYNC_AS_STAT);
  step("rename over one of two names", {top, a, d1, d1 + "/a", c},
       [&] { require(::rename(c.c_str(), (d1 + "/a").c_str()) == 0, "rename"); });
  require(links(a) == 1, "one link after another name was renamed over");
  require(later(look(a, AT_STATX_SYNC_AS_STAT).stx_ctime, before.stx_ctime),
          "rename() over another name changes ctime");

  require(link(a.c_str(), b.c_str()) == 0, "link");
  step("rename to another name of the same file", {top, a, b},
       [&] { require(::rename(a.c_str(), b.c_str()) == 0, "rename"); });
  require(links(a) == 2, "rename() between two names of a file does nothing");

  step("exchange of a file and a directory", {top, d1, d2, a, d1 + "/a", d2 + "/x"}, [&] {
    require(mkdir((d2 + "/x").c_str(), 0755) == 0, "mkdir");
    require(links(d2) == 3, "one subdirectory");
    require(rename_flags(d1 + "/a", d2 + "/x", RENAME_EXCHANGE) == 0, "exchange");
  });
  require(links(d1) == 3 && links(d2) == 2, "the subdirectory is counted where it is");

  step("rename a directory to another parent", {top, d1, d2, d1 + "/a", d2 + "/y"},
       [&] { require(::rename((d1 + "/a").c_str(), (d2 + "/y").c_str()) == 0, "rename"); });
  require(links(d1) == 2 && links(d2) == 3, "the subdirectory is counted where it is");

  step("rmdir", {top, d2}, [&] { require(rmdir((d2 + "/y").c_str()) == 0, "rmdir"); });
  require(links(d2) == 2, "no subdirectory");

  const int held = open(a.c_str(), O_RDWR | O_CLOEXEC);
  require(held >= 0, "open");
  const auto through = [&](const char* name, const std::function<void()>& call) { step(name, {a, b, top}, call); };
  through("write", [&] { require(pwrite(held, "0123456789", 10, 0) == 10, "write"); });
  through("write behind the end", [&] { require(pwrite(held, "end", 3, 100000) == 3, "write"); });
  through("append", [&] { put(a, "more", O_WRONLY | O_APPEND); });
  require(look(b, AT_STATX_SYNC_AS_STAT).stx_size == 100007, "both names show the new size");
  through("truncate", [&] { require(truncate(b.c_str(), 5) == 0, "truncate"); });
  through("grow", [&] { require(ftruncate(held, 50000) == 0, "ftruncate"); });
  through("O_TRUNC", [&] { put(b, "short", O_WRONLY | O_TRUNC); });
  require(look(a, AT_STATX_SYNC_AS_STAT).stx_size == 5, "the size after O_TRUNC");
  through("read", [&] {
    char buffer[8];
    require(posix_fadvise(held, 0, 0, POSIX_FADV_DONTNEED) == 0 && pread(held, buffer, 8, 0) == 5, "read");
  });
  through("chmod", [&] { require(chmod(b.c_str(), 0640) == 0, "chmod"); });
  through("chown", [&] { require(chown(b.c_str(), 1, 2) == 0 || geteuid() != 0, "chown"); });
  through("chown of a set-id file",
          [&] { require(chmod(b.c_str(), 06755) == 0 && chown(b.c_str(), 3, 4) == 0, "chown"); });
  require((look(a, AT_STATX_SYNC_AS_STAT).stx_mode & 06000) == 0, "chown() takes the set-id bits");
  through("utimensat", [&] {
    const timespec times[2] = {{1234567890, 123456789}, {987654321, 987654321}};
    require(utimensat(AT_FDCWD, b.c_str(), times, 0) == 0, "utimensat");
  });
  const struct statx set = look(a, AT_STATX_SYNC_AS_STAT);
  require(set.stx_atime.tv_nsec == 123456789 && set.stx_mtime.tv_sec == 987654321, "times have nanoseconds");
  through("utimensat, now and omit", [&] {
    const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
    require(utimensat(AT_FDCWD, b.c_str(), times, 0) == 0, "utimensat");
  });
  require(same(look(a, AT_STATX_SYNC_AS_STAT).stx_atime, set.stx_atime), "UTIME_OMIT leaves atime");
  through("utimensat before the epoch", [&] {
    const timespec times[2] = {{-5, 5}, {-1000000, 999999999}};
    require(utimensat(AT_FDCWD, b.c_str(), times, 0) == 0, "utimensat");
  });
  require(look(a, AT_STATX_SYNC_AS_STAT).stx_atime.tv_sec == -5, "times before the epoch");
  through("store through a mapping", [&] {
    require(ftruncate(held, 4096) == 0, "ftruncate");
    void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, held, 0);
    require(mapped != MAP_FAILED, "mmap");
    std::memset(mapped, 'm', 4096);
    require(msync(mapped, 4096, MS_SYNC) == 0 && munmap(mapped, 4096) == 0, "msync");
  });
  through("fsync", [&] { require(fsync(held) == 0, "fsync"); });
  through("unlink of the last but one", [&] { require(unlink(a.c_str()) == 0, "unlink"); });
  require(links(b) == 1, "one link");
  step("unlink of the last", {top}, [&] { require(unlink(b.c_str()) == 0, "unlink"); });
  struct stat st {};
  require(fstat(held, &st) == 0 && st.st_nlink == 0, "an open file without names has no links");
  close(held);

  step("symlink", {top, c}, [&] { require(symlink("target", c.c_str()) == 0, "symlink"); });
  step("mknod", {top, a}, [&] { require(mkfifo(a.c_str(), 0644) == 0, "mkfifo"); });
  step("rename over a symlink", {top, a, c}, [&] { require(::rename(a.c_str(), c.c_str()) == 0, "rename"); });
  require(unlink((d2 + "/x").c_str()) == 0, "unlink");
  step("a directory over an empty directory", {top, d1, d2},
       [&] { require(::rename(d1.c_str(), d2.c_str()) == 0, "rename"); });
  require(links(top) == 3, "one subdirectory is left");

  std::printf("attr_coherence: %d not so\n", failures);
  return failures == 0 ? 0 : 1;
}
