// What the explorer takes together, taken apart: contents that nothing points to, and torn records. Every word by
// itself, in samples, must show nothing that the explorer's few mixtures do not allow.
#include <cstdio>

#include "test/crash/scenarios.h"
#include "test/support/catch.h"

namespace pmfs::test {
namespace {

TEST_CASE("collapse: fresh contents and torn records, word by word, are as the mixtures that stand for them",
          "[crash][support]") {
  ScenarioOptions options;
  options.bound = long_form() ? 20000 : 600;
  options.collapse = false;
  options.recovery_once_in = 0;
  options.use_once_in = 0;
  options.kills = false;
  Report sum;
  for (const char* group : {"create", "link", "write", "map", "overwrite", "leaves", "rename"}) {
    for (const Scenario& scenario : scenarios(group)) {
      const Report report = explore(scenario, options);
      INFO(describe_failures(report));
      CHECK(report.clean());
      sum += report;
    }
  }
  sum.name = "every word by itself";
  std::puts(describe(sum).c_str());
}

}  // namespace
}  // namespace pmfs::test
