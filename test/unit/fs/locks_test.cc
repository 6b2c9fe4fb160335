// Advisory locks: ranges as the machine's own kernel gives them (compared call by call), waiting, circles, release.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <random>
#include <thread>
#include <vector>

#include "fs/volume.h"
#include "test/support/memory_fs.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

template <class T>
int errno_of(const Result<T>& result) {
  return result.ok() ? 0 : to_errno(result.error().code);
}

LockOwner process(u64 id) { return {LockOwner::Kind::kProcess, id, static_cast<u32>(id)}; }

// Lets other threads come to where they wait. Nothing is judged by the time: only what holds whenever it is looked at.
template <class Condition>
void until(Condition&& condition) {
  while (!condition()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("range locks: random calls of several owners are answered as the kernel answers them", "[unit][fs]") {
  const Scratch scratch;
  MemoryFs fs(u64{8} << 20);
  constexpr int kOwners = 4;
  File files[kOwners];
  int hosts[kOwners];
  for (int i = 0; i < kOwners; ++i) {
    files[i] = must(fs->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
    hosts[i] = ::open(scratch.file("f").c_str(), O_RDWR | O_CREAT, 0644);
    REQUIRE(hosts[i] >= 0);
  }
  std::mt19937_64 random(1);
  const auto pick = [&](u64 n) { return random() % n; };
  for (int step = 0; step < 20'000; ++step) {
    INFO("step " << step);
    const u64 who = pick(kOwners);
    const u64 first = pick(40), count = pick(6) == 0 ? 0 : 1 + pick(12);  // 0: to the end, whatever comes
    const auto kind = static_cast<LockKind>(pick(3));
    const RangeLock range{kind, first, count == 0 ? ~u64{0} : first + count - 1};
    struct flock host {};
    host.l_type = static_cast<short>(kind == LockKind::kNone ? F_UNLCK : kind == LockKind::kShared ? F_RDLCK : F_WRLCK);
    host.l_whence = SEEK_SET;
    host.l_start = static_cast<off_t>(first);
    host.l_len = static_cast<off_t>(count);
    if (kind != LockKind::kNone && pick(3) == 0) {
      REQUIRE(::fcntl(hosts[who], F_OFD_GETLK, &host) == 0);
      const auto ours = must(files[who].test_lock(range));
      REQUIRE(ours.has_value() == (host.l_type != F_UNLCK));
      continue;
    }
    const int theirs = ::fcntl(hosts[who], F_OFD_SETLK, &host) == 0 ? 0 : errno;
    REQUIRE(errno_of(files[who].lock_range(range, Wait::kNo)) == theirs);
    if (pick(500) == 0) {  // closed: its locks are gone
      must(files[who].close());
      files[who] = must(fs->open_file("/f", O_RDWR, 0, kRoot));
      ::close(hosts[who]);
      hosts[who] = ::open(scratch.file("f").c_str(), O_RDWR);
    }
  }
  for (int i = 0; i < kOwners; ++i) {
    must(files[i].close());
    ::close(hosts[i]);
  }
  CHECK(volume_of(fs.fs()).locks.files() == 0);
}

TEST_CASE("range locks: a lock needs the file opened for it", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  must(fs->mknod("/f", 0644, 0, kRoot));
  const File reader = must(fs->open_file("/f", O_RDONLY, 0, kRoot));
  const File writer = must(fs->open_file("/f", O_WRONLY, 0, kRoot));
  CHECK(code_of(reader.lock_range({LockKind::kExclusive, 0, 9}, Wait::kNo)) == Errc::kBadHandle);
  CHECK(code_of(writer.lock_range({LockKind::kShared, 0, 9}, Wait::kNo)) == Errc::kBadHandle);
  CHECK(code_of(reader.lock_range({LockKind::kShared, 9, 0}, Wait::kNo)) == Errc::kInvalid);
  CHECK(reader.lock_range({LockKind::kShared, 0, 9}, Wait::kNo).ok());
  CHECK(code_of(writer.lock_range({LockKind::kExclusive, 9, 20}, Wait::kNo)) == Errc::kWouldBlock);
  CHECK(writer.lock_range({LockKind::kExclusive, 10, 20}, Wait::kNo).ok());
  const auto held = must(reader.test_lock({LockKind::kShared, 0, 99}));
  REQUIRE(held.has_value());
  CHECK(held->range.first == 10);
  CHECK(held->range.last == 20);
  CHECK(held->range.kind == LockKind::kExclusive);
  CHECK(held->owner.pid == static_cast<u32>(::getpid()));
}

TEST_CASE("flock: shared with shared, and changed by giving back first", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  must(fs->mknod("/f", 0644, 0, kRoot));
  File a = must(fs->open_file("/f", O_RDONLY, 0, kRoot));
  File b = must(fs->open_file("/f", O_RDONLY, 0, kRoot));
  const auto get = [](const File& file, LockKind kind) { return code_of(file.lock(kind, Wait::kNo)); };
  CHECK(get(a, LockKind::kShared) == Errc{});
  CHECK(get(b, LockKind::kShared) == Errc{});
  CHECK(get(a, LockKind::kExclusive) == Errc::kWouldBlock);  // and has lost what it had
  CHECK(get(b, LockKind::kExclusive) == Errc{});
  CHECK(get(a, LockKind::kShared) == Errc::kWouldBlock);
  CHECK(b.lock_range({LockKind::kShared, 0, 9}, Wait::kNo).ok());
  CHECK(a.lock_range({LockKind::kShared, 0, 9}, Wait::kNo).ok());  // the two kinds do not see each other
  File moved = std::move(b);                                       // the lock is the open file's, wherever it lives
  CHECK(get(a, LockKind::kShared) == Errc::kWouldBlock);
  must(moved.close());
  CHECK(get(a, LockKind::kExclusive) == Errc{});
  CHECK(get(a, LockKind::kNone) == Errc{});
}

TEST_CASE("locks: who waits gets the lock when it is given back, or when its owner closes", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const File waiting = must(fs->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
  for (const bool whole : {false, true})
    for (const bool by_close : {false, true}) {
      File holder = must(fs->open_file("/f", O_RDWR, 0, kRoot));
      const RangeLock all{LockKind::kExclusive, 0, ~u64{0}};
      must(whole ? holder.lock(LockKind::kExclusive) : holder.lock_range(all));
      std::atomic<bool> got{false};
      std::thread other([&] {
        if (!(whole ? waiting.lock(LockKind::kShared) : waiting.lock_range({LockKind::kShared, 5, 6})).ok())
          std::abort();
        got = true;
      });
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      CHECK_FALSE(got);
      if (by_close) {
        must(holder.close());
      } else {
        must(whole ? holder.lock(LockKind::kNone) : holder.lock_range({LockKind::kNone, 0, ~u64{0}}));
      }
      other.join();
      CHECK(got);
      must(whole ? waiting.lock(LockKind::kNone) : waiting.lock_range({LockKind::kNone, 0, ~u64{0}}));
    }
}

TEST_CASE("locks: a wait ends when it is interrupted, before it or in it", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const File holder = must(fs->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
  const File waiting = must(fs->open_file("/f", O_RDWR, 0, kRoot));
  must(holder.lock(LockKind::kExclusive));
  LockWait wait;
  wait.interrupt();
  CHECK(code_of(waiting.lock(LockKind::kShared, Wait::kYes, &wait)) == Errc::kInterrupted);
  for (int i = 0; i < 50; ++i) {
    auto result = std::async(std::launch::async, [&] { return waiting.lock(LockKind::kShared, Wait::kYes, &wait); });
    for (int n = 0; n < i * 10; ++n) std::this_thread::yield();
    wait.interrupt();
    CHECK(code_of(result.get()) == Errc::kInterrupted);
  }
  must(holder.lock(LockKind::kNone));
  CHECK(waiting.lock(LockKind::kShared, Wait::kYes, &wait).ok());
}

TEST_CASE("locks: processes that would wait for each other are told, over several files too", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  constexpr u64 kProcesses = 5;
  std::vector<InodeNo> files;
  for (u64 i = 0; i < kProcesses; ++i) files.push_back(must(fs->mknod("/" + std::to_string(i), 0644, 0, kRoot)).ino);
  const RangeLock lock{LockKind::kExclusive, 3, 7};
  for (u64 i = 0; i < kProcesses; ++i) must(fs->lock_range(files[i], lock, process(i), Wait::kNo));
  // Each asks for the next one's: exactly one of them closes the circle, whoever is last, and giving up lets the
  // others go on, one after another.
  std::vector<std::thread> threads;
  std::atomic<int> deadlocks{0}, others{0};
  for (u64 i = 0; i < kProcesses; ++i)
    threads.emplace_back([&, i] {
      const auto got = fs->lock_range(files[(i + 1) % kProcesses], lock, process(i), Wait::kYes);
      (got.ok() ? others : code_of(got) == Errc::kDeadlock ? deadlocks : others) += 1;
      if (!fs->release_locks(files[i], process(i)).ok()) std::abort();
      if (!fs->release_locks(files[(i + 1) % kProcesses], process(i)).ok()) std::abort();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(deadlocks == 1);
  CHECK(others == kProcesses - 1);
  CHECK(volume_of(fs.fs()).locks.files() == 0);
}

TEST_CASE("locks: a circle that closes while somebody waits already is found when he looks again", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const InodeNo f = must(fs->mknod("/f", 0644, 0, kRoot)).ino, g = must(fs->mknod("/g", 0644, 0, kRoot)).ino;
  const RangeLock shared{LockKind::kShared, 0, 9}, exclusive{LockKind::kExclusive, 0, 9}, none{LockKind::kNone, 0, 9};
  must(fs->lock_range(f, shared, process(1), Wait::kNo));
  must(fs->lock_range(g, exclusive, process(2), Wait::kNo));
  auto two = std::async(std::launch::async, [&] { return fs->lock_range(f, exclusive, process(2), Wait::kYes); });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  must(fs->lock_range(f, shared, process(3), Wait::kNo));  // beside 1's: two waits for both
  auto three = std::async(std::launch::async, [&] {
    const auto got = fs->lock_range(g, shared, process(3), Wait::kYes);
    if (!got.ok()) (void)fs->release_locks(f, process(3));
    return got;
  });
  must(fs->lock_range(f, none, process(1), Wait::kNo));
  // Either sees the circle; giving up lets the other go on.
  const auto second = two.get();
  if (!second.ok()) {
    CHECK(code_of(second) == Errc::kDeadlock);
    must(fs->release_locks(g, process(2)));
    CHECK(three.get().ok());
  } else {
    CHECK(code_of(three.get()) == Errc::kDeadlock);
  }
}

TEST_CASE("locks: open files and processes stand in each other's way", "[unit][fs]") {
  MemoryFs fs(u64{8} << 20);
  const File file = must(fs->open_file("/f", O_RDWR | O_CREAT, 0644, kRoot));
  must(file.lock_range({LockKind::kExclusive, 0, 9}));
  CHECK(code_of(fs->lock_range(file.ino(), {LockKind::kShared, 9, 9}, process(1), Wait::kNo)) == Errc::kWouldBlock);
  CHECK(fs->lock_range(file.ino(), {LockKind::kShared, 10, 10}, process(1), Wait::kNo).ok());
  CHECK(code_of(fs->lock(file.ino(), LockKind::kShared, process(1), Wait::kNo)) == Errc{});
  must(fs->release_locks(file.ino(), process(1)));
  CHECK(code_of(fs->lock_range(InodeNo{4711}, {}, process(1), Wait::kNo)) == Errc::kStale);
}
