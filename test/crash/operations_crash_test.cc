// Every operation of the file system, crashed everywhere: before or after, nothing else; after, once it has returned.
#include <cstdio>

#include "test/crash/scenarios.h"
#include "test/support/catch.h"

namespace pmfs::test {
namespace {

Report total;

void crash_group(const std::string& group) {
  const std::vector<Scenario> some = scenarios(group);
  CHECK_FALSE(some.empty());
  for (const Scenario& scenario : some) {
    const Report report = explore(scenario);
    std::puts(describe(report).c_str());
    std::fflush(stdout);
    total += report;
    INFO(describe_failures(report));
    CHECK(report.clean());
    CHECK(report.states > 1);
  }
}

TEST_CASE("create: a crash shows the whole file or none", "[crash][fs]") { crash_group("create"); }

TEST_CASE("link: a crash shows the other name and the count, or neither", "[crash][fs]") { crash_group("link"); }

TEST_CASE("unlink and rmdir: a crash shows all of it or nothing", "[crash][fs]") { crash_group("remove"); }

TEST_CASE("rename: a crash shows exactly one of the two names", "[crash][fs]") { crash_group("rename"); }

TEST_CASE("rename of directories: a crash shows exactly one place, and parents that agree", "[crash][fs]") {
  crash_group("rename-directory");
}

TEST_CASE("exchange: a crash shows both names as before or both as after", "[crash][fs]") { crash_group("exchange"); }

TEST_CASE("write: what extends a file or fills a hole is there entirely or not", "[crash][fs]") {
  crash_group("write");
}

TEST_CASE("write: a file's map grows from a word to a tree, and the tree by copying", "[crash][fs]") {
  crash_group("map");
}

TEST_CASE("write: data overwritten in place is old or new, word by word", "[crash][fs]") { crash_group("overwrite"); }

TEST_CASE("truncate: a crash shows the old or the new size, and no old bytes behind it", "[crash][fs]") {
  crash_group("truncate");
}

TEST_CASE("attributes: a crash shows all of a change or none of it", "[crash][fs]") { crash_group("attributes"); }

TEST_CASE("times: lazily stored ones are durable once fsync has returned", "[crash][fs]") { crash_group("times"); }

TEST_CASE("directories: full leaves, fragmented leaves and a growing inode file are part of one commit",
          "[crash][fs]") {
  crash_group("leaves");
}

TEST_CASE("index: splits, joins, leaves given up and an index made anew are one commit each", "[crash][fs]") {
  const auto name = [](u64 i) { return text("/name-", i); };
  const auto some = [=](u64 count) {
    return [=](User& u) {
      for (u64 i = 0; i < count; ++i) u.create(name(i));
    };
  };
  // Steps in a row: somewhere among them a leaf is split; a leaf is joined with its neighbour; the last leaf but one goes.
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
  crash({.name = "splits of an indexed leaf", .prepare = some(120), .steps = creates(120, 40), .pool_bytes = u64{1} << 20},
        quick);
  crash({.name = "joins of leaves", .prepare = [=](User& u) {
           some(160)(u);
           for (u64 i = 0; i < 100; ++i) u.unlink(name(i));
         }, .steps = unlinks(100, 50), .pool_bytes = u64{1} << 20}, quick);
  crash({.name = "the last name but none goes", .prepare = [=](User& u) {
           some(80)(u);
           for (u64 i = 0; i < 70; ++i) u.unlink(name(i));
         }, .steps = unlinks(70, 10), .pool_bytes = u64{1} << 20}, quick);
  crash({.name = "a rename that splits", .prepare = some(150), .steps = {
           [=](User& u) { return u.rename(name(3), "/" + std::string(200, 'x')); },
           [=](User& u) { return u.rename(name(4), "/" + std::string(201, 'x')); },
           [=](User& u) { return u.rename(name(5), "/" + std::string(202, 'x')); },
           [=](User& u) { return u.rename(name(6), name(7)); }}, .pool_bytes = u64{1} << 20}, quick);
  // A rename of a name to itself changes nothing else: so the making of the index, a commit of its own, is seen alone. No
  // other life after a crash for the same reason: its first change would be two commits.
  quick.follow_up_once_in = 0;
  crash({.name = "an index is made by the first indexed change", .prepare = [=](User& u) {
           OpenOptions scan = SimFs::quiet();
           scan.dir_index = false;
           must(u.fs().close(), "close");
           u.fs() = must(SimFs::open(u.memory(), scan), "open without index");
           some(150)(u);
           must(u.fs().close(), "close");
           u.fs() = must(SimFs::open(u.memory(), SimFs::quiet()), "open with index");
         }, .steps = {[=](User& u) { return u.rename(name(0), name(0)); },
                      [=](User& u) { return u.create(name(150)); }}, .pool_bytes = u64{1} << 20}, quick);
}

TEST_CASE("full pools: an operation that does not fit changes nothing; deleting works", "[crash][fs]") {
  crash_group("full");
}

TEST_CASE("close and open: a crash in them shows what was there before", "[crash][fs]") { crash_group("close"); }

TEST_CASE("threads that follow each other on the same objects never undo what had returned", "[crash][fs]") {
  crash_group("threads");
}

TEST_CASE("freed space that is used again at once never comes back to its old owner", "[crash][fs]") {
  crash_group("drain");
}

TEST_CASE("all operations together", "[crash][fs]") {
  total.name = "operations";
  std::puts(describe(total).c_str());
}

}  // namespace
}  // namespace pmfs::test
