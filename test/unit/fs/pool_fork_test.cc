#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/fork.h"
#include "fs/pool.h"
#include "pmfs/result.h"
#include "test/support/catch.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

constexpr u64 kPoolBytes = u64{8} << 20;

Errc open_code(const std::string& path, bool read_only = false) {
  const auto pool = Pool::open(path, read_only);
  return pool.ok() ? Errc{} : pool.error().code;
}

/// The answer of a process that never had anything to do with the pool.
Errc open_code_elsewhere(const std::string& path) {
  return static_cast<Errc>(in_child([&] { return static_cast<int>(open_code(path)); }));
}

Pool created(const Scratch& scratch) {
  auto pool = Pool::create(scratch.file("pool"), kPoolBytes, false, 0600);
  REQUIRE(pool.ok());
  return std::move(*pool);
}

}  // namespace

TEST_CASE("pool in a forked child: close says kForked, and nothing is stored", "[fs][fork]") {
  const Scratch scratch;
  Pool pool = created(scratch);
  const u64 before = hash_file(pool.path());
  CHECK(in_child([&] {
          if (pool.is_open()) return 1;
          const Result<void> closed = pool.close();
          return !closed.ok() && closed.error().code == Errc::kForked ? 0 : 2;
        }) == 0);
  CHECK(in_child([&] {
          { const Pool moved = std::move(pool); }  // the destructor
          return 0;
        }) == 0);
  CHECK(hash_file(pool.path()) == before);
  CHECK(pool.is_open());
  CHECK(pool.close().ok());
  CHECK(open_code(pool.path()) == Errc{});
}

TEST_CASE("pool in a forked child: its memory is out of reach", "[fs][fork]") {
  const Scratch scratch;
  Pool pool = created(scratch);
  const Memory memory = pool.memory();
  CHECK(in_child([&] {
          int ends[2];
          if (::pipe(ends) != 0) return 1;
          if (::write(ends[1], memory.base, 1) != -1 || errno != EFAULT) return 2;
          if (::write(ends[1], memory.base + memory.size_bytes - 1, 1) != -1 || errno != EFAULT) return 3;
          return 0;
        }) == 0);
  CHECK(in_child([&] {
          memory.base[kPoolBytes / 2] = std::byte{1};
          return 0;
        }) == 128 + SIGSEGV);
}

TEST_CASE("pool in a forked child: the parent keeps the lock while it lives and after it ended", "[fs][fork]") {
  for (const bool exits_normally : {false, true}) {
#ifdef __SANITIZE_ADDRESS__
    // The leak check at exit() finds libpmemobj's memory for the pool, which the child cannot and must not free.
    if (exits_normally) continue;
#endif
    const Scratch scratch;
    Pool pool = created(scratch);
    const u64 before = hash_file(pool.path());
    LivingChild child([] { return 0; }, exits_normally);
    CHECK(open_code_elsewhere(pool.path()) == Errc::kPoolBusy);
    CHECK(child.end() == 0);
    CHECK(open_code_elsewhere(pool.path()) == Errc::kPoolBusy);
    CHECK(open_code(pool.path()) == Errc::kPoolBusy);
    CHECK(hash_file(pool.path()) == before);
    CHECK(pool.close().ok());
    CHECK(open_code_elsewhere(pool.path()) == Errc{});
  }
}

TEST_CASE("pool: the parent's close frees it while children still live", "[fs][fork]") {
  for (const bool read_only : {false, true}) {
    const Scratch scratch;
    Pool pool = created(scratch);
    if (read_only) {
      CHECK(pool.close().ok());
      auto again = Pool::open(scratch.file("pool"), true);
      REQUIRE(again.ok());
      pool = std::move(*again);
    }
    LivingChild first([] { return 0; });
    LivingChild second([] { return 0; });
    CHECK(open_code_elsewhere(pool.path()) == Errc::kPoolBusy);
    CHECK(pool.close().ok());
    CHECK(open_code_elsewhere(pool.path()) == Errc{});
    CHECK(open_code(pool.path()) == Errc{});
  }
}

TEST_CASE("pool: a parent that dies leaves it free, whatever its children do", "[fs][fork]") {
  const Scratch scratch;
  const std::string path = created(scratch).path();
  int grandchild[2];
  REQUIRE(::pipe(grandchild) == 0);
  // The child opens the pool, forks, and is gone; the grandchild lives on until the pipe is closed.
  CHECK(in_child([&] {
          auto pool = Pool::open(path, false);
          if (!pool.ok()) return 1;
          if (::fork() == 0) {
            char byte;
            ::close(grandchild[1]);
            (void)!::read(grandchild[0], &byte, 1);
            ::_exit(0);
          }
          ::raise(SIGKILL);
          return 2;
        }) == 128 + SIGKILL);
  CHECK(open_code_elsewhere(path) == Errc{});
  ::close(grandchild[0]);
  ::close(grandchild[1]);
}

TEST_CASE("pool: a child may open it for itself once the parent has closed it", "[fs][fork]") {
  const Scratch scratch;
  std::optional<Pool> pool = created(scratch);
  const std::string path = pool->path();
  CHECK(in_child([&] {
          if (open_code(path) != Errc::kPoolBusy) return 1;
          auto other = Pool::create(scratch.file("other"), kPoolBytes, false, 0600);  // others at once
          if (!other.ok() || !other->is_open()) return 2;
          return other->close().ok() ? 0 : 3;
        }) == 0);
  LivingChild lives([] { return 0; });
  REQUIRE(pool->close().ok());
  CHECK(in_child([&] {
          auto own = Pool::open(path, false);
          if (!own.ok()) return 1;
          *own->memory().at(own->locator_off()) = std::byte{5};
          return own->close().ok() ? 0 : 2;
        }) == 0);
  auto again = Pool::open(path, false);
  REQUIRE(again.ok());
  CHECK(*again->memory().at(again->locator_off()) == std::byte{5});
}

TEST_CASE("pool: forks while other threads open and close never hang or keep a lock", "[fs][fork]") {
  const Scratch scratch;
  const std::string path = created(scratch).path();
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::thread opener([&] {
    while (!stop) {
      auto pool = Pool::open(path, false);
      if (!pool.ok() || !pool->close().ok()) ++failures;  // a lock kept by a child would show here
    }
  });
  int bad = 0;
  {
    std::vector<std::unique_ptr<LivingChild>> children;
    for (int i = 0; i < 12; ++i) {
      const std::string own = scratch.file("own" + std::to_string(i));
      children.push_back(std::make_unique<LivingChild>([&] {
        auto pool = Pool::create(own, kPoolBytes, false, 0600);
        return pool.ok() && pool->close().ok() && ::unlink(own.c_str()) == 0 ? 0 : 1;
      }));
      bad += children.back()->body_result() == 0 ? 0 : 1;
    }
  }
  stop = true;
  opener.join();
  CHECK(bad == 0);
  CHECK(failures == 0);
}
