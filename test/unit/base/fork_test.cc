#include "base/fork.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "test/support/catch.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

constexpr std::size_t kBytes = 64 * 1024;

struct Mapping {
  Mapping() : at(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~Mapping() { ::munmap(at, kBytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  void* at;
};

/// Whether the kernel can read a byte there; asks without risking a signal.
bool is_readable(const void* at) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const bool readable = ::write(ends[1], at, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return readable;
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

}  // namespace

TEST_CASE("fork: the child is another generation, the parent stays what it was", "[base]") {
  const u64 before = fork_generation();
  CHECK(in_child([before] { return fork_generation() == before + 1 ? 0 : 1; }) == 0);
  CHECK(in_child([before] { return in_child([before] { return fork_generation() == before + 2 ? 0 : 1; }); }) == 0);
  CHECK(fork_generation() == before);
}

TEST_CASE("fork: the child loses what is watched and keeps the rest", "[base]") {
  const Mapping watched, other;
  const int fd = ::open("/dev/null", O_RDONLY);
  const int other_fd = ::open("/dev/null", O_RDONLY);
  ForkWatch watch;
  {
    const ForkHold hold;
    watch.watch(hold, watched.at, kBytes, {fd});
  }
  CHECK(in_child([&] { return is_readable(watched.at) ? 1 : 0; }) == 0);
  CHECK(in_child([&] { return is_readable(static_cast<char*>(watched.at) + kBytes - 1) ? 1 : 0; }) == 0);
  CHECK(in_child([&] { return is_open(fd) ? 1 : 0; }) == 0);
  CHECK(in_child([&] { return is_readable(other.at) && is_open(other_fd) ? 0 : 1; }) == 0);
  CHECK(is_readable(watched.at));
  CHECK(is_open(fd));
  {
    const ForkHold hold;
    watch.unwatch(hold);
    watch.unwatch(hold);  // again: nothing
  }
  CHECK(in_child([&] { return is_readable(watched.at) && is_open(fd) ? 0 : 1; }) == 0);
  ::close(fd);
  ::close(other_fd);
}

TEST_CASE("fork: the addresses of a watched mapping stay taken in the child", "[base]") {
  const Mapping watched;
  ForkWatch watch;
  {
    const ForkHold hold;
    watch.watch(hold, watched.at, kBytes, {});
  }
  CHECK(in_child([&] {
          void* const got =
              ::mmap(watched.at, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
          return got == MAP_FAILED && errno == EEXIST ? 0 : 1;
        }) == 0);
}

TEST_CASE("fork: watches end in any order", "[base]") {
  const Mapping a, b, c;
  ForkWatch first, second, third;
  {
    const ForkHold hold;
    first.watch(hold, a.at, kBytes, {});
    second.watch(hold, b.at, kBytes, {});
    third.watch(hold, c.at, kBytes, {});
    second.unwatch(hold);
  }
  CHECK(in_child([&] { return !is_readable(a.at) && is_readable(b.at) && !is_readable(c.at) ? 0 : 1; }) == 0);
  {
    const ForkHold hold;
    third.unwatch(hold);
    second.watch(hold, b.at, kBytes, {});
    first.unwatch(hold);
  }
  CHECK(in_child([&] { return is_readable(a.at) && !is_readable(b.at) && is_readable(c.at) ? 0 : 1; }) == 0);
}

TEST_CASE("fork: a child may watch for its own children", "[base]") {
  const Mapping inherited;
  ForkWatch watch;
  {
    const ForkHold hold;
    watch.watch(hold, inherited.at, kBytes, {});
  }
  CHECK(in_child([] {
          const Mapping own;
          ForkWatch own_watch;
          {
            const ForkHold hold;
            own_watch.watch(hold, own.at, kBytes, {});
          }
          if (!is_readable(own.at)) return 1;
          return in_child([&] { return is_readable(own.at) ? 2 : 0; });
        }) == 0);
}

TEST_CASE("fork: waits for a hold, and a child never inherits one", "[base]") {
  std::atomic<bool> stop{false};
  std::thread holder([&] {
    while (!stop) {
      const ForkHold hold;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  int bad = 0;
  for (int i = 0; i < 50; ++i) {
    bad += in_child([] {
             const ForkHold hold;  // would hang if it had been inherited
             return 0;
           }) == 0
               ? 0
               : 1;
  }
  stop = true;
  holder.join();
  CHECK(bad == 0);
}
