// Growing a file system, crashed everywhere: it has its old size or the new one.
#include <cstdio>

#include "fs/grow.h"
#include "fs/superblock.h"
#include "test/support/catch.h"
#include "test/support/sim_fs.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

const Credentials kRoot = Credentials::root();

// A file system in the first part of a memory, with a file in it.
Result<void> format_part(const Memory& memory, u64 bytes) {
  FormatParameters parameters;
  parameters.regions = {{kBlockBytes, bytes - kBlockBytes}};
  parameters.locator_off = SimFs::kLocator;
  parameters.fixed_ids = true;
  PMFS_TRY(format_memory(memory, parameters));
  PMFS_ASSIGN(Filesystem fs, SimFs::open(memory, SimFs::quiet()));
  PMFS_ASSIGN(const Attributes file, fs.mknod("/file", 0644, 0, kRoot));
  PMFS_TRY(fs.write(file.ino, 0, some_bytes(9000, 1), kRoot));
  return fs.close();
}

// Grows from behind `heap_bytes`, which is or is not where the last region ends.
Report crash_grow(u64 used_bytes, u64 from_off, std::vector<LeftOut> left_out = {}) {
  SimMemory memory(SimFs::kSmall);
  // What the larger part of the memory holds is whatever lay there.
  memory.load(some_bytes(SimFs::kSmall, 3));
  must(format_part(memory.memory(), used_bytes), "format");
  memory.settle();
  FsSubject subject;
  ImageMemory small(memory.model().contents());
  REQUIRE(subject.open(small.memory()).empty());
  REQUIRE(subject.look().empty());
  const u64 before = subject.fingerprint();
  const u64 blocks_before = subject.seen().space.blocks;
  subject.drop();

  memory.begin_trace();
  memory.mark(MarkKind::kBegin, 0);
  const u64 added = must(grow_memory(memory.memory(), SimFs::kLocator, from_off), "grow");
  memory.mark(MarkKind::kReturn, 0);
  const Trace trace = memory.end_trace();
  CHECK(memory.problem().empty());
  CHECK(added == (SimFs::kSmall - std::max(used_bytes, from_off)) / kBlockBytes);

  ImageMemory large(memory.model().contents());
  REQUIRE(subject.open(large.memory()).empty());
  REQUIRE(subject.look().empty());
  CHECK(subject.seen().space.blocks == blocks_before + added);
  BeforeOrAfter judge(before, subject.fingerprint());
  subject.drop();
  ExploreOptions options;
  options.name = from_off > used_bytes ? "grow by a new region" : "grow by a longer region";
  options.layout = SimFs::layout_of(memory.memory());
  options.left_out = std::move(left_out);
  options.recovery_once_in = 4;
  options.use_once_in = 40;
  Report report = Explorer(subject, options).explore(trace, judge);
  BeforeOrAfter again(before, judge.after());
  options.kill_points = 20;
  if (report.clean()) report += Explorer(subject, options).explore_kills(trace, again);
  return report;
}

constexpr u64 kUsed = u64{320} << 10;

TEST_CASE("grow: a crash leaves the old size or the new one, and all files", "[crash][fs]") {
  for (const u64 from_off : {kUsed, kUsed + 3 * kBlockBytes}) {
    const Report report = crash_grow(kUsed, from_off);
    std::puts(describe(report).c_str());
    INFO(describe_failures(report));
    CHECK(report.clean());
    CHECK(report.states > 1);
  }
}

// Its records are not: the one live word is there or not, and either is right.
TEST_CASE("grow: its flushes and fences are needed", "[crash][fs][mutation]") {
  for (const Order why : {Order::kFreshRegion, Order::kFence1, Order::kApplied, Order::kFence2}) {
    const Report report = crash_grow(kUsed, kUsed + 3 * kBlockBytes, {{why}});
    std::puts(text("grow without ", order_name(why), report.clean() ? ": not noticed" : ": noticed").c_str());
    INFO(order_name(why));
    CHECK_FALSE(report.clean());
  }
}

TEST_CASE("grow: a saved map of the old size is not used for the new one", "[unit][fs]") {
  SimMemory memory(SimFs::kSmall);
  must(format_part(memory.memory(), kUsed), "format");
  must(grow_memory(memory.memory(), SimFs::kLocator, kUsed), "grow");
  Filesystem fs = must(SimFs::open(memory.memory(), SimFs::quiet()), "open");
  CHECK_FALSE(fs.info().saved_map_used);
  CHECK(findings(fs) == "");
  CHECK(must(fs.space(), "space").blocks == (SimFs::kSmall - kBlockBytes) / kBlockBytes);
  must(fs.close(), "close");
  CHECK(must(grow_memory(memory.memory(), SimFs::kLocator, kUsed), "grow again") == 0);
  fs = must(SimFs::open(memory.memory(), SimFs::quiet()), "open");
  CHECK(fs.info().saved_map_used);
}

}  // namespace
}  // namespace pmfs::test
