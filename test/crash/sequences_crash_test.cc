// Random operations by several threads in turn, crashed everywhere; and the rules of the protocol, switched off one by
// one in the whole file system: each time some sequence must show why the rule is there.
#include <cstdio>
#include <cstdlib>
#include <set>

#include "test/crash/scenarios.h"
#include "test/support/catch.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

struct Seeds {
  u64 first, last;
};

// The seeds of a test, or the one that PMFS_SEED names: to see a failure again.
Seeds seeds_from(u64 first, u64 count) {
  const char* one = std::getenv("PMFS_SEED");
  if (one == nullptr) return {first, first + count - 1};
  const u64 seed = std::strtoull(one, nullptr, 10);
  return {seed, seed};
}

// Five operations on a small tree, each by one of three threads.
Scenario sequence(u64 seed, std::vector<std::string>& did) {
  Scenario scenario;
  scenario.name = text("sequence ", seed);
  scenario.seed = seed;
  scenario.prepare = [=](User& u) {
    Prng prng(mix(seed));
    std::set<InodeNo> lazy;
    for (int i = 0; i < 8; ++i)
      for (const InodeNo ino : u.anything(prng).times_lazy) lazy.insert(ino);
    // Times stored without a record may be lost, and the judge does not know those from before its first step.
    for (const InodeNo ino : lazy) (void)u.fs().sync(ino);
    if (!prng.once_in(3)) return;
    // Nearly full, so that freed space is needed again.
    (void)u.fs().mknod("/fill", 0644, 0, Credentials::root());
    const auto a = u.fs().stat("/fill", Credentials::root());
    const std::vector<std::byte> chunk = some_bytes(16384, seed);
    for (u64 off = 0; a.ok();) {
      const auto written = u.fs().write(a->ino, off, chunk, Credentials::root());
      if (!written.ok()) break;
      off += *written;
    }
  };
  Prng threads(seed);
  for (u64 i = 0; i < 5; ++i) {
    const Step step = [&did, seed, i](User& u) {
      Prng prng(mix(seed * 100 + i));
      const Allowance allowance = u.anything(prng);
      did.push_back(u.last());
      return allowance;
    };
    scenario.steps.push_back(on_thread(static_cast<ThreadId>(1 + threads.below(3)), step));
  }
  return scenario;
}

Report explore_sequence(u64 seed, const ScenarioOptions& options) {
  std::vector<std::string> did;
  Report report = explore(sequence(seed, did), options);
  if (!report.clean())
    for (const std::string& one : did) report.failures.back() += "\n  did: " + one;
  return report;
}

ScenarioOptions sequence_options() {
  ScenarioOptions options = usual_options();
  options.bound = long_form() ? 4000 : 400;
  options.recovery_once_in = 60;
  options.use_once_in = 600;
  options.kill_points = 10;
  options.follow_up_once_in = 500;
  return options;
}

TEST_CASE("sequences: after a crash every operation is there or not, in order", "[crash][fs]") {
  const Seeds seeds = seeds_from(1, long_form() ? 600 : 60);
  Report sum;
  for (u64 seed = seeds.first; seed <= seeds.last && sum.clean(); ++seed)
    sum += explore_sequence(seed, sequence_options());
  sum.name = text(seeds.last - seeds.first + 1, " sequences");
  std::puts(describe(sum).c_str());
  INFO(describe_failures(sum));
  CHECK(sum.clean());
}

// A process is killed in the middle of its operations; the next one goes on; then the power fails.
Report explore_after_kill(u64 seed) {
  std::vector<std::string> did;
  const Scenario first = sequence(seed, did);
  const Ran ran = run(first);
  const TreeJudge judge(ran.trees, ran.allowances);
  if (!judge.is_exact()) return {};  // what was stored without a record may still change
  Prng prng(seed);
  const std::size_t kill_at = prng.below(ran.trace.events.size() + 1);
  PersistencyModel model = ran.trace.start;
  for (std::size_t i = 0; i < kill_at; ++i) ran.trace.apply(ran.trace.events[i], model);
  SimFs world(std::move(model));
  Scenario second;
  second.name = text("sequence ", seed, ", killed behind event ", kill_at);
  second.seed = seed;
  second.steps.assign(3, [&](User& u) {
    const Allowance allowance = u.anything(prng);
    did.push_back(u.last());
    return allowance;
  });
  const Ran after = run_in(world, second);
  ScenarioOptions options = sequence_options();
  options.follow_up_once_in = 0;
  Report report = crash(second, after, options);
  report.failures.insert(report.failures.begin(), after.failures.begin(), after.failures.end());
  return report;
}

TEST_CASE("sequences: a killed process and then a power cut lose nothing that the next process has shown",
          "[crash][fs]") {
  const Seeds seeds = seeds_from(1001, long_form() ? 600 : 80);
  Report sum;
  for (u64 seed = seeds.first; seed <= seeds.last && sum.clean(); ++seed) sum += explore_after_kill(seed);
  sum.name = text(seeds.last - seeds.first + 1, " killed sequences");
  std::puts(describe(sum).c_str());
  INFO(describe_failures(sum));
  CHECK(sum.clean());
}

TEST_CASE("times: fsync makes durable what a killed process had stored without a record", "[crash][fs]") {
  SimFs world;
  User user(world.fs(), world.memory().memory());
  user.create("/f");
  user.write("/f", 0, some_bytes(100, 1));
  std::vector<SeenTree> trees(3);
  REQUIRE(see(world.fs(), trees[0]).empty());
  const Allowance overwrites = user.write("/f", 10, some_bytes(50, 2));  // its times are in the cache only
  REQUIRE(overwrites.times_lazy.size() == 1);
  SimFs next(world.memory().model());
  User other(next.fs(), next.memory().memory());
  REQUIRE(see(next.fs(), trees[1]).empty());
  next.memory().begin_trace();
  next.memory().mark(MarkKind::kBegin, 1);
  const Allowance syncs = other.fsync("/f");
  next.memory().mark(MarkKind::kReturn, 1);
  const Trace trace = next.memory().end_trace();
  REQUIRE(see(next.fs(), trees[2]).empty());

  TreeJudge judge(trees, {overwrites, syncs});
  judge.happened({.kind = Event::Kind::kMark, .mark_kind = MarkKind::kBegin, .mark = 0});
  judge.happened({.kind = Event::Kind::kMark, .mark_kind = MarkKind::kReturn, .mark = 0});
  FsSubject subject;
  const Report report =
      Explorer(subject, {.name = "killed, opened, fsync", .layout = next.layout()}).explore(trace, judge);
  INFO(describe_failures(report));
  CHECK(report.clean());
}

TEST_CASE("rules: each one switched off lets some crash break the promise", "[crash][fs][mutation]") {
  ScenarioOptions options;
  options.bound = 300;
  options.recovery_once_in = 0;
  options.use_once_in = 0;
  options.kills = false;
  options.stop_after_failures = 1;
  const auto noticed_by = [&](Rule rule) -> std::string {
    ScenarioOptions off = options;
    off.switched_off = {rule};
    if (rule == Rule::kEpochInRecords) off.follow_up_once_in = 3;  // needs a second crash
    for (const Scenario& scenario : scenarios())
      if (!explore(scenario, off).clean()) return scenario.name;
    for (u64 seed = 1; seed <= 300; ++seed)
      if (!explore_sequence(seed, off).clean()) return text("sequence ", seed);
    return {};
  };
  const std::pair<Rule, const char*> rules[] = {{Rule::kEpochInRecords, "epoch in records"},
                                                {Rule::kFreshSequence, "fresh sequence"},
                                                {Rule::kFlushLastHeader, "flush last header"},
                                                {Rule::kRetireBeforeLazy, "retire before lazy times"},
                                                {Rule::kQuarantine, "quarantine"}};
  for (const auto& [rule, name] : rules) {
    const std::string by = noticed_by(rule);
    std::puts(text("without the rule '", name, "': ", by.empty() ? "NOT NOTICED" : "noticed by " + by).c_str());
    INFO(name);
    CHECK_FALSE(by.empty());
  }
}

}  // namespace
}  // namespace pmfs::test
