// What --json prints is one valid JSON object, with exactly the fields that JSON.md documents.
//   json_test PMFS JSON.md
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

using Json = nlohmann::json;

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::cerr << "FAIL: " << what << "\n";
  ++failures;
}

struct Outcome {
  int exit_code = -1;
  std::string out;
};

/// Runs a program with these arguments, no shell in between.
Outcome run(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  Outcome outcome;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
    outcome.out.append(buffer, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

class Tool {
 public:
  Tool(std::string program, std::string documentation, std::string folder)
      : program_(std::move(program)), documentation_(std::move(documentation)), folder_(std::move(folder)) {}

  std::string pool() const { return folder_ + "/pool"; }
  std::string folder() const { return folder_; }

  void plain(std::vector<std::string> words) const {
    words.insert(words.begin(), program_);
    const Outcome outcome = run(words);
    expect(outcome.exit_code == 0, "exit code of " + words[1]);
  }

  /// Runs with --json; the output must be one object of schema 1 whose fields are all documented.
  Json object(std::vector<std::string> words, int exit_code = 0) const {
    words.insert(words.begin(), program_);
    words.push_back("--json");
    const Outcome outcome = run(words);
    const std::string name = words[1] + " --json";
    expect(outcome.exit_code == exit_code, name + ": exit code " + std::to_string(outcome.exit_code));
    Json object = Json::parse(outcome.out, nullptr, false);
    expect(object.is_object(), name + ": not one JSON object: " + outcome.out.substr(0, 200));
    if (!object.is_object()) return Json::object();
    expect(object.value("schema", 0) == 1, name + ": schema");
    expect(object.value("command", "") == words[1], name + ": command");
    documented(name, object);
    if (object.contains("rows")) {
      expect(object["rows"].is_array(), name + ": rows");
      for (const Json& row : object["rows"]) documented(name, row);
    }
    return object;
  }

 private:
  void documented(const std::string& name, const Json& object) const {
    for (const auto& [key, value] : object.items()) {
      std::string field = key;
      if (const std::size_t at = field.rfind("_base64"); at != std::string::npos) field.resize(at);
      expect(documentation_.find("`" + field + "`") != std::string::npos,
             name + ": JSON.md does not document " + field);
    }
  }

  std::string program_, documentation_, folder_;
};

void write_file(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

void test_all(const Tool& tool) {
  const std::string bad_name = "bad\xff\xc0\xafname";
  tool.plain({"mkfs", tool.pool(), "--size", "16M", "--label",
              "l\xe4"
              "bel"});
  write_file(tool.folder() + "/plain", "hello");
  tool.plain({"put", tool.pool(), "/plain", tool.folder() + "/plain"});
  tool.plain({"put", tool.pool(), "/" + bad_name, tool.folder() + "/plain"});
  tool.plain({"put", tool.pool(), "/\xc3\xa4 \"quoted\"\n\t", tool.folder() + "/plain"});

  const Json info = tool.object({"info", tool.pool()});
  expect(info.value("size_bytes", 0) == 16 << 20, "info: size_bytes");
  expect(info.value("label_base64", "") == "bORiZWw=", "info: label_base64");
  expect(info.value("pool", "") == tool.pool(), "info: pool");
  expect(info.contains("rows") && !info["rows"].empty() && info["rows"][0].value("region_bytes", 0) > 0,
         "info: regions");

  expect(info.value("regular_files", 0) == 3 && info.value("directories", 0) == 1 && info.value("extents", 0) == 3 &&
             info.value("fragmented_files", 7) == 0,
         "info: what is in the pool");
  std::uint64_t in_runs = 0;
  for (const Json& blocks : info["free_blocks_by_run"]) in_runs += blocks.get<std::uint64_t>();
  expect(in_runs == info.value("blocks_free", 0u), "info: all free blocks lie in runs");

  const Json df = tool.object({"df", tool.pool()});
  expect(df.value("blocks", 0u) == info.value("blocks", 1u) && df.value("inodes_used", 0) == 4, "df");
  expect(df.value("blocks_used", 0u) + df.value("blocks_free", 0u) == df.value("blocks", 1u), "df: used and free");
  const Json grown = tool.object({"grow", tool.pool(), "--size", "18M"});
  expect(grown.value("size_bytes_before", 0) == 16 << 20 && grown.value("size_bytes", 0) == 18 << 20, "grow: sizes");
  const std::uint64_t more = tool.object({"df", tool.pool()}).value("blocks", std::uint64_t{0});
  expect(grown.value("blocks_added", 0u) != 0 && more == df.value("blocks", 0u) + grown.value("blocks_added", 0u),
         "grow: blocks_added");

  const Json stat = tool.object({"stat", tool.pool(), "/plain"});
  expect(stat.value("size_bytes", 0) == 5 && stat.value("type", "") == "regular" && stat.value("links", 0) == 1,
         "stat");
  expect(stat.value("mtime_ns", std::int64_t{0}) > 1'600'000'000'000'000'000, "stat: mtime_ns");
  expect(!stat.contains("path_base64"), "stat: path_base64 beside a path that is UTF-8");
  const Json odd = tool.object({"stat", tool.pool(), "/" + bad_name});
  expect(odd.contains("path_base64"), "stat: path_base64");

  const Json list = tool.object({"ls", tool.pool()});
  expect(list["rows"].size() == 3, "ls: rows");
  bool found_bad = false, found_quoted = false;
  for (const Json& row : list["rows"]) {
    if (row.value("name_base64", "") == "YmFk/8CvbmFtZQ==") found_bad = true;
    if (row.value("name", "") == "\xc3\xa4 \"quoted\"\n\t") found_quoted = !row.contains("name_base64");
    expect(row.value("ino", 0) > 0 && row.value("size_bytes", 0) == 5, "ls: a row's attributes");
  }
  expect(found_bad, "ls: name_base64 has the bytes of a name that is not UTF-8");
  expect(found_quoted, "ls: a name that is UTF-8 is given as it is");
  expect(tool.object({"ls", tool.pool(), "-a"})["rows"].size() == 5, "ls -a: rows");

  for (const char* lister : {"find", "tree"}) {
    const Json all = tool.object({lister, tool.pool()});
    expect(all["rows"].size() == 4, std::string(lister) + ": rows");
    bool bad = false;
    for (const Json& row : all["rows"]) bad = bad || row.value("path_base64", "") == "L2JhZP/Ar25hbWU=";
    expect(bad, std::string(lister) + ": path_base64 has the bytes of a path that is not UTF-8");
  }
  const Json used = tool.object({"du", tool.pool()});
  expect(used["rows"].size() == 1 && used["rows"][0].value("path", "") == "/" &&
             used["rows"][0].value("used_bytes", 0) >= 3 * 4096,
         "du: rows");

  const Json check = tool.object({"check", tool.pool()});
  expect(check.value("clean", false) && check["rows"].empty(), "check: clean");
  expect(check.value("inodes", 0) == 4 && check.value("directories", 0) == 1 && check.value("entries", 0) == 3,
         "check: what it counted");
  expect(tool.object({"check", tool.pool(), "--recover"}).value("recover", false), "check: recover");

  write_file(tool.folder() + "/trace", "/plain\t3\n/missing\n");
  const Json trace = tool.object({"trace", tool.folder() + "/trace", tool.pool(), "--repeat", "2"});
  expect(trace.value("requests", 0) == 8 && trace.value("components", 0) == 8 && trace.value("dentries", 0) == 2,
         "trace: what was replayed");
  expect(trace.value("pool", "") == tool.pool() && trace["rows"].size() == 4, "trace: a row for each resolver");
  for (const Json& row : trace["rows"]) {
    expect(row.value("lookups", 0) == 6 && row.value("failed", 0) == 2 && row.value("ratio", 0.0) > 0,
           "trace: a row's counts");
    expect(row.value("misses", 0) == 2 && row.value("hits", 0) + row.value("skipped", 0) == 6,
           "trace: each component is found, read or skipped");
  }
  expect(trace["rows"][0].value("ratio", 0.0) == 1.0, "trace: ratio of walk to itself");

  const Json count = tool.object({"count", "--runs", "3", "--sfence-runs", "0"});
  expect(count["rows"].size() > 50, "count: rows");
  for (const Json& row : count["rows"]) {
    for (const char* field : {"fences", "flushes", "lines", "pmemobj"}) {
      const Json& spread = row.contains(field) ? row[field] : Json();
      expect(spread.is_object() && spread.size() == 3 && spread.contains("min") && spread.contains("median") &&
                 spread.contains("max") && spread["min"] <= spread["median"] && spread["median"] <= spread["max"],
             std::string("count: ") + field + " of " + row.value("op", "?") + " " + row.value("variant", "?"));
    }
    expect(row.contains("sfence") && row["sfence"].is_null(), "count: sfence is null without runs for it");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream in(argv[2]);
  const std::string documentation{std::istreambuf_iterator<char>(in), {}};
  const char* const base = access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                           : getenv("TMPDIR") != nullptr ? getenv("TMPDIR")
                                                         : "/tmp";
  std::string folder = std::string(base) + "/pmfs-json-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  test_all(Tool(argv[1], documentation, folder));
  for (const char* name : {"/pool", "/plain", "/trace"}) unlink((folder + name).c_str());
  rmdir(folder.c_str());
  if (failures == 0) std::cout << "ok\n";
  return failures == 0 ? 0 : 1;
}
