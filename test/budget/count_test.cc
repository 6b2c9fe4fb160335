// Compares what `pmfs count --json` measures with the budget: fences exactly, lines within the recorded ranges, nothing
// of libpmemobj's, and as many executed sfence instructions as fences where no file data is moved.
//   count_test PMFS budget.json RUNS    compares; RUNS is given to `pmfs count --sfence-runs`
//   count_test PMFS budget.json record  prints the table with the ranges of lines as measured now
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace {

using Json = nlohmann::ordered_json;

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::cerr << "FAIL: " << what << "\n";
  ++failures;
}

Json measure(const std::string& program, const std::string& sfence_runs) {
  // The path comes from the build; single quotes keep whatever is in it.
  FILE* const pipe = popen(("'" + program + "' count --json --sfence-runs " + sfence_runs).c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  char buffer[65536];
  for (std::size_t count; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, count);
  expect(pclose(pipe) == 0, "pmfs count --json failed");
  return Json::parse(text, nullptr, false);
}

/// Whether all of a measured spread lies in [least, most].
bool within(const Json& spread, const Json& range) { return spread["min"] >= range[0] && spread["max"] <= range[1]; }

std::string show(const Json& row, const char* field) {
  return row["op"].get<std::string>() + " (" + row["variant"].get<std::string>() + "): " + field + " " +
         row[field].dump();
}

void compare(const Json& measured, const Json& budget) {
  std::set<std::string> seen;
  for (const Json& row : measured["rows"]) {
    const std::string op = row["op"], variant = row["variant"];
    seen.insert(op);
    if (!budget["ops"].contains(op)) {
      expect(false, "no budget for " + op);
      continue;
    }
    const Json& allowed = budget["ops"][op];
    expect(within(row["fences"], allowed["fences"]), show(row, "fences") + ", budget " + allowed["fences"].dump());
    if (!allowed["lines"].contains(variant)) {
      expect(false, "no range of lines recorded for " + op + " (" + variant + ")");
    } else {
      expect(within(row["lines"], allowed["lines"][variant]),
             show(row, "lines") + ", recorded " + allowed["lines"][variant].dump());
    }
    expect(row["pmemobj"].is_object() && row["pmemobj"]["max"] == 0, show(row, "pmemobj") + ": not zero, or not seen");
    if (row["sfence"].is_object() && !allowed.value("moves_data", false)) {
      expect(row["sfence"]["min"] == row["fences"]["min"] && row["sfence"]["max"] == row["fences"]["max"],
             show(row, "sfence") + ", but fences " + row["fences"].dump());
    }
  }
  for (const auto& [op, allowed] : budget["ops"].items()) {
    expect(seen.count(op) == 1, "no row for " + op);
    for (const auto& [variant, range] : allowed["lines"].items()) {
      bool found = false;
      for (const Json& row : measured["rows"]) found = found || (row["op"] == op && row["variant"] == variant);
      expect(found, "no row for " + op + " (" + variant + ")");
    }
  }
}

void record(const Json& measured, Json budget) {
  for (auto& [op, allowed] : budget["ops"].items()) {
    allowed["lines"] = Json::object();
    for (const Json& row : measured["rows"]) {
      if (row["op"] != op) continue;
      allowed["lines"][row["variant"].get<std::string>()] = {row["lines"]["min"], row["lines"]["max"]};
    }
  }
  std::cout << budget.dump(2) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string last = argv[3];
  std::ifstream in(argv[2]);
  const Json budget = Json::parse(in, nullptr, false);
  expect(budget.is_object(), "the budget is not readable");
  if (failures != 0) return 1;
  const Json measured = measure(argv[1], last == "record" ? "0" : last);
  expect(measured.is_object() && measured.contains("rows"), "pmfs count --json prints no object");
  if (failures != 0) return 1;
  if (last == "record") {
    record(measured, budget);
    return 0;
  }
  compare(measured, budget);
  if (!measured["sfence_missing"].is_null()) std::cout << "sfence not compared: " << measured["sfence_missing"] << "\n";
  if (failures == 0) std::cout << measured["rows"].size() << " rows within the budget\n";
  return failures == 0 ? 0 : 1;
}
