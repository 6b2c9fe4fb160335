// Leaves out the flushes and fences of the file system one by one, and sees whether some crash shows it. What nothing
// can miss is unnecessary; what this suite does not miss is listed.
#include <cstdio>
#include <map>

#include "test/crash/scenarios.h"
#include "test/support/catch.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

ScenarioOptions mutant_options() {
  ScenarioOptions options;
  options.bound = 1000;
  options.recovery_once_in = 0;
  options.use_once_in = 0;
  options.kills = false;
  options.stop_after_failures = 1;
  return options;
}

// A place in the code, as far as a trace tells: a tag, and its how many-th use within one operation.
using Site = std::pair<Order, u32>;
struct Score {
  u32 mutants = 0;
  u32 caught = 0;
  std::string missed_by;  // a scenario that did not notice
};

TEST_CASE("mutation: every flush and fence of an operation is missed by some crash if it is left out",
          "[crash][mutation]") {
  std::map<Site, Score> scores;
  for (const Scenario& scenario : scenarios()) {
    const Ran ran = run(scenario);
    std::map<Order, u32> in_trace, in_step;
    for (const Event& event : ran.trace.events) {
      if (event.kind == Event::Kind::kMark) in_step.clear();
      if (event.kind != Event::Kind::kFlush && event.kind != Event::Kind::kFence) continue;
      Score& score = scores[{event.why, in_step[event.why]++}];
      ScenarioOptions options = mutant_options();
      options.left_out = {{event.why, in_trace[event.why]++}};
      if (score.caught >= 3 && !long_form()) continue;  // known to be needed
      ++score.mutants;
      if (crash(scenario, ran, options).clean())
        score.missed_by = scenario.name;
      else
        ++score.caught;
    }
  }
  u32 never = 0;
  for (const auto& [site, score] : scores) {
    if (score.caught == 0) ++never;
    std::puts(text(order_name(site.first), " #", site.second, ": ", score.caught, " of ", score.mutants, " caught",
                   score.caught == 0 ? "   <-- nothing notices; last tried: " + score.missed_by : "")
                  .c_str());
  }
  std::puts(text(scores.size(), " sites, ", never, " unnoticed").c_str());
}

}  // namespace
}  // namespace pmfs::test
