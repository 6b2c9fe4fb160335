#include "test/posix/matrix.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

namespace pmfs::test {

void Log::error(const std::string& what, int error) {
  const char* const name = ::strerrorname_np(error);
  check(what, error == 0 ? "ok" : name == nullptr ? std::to_string(error) : name);
}

u64 Log::checks() const {
  u64 sum = 0;
  for (const Case& one : cases_) sum += one.lines.size();
  return sum;
}

u64 compare(const Log& expected, const Log& found, const std::function<void(const std::string&)>& told) {
  u64 differ = 0;
  for (std::size_t i = 0; i < std::max(expected.cases().size(), found.cases().size()); ++i) {
    static const Log::Case kNone{"no such case", {}};
    const Log::Case& right = i < expected.cases().size() ? expected.cases()[i] : kNone;
    const Log::Case& ours = i < found.cases().size() ? found.cases()[i] : kNone;
    if (right.name == ours.name && right.lines == ours.lines) continue;
    differ += 1;
    std::size_t line = 0;
    while (line < std::min(right.lines.size(), ours.lines.size()) && right.lines[line] == ours.lines[line]) ++line;
    const auto at = [line](const Log::Case& one) { return line < one.lines.size() ? one.lines[line] : "nothing more"; };
    told(right.name + "\n  expected: " + at(right) + "\n  found:    " + at(ours));
  }
  return differ;
}

namespace {

std::string octal(u64 value) {
  char text[32];
  std::snprintf(text, sizeof text, "%llo", static_cast<unsigned long long>(value));
  return text;
}

std::string text_of(const Facts& f) {
  return octal(f.mode) + " " + std::to_string(f.uid) + ":" + std::to_string(f.gid) + " links " +
         std::to_string(f.links) + " size " + std::to_string(f.size) + " dev " + std::to_string(f.rdev);
}

/// Removes all below a directory.
void clear(Door& door, const std::string& dir) {
  std::vector<std::string> names;
  if (door.list(dir == "" ? "/" : dir, names) != 0) return;
  for (const std::string& name : names) {
    const std::string path = dir + "/" + name;
    if (door.unlink(path) == 0) continue;
    clear(door, path);
    (void)door.rmdir(path);
  }
}

/// All that is there, and what it is.
void show(Door& door, Log& log, const std::string& dir) {
  std::vector<std::string> names;
  if (door.list(dir == "" ? "/" : dir, names) != 0) return;
  for (const std::string& name : names) {
    const std::string path = dir + "/" + name;
    Facts facts;
    const int error = door.stat(path, false, facts);
    if (error != 0) {
      log.error("stat " + path, error);
      continue;
    }
    log.check(path.size() < 60 ? path : path.substr(0, 20) + "...", text_of(facts));
    if (S_ISLNK(facts.mode)) {
      std::string target;
      log.error("readlink " + name, door.readlink(path, target));
      log.check("target of " + name, target);
    }
    if (S_ISDIR(facts.mode)) show(door, log, path);
  }
}

void file(Door& door, const std::string& path, const std::string& data = "12345") {
  int handle = -1;
  if (door.open(path, O_CREAT | O_EXCL | O_WRONLY, 0644, handle) != 0) return;
  std::size_t written = 0;
  (void)door.write(handle, 0, data, written);
  (void)door.close(handle);
}

// --- Things that can have a name
// --------------------------------------------------------------------------------------

const std::vector<std::string> kKinds = {"nothing",     "file",     "empty", "full", "link-to-file",
                                         "link-to-dir", "dangling", "loop",  "fifo", "device"};

void make(Door& door, const std::string& kind, const std::string& path) {
  if (kind == "file") file(door, path);
  if (kind == "empty" || kind == "full") (void)door.mkdir(path, 0755);
  if (kind == "full") file(door, path + "/inside");
  if (kind == "link-to-file") (void)door.symlink("../far/target", path);
  if (kind == "link-to-dir") (void)door.symlink("../far", path);
  if (kind == "dangling") (void)door.symlink("../far/none", path);
  if (kind == "loop") (void)door.symlink(path.substr(path.rfind('/') + 1), path);
  if (kind == "fifo") (void)door.mknod(path, S_IFIFO | 0640, 0);
  if (kind == "device") (void)door.mknod(path, S_IFCHR | 0640, 0x103);
}

void surroundings(Door& door) {
  clear(door, "");
  (void)door.mkdir("/a", 0755);
  (void)door.mkdir("/b", 0755);
  (void)door.mkdir("/far", 0755);
  file(door, "/far/target", "target");
}

// --- Cases
// ------------------------------------------------------------------------------------------------------------

// Every operation on every kind of thing, with and without a slash behind it, and with "." and "..".
void kinds(Door& door, Log& log) {
  struct Op {
    const char* name;
    std::function<int(Door&, const std::string&)> run;
  };
  const std::vector<Op> ops = {
      {"mkdir", [](Door& d, const std::string& p) { return d.mkdir(p, 0751); }},
      {"mknod", [](Door& d, const std::string& p) { return d.mknod(p, S_IFREG | 0604, 0); }},
      {"symlink", [](Door& d, const std::string& p) { return d.symlink("text", p); }},
      {"link from", [](Door& d, const std::string& p) { return d.link(p, "/b/new", false); }},
      {"link from, following", [](Door& d, const std::string& p) { return d.link(p, "/b/new", true); }},
      {"link to", [](Door& d, const std::string& p) { return d.link("/far/target", p, false); }},
      {"unlink", [](Door& d, const std::string& p) { return d.unlink(p); }},
      {"rmdir", [](Door& d, const std::string& p) { return d.rmdir(p); }},
      {"chmod", [](Door& d, const std::string& p) { return d.chmod(p, 04711); }},
      {"chown", [](Door& d, const std::string& p) { return d.chown(p, 7, 8, true); }},
      {"lchown", [](Door& d, const std::string& p) { return d.chown(p, 7, 8, false); }},
      {"truncate", [](Door& d, const std::string& p) { return d.truncate(p, 3); }},
      {"utimens", [](Door& d, const std::string& p) { return d.utimens(p, 1'000, 2'000, true); }},
      {"lutimens", [](Door& d, const std::string& p) { return d.utimens(p, 1'000, 2'000, false); }},
      {"access", [](Door& d, const std::string& p) { return d.access(p, R_OK | W_OK); }},
      {"access x", [](Door& d, const std::string& p) { return d.access(p, X_OK); }},
      {"stat",
       [](Door& d, const std::string& p) {
         Facts f;
         return d.stat(p, true, f);
       }},
      {"lstat",
       [](Door& d, const std::string& p) {
         Facts f;
         return d.stat(p, false, f);
       }},
      {"list",
       [](Door& d, const std::string& p) {
         std::vector<std::string> names;
         return d.list(p, names);
       }},
      {"readlink",
       [](Door& d, const std::string& p) {
         std::string target;
         return d.readlink(p, target);
       }},
  };
  for (const std::string& kind : kKinds)
    for (const char* const behind : {"", "/", "/.", "/..", "/x", "/x/y", "//", "/./", "/../a/x"})
      for (const Op& op : ops) {
        log.begin(std::string(op.name) + " " + kind + behind);
        surroundings(door);
        make(door, kind, "/a/x");
        log.error("result", op.run(door, "/a/x" + std::string(behind)));
        show(door, log, "/a");
        show(door, log, "/b");
      }
}

// Every kind over every kind.
void renames(Door& door, Log& log) {
  for (const unsigned flags : {0u, unsigned{RENAME_NOREPLACE}, unsigned{RENAME_EXCHANGE}, 3u})
    for (const std::string& from : kKinds)
      for (const std::string& to : kKinds)
        for (const char* const place : {"/a/y", "/b/y", "/a/x", "/b/y/", "/a/x/y", "/b"}) {
          if (flags == 3u && (from != "file" || to != "file")) continue;
          // A link one level higher would lead out of the top.
          if (std::string_view(place) == "/b" && from.starts_with("link")) continue;
          log.begin("rename " + from + " over " + to + " at " + place + " flags " + std::to_string(flags));
          surroundings(door);
          make(door, from, "/a/x");
          std::string bare = place;
          if (bare.back() == '/') bare.pop_back();
          if (bare != "/a/x" && bare != "/b") make(door, to, bare);
          log.error("result", door.rename("/a/x", place, flags));
          show(door, log, "/a");
          show(door, log, "/b");
        }
  for (const char* const from : {"/a/x/", "/a/x/.", "/a/x/..", "/a/.", "/a/..", "/", "/none/x", "/far/target/x", "/a"})
    for (const char* const to :
         {"/b/y", "/b/y/", "/b/.", "/b/..", "/", "/none/y", "/far/target/y", "/a/x/z", "/a/x/deep/z"})
      for (const std::string kind : {"file", "full", "link-to-dir"}) {
        log.begin("rename " + kind + " " + from + " to " + to);
        surroundings(door);
        make(door, kind, "/a/x");
        log.error("result", door.rename(from, to, 0));
        show(door, log, "");
      }
  // Two names of one file.
  log.begin("rename of one name over the other");
  surroundings(door);
  file(door, "/a/x");
  log.error("link", door.link("/a/x", "/b/x", false));
  log.error("rename", door.rename("/a/x", "/b/x", 0));
  show(door, log, "");
}

void opens(Door& door, Log& log) {
  for (const std::string& kind : kKinds) {
    if (kind == "fifo" || kind == "device") continue;  // through the kernel they are something else
    for (const int access : {O_RDONLY, O_WRONLY, O_RDWR})
      for (int bits = 0; bits < 64; ++bits)
        for (const char* const behind : {"", "/"}) {
          int flags = access;
          if ((bits & 1) != 0) flags |= O_CREAT;
          if ((bits & 2) != 0) flags |= O_EXCL;
          if ((bits & 4) != 0) flags |= O_TRUNC;
          if ((bits & 8) != 0) flags |= O_APPEND;
          if ((bits & 16) != 0) flags |= O_NOFOLLOW;
          if ((bits & 32) != 0) flags |= O_DIRECTORY;
          // Undefined by POSIX, and Linux has changed its mind: neither is asked.
          if ((flags & O_EXCL) != 0 && (flags & O_CREAT) == 0) continue;
          if ((flags & O_CREAT) != 0 && (flags & O_DIRECTORY) != 0) continue;
          log.begin("open " + kind + behind + " flags " + octal(static_cast<u64>(flags)));
          surroundings(door);
          make(door, kind, "/a/x");
          int handle = -1;
          const int error = door.open("/a/x" + std::string(behind), flags, 0606, handle);
          log.error("result", error);
          if (error == 0) {
            Facts facts;
            log.error("fstat", door.fstat(handle, facts));
            log.check("facts", text_of(facts));
            std::string data;
            log.error("read", door.read(handle, 1, 10, data));
            log.check("data", data);
            std::size_t written = 0;
            if (!S_ISDIR(facts.mode)) {
              log.error("write", door.write(handle, 2, "ab", written));
              log.check("written", written);
              log.error("ftruncate", door.ftruncate(handle, 9));
            }
            log.error("fstat again", door.fstat(handle, facts));
            log.check("facts again", text_of(facts));
            log.error("close", door.close(handle));
          }
          show(door, log, "/a");
          show(door, log, "/far");
        }
  }
}

void modes(Door& door, Log& log) {
  for (const u32 mask : {0u, 022u, 077u, 0777u, 0137u})
    for (const u32 mode : {0u, 0777u, 0644u, 07777u, 04755u, 02755u, 01777u, 0123u})
      for (const u32 dir_mode : {0755u, 02755u, 01777u}) {
        log.begin("modes: umask " + octal(mask) + " mode " + octal(mode) + " in " + octal(dir_mode));
        surroundings(door);
        log.error("chown", door.chown("/a", 11, 12, true));
        log.error("chmod", door.chmod("/a", dir_mode));
        door.set_umask(mask);
        int handle = -1;
        log.error("open", door.open("/a/opened", O_CREAT | O_WRONLY, mode, handle));
        (void)door.close(handle);
        log.error("mkdir", door.mkdir("/a/made", mode));
        log.error("mkfifo", door.mknod("/a/fifo", S_IFIFO | mode, 0));
        log.error("mknod", door.mknod("/a/device", S_IFBLK | mode, 0x801));
        log.error("socket", door.mknod("/a/socket", S_IFSOCK | mode, 0));
        log.error("symlink", door.symlink("x", "/a/link"));
        door.set_umask(0);
        show(door, log, "");
      }
  for (const u32 type : {0u, u32{S_IFDIR}, u32{S_IFLNK}, 0130000u, u32{S_IFREG}}) {
    log.begin("mknod of type " + octal(type));
    surroundings(door);
    log.error("result", door.mknod("/a/x", type | 0644, 0));
    show(door, log, "/a");
  }
  for (const u32 mode : {0u, 07777u, 0170644u, 0100644u, 0777u})
    for (const std::string kind : {"file", "empty", "fifo", "device"}) {
      log.begin("chmod " + octal(mode) + " of " + kind);
      surroundings(door);
      make(door, kind, "/a/x");
      log.error("result", door.chmod("/a/x", mode));
      show(door, log, "/a");
    }
  for (const u32 mode : {06777u, 06766u, 02644u, 04755u})
    for (const std::string kind : {"file", "empty", "fifo", "device"}) {
      log.begin("set-id " + octal(mode) + " of " + kind + " and chown");
      surroundings(door);
      make(door, kind, "/a/x");
      (void)door.chmod("/a/x", mode);
      log.error("result", door.chown("/a/x", 3, 4, true));
      show(door, log, "/a");
    }
}

void lengths(Door& door, Log& log) {
  const auto ask = [&](const std::string& what, const std::string& path) {
    log.begin("length: " + what);
    surroundings(door);
    Facts facts;
    log.error("stat", door.stat(path, true, facts));
    log.error("mkdir", door.mkdir(path, 0755));
    log.error("mknod", door.mknod(path, S_IFREG | 0644, 0));
    log.error("symlink", door.symlink("x", path));
    log.error("link", door.link("/far/target", path, false));
    log.error("rename", door.rename("/far/target", path, 0));
    log.error("unlink", door.unlink(path));
    log.error("rmdir", door.rmdir(path));
    int handle = -1;
    const int error = door.open(path, O_CREAT | O_RDWR, 0644, handle);
    log.error("open", error);
    if (error == 0) (void)door.close(handle);
    show(door, log, "");
  };
  for (const std::size_t n : {1u, 2u, 39u, 40u, 41u, 254u, 255u, 256u, 300u, 1000u}) {
    const std::string name(n, 'n');
    ask("a name of " + std::to_string(n), "/a/" + name);
    ask("below a name of " + std::to_string(n), "/a/" + name + "/x");
    ask("below nothing, a name of " + std::to_string(n), "/none/" + name);
    ask("below a file, a name of " + std::to_string(n), "/far/target/" + name);
  }
  for (const std::size_t n : {4093u, 4094u, 4095u, 4096u, 4097u, 5000u}) {
    std::string path = "/a";
    while (path.size() + 2 <= n - 2) path += "/.";
    path += path.size() + 2 == n ? "/x" : "//x";
    path.resize(n, 'x');
    ask("a path of " + std::to_string(n), path);
  }
  for (const std::size_t n : {0u, 1u, 127u, 128u, 129u, 1000u, 4095u, 4096u, 5000u}) {
    log.begin("a link's text of " + std::to_string(n));
    surroundings(door);
    log.error("symlink", door.symlink(std::string(n, 't'), "/a/x"));
    std::string target;
    log.error("readlink", door.readlink("/a/x", target));
    log.check("length", target.size());
    Facts facts;
    log.error("stat", door.stat("/a/x", true, facts));
    log.error("lstat", door.stat("/a/x", false, facts));
    log.check("size", facts.size);
  }
  log.begin("no path at all");
  surroundings(door);
  Facts facts;
  log.error("stat", door.stat("", true, facts));
  log.error("mkdir", door.mkdir("", 0755));
  log.error("unlink", door.unlink(""));
  log.error("rename", door.rename("", "/a/x", 0));
}

void links(Door& door, Log& log) {
  // Chains of symbolic links: 40 are followed, 41 are not.
  for (const int count : {1, 2, 39, 40, 41, 50}) {
    log.begin("a chain of " + std::to_string(count) + " links");
    surroundings(door);
    file(door, "/a/0");
    for (int i = 1; i <= count; ++i) (void)door.symlink(std::to_string(i - 1), "/a/" + std::to_string(i));
    Facts facts;
    log.error("stat", door.stat("/a/" + std::to_string(count), true, facts));
    log.error("lstat", door.stat("/a/" + std::to_string(count), false, facts));
    int handle = -1;
    const int error = door.open("/a/" + std::to_string(count), O_RDWR, 0, handle);
    log.error("open", error);
    if (error == 0) (void)door.close(handle);
    log.error("chmod", door.chmod("/a/" + std::to_string(count), 0600));
    log.error("truncate", door.truncate("/a/" + std::to_string(count), 1));
  }
  // Link counts.
  log.begin("link counts");
  surroundings(door);
  file(door, "/a/x");
  Facts facts;
  for (int i = 0; i < 20; ++i) log.error("link", door.link("/a/x", "/b/" + std::to_string(i), false));
  log.error("stat", door.stat("/a/x", true, facts));
  log.check("facts", text_of(facts));
  for (int i = 0; i < 20; i += 2) log.error("unlink", door.unlink("/b/" + std::to_string(i)));
  log.error("unlink", door.unlink("/a/x"));
  for (int i = 0; i < 5; ++i) log.error("mkdir", door.mkdir("/a/d" + std::to_string(i), 0755));
  log.error("rmdir", door.rmdir("/a/d1"));
  log.error("rename", door.rename("/a/d2", "/b/d2", 0));
  log.error("rename over", door.rename("/a/d3", "/b/d2", 0));
  show(door, log, "");
  // A file without a name, still open.
  log.begin("unlinked and open");
  surroundings(door);
  file(door, "/a/x", "before");
  int handle = -1;
  log.error("open", door.open("/a/x", O_RDWR, 0, handle));
  log.error("unlink", door.unlink("/a/x"));
  log.error("fstat", door.fstat(handle, facts));
  log.check("facts", text_of(facts));
  std::size_t written = 0;
  log.error("write", door.write(handle, 3, "AFTER", written));
  std::string data;
  log.error("read", door.read(handle, 0, 100, data));
  log.check("data", data);
  log.error("ftruncate", door.ftruncate(handle, 4));
  file(door, "/a/x", "another");
  log.error("read", door.read(handle, 0, 100, data));
  log.check("data", data);
  log.error("close", door.close(handle));
  show(door, log, "/a");
}

// Which operation changes which times.
void times(Door& door, Log& log) {
  struct Op {
    const char* name;
    std::function<int(Door&)> run;
  };
  const std::vector<Op> ops = {
      {"nothing", [](Door&) { return 0; }},
      {"stat",
       [](Door& d) {
         Facts f;
         return d.stat("/a/x", true, f);
       }},
      {"chmod", [](Door& d) { return d.chmod("/a/x", 0600); }},
      {"chmod to the same", [](Door& d) { return d.chmod("/a/x", 0644); }},
      {"chown", [](Door& d) { return d.chown("/a/x", 1, 1, true); }},
      {"truncate", [](Door& d) { return d.truncate("/a/x", 2); }},
      {"truncate to the same", [](Door& d) { return d.truncate("/a/x", 5); }},
      {"truncate up", [](Door& d) { return d.truncate("/a/x", 5000); }},
      {"utimens", [](Door& d) { return d.utimens("/a/x", 1'000'000, 2'000'000, true); }},
      {"link", [](Door& d) { return d.link("/a/x", "/b/x", false); }},
      {"unlink of another name", [](Door& d) { return d.unlink("/b/other"); }},
      {"unlink", [](Door& d) { return d.unlink("/a/x"); }},
      {"rename within", [](Door& d) { return d.rename("/a/x", "/a/z", 0); }},
      {"rename across", [](Door& d) { return d.rename("/a/x", "/b/z", 0); }},
      {"rename over", [](Door& d) { return d.rename("/a/y", "/a/x", 0); }},
      {"rename of a directory across", [](Door& d) { return d.rename("/a/d", "/b/d", 0); }},
      {"exchange", [](Door& d) { return d.rename("/a/x", "/b/y", RENAME_EXCHANGE); }},
      {"rename to itself", [](Door& d) { return d.rename("/a/x", "/a/x", 0); }},
      {"mkdir", [](Door& d) { return d.mkdir("/a/new", 0755); }},
      {"mkdir of what is there", [](Door& d) { return d.mkdir("/a/x", 0755); }},
      {"rmdir", [](Door& d) { return d.rmdir("/a/d"); }},
      {"symlink", [](Door& d) { return d.symlink("t", "/a/new"); }},
      {"mknod", [](Door& d) { return d.mknod("/a/new", S_IFIFO | 0644, 0); }},
      {"create",
       [](Door& d) {
         int h = -1;
         const int e = d.open("/a/new", O_CREAT | O_WRONLY, 0644, h);
         (void)d.close(h);
         return e;
       }},
      {"open",
       [](Door& d) {
         int h = -1;
         const int e = d.open("/a/x", O_RDWR, 0, h);
         (void)d.close(h);
         return e;
       }},
      {"open with O_TRUNC",
       [](Door& d) {
         int h = -1;
         const int e = d.open("/a/x", O_RDWR | O_TRUNC, 0, h);
         (void)d.close(h);
         return e;
       }},
      {"open with O_TRUNC of an empty file",
       [](Door& d) {
         int h = -1;
         const int e = d.open("/a/y", O_RDWR | O_TRUNC, 0, h);
         (void)d.close(h);
         return e;
       }},
      {"write",
       [](Door& d) {
         int h = -1;
         std::size_t n = 0;
         (void)d.open("/a/x", O_RDWR, 0, h);
         const int e = d.write(h, 0, "zz", n);
         (void)d.close(h);
         return e;
       }},
      {"write of nothing",
       [](Door& d) {
         int h = -1;
         std::size_t n = 0;
         (void)d.open("/a/x", O_RDWR, 0, h);
         const int e = d.write(h, 0, "", n);
         (void)d.close(h);
         return e;
       }},
      {"append",
       [](Door& d) {
         int h = -1;
         std::size_t n = 0;
         (void)d.open("/a/x", O_RDWR, 0, h);
         const int e = d.write(h, 5, "zz", n);
         (void)d.close(h);
         return e;
       }},
      {"ftruncate to the same",
       [](Door& d) {
         int h = -1;
         (void)d.open("/a/x", O_RDWR, 0, h);
         const int e = d.ftruncate(h, 5);
         (void)d.close(h);
         return e;
       }},
      {"readlink",
       [](Door& d) {
         std::string t;
         return d.readlink("/a/l", t);
       }},
      {"access", [](Door& d) { return d.access("/a/x", R_OK); }},
  };
  const std::vector<std::string> watched = {"/a",   "/b",   "/a/x", "/a/y", "/b/other", "/b/y",
                                            "/a/d", "/a/l", "/b/z", "/a/z", "/b/d"};
  for (const Op& op : ops) {
    log.begin(std::string("times: ") + op.name);
    surroundings(door);
    file(door, "/a/x");
    file(door, "/a/y", "");
    file(door, "/b/y");
    (void)door.link("/a/y", "/b/other", false);
    (void)door.mkdir("/a/d", 0755);
    (void)door.symlink("x", "/a/l");
    for (const char* const path : {"/a/x", "/a/y", "/b/y"})
      (void)door.utimens(path, 1'000'000'000, 1'000'000'000, true);
    std::vector<Times> before(watched.size());
    std::vector<int> there(watched.size());
    for (std::size_t i = 0; i < watched.size(); ++i) {
      Facts facts;
      there[i] = door.stat(watched[i], false, facts, &before[i]);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(12));  // the kernel's clock goes in steps of up to 10 ms
    log.error("result", op.run(door));
    for (std::size_t i = 0; i < watched.size(); ++i) {
      Facts facts;
      Times after;
      const int error = door.stat(watched[i], false, facts, &after);
      log.error(watched[i], error);
      if (error != 0 || there[i] != 0) continue;
      log.check("mtime of " + watched[i], after.mtime_ns != before[i].mtime_ns ? "changed" : "same");
      log.check("ctime of " + watched[i], after.ctime_ns != before[i].ctime_ns ? "changed" : "same");
    }
  }
}

// Any writes, reads and truncations: holes, ends, sizes.
void contents(Door& door, Log& log) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 12; ++round) {
    log.begin("contents, round " + std::to_string(round));
    surroundings(door);
    int handle = -1;
    log.error("open", door.open("/a/x", O_CREAT | O_RDWR, 0644, handle));
    for (int i = 0; i < 60; ++i) {
      const u64 off = random() % 4 == 0 ? random() % 300'000 : random() % 20'000;
      const std::size_t bytes = random() % 3 == 0 ? 4096 * (random() % 4) : random() % 9000;
      std::string data;
      std::size_t written = 0;
      switch (random() % 5) {
        case 0:
        case 1:
          data.resize(bytes);
          for (char& c : data) c = static_cast<char>('a' + random() % 26);
          log.error("write", door.write(handle, off, data, written));
          log.check("written", written);
          break;
        case 2: log.error("ftruncate", door.ftruncate(handle, off)); break;
        default: {
          log.error("read", door.read(handle, off, bytes, data));
          log.check("bytes", data.size());
          log.check("hash", std::hash<std::string>()(data));
        }
      }
      Facts facts;
      log.error("fstat", door.fstat(handle, facts));
      log.check("size", facts.size);
    }
    log.error("close", door.close(handle));
  }
  log.begin("the ends of a file");
  surroundings(door);
  int handle = -1;
  std::size_t written = 0;
  std::string data;
  log.error("open", door.open("/a/x", O_CREAT | O_RDWR, 0644, handle));
  log.error("read behind the end", door.read(handle, 100, 10, data));
  log.check("bytes", data.size());
  log.error("write far away", door.write(handle, u64{1} << 40, "far", written));
  Facts facts;
  log.error("fstat", door.fstat(handle, facts));
  log.check("size", facts.size);
  log.error("read there", door.read(handle, (u64{1} << 40) - 3, 100, data));
  log.check("hash", std::hash<std::string>()(data));
  log.error("cut", door.ftruncate(handle, 1));
  log.error("close", door.close(handle));
  log.error("open to read", door.open("/a/x", O_RDONLY, 0, handle));
  log.error("write", door.write(handle, 0, "x", written));
  log.error("ftruncate", door.ftruncate(handle, 0));
  log.error("close", door.close(handle));
  log.error("open to write", door.open("/a/x", O_WRONLY, 0, handle));
  log.error("read", door.read(handle, 0, 10, data));
  log.error("close", door.close(handle));
}

// Names of any bytes, and directories of many.
void names(Door& door, Log& log) {
  log.begin("names of any bytes");
  surroundings(door);
  for (int byte = 1; byte < 256; ++byte) {
    if (byte == '/') continue;
    const std::string name = {'x', static_cast<char>(byte)};
    log.error("create", door.mknod("/a/" + name, S_IFREG | 0644, 0));
    const std::string alone = {static_cast<char>(byte)};
    log.error("create alone", door.mknod("/b/" + alone, S_IFREG | 0644, 0));
  }
  std::vector<std::string> listed;
  for (const char* const dir : {"/a", "/b"}) {
    log.error("list", door.list(dir, listed));
    for (const std::string& name : listed) {
      std::string hex;
      for (const char c : name) hex += octal(static_cast<u8>(c)) + " ";
      log.check("name", hex);
    }
  }
  log.begin("a directory of many names");
  surroundings(door);
  for (int i = 0; i < 700; ++i) log.error("create", door.mknod("/a/" + std::to_string(i), S_IFREG | 0644, 0));
  for (int i = 0; i < 700; i += 3) log.error("unlink", door.unlink("/a/" + std::to_string(i)));
  for (int i = 1; i < 700; i += 3)
    log.error("rename", door.rename("/a/" + std::to_string(i), "/a/renamed-" + std::to_string(i), 0));
  log.error("rmdir", door.rmdir("/a"));
  log.error("list", door.list("/a", listed));
  for (const std::string& name : listed) log.check("name", name);
}

}  // namespace

void run_matrix(Door& door, Log& log) {
  kinds(door, log);
  renames(door, log);
  opens(door, log);
  modes(door, log);
  lengths(door, log);
  links(door, log);
  times(door, log);
  contents(door, log);
  names(door, log);
  clear(door, "");
}

}  // namespace pmfs::test
