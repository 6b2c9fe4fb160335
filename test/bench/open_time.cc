// How long opening takes: after a clean close, and after a process that was killed, by several numbers of threads.
//   open_time POOL [FILES]      e.g. open_time /dev/shm/open.pool 1000000
// POOL is made, with FILES files of a block each in directories of 1000, and removed at the end.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "pmfs/pmfs.hpp"

namespace {

using namespace pmfs;

[[noreturn]] void fail(const char* what, const Error& error) {
  std::fprintf(stderr, "open_time: %s: %s %s\n", what, describe(error.code), error_detail());
  std::exit(1);
}

enum class End { kClose, kDie };

// Opens in a child, so that nothing of the pool is mapped yet, and says how long it took.
void open_once(const char* what, const std::string& pool, u32 threads, bool saved_map, End end) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    OpenOptions options;
    options.rebuild_threads = threads;
    const auto begin = std::chrono::steady_clock::now();
    Result<Filesystem> fs = Filesystem::open(pool, options);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    if (!fs.ok()) fail("open", fs.error());
    std::printf("%s, %u threads: %.1f ms\n", what, threads, took.count());
    std::fflush(stdout);
    if (fs->info().saved_map_used != saved_map) std::fprintf(stderr, "open_time: the saved map?\n");
    const bool right = fs->info().saved_map_used == saved_map;
    if (end == End::kClose && !fs->close().ok()) std::_Exit(1);
    std::_Exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: open_time POOL [FILES]\n");
    return 2;
  }
  const std::string pool = argv[1];
  const u64 files = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000;
  FormatOptions format;
  format.size_bytes = (files * 5120 + (u64{64} << 20)) / 4096 * 4096;
  if (const auto made = Filesystem::format(pool, format); !made.ok()) fail("mkfs", made.error());
  {
    Result<Filesystem> fs = Filesystem::open(pool);
    if (!fs.ok()) fail("open", fs.error());
    const std::vector<std::byte> data(100, std::byte{1});
    for (u64 i = 0; i < files; ++i) {
      const std::string dir = "/d" + std::to_string(i / 1000);
      if (i % 1000 == 0)
        if (const auto made = fs->mkdir(dir, 0755, Credentials::root()); !made.ok()) fail("mkdir", made.error());
      const auto made = fs->mknod(dir + "/f" + std::to_string(i % 1000), 0644, 0, Credentials::root());
      if (!made.ok()) fail("create", made.error());
      if (const auto done = fs->write(made->ino, 0, data, Credentials::root()); !done.ok()) fail("write", done.error());
    }
    if (const auto closed = fs->close(); !closed.ok()) fail("close", closed.error());
  }
  for (const u32 threads : {1u, 2u, 1u, 2u}) open_once("clean", pool, threads, true, End::kClose);
  open_once("clean", pool, 1, true, End::kDie);
  for (const u32 threads : {1u, 2u, 4u, 1u, 2u, 4u}) open_once("crashed", pool, threads, false, End::kDie);
  unlink(pool.c_str());
  return 0;
}
