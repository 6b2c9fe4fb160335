// The shortest complete program: makes a file system in a pool, puts a file into it, and finds it again.
//
//   hello_file [POOL]      POOL: a file to create; without it one in /dev/shm, removed at the end
//
// Each call that changes something is durable when it returns: there is nothing to flush and nothing to fsync.
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "pmfs/pmfs.hpp"

namespace {

// Every call gives a value or an error. This example stops at the first error; a program of yours decides better.
void stop(const char* doing, const pmfs::Error& error) {
  std::fprintf(stderr, "%s: %s %s\n", doing, pmfs::describe(error.code), error.what);
  std::exit(1);
}

template <class T>
T must(const char* doing, pmfs::Result<T> result) {
  if (!result.ok()) stop(doing, result.error());
  return std::move(*result);
}

void must(const char* doing, const pmfs::Result<void>& result) {
  if (!result.ok()) stop(doing, result.error());
}

void run(const std::string& pool) {
  const pmfs::Credentials me{.uid = getuid(), .gid = getgid(), .groups = {}, .umask = 022, .checked_elsewhere = false};
  const pmfs::Credentials root = pmfs::Credentials::root();

  pmfs::FormatOptions format;
  format.size_bytes = 64 << 20;
  format.label = "hello";
  must("format", pmfs::Filesystem::format(pool, format));

  pmfs::Filesystem fs = must("open", pmfs::Filesystem::open(pool));
  std::printf("%s: %s\n", pool.c_str(), pmfs::describe(fs.info().durability));

  // The new root directory belongs to root. A directory of our own is made by root and given to us.
  must("mkdir /home", fs.mkdir("/home", 0755, root));
  pmfs::SetAttributes owner;
  owner.uid = me.uid;
  owner.gid = me.gid;
  must("chown /home", fs.set_attributes("/home", owner, root));

  // A new version of a file, the safe way: write it beside the old one, then rename over it. The rename is atomic.
  const std::string_view text = "hello, persistent memory\n";
  pmfs::File draft = must("create", fs.open_file("/home/greeting.new", O_CREAT | O_EXCL | O_WRONLY, 0644, me));
  must("write", draft.write(0, std::as_bytes(std::span(text))));
  must("close", draft.close());
  must("rename", fs.rename("/home/greeting.new", "/home/greeting", 0, me));

  // Leave the file system and come back, as another program would.
  must("close", fs.close());
  fs = must("open again", pmfs::Filesystem::open(pool));

  pmfs::Dir home = must("open /home", fs.open_dir("/home", me));
  pmfs::DirEntry entry;
  for (pmfs::u64 cookie = 0; must("read /home", home.read(cookie, entry)); cookie = entry.cookie) {
    const pmfs::Attributes about = must("stat", fs.stat(pmfs::At::inode(entry.ino), me));
    std::printf("  %-10s mode %o, %llu bytes\n", entry.name, about.mode,
                static_cast<unsigned long long>(about.size_bytes));
  }
  must("close /home", home.close());

  std::string back(text.size(), '\0');
  pmfs::File greeting = must("open greeting", fs.open_file("/home/greeting", O_RDONLY, 0, me));
  const std::size_t got = must("read", greeting.read(0, std::as_writable_bytes(std::span(back))));
  must("close greeting", greeting.close());
  if (std::string_view(back).substr(0, got) != text) {
    std::fprintf(stderr, "greeting is not what was written\n");
    std::exit(1);
  }
  std::printf("%s", back.c_str());

  // check() examines everything: what is reachable, link counts, every block owned once.
  const pmfs::CheckReport report = must("check", pmfs::check(fs));
  std::printf("check: %s\n", report.clean() ? "clean" : report.findings.front().text.c_str());
  must("close", fs.close());
  if (!report.clean()) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    run(argv[1]);
    return 0;
  }
  const std::string pool = "/dev/shm/hello_file-" + std::to_string(getpid()) + ".pool";
  run(pool);
  unlink(pool.c_str());
  return 0;
}
