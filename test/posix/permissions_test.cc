// Permission checks give the kernel's answers: every operation, as every kind of user, on files and directories of many
// modes and owners, here with explicit credentials and on tmpfs as that user. Errno for errno, and what the file or
// directory looks like afterwards.
//
// Needs root, to change identity: it does so for this thread alone, by the system calls themselves.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pmfs/pmfs.hpp"
#include "test/support/catch.h"
#include "test/support/memory_fs.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

constexpr u32 kOwner = 4001, kMember = 4002, kOther = 4003, kOtherOwner = 4004;
constexpr u32 kGroup = 5001, kSecond = 5002, kStranger = 5003;

struct Someone {
  const char* name;
  u32 uid, gid;
  std::vector<u32> groups;
  Credentials credentials() const { return {.uid = uid, .gid = gid, .groups = groups, .umask = 022}; }
};
const std::vector<Someone>& people() {
  static const std::vector<Someone> all = {{"root", 0, 0, {}},
                                           {"the owner", kOwner, kStranger, {}},
                                           {"the owner, in the group", kOwner, kGroup, {kSecond}},
                                           {"a member", kMember, kGroup, {}},
                                           {"a member by a second group", kMember, kStranger, {kSecond, kGroup}},
                                           {"somebody else", kOther, kStranger, {kSecond}}};
  return all;
}

/// The effective identity of this thread, as long as it lives. The real one stays root's, so that it can come back.
class Being {
 public:
  explicit Being(const Someone& who) { set(who.groups, who.gid, who.uid); }
  ~Being() {
    (void)::syscall(SYS_setresuid, -1, 0, -1);
    set({}, 0, 0);
  }
  Being(const Being&) = delete;
  Being& operator=(const Being&) = delete;

 private:
  static void set(const std::vector<u32>& groups, u32 gid, u32 uid) {
    if (::syscall(SYS_setgroups, groups.size(), groups.data()) != 0 || ::syscall(SYS_setresgid, -1, gid, -1) != 0 ||
        ::syscall(SYS_setresuid, -1, uid, -1) != 0)
      throw std::runtime_error("identity cannot be changed");
  }
};

/// What a case is about: the directory /d, the file /d/f in it, /d/sub an empty directory, and /e a directory that all
/// may write.
struct World {
  u32 dir_mode, dir_uid, dir_gid;
  u32 file_mode, file_uid, file_gid;
  u32 sub_uid;
};

std::string text_of(const World& w) {
  char text[160];
  std::snprintf(text, sizeof text, "/d %04o %u:%u, /d/f %04o %u:%u, /d/sub of %u", w.dir_mode, w.dir_uid, w.dir_gid,
                w.file_mode, w.file_uid, w.file_gid, w.sub_uid);
  return text;
}

/// What one side did: an errno, and what is there afterwards.
struct Outcome {
  int error = 0;
  std::map<std::string, std::array<u64, 5>> left;  // mode, uid, gid, links, size
  bool operator==(const Outcome&) const = default;
};

std::string text_of(const Outcome& o) {
  std::string text = "errno " + std::to_string(o.error);
  for (const auto& [name, facts] : o.left) {
    char line[160];
    std::snprintf(line, sizeof line, "; %s %06llo %llu:%llu links %llu size %llu", name.c_str(),
                  static_cast<unsigned long long>(facts[0]), static_cast<unsigned long long>(facts[1]),
                  static_cast<unsigned long long>(facts[2]), static_cast<unsigned long long>(facts[3]),
                  static_cast<unsigned long long>(facts[4]));
    text += line;
  }
  return text;
}

/// The same operation for both sides; each returns an errno.
struct Operation {
  const char* name;
  std::function<int(const std::string& top)> host;
  std::function<int(Filesystem& fs, const Credentials& who)> ours;
};

int host(long result) { return result < 0 ? errno : 0; }
int host_open(const std::string& path, int flags, mode_t mode = 0666) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}
template <class T>
int ours(const Result<T>& result) {
  return result.ok() ? 0 : to_errno(result.error().code);
}

Operation open_as(const char* name, int flags, const std::string& path = "/d/f") {
  return {name, [=](const std::string& top) { return host_open(top + path, flags); },
          [=](Filesystem& fs, const Credentials& who) { return ours(fs.open_file(path, flags, 0666, who)); }};
}
Operation access_as(const char* name, int mode, const std::string& path) {
  return {name,
          [=](const std::string& top) { return host(::faccessat(AT_FDCWD, (top + path).c_str(), mode, AT_EACCESS)); },
          [=](Filesystem& fs, const Credentials& who) { return ours(fs.access(path, mode, who)); }};
}
Operation rename_as(const char* name, const std::string& from, const std::string& to, unsigned flags = 0) {
  return {name,
          [=](const std::string& top) {
            return host(::syscall(SYS_renameat2, AT_FDCWD, (top + from).c_str(), AT_FDCWD, (top + to).c_str(), flags));
          },
          [=](Filesystem& fs, const Credentials& who) { return ours(fs.rename(from, to, flags, who)); }};
}
Operation set_as(const char* name, std::function<int(const std::string&)> host_way, SetAttributes change,
                 const std::string& path) {
  return {name, [=](const std::string& top) { return host_way(top + path); },
          [=](Filesystem& fs, const Credentials& who) { return ours(fs.set_attributes(path, change, who)); }};
}
Operation chmod_as(const char* name, u32 mode, const std::string& path) {
  SetAttributes change;
  change.mode = mode;
  return set_as(
      name, [=](const std::string& p) { return host(::chmod(p.c_str(), mode)); }, change, path);
}
Operation chown_as(const char* name, std::optional<u32> uid, std::optional<u32> gid, const std::string& path) {
  SetAttributes change;
  change.uid = uid;
  change.gid = gid;
  return set_as(
      name, [=](const std::string& p) { return host(::chown(p.c_str(), uid.value_or(~0u), gid.value_or(~0u))); },
      change, path);
}

std::vector<Operation> operations() {
  std::vector<Operation> all;
  all.push_back({"stat /d/f",
                 [](const std::string& top) {
                   struct stat st {};
                   return host(::stat((top + "/d/f").c_str(), &st));
                 },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.stat("/d/f", who)); }});
  all.push_back({"stat /d/none",
                 [](const std::string& top) {
                   struct stat st {};
                   return host(::stat((top + "/d/none").c_str(), &st));
                 },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.stat("/d/none", who)); }});
  all.push_back({"list /d", [](const std::string& top) { return host_open(top + "/d", O_RDONLY | O_DIRECTORY); },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.open_dir("/d", who)); }});
  all.push_back(access_as("access r", R_OK, "/d/f"));
  all.push_back(access_as("access w", W_OK, "/d/f"));
  all.push_back(access_as("access x", X_OK, "/d/f"));
  all.push_back(access_as("access rwx", R_OK | W_OK | X_OK, "/d/f"));
  all.push_back(access_as("access of the directory, w and x", W_OK | X_OK, "/d"));
  all.push_back(open_as("open to read", O_RDONLY));
  all.push_back(open_as("open to write", O_WRONLY));
  all.push_back(open_as("open for both", O_RDWR));
  all.push_back(open_as("open and truncate", O_WRONLY | O_TRUNC));
  all.push_back(open_as("open to read, truncating", O_RDONLY | O_TRUNC));
  all.push_back(open_as("open without access times", O_RDONLY | O_NOATIME));
  all.push_back(open_as("open with O_CREAT what is there", O_RDWR | O_CREAT));
  all.push_back(open_as("open with O_EXCL what is there", O_RDWR | O_CREAT | O_EXCL));
  all.push_back(open_as("open a directory to write", O_WRONLY, "/d"));
  all.push_back(open_as("create", O_WRONLY | O_CREAT, "/d/new"));
  all.push_back(open_as("create, exclusively, to read", O_RDONLY | O_CREAT | O_EXCL, "/d/new"));
  all.push_back({"mkdir", [](const std::string& top) { return host(::mkdir((top + "/d/new").c_str(), 02777)); },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.mkdir("/d/new", 02777, who)); }});
  all.push_back(
      {"mknod of a FIFO", [](const std::string& top) { return host(::mkfifo((top + "/d/new").c_str(), 0666)); },
       [](Filesystem& fs, const Credentials& who) { return ours(fs.mknod("/d/new", S_IFIFO | 0666, 0, who)); }});
  all.push_back(
      {"mknod of a device",
       [](const std::string& top) { return host(::mknod((top + "/d/new").c_str(), S_IFCHR | 0666, 0x103)); },
       [](Filesystem& fs, const Credentials& who) { return ours(fs.mknod("/d/new", S_IFCHR | 0666, 0x103, who)); }});
  all.push_back({"symlink", [](const std::string& top) { return host(::symlink("x", (top + "/d/new").c_str())); },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.symlink("x", "/d/new", who)); }});
  all.push_back({"unlink", [](const std::string& top) { return host(::unlink((top + "/d/f").c_str())); },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.unlink("/d/f", who)); }});
  all.push_back({"unlink of a directory",
                 [](const std::string& top) { return host(::unlink((top + "/d/sub").c_str())); },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.unlink("/d/sub", who)); }});
  all.push_back({"unlink of nothing", [](const std::string& top) { return host(::unlink((top + "/d/none").c_str())); },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.unlink("/d/none", who)); }});
  all.push_back({"rmdir", [](const std::string& top) { return host(::rmdir((top + "/d/sub").c_str())); },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.rmdir("/d/sub", who)); }});
  all.push_back({"rmdir of a file", [](const std::string& top) { return host(::rmdir((top + "/d/f").c_str())); },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.rmdir("/d/f", who)); }});
  all.push_back(rename_as("rename in the directory", "/d/f", "/d/g"));
  all.push_back(rename_as("rename out of it", "/d/f", "/e/f"));
  all.push_back(rename_as("rename into it", "/e/mine", "/d/g"));
  all.push_back(rename_as("rename over the file", "/e/mine", "/d/f"));
  all.push_back(rename_as("rename of the subdirectory out", "/d/sub", "/e/sub"));
  all.push_back(rename_as("rename of the subdirectory within", "/d/sub", "/d/sub2"));
  all.push_back(rename_as("rename over the subdirectory", "/e/dir", "/d/sub"));
  all.push_back(rename_as("rename to what is there, not replacing", "/e/mine", "/d/f", RENAME_NOREPLACE));
  all.push_back(rename_as("exchange", "/e/mine", "/d/f", RENAME_EXCHANGE));
  all.push_back(rename_as("exchange with a directory", "/e/mine", "/d/sub", RENAME_EXCHANGE));
  all.push_back(rename_as("rename of nothing", "/d/none", "/d/g"));
  all.push_back(
      {"link into it",
       [](const std::string& top) { return host(::link((top + "/e/mine").c_str(), (top + "/d/new").c_str())); },
       [](Filesystem& fs, const Credentials& who) { return ours(fs.link("/e/mine", "/d/new", who)); }});
  all.push_back({"readlink of a file",
                 [](const std::string& top) {
                   char text[8];
                   return host(::readlink((top + "/d/f").c_str(), text, sizeof text));
                 },
                 [](Filesystem& fs, const Credentials& who) { return ours(fs.readlink("/d/f", who)); }});
  all.push_back(chmod_as("chmod 0640", 0640, "/d/f"));
  all.push_back(chmod_as("chmod 6755", 06755, "/d/f"));
  all.push_back(chmod_as("chmod 2711 of the directory", 02711, "/d"));
  all.push_back(chmod_as("chmod 1777 of the directory", 01777, "/d"));
  all.push_back(chmod_as("chmod 1644 of the file", 01644, "/d/f"));
  all.push_back(chown_as("chown to the other owner", kOtherOwner, {}, "/d/f"));
  all.push_back(chown_as("chown to the owner", kOwner, {}, "/d/f"));
  all.push_back(chown_as("chgrp to the group", {}, kGroup, "/d/f"));
  all.push_back(chown_as("chgrp to the second group", {}, kSecond, "/d/f"));
  all.push_back(chown_as("chgrp to a stranger's group", {}, kStranger, "/d/f"));
  all.push_back(chown_as("chown to the owner and the group", kOwner, kGroup, "/d/f"));
  all.push_back(chown_as("chgrp of the directory", {}, kSecond, "/d"));
  {
    SetAttributes change;
    change.size_bytes = 3;
    all.push_back(set_as(
        "truncate", [](const std::string& p) { return host(::truncate(p.c_str(), 3)); }, change, "/d/f"));
    all.push_back(set_as(
        "truncate of a directory", [](const std::string& p) { return host(::truncate(p.c_str(), 3)); }, change, "/d"));
  }
  {
    SetAttributes change;
    change.atime_now = change.mtime_now = true;
    all.push_back(set_as(
        "utimens to now", [](const std::string& p) { return host(::utimensat(AT_FDCWD, p.c_str(), nullptr, 0)); },
        change, "/d/f"));
  }
  {
    SetAttributes change;
    change.atime_ns = 5'000'000'000;
    change.mtime_ns = 6'000'000'000;
    all.push_back(set_as(
        "utimens to given times",
        [](const std::string& p) {
          const timespec times[2] = {{5, 0}, {6, 0}};
          return host(::utimensat(AT_FDCWD, p.c_str(), times, 0));
        },
        change, "/d/f"));
  }
  {
    SetAttributes change;
    change.mtime_now = true;
    all.push_back(set_as(
        "utimens of one time to now",
        [](const std::string& p) {
          const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
          return host(::utimensat(AT_FDCWD, p.c_str(), times, 0));
        },
        change, "/d/f"));
  }
  all.push_back({"write",
                 [](const std::string& top) {
                   const int fd = ::open((top + "/d/f").c_str(), O_WRONLY | O_CLOEXEC);
                   if (fd < 0) return errno;
                   const int error = host(::write(fd, "ab", 2));
                   ::close(fd);
                   return error;
                 },
                 [](Filesystem& fs, const Credentials& who) {
                   auto file = fs.open_file("/d/f", O_WRONLY, 0, who);
                   if (!file.ok()) return ours(file);
                   constexpr std::array<std::byte, 2> kText{std::byte{'a'}, std::byte{'b'}};
                   return ours(file->write(0, kText));
                 }});
  return all;
}

// The directory before what is in it.
const std::vector<std::string> kNames = {"/d",      "/d/f", "/d/g",    "/d/new", "/d/sub",
                                         "/d/sub2", "/e/f", "/e/mine", "/e/dir", "/e/sub"};

// --- On tmpfs
// ---------------------------------------------------------------------------------------------------------

void must_host(long result, const std::string& what) {
  if (result < 0) throw std::runtime_error(what + ": " + std::strerror(errno));
}

void make_file(const std::string& path, u32 mode, u32 uid, u32 gid) {
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  must_host(fd, path);
  must_host(::write(fd, "12345", 5), path);
  must_host(::fchown(fd, uid, gid), path);
  must_host(::fchmod(fd, mode), path);
  ::close(fd);
}
void make_dir(const std::string& path, u32 mode, u32 uid, u32 gid) {
  must_host(::mkdir(path.c_str(), 0700), path);
  must_host(::chown(path.c_str(), uid, gid), path);
  must_host(::chmod(path.c_str(), mode), path);
}

Outcome on_host(const std::string& top, const World& w, const Someone& who, const Operation& operation) {
  make_dir(top + "/d", w.dir_mode, w.dir_uid, w.dir_gid);
  make_file(top + "/d/f", w.file_mode, w.file_uid, w.file_gid);
  make_dir(top + "/d/sub", 0755, w.sub_uid, kGroup);
  make_dir(top + "/e", 0777, 0, 0);
  make_file(top + "/e/mine", 0644, who.uid, who.gid);
  make_dir(top + "/e/dir", 0755, who.uid, who.gid);
  Outcome outcome;
  {
    const Being being(who);
    outcome.error = operation.host(top);
  }
  for (const std::string& name : kNames) {
    struct stat st {};
    if (::lstat((top + name).c_str(), &st) != 0) continue;
    const u64 size = S_ISDIR(st.st_mode) ? 0 : static_cast<u64>(st.st_size);
    outcome.left[name] = {st.st_mode, st.st_uid, st.st_gid, st.st_nlink, size};
  }
  for (auto name = kNames.rbegin(); name != kNames.rend(); ++name)
    if (::unlink((top + *name).c_str()) != 0) (void)::rmdir((top + *name).c_str());
  must_host(::rmdir((top + "/e").c_str()), "/e");
  return outcome;
}

// --- Here
// -------------------------------------------------------------------------------------------------------------

void put(Filesystem& fs, const std::string& path, bool directory, u32 mode, u32 uid, u32 gid) {
  const Credentials root = Credentials::root();
  const InodeNo ino =
      (directory ? must(fs.mkdir(path, 0700, root)) : must(fs.mknod(path, S_IFREG | 0600, 0, root))).ino;
  constexpr std::array<std::byte, 5> kText{};
  if (!directory) must(fs.write(ino, 0, kText, root));
  SetAttributes owner, bits;
  owner.uid = uid;
  owner.gid = gid;
  bits.mode = mode;
  must(fs.set_attributes(path, owner, root));
  must(fs.set_attributes(path, bits, root));
}

Outcome here(Filesystem& fs, const World& w, const Someone& who, const Operation& operation) {
  const Credentials root = Credentials::root();
  put(fs, "/d", true, w.dir_mode, w.dir_uid, w.dir_gid);
  put(fs, "/d/f", false, w.file_mode, w.file_uid, w.file_gid);
  put(fs, "/d/sub", true, 0755, w.sub_uid, kGroup);
  put(fs, "/e", true, 0777, 0, 0);
  put(fs, "/e/mine", false, 0644, who.uid, who.gid);
  put(fs, "/e/dir", true, 0755, who.uid, who.gid);
  Outcome outcome;
  outcome.error = operation.ours(fs, who.credentials());
  for (const std::string& name : kNames) {
    const auto found = fs.stat(name, root, Follow::kNo);
    if (!found.ok()) continue;
    const u64 size = found->type() == FileType::kDirectory ? 0 : found->size_bytes;
    outcome.left[name] = {found->mode, found->uid, found->gid, found->links, size};
  }
  for (auto name = kNames.rbegin(); name != kNames.rend(); ++name)
    if (!fs.unlink(*name, root).ok()) (void)fs.rmdir(*name, root);
  must(fs.rmdir("/e", root));
  return outcome;
}

}  // namespace

TEST_CASE("permissions: every operation answers as Linux does on tmpfs, for every kind of user", "[posix]") {
  if (::geteuid() != 0) {
    std::puts("SKIP: only root can be somebody else");
    std::fflush(stdout);
    std::_Exit(77);
  }
  const bool all_modes = std::getenv("PMFS_LONG") != nullptr;
  ::umask(022);
  const Scratch scratch;
  must_host(::chmod(scratch.dir().c_str(), 0755), scratch.dir());
  MemoryFs fs(u64{64} << 20);
  std::vector<u32> dir_modes = {0755, 0777, 0700, 01777, 02775, 0111, 0444, 0070},
                   file_modes = {0644, 0600, 0066, 06777, 0};
  if (all_modes) {
    dir_modes.insert(dir_modes.end(), {0, 0007, 0222, 0333, 0555, 0770, 03777, 0711});
    file_modes.insert(file_modes.end(), {0004, 0040, 0400, 0111, 0222, 04755, 02644, 02755, 0666, 01666});
  }
  const std::vector<Operation> all = operations();
  u64 checks = 0, differences = 0;
  std::map<std::string, int> shown;
  for (const u32 dir_mode : dir_modes)
    for (const u32 dir_uid : {0u, kOwner})
      for (const u32 file_mode : file_modes)
        for (const u32 file_uid : {kOwner, kOtherOwner}) {
          const World w{dir_mode, dir_uid, kGroup, file_mode, file_uid, kGroup, file_uid};
          for (const Someone& who : people())
            for (const Operation& operation : all) {
              checks += 1;
              const Outcome expected = on_host(scratch.dir(), w, who, operation);
              const Outcome found = here(fs.fs(), w, who, operation);
              if (found == expected) continue;
              ++differences;
              if (++shown[operation.name] > 2) continue;  // of its kind
              UNSCOPED_INFO(text_of(w) << "\n"
                                       << operation.name << " as " << who.name << "\n  Linux: " << text_of(expected)
                                       << "\n  here:  " << text_of(found));
            }
        }
  std::printf("%llu checks\n", static_cast<unsigned long long>(checks));
  CHECK(differences == 0);
  fs.require_clean();
}
