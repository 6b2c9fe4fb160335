// mkfs and open, crashed everywhere.
#include <cstdio>

#include "test/support/catch.h"
#include "test/support/sim_fs.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

// Sees "no file system" as one more thing that can be there.
class FormatSubject : public FsSubject {
 public:
  std::string open(Memory memory) override {
    const auto fs = SimFs::open(memory, SimFs::quiet());
    none_ = !fs.ok() && fs.error().code == Errc::kNotFormatted;
    return none_ ? "" : FsSubject::open(memory);
  }
  std::string look() override { return none_ ? "" : FsSubject::look(); }
  u64 fingerprint() const override { return none_ ? 0 : FsSubject::fingerprint(); }
  std::string explain() const override { return none_ ? "no file system" : FsSubject::explain(); }
  std::string use(Prng& prng) override { return none_ ? "" : FsSubject::use(prng); }

 private:
  bool none_ = false;
};

Report crash_format(bool over_old_data, std::vector<LeftOut> left_out = {}, bool open_too = false) {
  SimMemory memory(SimFs::kSmall);
  if (over_old_data) {
    const std::vector<std::byte> old = some_bytes(SimFs::kSmall, 7);
    memory.load(old);
    // Only the root object is zero: libpmemobj made it just now.
    std::vector<std::byte> fresh = old;
    std::fill_n(fresh.begin() + to_u64(SimFs::kLocator), 64, std::byte{0});
    memory.load(fresh);
  }
  memory.begin_trace();
  memory.mark(MarkKind::kBegin, 0);
  must(SimFs::format(memory.memory()), "format");
  memory.mark(MarkKind::kReturn, 0);
  if (open_too) must(SimFs::open(memory.memory(), SimFs::quiet()), "open");
  const Trace trace = memory.end_trace();
  CHECK(memory.problem().empty());

  FormatSubject subject;
  ImageMemory after(memory.model().contents());
  CHECK(subject.open(after.memory()).empty());
  CHECK(subject.look().empty());
  BeforeOrAfter judge(0, subject.fingerprint());
  subject.drop();
  ExploreOptions options;
  options.name = over_old_data ? "mkfs over old data" : "mkfs";
  options.layout = SimFs::layout_of(memory.memory());
  options.left_out = std::move(left_out);
  options.recovery_once_in = 20;
  Report report = Explorer(subject, options).explore(trace, judge);
  BeforeOrAfter again(0, judge.after());
  options.kill_points = 20;
  if (report.clean()) report += Explorer(subject, options).explore_kills(trace, again);
  return report;
}

TEST_CASE("mkfs: a crash leaves no file system or an empty one", "[crash][fs]") {
  for (const bool over_old_data : {false, true}) {
    const Report report = crash_format(over_old_data, {}, true);
    std::puts(describe(report).c_str());
    INFO(describe_failures(report));
    CHECK(report.clean());
  }
}

TEST_CASE("mkfs: its flushes and fences are needed", "[crash][fs][mutation]") {
  for (const Order why : {Order::kFormat, Order::kFormatFence, Order::kLocator, Order::kLocatorFence}) {
    const Report report = crash_format(true, {{why}});
    std::puts(text("mkfs without ", order_name(why), report.clean() ? ": NOT NOTICED" : ": noticed").c_str());
    INFO(order_name(why));
    CHECK_FALSE(report.clean());
  }
}

}  // namespace
}  // namespace pmfs::test
