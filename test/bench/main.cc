// pmfs-bench: measures time. Each bench is a subcommand; several may be named, and then run one after the other.
#include <fmt/format.h>

#include <exception>
#include <fstream>

#include "test/bench/bench.h"

namespace pmfs::bench {
namespace {

/// The machine, as far as it says so itself.
std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "unknown processor";
}

std::string medium(const std::string& target) {
  return target.empty() ? "a throw-away pool in memory" : "a throw-away pool in " + target;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{
      "pmfs-bench: how long things take. Pools are throw-away ones in memory: no figure is one of real "
      "persistent memory",
      "pmfs bench"};
  app.set_version_flag("--version", "pmfs-bench " PMFS_VERSION " (" PMFS_COMMIT ")");
  app.require_subcommand(1, 0);
  app.add_flag("--json", options.json, "Print one JSON object, {schema, rows}");
  app.add_flag("--quick", options.quick, "Less of everything: a few seconds, to see that it works");
  app.add_option("--plot", options.plot, "Also draw the rows: an svg, png or pdf file, by gnuplot");
  app.add_option("--target", options.targets, "A folder to make the pools in; may be given several times")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.footer("Example:\n  pmfs bench dirscale --sizes 1k,10k --json\n  pmfs bench dirindex --quick --plot /tmp/d.svg");
  const std::vector<Bench> benches{dirscale(app), dirindex(app), fig7(app), fig8(app),
                                   fig9(app),     batch(app),    lookups(app)};
  for (const Bench& bench : benches) bench.command->fallthrough();  // --json and so on may stand behind the name
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  Report report;
  std::vector<std::string> targets = options.targets;
  if (targets.empty()) targets.emplace_back();
  for (const std::string& target : targets) {
    report.set_target(targets.size() > 1 ? target : "");
    Context context{options, report, target};
    for (const Bench& bench : benches) {
      if (!bench.command->parsed()) continue;
      if (!options.json)
        fmt::print("{}: {}, {}, {}\n", bench.command->get_name(), medium(target), processor(), PMFS_COMMIT);
      std::fflush(stdout);
      bench.run(context);
    }
  }
  const std::vector<Row> rows = report.rows();
  if (options.json) {
    print_json(rows);
  } else {
    print_text(rows);
  }
  if (!options.plot.empty()) plot(rows, options.plot);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace pmfs::bench

int main(int argc, char** argv) {
  try {
    return pmfs::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "pmfs-bench: {}\n", error.what());
    return 1;
  }
}
