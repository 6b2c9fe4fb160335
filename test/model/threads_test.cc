// Several threads at once: on directories of their own, on one shared directory, and with a commit that is held up.
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "test/support/memory_fs.h"
#include "test/support/tree_text.h"

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

TEST_CASE("threads: attributes, ACLs, ranges, copies, nameless files and whiteouts leave what each did, and no leak",
          "[model]") {
  MemoryFs fs(u64{32} << 20);
  const u64 free_before = must(check(fs.fs())).blocks_free;
  constexpr int kThreads = 4;
  constexpr int kSteps = 600;
  std::atomic<int> wrong{0};
  std::atomic<int> done{0};
  std::atomic<int> unexpected{0};  // the last Errc that nothing explains
  // What a name that others remove and replace may answer.
  const auto judge = [&](Errc code, std::initializer_list<Errc> also = {}) {
    const bool known = code == Errc{} || code == Errc::kNotFound || code == Errc::kExists ||
                       std::find(also.begin(), also.end(), code) != also.end();
    wrong += !known;
    if (!known) unexpected = static_cast<int>(code);
    done += code == Errc{};
  };
  std::string last_value[kThreads];  // each by its own thread
  in_threads(kThreads, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    const auto shared = [&] { return "/f" + std::to_string(random() % 3); };
    const std::string own = "/own" + std::to_string(thread);
    auto mine = fs->open_file(own, O_RDWR | O_CREAT, 0644, kRoot);
    wrong += !mine.ok();
    for (int i = 0; i < kSteps; ++i) {
      const std::string value(1 + random() % (i % 10 == 0 ? 9000 : 60), static_cast<char>('a' + i % 26));
      const auto bytes = std::as_bytes(std::span(value));
      const std::string path = shared();
      const u64 off = random() % 8 * kBlockBytes;
      auto file = fs->open_file(path, O_RDWR | O_CREAT, 0644, kRoot);
      judge(code_of(file), {Errc::kNotSupported});  // a whiteout
      switch (random() % 9) {
        case 0: judge(code_of(fs->set_xattr(path, "trusted.a", bytes, 0, kRoot))); break;
        case 1: judge(code_of(fs->remove_xattr(path, "trusted.a", kRoot)), {Errc::kNoAttribute}); break;
        case 2: {
          const u32 may = random() % 8;
          judge(code_of(fs->set_acl(path, AclKind::kAccess,
                                    {{AclTag::kUserObj, may, 0},
                                     {AclTag::kUser, may, 7},
                                     {AclTag::kGroupObj, may, 0},
                                     {AclTag::kMask, may, 0},
                                     {AclTag::kOther, may, 0}},
                                    kRoot)));
          break;
        }
        case 3:
          if (file.ok()) judge(code_of(file->write(off, bytes)));
          if (file.ok()) judge(code_of(file->allocate(static_cast<int>(random() % 2), off, 3 * kBlockBytes)));
          break;
        case 4:
          if (file.ok()) judge(code_of(file->allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, 9000)));
          if (file.ok())
            judge(code_of(
                      file->allocate(i % 2 == 0 ? FALLOC_FL_COLLAPSE_RANGE : FALLOC_FL_INSERT_RANGE, off, kBlockBytes)),
                  {Errc::kInvalid});
          if (file.ok() && i % 4 == 0) judge(code_of(file->truncate(20'000)));  // insertions must not add up
          break;
        case 5:
          if (file.ok() && mine.ok()) judge(code_of(mine->copy_to(0, *file, off, 50'000)));
          break;
        case 6: {
          auto nameless = fs->open_file("/", O_TMPFILE | O_RDWR, 0600, kRoot);
          judge(code_of(nameless));
          if (!nameless.ok()) break;
          judge(code_of(nameless->write(0, bytes)));
          judge(code_of(fs->link(At::inode(nameless->ino()), shared(), kRoot)));
          break;
        }
        case 7: judge(code_of(fs->rename(path, shared(), RENAME_WHITEOUT, kRoot))); break;
        default: judge(code_of(fs->unlink(path, kRoot))); break;
      }
      if (!mine.ok()) continue;
      last_value[thread] = value;
      wrong += !mine->set_xattr("user.last", bytes, 0, kRoot).ok();
      wrong += !mine->truncate(0).ok() || !mine->write(0, bytes).ok();
    }
  });
  CHECK(unexpected == 0);
  CHECK(wrong == 0);
  CHECK(done > kThreads * kSteps);  // most of it did something
  for (int thread = 0; thread < kThreads; ++thread) {
    const std::string own = "/own" + std::to_string(thread);
    const NodeText node = look_at(fs.fs(), own);
    CHECK(node.data == last_value[thread]);
    CHECK(node.xattrs == std::map<std::string, std::string>{{"user.last", last_value[thread]}});
    must(fs->unlink(own, kRoot));
  }
  fs.require_clean();
  fs.reopen();
  for (const char* path : {"/f0", "/f1", "/f2"}) (void)fs->unlink(path, kRoot);
  fs.require_clean();
  CHECK(must(check(fs.fs())).inodes == 1);
  // Nothing is left but what the inode file has grown by, and the root's leaf.
  fs.reopen();
  CHECK(free_before - must(check(fs.fs())).blocks_free <= 32);
}

TEST_CASE("threads: what has a name at every instant is found by every call", "[model]") {
  MemoryFs fs(u64{32} << 20);
  must(fs->mknod("/f", 0644, 0, kRoot));
  must(fs->symlink("target", "/link", kRoot));
  std::atomic<int> working{2};
  std::atomic<u64> lost{0}, done{0};
  std::atomic<int> last{0};
  constexpr int kRounds = 3000;
  in_threads(4, [&](int thread) {
    if (thread < 2) {  // one replaces the file, the other the symbolic link, by rename
      const std::string fresh = thread == 0 ? "/fresh" : "/fresh-link";
      for (int i = 0; i < kRounds; ++i) {
        if (thread == 0) {
          must(fs->mknod(fresh, 0644, 0, kRoot));
          must(fs->rename(fresh, "/f", 0, kRoot));
        } else {
          must(fs->symlink("target", fresh, kRoot));
          must(fs->rename(fresh, "/link", 0, kRoot));
        }
      }
      working -= 1;
      return;
    }
    const auto judge = [&](Errc code, Errc also = Errc{}) {
      lost += code != Errc{} && code != also;
      if (code != Errc{} && code != also) last = static_cast<int>(code);
      done += 1;
    };
    const std::string other = "/other" + std::to_string(thread);
    const Acl acl{{AclTag::kUserObj, 6, 0}, {AclTag::kGroupObj, 4, 0}, {AclTag::kOther, 4, 0}};
    SetAttributes change;
    change.mode = 0640;
    const std::byte value[1] = {};
    std::byte room[8];
    char names[64];
    while (working != 0) {
      judge(code_of(fs->stat("/f", kRoot)));
      judge(code_of(fs->stat("/f", kRoot, Follow::kYes, Ref::kNone)));
      judge(code_of(fs->access("/f", R_OK, kRoot)));
      judge(code_of(fs->set_attributes("/f", change, kRoot)));
      judge(code_of(fs->open_file("/f", O_RDWR, 0, kRoot)));
      judge(code_of(fs->open_file("/f", O_RDWR | O_TRUNC, 0, kRoot)));
      judge(code_of(fs->set_xattr("/f", "trusted.a", value, 0, kRoot)));
      judge(code_of(fs->get_xattr("/f", "trusted.a", room, kRoot)), Errc::kNoAttribute);
      judge(code_of(fs->list_xattrs("/f", names, kRoot)));
      judge(code_of(fs->remove_xattr("/f", "trusted.a", kRoot)), Errc::kNoAttribute);
      judge(code_of(fs->set_acl("/f", AclKind::kAccess, acl, kRoot)));
      judge(code_of(fs->get_acl("/f", AclKind::kAccess, kRoot)));
      judge(code_of(fs->link("/f", other, kRoot)));
      judge(code_of(fs->unlink(other, kRoot)));
      judge(code_of(fs->readlink("/link", kRoot)));
      const std::string_view paths[] = {"/f", "/f"};
      Resolved results[2];
      must(fs->resolve(paths, results, kRoot));
      for (const Resolved& result : results) judge(result.error.value_or(Errc{}));
    }
  });
  INFO("the last answer was " << last);
  CHECK(lost == 0);
  CHECK(done > 0);
  fs.require_clean();
}
