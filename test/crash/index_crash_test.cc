// The directory index, crashed everywhere: splits, joins, leaves given up, and an index made anew.
#include <cstdio>

#include "test/support/catch.h"
#include "test/support/fs_scenario.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

void crash_all(const Scenario& scenario, const ScenarioOptions& options) {
  const Report report = explore(scenario, options);
  std::puts(describe(report).c_str());
  std::fflush(stdout);
  INFO(describe_failures(report));
  CHECK(report.clean());
  CHECK(report.states > 1);
}

TEST_CASE("index: splits, joins, leaves given up and an index made anew are one commit each", "[crash][fs]") {
  const auto name = [](u64 i) { return text("/name-", i); };
  const auto some = [=](u64 count) {
    return [=](User& u) {
      for (u64 i = 0; i < count; ++i) u.create(name(i));
    };
  };
  // Steps in a row: somewhere among them a leaf is split; a leaf is joined with its neighbour; the last leaf but one
  // goes.
  const auto creates = [=](u64 from, u64 count) {
    std::vector<Step> steps;
    for (u64 i = from; i < from + count; ++i) steps.push_back([=](User& u) { return u.create(name(i)); });
    return steps;
  };
  const auto unlinks = [=](u64 from, u64 count) {
    std::vector<Step> steps;
    for (u64 i = from; i < from + count; ++i) steps.push_back([=](User& u) { return u.unlink(name(i)); });
    return steps;
  };
  ScenarioOptions quick = usual_options();
  quick.bound = long_form() ? 4096 : 512;
  quick.kill_points = 2;
  crash_all({.group = "index",
             .name = "splits of an indexed leaf",
             .prepare = some(120),
             .steps = creates(120, 40),
             .pool_bytes = u64{1} << 20},
            quick);
  crash_all({.group = "index",
             .name = "joins of leaves",
             .prepare =
                 [=](User& u) {
                   some(160)(u);
                   for (u64 i = 0; i < 100; ++i) u.unlink(name(i));
                 },
             .steps = unlinks(100, 50),
             .pool_bytes = u64{1} << 20},
            quick);
  crash_all({.group = "index",
             .name = "the last name but none goes",
             .prepare =
                 [=](User& u) {
                   some(80)(u);
                   for (u64 i = 0; i < 70; ++i) u.unlink(name(i));
                 },
             .steps = unlinks(70, 10),
             .pool_bytes = u64{1} << 20},
            quick);
  crash_all({.group = "index",
             .name = "a rename that splits",
             .prepare = some(150),
             .steps = {[=](User& u) { return u.rename(name(3), "/" + std::string(200, 'x')); },
                       [=](User& u) { return u.rename(name(4), "/" + std::string(201, 'x')); },
                       [=](User& u) { return u.rename(name(5), "/" + std::string(202, 'x')); },
                       [=](User& u) { return u.rename(name(6), name(7)); }},
             .pool_bytes = u64{1} << 20},
            quick);
  // A rename of a name to itself changes nothing else: so the making of the index, a commit of its own, is seen alone.
  // No other life after a crash for the same reason: its first change would be two commits.
  quick.follow_up_once_in = 0;
  crash_all(
      {.group = "index",
       .name = "an index is made by the first indexed change",
       .prepare =
           [=](User& u) {
             OpenOptions scan = SimFs::quiet();
             scan.dir_index = false;
             must(u.fs().close(), "close");
             u.fs() = must(SimFs::open(u.memory(), scan), "open without index");
             some(150)(u);
             must(u.fs().close(), "close");
             u.fs() = must(SimFs::open(u.memory(), SimFs::quiet()), "open with index");
           },
       .steps = {[=](User& u) { return u.rename(name(0), name(0)); }, [=](User& u) { return u.create(name(150)); }},
       .pool_bytes = u64{1} << 20},
      quick);
}

}  // namespace
}  // namespace pmfs::test
