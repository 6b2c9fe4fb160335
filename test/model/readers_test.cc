// Readers beside writers: look-ups and listings that hold no lock, while names come and go, leaves are split, joined
// and given up, and the index is lost and made anew.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "fs/directory.h"
#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

std::string stable(int i) { return "stable-" + std::to_string(i); }
std::string passing(int i) {
  return "passing-" + std::to_string(i) + std::string(static_cast<std::size_t>(i % 90), 'p');
}

// One listing with buffers of 2 KiB, as a bridge reads it: each buffer is filled, then `between` runs, then it goes on
// from the last cookie. Says how often each name was seen, and whether cookies rose.
struct Listed {
  std::map<std::string, int> seen;
  bool ascending = true;
  bool failed = false;
};
template <class Between>
Listed list_in_buffers(const std::function<Filesystem&()>& fs, InodeNo dir_ino, Between&& between) {
  constexpr std::size_t kBuffer = 2048;
  Listed listed;
  u64 cookie = 0;
  for (bool more = true; more;) {
    auto dir = fs().open_dir(At::inode(dir_ino), kRoot);
    if (!dir.ok()) {
      listed.failed = true;
      return listed;
    }
    for (std::size_t used = 0;;) {
      DirEntry entry;
      const auto got = dir->read(cookie, entry);
      if (!got.ok()) {
        listed.failed = true;
        return listed;
      }
      more = *got;
      if (!more || used + 24 + entry.name_len > kBuffer) break;
      used += 24 + entry.name_len;
      if (entry.cookie <= cookie) listed.ascending = false;
      cookie = entry.cookie;
      listed.seen[std::string(entry.view())] += 1;
    }
    listed.failed = listed.failed || !dir->close().ok();
    if (more) between();
  }
  return listed;
}

void require_exact(const Listed& listed, int names) {
  REQUIRE_FALSE(listed.failed);
  CHECK(listed.ascending);
  for (int i = 0; i < names; ++i) {
    const auto at = listed.seen.find(stable(i));
    INFO(stable(i));
    REQUIRE(at != listed.seen.end());
    REQUIRE(at->second == 1);
  }
  for (const auto& [name, times] : listed.seen) REQUIRE(times == 1);
}

}  // namespace

TEST_CASE("readers: names that stay are found, and names that never were are not, whatever happens beside them",
          "[model]") {
  MemoryFs fs(u64{256} << 20);
  const InodeNo dir = must(fs->mkdir("/d", 0755, kRoot)).ino;
  constexpr int kStable = 600;
  std::vector<InodeNo> inodes;
  for (int i = 0; i < kStable; ++i) inodes.push_back(must(fs->mknod({dir, stable(i)}, S_IFREG | 0644, 0, kRoot)).ino);

  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::atomic<u64> looked{0};
  std::vector<std::thread> readers;
  for (unsigned r = 0; r < 2; ++r) {
    readers.emplace_back([&, r] {
      std::mt19937 random(r);
      while (!done) {
        const int i = static_cast<int>(random() % kStable);
        const auto found = fs->stat({dir, stable(i)}, kRoot);
        wrong += !found.ok() || found->ino != inodes[static_cast<std::size_t>(i)] || found->links != 1;
        const auto never = fs->stat({dir, "never-" + std::to_string(i)}, kRoot);
        wrong += never.ok() || never.error().code != Errc::kNotFound;
        const auto maybe = fs->stat({dir, passing(i)}, kRoot);  // there or not, but nothing else
        wrong += maybe.ok() ? maybe->links != 1 : maybe.error().code != Errc::kNotFound;
        ++looked;
      }
    });
  }
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < kStable; ++i) wrong += !fs->mknod({dir, passing(i)}, S_IFREG | 0644, 0, kRoot).ok();
    for (int i = 0; i < kStable; i += 3)
      wrong += !fs->rename({dir, passing(i)}, {dir, passing(i + 10000)}, 0, kRoot).ok();
    for (int i = 0; i < kStable; ++i) {
      const int now = i % 3 == 0 ? i + 10000 : i;
      wrong += !fs->unlink({dir, passing(now)}, kRoot).ok();
    }
  }
  while (looked < 100) std::this_thread::yield();
  done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  fs.require_clean();
}

TEST_CASE("readers: an exchanged name is one of the two files at any time", "[model]") {
  MemoryFs fs(u64{16} << 20);
  const InodeNo a = must(fs->mknod("/a", S_IFREG | 0600, 0, kRoot)).ino;
  const InodeNo b = must(fs->mknod("/b", S_IFREG | 0640, 0, kRoot)).ino;
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0}, looked{0};
  std::thread reader([&] {
    while (!done) {
      const auto found = fs->stat("/a", kRoot);
      const bool as_a = found.ok() && found->ino == a && (found->mode & 0777) == 0600;
      const bool as_b = found.ok() && found->ino == b && (found->mode & 0777) == 0640;
      wrong += !as_a && !as_b;
      ++looked;
    }
  });
  for (int i = 0; i < 3000 || looked < 100; ++i) wrong += !fs->rename("/a", "/b", 2 /* RENAME_EXCHANGE */, kRoot).ok();
  done = true;
  reader.join();
  CHECK(wrong == 0);
}

TEST_CASE("readers: a name renamed over another is there at any time", "[model]") {
  MemoryFs fs(u64{16} << 20);
  must(fs->mknod("/target", S_IFREG | 0644, 0, kRoot));
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0}, looked{0};
  std::thread reader([&] {
    while (!done) {
      wrong += !fs->stat("/target", kRoot).ok();
      ++looked;
    }
  });
  for (int i = 0; i < 2000 || looked < 100; ++i) {
    wrong += !fs->mknod("/next", S_IFREG | 0644, 0, kRoot).ok();
    wrong += !fs->rename("/next", "/target", 0, kRoot).ok();
  }
  done = true;
  reader.join();
  CHECK(wrong == 0);
  fs.require_clean();
}

TEST_CASE(
    "readers: what stays is listed exactly once, with small buffers, through inserts, removals, splits, joins, "
    "loss of the index and remounts",
    "[model]") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    MemoryFs fs(u64{64} << 20);
    const InodeNo dir = must(fs->mkdir("/d", 0755, kRoot)).ino;
    const int names = seed % 3 == 0 ? 30 : 400;  // one leaf, and many
    for (int i = 0; i < names; ++i) must(fs->mknod({dir, stable(i)}, S_IFREG | 0644, 0, kRoot));
    std::mt19937 random(seed);
    std::set<int> there;
    int next = 0;
    const auto churn = [&] {
      switch (random() % 5) {
        case 0:
        case 1:
          for (auto n = random() % 200; n > 0; --n) {
            must(fs->mknod({dir, passing(next)}, S_IFREG | 0644, 0, kRoot));
            there.insert(next++);
          }
          break;
        case 2:
        case 3:
          for (auto n = random() % 300; n > 0 && !there.empty(); --n) {
            must(fs->unlink({dir, passing(*there.begin())}, kRoot));
            there.erase(there.begin());
          }
          break;
        default: {
          OpenOptions options;
          options.dir_index = random() % 2 == 0;  // without: the next insert loses the index; with: it is made anew
          fs.reopen(options);
        }
      }
    };
    for (int round = 0; round < 5; ++round) {
      const Listed listed = list_in_buffers([&]() -> Filesystem& { return fs.fs(); }, dir, churn);
      require_exact(listed, names);
    }
    fs.require_clean();
  }
}

TEST_CASE("readers: what stays is listed exactly once while other threads insert and remove", "[model]") {
  MemoryFs fs(u64{64} << 20);
  const InodeNo dir = must(fs->mkdir("/d", 0755, kRoot)).ino;
  constexpr int kStable = 500;
  for (int i = 0; i < kStable; ++i) must(fs->mknod({dir, stable(i)}, S_IFREG | 0644, 0, kRoot));
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      std::mt19937 random(static_cast<unsigned>(w));
      std::set<int> there;
      while (!done) {
        const int i = static_cast<int>(random() % 800) * 2 + w;
        if (there.insert(i).second) {
          wrong += !fs->mknod({dir, passing(i)}, S_IFREG | 0644, 0, kRoot).ok();
        } else {
          wrong += !fs->unlink({dir, passing(i)}, kRoot).ok();
          there.erase(i);
        }
      }
    });
  }
  for (int round = 0; round < 15; ++round) {
    const Listed listed = list_in_buffers([&]() -> Filesystem& { return fs.fs(); }, dir, [] {});
    require_exact(listed, kStable);
    // And by one stream from beginning to end.
    Dir stream = must(fs->open_dir(At::inode(dir), kRoot));
    Listed whole;
    DirEntry entry;
    for (u64 cookie = 0; must(stream.read(cookie, entry)); cookie = entry.cookie)
      whole.seen[std::string(entry.view())] += 1;
    must(stream.close());
    require_exact(whole, kStable);
  }
  done = true;
  for (std::thread& writer : writers) writer.join();
  CHECK(wrong == 0);
  fs.require_clean();
}

TEST_CASE("readers: a stream shows nothing that was removed before it reads on, also when its leaf is gone",
          "[model]") {
  // A leaf is joined by removals from the leaf before it, and stays as it was; only the way to it has changed.
  for (unsigned seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    MemoryFs fs(u64{16} << 20);
    const InodeNo dir = must(fs->mkdir("/d", 0755, kRoot)).ino;
    std::mt19937 random(seed);
    const auto names = [&] {
      std::vector<std::string> found;
      Dir stream = must(fs->open_dir(At::inode(dir), kRoot));
      DirEntry entry;
      for (u64 cookie = 2; must(stream.read(cookie, entry)); cookie = entry.cookie) found.emplace_back(entry.view());
      must(stream.close());
      return found;
    };
    for (int i = 0; i < 200; ++i) must(fs->mknod({dir, stable(i)}, S_IFREG | 0644, 0, kRoot));
    std::vector<std::string> all = names();
    std::shuffle(all.begin(), all.end(), random);
    for (std::size_t i = 60 + random() % 60; i < all.size(); ++i) must(fs->unlink({dir, all[i]}, kRoot));

    const std::vector<std::string> sorted = names();
    const std::size_t stand = 1 + random() % (sorted.size() - 1);
    Dir stream = must(fs->open_dir(At::inode(dir), kRoot));
    DirEntry entry;
    u64 cookie = 2;
    for (std::size_t i = 0; i < stand; ++i, cookie = entry.cookie) REQUIRE(must(stream.read(cookie, entry)));
    for (std::size_t i = 0; i + 1 < stand && random() % 40 != 0; ++i) must(fs->unlink({dir, sorted[i]}, kRoot));
    const std::size_t kept = stand + random() % 3;  // ones that are still there behind it
    for (std::size_t i = kept; i < sorted.size(); ++i) must(fs->unlink({dir, sorted[i]}, kRoot));
    for (std::size_t i = stand; i < std::min(kept, sorted.size()); ++i, cookie = entry.cookie) {
      REQUIRE(must(stream.read(cookie, entry)));
      REQUIRE(entry.view() == sorted[i]);
    }
    REQUIRE_FALSE(must(stream.read(cookie, entry)));
    must(stream.close());
    fs.require_clean();
  }
}

TEST_CASE("readers: attributes without a lock are one inode's and one change's, while states go from inode to inode",
          "[model]") {
  MemoryFs fs(u64{256} << 20);
  // More than the table keeps states for, so that states become other inodes' all the time.
  constexpr int kFiles = 80'000;
  const auto name = [](int i) { return std::to_string(i); };
  // Mostly the same two, so that both meet; else any.
  const auto some = [](std::mt19937& random) {
    return static_cast<int>(random() % 8 != 0 ? random() % 2 : random() % kFiles);
  };
  const InodeNo dir = must(fs->mkdir("/d", 0755, kRoot)).ino;
  std::vector<InodeNo> inodes;
  for (int i = 0; i < kFiles; ++i) inodes.push_back(must(fs->mknod({dir, name(i)}, S_IFREG | 0644, 0, kRoot)).ino);

  std::atomic<int> wrong{0};
  std::thread writer([&] {
    std::mt19937 random(7);
    for (u32 round = 1; round <= 80'000; ++round) {
      SetAttributes change;  // owner, group and both times tell the same number
      change.uid = change.gid = round;
      change.atime_ns = change.mtime_ns = i64{round} * 1000;
      wrong += !fs->set_attributes({dir, name(some(random))}, change, kRoot).ok();
    }
  });
  std::mt19937 random(8);
  for (int looks = 0; looks < 400'000; ++looks) {
    const int i = some(random);
    const auto found = looks % 2 == 0 ? fs->stat({dir, name(i)}, kRoot)
                                      : fs->stat(At::inode(inodes[static_cast<std::size_t>(i)]), kRoot);
    wrong += !found.ok() || found->ino != inodes[static_cast<std::size_t>(i)] || found->uid != found->gid ||
             (found->uid != 0 && (found->mtime_ns != i64{found->uid} * 1000 || found->atime_ns != found->mtime_ns));
  }
  writer.join();
  CHECK(wrong == 0);
}
