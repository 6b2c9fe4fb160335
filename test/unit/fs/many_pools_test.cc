// Many pools in one process, and one pool many times: nothing is shared, nothing is left.
#include <dirent.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "pmfs/pmfs.hpp"
#include "test/support/catch.h"
#include "test/support/memory_fs.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

std::size_t entries_of(const char* dir) {
  std::size_t count = 0;
  DIR* const open = opendir(dir);
  REQUIRE(open != nullptr);
  while (readdir(open) != nullptr) ++count;
  closedir(open);
  return count;
}

std::size_t mappings_of(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(name) != std::string::npos ? 1 : 0;
  return count;
}

std::string make_pool(const Scratch& scratch, int number) {
  const std::string path = scratch.file("pool" + std::to_string(number));
  FormatOptions format;
  format.size_bytes = u64{8} << 20;
  format.label = std::to_string(number);
  must(Filesystem::format(path, format));
  return path;
}

}  // namespace

TEST_CASE("pools: many at once in one process, each with its own files", "[unit][fs]") {
  const int pools = std::getenv("PMFS_LONG") != nullptr ? 1000 : 100;
  const Scratch scratch;
  std::vector<Filesystem> all;
  for (int i = 0; i < pools; ++i) all.push_back(must(Filesystem::open(make_pool(scratch, i))));
  for (int i = 0; i < pools; ++i) {
    must(all[static_cast<std::size_t>(i)].mkdir("/d", 0755, kRoot));
    must(all[static_cast<std::size_t>(i)].mknod("/d/" + std::to_string(i), 0644, 0, kRoot));
  }
  for (int i = 0; i < pools; ++i) {
    Filesystem& fs = all[static_cast<std::size_t>(i)];
    CHECK(fs.info().label == std::to_string(i));
    CHECK(fs.stat("/d/" + std::to_string(i), kRoot).ok());
    CHECK(must(fs.directory_info("/d", kRoot)).entries == 1);
    must(fs.close());
  }
  CHECK(mappings_of(scratch.dir()) == 0);
}

TEST_CASE("pools: opened and closed again and again, nothing is left behind", "[unit][fs]") {
  const Scratch scratch;
  const std::string path = make_pool(scratch, 0);
  std::size_t descriptors = 0, threads = 0;
  for (int i = 0; i < 60; ++i) {
    if (i == 10) descriptors = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
    Filesystem fs = must(Filesystem::open(path));
    must(fs.mknod("/" + std::to_string(i), 0644, 0, kRoot));
    must(fs.stat("/" + std::to_string(i), kRoot));
    if (i % 2 == 0) must(fs.close());  // else dropped
  }
  CHECK(entries_of("/proc/self/fd") == descriptors);
  CHECK(entries_of("/proc/self/task") == threads);
  CHECK(mappings_of(scratch.dir()) == 0);
}
