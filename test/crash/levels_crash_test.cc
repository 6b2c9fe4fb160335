// Trees that gain or lose a level, crashed everywhere: a file's map and a directory's index with more entries than one
// node has.
#include <cstdio>

#include "fs/format.h"
#include "htree/node_format.h"
#include "test/support/catch.h"
#include "test/support/fs_scenario.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

constexpr u64 kStride = 8192;  // of extents that do not join

Report crash_all(const Scenario& scenario) {
  ScenarioOptions options = usual_options();
  options.bound = long_form() ? 2048 : 256;
  options.kill_points = 2;
  const Report report = explore(scenario, options);
  std::puts(describe(report).c_str());
  std::fflush(stdout);
  INFO(describe_failures(report));
  CHECK(report.clean());
  CHECK(report.states > 1);
  return report;
}

void fragmented(User& u, u64 extents) {
  u.create("/f");
  for (u64 i = 0; i < extents; ++i) u.write("/f", i * kStride, some_bytes(10, i));
}

Step append_extent(u64 number) {
  return [=](User& u) { return u.write("/f", number * kStride, some_bytes(10, number)); };
}

Scenario on_file(const std::string& name, u64 extents, std::vector<Step> steps) {
  return {.group = "levels",
          .name = name,
          .prepare = [=](User& u) { fragmented(u, extents); },
          .steps = std::move(steps),
          .pool_bytes = u64{4} << 20};
}

TEST_CASE("levels: a file's map of more extents than a node has grows and goes in one commit each", "[crash][fs]") {
  static_assert(media::kMapNodeEntries == 254);
  crash_all(on_file("the map gains a level", 253, {append_extent(253), append_extent(254), append_extent(255)}));
  crash_all(on_file("a map of two levels is cut in the middle", 300,
                    {[](User& u) { return u.truncate("/f", 150 * kStride + 5); }}));
  crash_all(on_file("a map of two levels goes", 300, {[](User& u) { return u.truncate("/f", 0); }}));
  crash_all(on_file("a file of two levels is removed, and its blocks are used", 300,
                    {[](User& u) { return u.unlink("/f"); }, [](User& u) { return u.create("/g"); },
                     [](User& u) { return u.write("/g", 0, some_bytes(40'000, 7)); }}));
}

TEST_CASE("levels: a directory's index gains a level in the commit of the name", "[crash][fs]") {
  static_assert(media::kIndexNodeEntries == 254);
  const auto name = [](u64 i) { return "/" + std::string(200, 'n') + text("-", i); };
  const auto levels = [](User& u) {
    return must(u.fs().directory_info("/", Credentials::root()), "info").index_levels;
  };
  // How many names there are when the second level comes: found out on a file system of its own.
  u64 names = 0;
  {
    SimFs world(u64{8} << 20);
    User u(world.fs(), world.memory().memory());
    while (levels(u) < 2) u.create(name(names++));
  }
  REQUIRE(names > 2000);
  const auto some = [=](u64 count) {
    return [=](User& u) {
      for (u64 i = 0; i < count; ++i) u.create(name(i));
    };
  };
  crash_all({.group = "levels",
             .name = "the index gains a level",
             .prepare = some(names - 1),
             .steps = {[=](User& u) {
                         CHECK(levels(u) == 1);
                         auto allowed = u.create(name(names - 1));
                         CHECK(levels(u) == 2);
                         return allowed;
                       },
                       [=](User& u) { return u.unlink(name(17)); }},
             .pool_bytes = u64{8} << 20});
}

}  // namespace
}  // namespace pmfs::test
