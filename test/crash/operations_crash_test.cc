// Every operation of the file system, crashed everywhere: before or after, nothing else; after, once it has returned.
#include <cstdio>

#include "test/crash/scenarios.h"
#include "test/support/catch.h"
#include "test/support/text.h"

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

TEST_CASE("whiteout: a crash shows the old name alone, or the new one and a whiteout", "[crash][fs]") {
  crash_group("whiteout");
}

TEST_CASE("write: what extends a file or fills a hole is there entirely or not", "[crash][fs]") {
  crash_group("write");
}

TEST_CASE("fallocate: a crash shows all of it or nothing", "[crash][fs]") { crash_group("fallocate"); }

TEST_CASE("copy: what extends a file is there entirely or not", "[crash][fs]") { crash_group("copy"); }

TEST_CASE("nameless files: a crash frees them, or shows them with their name and contents", "[crash][fs]") {
  crash_group("nameless");
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

TEST_CASE("extended attributes: a crash shows all of a change or nothing", "[crash][fs]") { crash_group("xattr"); }

TEST_CASE("ACLs: a crash shows list and mode, or neither; what is inherited is there with the name", "[crash][fs]") {
  crash_group("acl");
}

TEST_CASE("all operations together", "[crash][fs]") {
  total.name = "operations";
  std::puts(describe(total).c_str());
#if PMFS_TRACE_STORES
  std::puts(text("stores that the compiler told of: ", SimMemory::traced_stores()).c_str());
  CHECK(SimMemory::traced_stores() > 1000);
#endif
}

}  // namespace
}  // namespace pmfs::test
