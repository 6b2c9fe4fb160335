#include "host_paths.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "json_out.h"
#include "mode_text.h"
#include "report.h"

namespace pmfs::tools {

namespace {

constexpr std::size_t kAtATime = 4096;  // some 25 requests; enough to share what a request costs

/// Reads up to kAtATime paths. @return false at the end of stdin.
bool read_paths(char delimiter, std::vector<std::string>& paths) {
  paths.clear();
  char* line = nullptr;
  std::size_t capacity = 0;
  ssize_t length = 0;
  while (paths.size() < kAtATime && (length = ::getdelim(&line, &capacity, delimiter, stdin)) >= 0) {
    std::string path(line, static_cast<std::size_t>(length));
    if (!path.empty() && path.back() == delimiter) path.pop_back();
    paths.push_back(std::move(path));
  }
  std::free(line);
  return !paths.empty();
}

void print_line(const HostPathsOptions& options, const std::string& path, const mounted::Row& row) {
  const Attributes& a = row.attributes;
  if (row.error != 0) {
    fmt::print("{}: {}\n", printable(path), std::strerror(row.error));
  } else if (options.attributes) {
    fmt::print("{} {} {} {} {} {} {} {} {}\n", mode_text(a.mode), a.links, a.uid, a.gid, a.size_bytes, a.blocks_512,
               to_u64(a.ino), long_time(a.mtime_ns), printable(path));
  } else {
    fmt::print("{} {:#x} {:o} {}\n", to_u64(a.ino), a.generation, a.mode, printable(path));
  }
}

Json json_row(const std::string& path, const mounted::Row& row) {
  Json json;
  add_bytes(json, "path", path);
  json["errno"] = row.error;
  json["batched"] = row.batched;
  if (row.error == 0) add_attributes(json, row.attributes);
  return json;
}

}  // namespace

int answer_host_paths(const HostPathsOptions& options, const Answer& answer) {
  mounted::Client client;
  std::vector<std::string> paths;
  std::vector<mounted::Row> rows;
  Json object = json_object(options.command);
  object["rows"] = Json::array();
  bool failed = false;
  while (read_paths(options.zero ? '\0' : '\n', paths)) {
    rows.assign(paths.size(), {});
    answer(client, paths, rows);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      failed |= rows[i].error != 0;
      if (options.json) {
        object["rows"].push_back(json_row(paths[i], rows[i]));
      } else {
        print_line(options, paths[i], rows[i]);
      }
    }
  }
  if (std::ferror(stdin) != 0) {
    report_text("stdin", "cannot be read");
    failed = true;
  }
  if (options.json) print_json(object);
  return finish_stdout(failed ? kExitFailure : kExitOk);
}

}  // namespace pmfs::tools
