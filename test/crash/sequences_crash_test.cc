// Random operations by several threads in turn, crashed everywhere; and the rules of the protocol, switched off one by
// one in the whole file system: each time some sequence must show why the rule is there.
#include <cstdio>

#include "test/crash/scenarios.h"
#include "test/support/catch.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

// Five operations on a small tree, each by one of three threads.
Scenario sequence(u64 seed, std::vector<std::string>& did) {
  Scenario scenario;
  scenario.name = text("sequence ", seed);
  scenario.seed = seed;
  scenario.prepare = [=](User& u) {
    Prng prng(mix(seed));
    for (int i = 0; i < 8; ++i) u.anything(prng);
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
  const u64 seeds = long_form() ? 2000 : 60;
  Report sum;
  for (u64 seed = 1; seed <= seeds && sum.clean(); ++seed) sum += explore_sequence(seed, sequence_options());
  sum.name = text(seeds, " sequences");
  std::puts(describe(sum).c_str());
  INFO(describe_failures(sum));
  CHECK(sum.clean());
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
