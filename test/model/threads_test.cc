// Several threads at once: on directories of their own, on one shared directory, and with a commit that is held up.
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <random>
#include <thread>

#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

// Catch's macros are for one thread: the others count what went wrong.
template <class Body>
void in_threads(int count, Body&& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

std::string name(int thread, int i) { return "t" + std::to_string(thread) + "-" + std::to_string(i); }

}  // namespace

TEST_CASE("threads: creates, renames and removals in one directory lose and invent nothing", "[model]") {
  MemoryFs fs(u64{64} << 20);
  must(fs->mkdir("/d", 0755, kRoot));
  constexpr int kThreads = 4;
  constexpr int kNames = 300;
  std::atomic<int> wrong{0};
  in_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kNames; ++i) {
      const std::string path = "/d/" + name(thread, i);
      wrong += !fs->mknod(path, 0644, 0, kRoot).ok();
      if (i % 3 == 1) wrong += !fs->rename(path, path + "x", 0, kRoot).ok();
      if (i % 3 == 2) wrong += !fs->unlink(path, kRoot).ok();
    }
  });
  CHECK(wrong == 0);
  CHECK(must(fs->stat("/d/t0-0", kRoot)).links == 1);
  CHECK(must(check(fs.fs())).entries == 1 + kThreads * kNames / 3 * 2);
  fs.require_clean();
}

TEST_CASE("threads: more threads than lanes finish, and no lane is shared", "[model]") {
  MemoryFs fs(u64{64} << 20, {}, 2);  // two lanes
  constexpr int kThreads = 8;
  std::atomic<int> wrong{0};
  in_threads(kThreads, [&](int thread) {
    const std::string dir = "/dir" + std::to_string(thread);
    wrong += !fs->mkdir(dir, 0755, kRoot).ok();
    for (int i = 0; i < 200; ++i) wrong += !fs->mknod(dir + "/" + std::to_string(i), 0644, 0, kRoot).ok();
  });
  CHECK(wrong == 0);
  CHECK(must(check(fs.fs())).entries == kThreads * 201);
  fs.require_clean();
}

TEST_CASE("threads: directories move into each other from both sides without a ring or a deadlock", "[model]") {
  MemoryFs fs(u64{16} << 20);
  for (const char* dir : {"/a", "/b", "/a/x", "/b/y"}) must(fs->mkdir(dir, 0755, kRoot));
  in_threads(4, [&](int thread) {
    for (int i = 0; i < 500; ++i) {
      switch ((thread + i) % 4) {
        case 0: (void)fs->rename("/a", "/b/y/a", 0, kRoot); break;
        case 1: (void)fs->rename("/b", "/a/x/b", 0, kRoot); break;
        case 2: (void)fs->rename("/b/y/a", "/a", 0, kRoot); break;
        default: (void)fs->rename("/a/x/b", "/b", 0, kRoot); break;
      }
    }
  });
  fs.require_clean();
  CHECK(must(check(fs.fs())).directories == 5);
}

TEST_CASE("threads: readers see whole writes or none of each block while a writer overwrites and resizes", "[model]") {
  MemoryFs fs(u64{16} << 20);
  File file = must(fs->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread writer([&] {
    std::mt19937 random(7);
    for (int i = 0; i < 2000; ++i) {
      const std::string data(1 + random() % 12000, static_cast<char>('a' + i % 26));
      wrong += !file.write(0, std::as_bytes(std::span(data))).ok();
      if (i % 5 == 0) wrong += !file.truncate(random() % 6000).ok();
    }
    done = true;
  });
  in_threads(2, [&](int) {
    std::string data(12000, '\0');
    while (!done) {
      const auto n = file.read(0, std::as_writable_bytes(std::span(data)));
      if (!n.ok()) ++wrong;
    }
  });
  writer.join();
  CHECK(wrong == 0);
  must(file.close());
  fs.require_clean();
}

TEST_CASE("threads: a file created, opened, unlinked and written by many is freed exactly once", "[model]") {
  MemoryFs fs(u64{16} << 20);
  std::atomic<int> wrong{0};
  in_threads(4, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    const std::string data(5000, 'x');
    for (int i = 0; i < 500; ++i) {
      const std::string path = "/f" + std::to_string(random() % 3);
      auto file = fs->open_file(path, O_RDWR | O_CREAT, 0644, kRoot);
      if (!file.ok()) {
        wrong += file.error().code != Errc::kNotFound;
        continue;
      }
      (void)fs->unlink(path, kRoot);
      wrong += !file->write(random() % 9000, std::as_bytes(std::span(data))).ok();
      wrong += !file->close().ok();
    }
  });
  CHECK(wrong == 0);
  for (const char* path : {"/f0", "/f1", "/f2"}) (void)fs->unlink(path, kRoot);
  fs.require_clean();  // no block is leaked
  CHECK(must(check(fs.fs())).inodes == 1);
}
