// Every request for blocks that an operation makes is refused in turn: the operation says so and leaves everything as
// it was, or does without.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>

#include "base/simulate.h"
#include "test/crash/scenarios.h"
#include "test/support/catch.h"
#include "test/support/model_fs.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

const Credentials kRoot = Credentials::root();

// A file system in memory of its own, without the simulator's memory model: only requests for blocks are of interest.
class World {
 public:
  World(const Scenario& scenario, std::size_t steps) : bytes_(scenario.pool_bytes) {
    base_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(base_ != MAP_FAILED);
    const Memory memory{static_cast<std::byte*>(base_), bytes_, Durability::kVolatile};
    must(SimFs::format(memory), "format");
    fs_ = must(SimFs::open(memory, scenario.open), "open");
    user_ = std::make_unique<User>(fs_, memory);
    scenario.prepare(*user_);
    for (std::size_t i = 0; i < steps; ++i) scenario.steps[i](*user_);
  }
  ~World() {
    user_.reset();
    fs_ = Filesystem();
    ::munmap(base_, bytes_);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  User& user() { return *user_; }
  Filesystem& fs() { return fs_; }
  std::string tree() { return tree_of(fs_); }

 private:
  u64 bytes_;
  void* base_ = nullptr;
  Filesystem fs_;
  std::unique_ptr<User> user_;
};

struct Counts {
  u64 refused = 0;  // operations that said that there is no space
  u64 without = 0;  // that did without the block
};

// Step `at` of a scenario, with every request for blocks refused after the first `allowed`. @return whether any was.
bool refuse(const Scenario& scenario, std::size_t at, u64 allowed, Counts& counts) {
  INFO(scenario.group << ": " << scenario.name << ", step " << at << ", requests granted: " << allowed);
  World world(scenario, at);
  const std::string before = world.tree();
  const SpaceInfo space = must(world.fs().space(), "space");
  std::string error;
  sim_allow_allocations(allowed);
  try {
    scenario.steps[at](world.user());
  } catch (const std::runtime_error& failed) {
    error = failed.what();
  }
  const bool any = sim_failed_allocations() != 0;
  sim_allow_allocations(~u64{0});
  CHECK(findings(world.fs()) == "");
  if (error.empty()) {
    counts.without += any;
    return any;
  }
  counts.refused += 1;
  CHECK(error.find("no free block") != std::string::npos);
  CHECK(any);
  CHECK(world.tree() == before);
  const SpaceInfo now = must(world.fs().space(), "space");
  CHECK(now.blocks_free == space.blocks_free);
  CHECK(now.inodes_free == space.inodes_free);
  // And it can be done afterwards, as if nothing had been.
  CHECK_NOTHROW(scenario.steps[at](world.user()));
  World other(scenario, at + 1);
  CHECK(world.tree() == other.tree());
  CHECK(findings(world.fs()) == "");
  return any;
}

}  // namespace

TEST_CASE("no space: whatever request for blocks is refused, each operation is done or leaves everything as it was",
          "[unit][fs]") {
  constexpr u64 kMost = 64;
  Counts counts;
  u64 steps = 0;
  u64 most = 0;
  for (const Scenario& scenario : scenarios()) {
    if (scenario.group == "close") continue;  // nothing can be looked at afterwards
    for (std::size_t at = 0; at < scenario.steps.size(); ++at) {
      u64 allowed = 0;
      while (allowed < kMost && refuse(scenario, at, allowed, counts)) ++allowed;
      CHECK(allowed < kMost);
      most = std::max(most, allowed);
      steps += 1;
    }
  }
  std::printf("no space: %llu steps, at most %llu requests in one; %llu times refused, %llu times done without\n",
              static_cast<unsigned long long>(steps), static_cast<unsigned long long>(most),
              static_cast<unsigned long long>(counts.refused), static_cast<unsigned long long>(counts.without));
  CHECK(counts.refused > 20);
  CHECK(counts.without > 0);
}

TEST_CASE("no space: the error is ENOSPC", "[unit][fs]") {
  Scenario empty{.group = "", .name = ""};
  World world(empty, 0);
  const auto refused = [&](auto&& call) {
    sim_allow_allocations(0);
    const auto result = call();
    sim_allow_allocations(~u64{0});
    return !result.ok() && to_errno(result.error().code) == ENOSPC;
  };
  Filesystem& fs = world.fs();
  CHECK(refused([&] { return fs.mknod("/file", 0644, 0, kRoot); }));
  CHECK(refused([&] { return fs.mkdir("/dir", 0755, kRoot); }));
  CHECK(refused([&] { return fs.symlink(std::string(500, 't'), "/link", kRoot); }));
  const Attributes file = must(fs.mknod("/file", 0644, 0, kRoot), "mknod");
  must(fs.mkdir("/dir", 0755, kRoot), "mkdir");
  CHECK(refused([&] { return fs.link("/file", "/dir/other", kRoot); }));
  CHECK(refused([&] { return fs.rename("/file", "/dir/other", 0, kRoot); }));
  const std::vector<std::byte> data = some_bytes(5000, 1);
  CHECK(refused([&] { return fs.write(file.ino, 0, data, kRoot); }));
}

}  // namespace pmfs::test
