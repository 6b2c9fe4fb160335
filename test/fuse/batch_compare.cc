// Reads paths from stdin, a line each, has them answered by a batch and by stat(2), and fails if any answer differs.
//   batch_compare [--chroot DIR] [--cd DIR]
// Prints how many there were and how many the mount's server answered.
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "pmfs/mounted.hpp"

namespace {

pmfs::i64 ns_of(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

// What the kernel says, in the batch's words.
pmfs::mounted::Row by_kernel(const std::string& path, bool follow) {
  pmfs::mounted::Row row;
  struct stat found {};
  if ((follow ? ::stat(path.c_str(), &found) : ::lstat(path.c_str(), &found)) != 0) {
    row.error = errno;
    return row;
  }
  pmfs::Attributes& a = row.attributes;
  a.ino = pmfs::InodeNo{found.st_ino};
  a.mode = found.st_mode;
  a.links = static_cast<pmfs::u32>(found.st_nlink);
  a.uid = found.st_uid;
  a.gid = found.st_gid;
  a.size_bytes = static_cast<pmfs::u64>(found.st_size);
  a.blocks_512 = static_cast<pmfs::u64>(found.st_blocks);
  a.rdev = found.st_rdev;
  a.mtime_ns = ns_of(found.st_mtim);
  a.ctime_ns = ns_of(found.st_ctim);
  return row;
}

std::string text(const pmfs::mounted::Row& row) {
  const pmfs::Attributes& a = row.attributes;
  if (row.error != 0) return std::strerror(row.error);
  char line[256];
  std::snprintf(
      line, sizeof line, "ino %llu mode %o links %u uid %u gid %u size %llu blocks %llu rdev %llu m %lld c %lld",
      static_cast<unsigned long long>(pmfs::to_u64(a.ino)), a.mode, a.links, a.uid, a.gid,
      static_cast<unsigned long long>(a.size_bytes), static_cast<unsigned long long>(a.blocks_512),
      static_cast<unsigned long long>(a.rdev), static_cast<long long>(a.mtime_ns), static_cast<long long>(a.ctime_ns));
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const bool root = std::strcmp(argv[i], "--chroot") == 0;
    if ((root && ::chroot(argv[i + 1]) != 0) || ::chdir(root ? "/" : argv[i + 1]) != 0) {
      std::perror(argv[i + 1]);
      return 2;
    }
  }
  std::vector<std::string> paths;
  for (std::string line; std::getline(std::cin, line);) paths.push_back(line);
  pmfs::mounted::Client client;
  std::size_t batched = 0, wrong = 0;
  for (const bool follow : {true, false}) {
    std::vector<pmfs::mounted::Row> rows(paths.size());
    client.resolve(paths, rows, follow ? pmfs::Follow::kYes : pmfs::Follow::kNo);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      batched += rows[i].batched;
      const std::string have = text(rows[i]), want = text(by_kernel(paths[i], follow));
      if (have == want) continue;
      ++wrong;
      std::printf("%s (%s, %s): %s instead of %s\n", paths[i].c_str(), follow ? "stat" : "lstat",
                  rows[i].batched ? "server" : "kernel", have.c_str(), want.c_str());
    }
  }
  std::printf("%zu paths, %zu batched, %zu wrong\n", 2 * paths.size(), batched, wrong);
  return wrong == 0 ? 0 : 1;
}
