// pmfs check: is the file system consistent? Speaks the exit codes of fsck(8).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "json_out.h"
#include "open_pool.h"
#include "report.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  bool recover = false;
  bool json = false;
};

/// A pool that cannot be opened because what it says is impossible is a finding, not an accident.
CheckReport report_of_refusal(const Error& error) {
  CheckReport report;
  report.findings.push_back(
      {"open", fmt::format("the file system cannot be opened: {}", error.what), error.media_off, {}});
  return report;
}

void print_text(const std::string& pool, const CheckReport& report) {
  for (const Finding& finding : report.findings) {
    fmt::print("{}: {}", finding.code, printable(finding.text));
    if (finding.ino != kNoInode) fmt::print(" [inode {}]", to_u64(finding.ino));
    if (finding.media_off != 0) fmt::print(" [at byte {:#x} of the pool]", finding.media_off);
    fmt::print("\n");
  }
  const std::string seen = fmt::format("{} inodes, {} directories, {} entries, {} blocks used, {} free", report.inodes,
                                       report.directories, report.entries, report.blocks_used, report.blocks_free);
  const std::string undone = report.lanes_undone == 0
                                 ? ""
                                 : fmt::format("; {} unfinished operations undone after a crash", report.lanes_undone);
  if (report.clean()) {
    fmt::print("{}: clean: {}{}\n", printable(pool), seen, undone);
  } else {
    fmt::print("{}: {} error{} left as they are: {}{}\n", printable(pool), report.findings.size(),
               report.findings.size() == 1 ? "" : "s", seen, undone);
  }
}

void print_object(const std::string& pool, const CheckReport& report, bool recover) {
  Json object = json_object("check");
  add_bytes(object, "pool", pool);
  object["clean"] = report.clean();
  object["recover"] = recover;
  object["inodes"] = report.inodes;
  object["directories"] = report.directories;
  object["entries"] = report.entries;
  object["blocks_used"] = report.blocks_used;
  object["blocks_free"] = report.blocks_free;
  object["lanes_undone"] = report.lanes_undone;
  Json rows = Json::array();
  for (const Finding& finding : report.findings) {
    Json row;
    row["code"] = finding.code;
    add_bytes(row, "text", finding.text);
    row["media_off"] = finding.media_off;
    row["ino"] = to_u64(finding.ino);
    rows.push_back(std::move(row));
  }
  object["rows"] = std::move(rows);
  print_json(object);
}

int check_pool(const Options& options) {
  const auto finish = [&](const CheckReport& found) {
    if (options.json) {
      print_object(options.pool, found, options.recover);
    } else {
      print_text(options.pool, found);
    }
    return found.clean() ? kCheckClean : kCheckErrors;
  };
  const auto refuse = [&](const Error& error) {
    report_pool(options.pool, error);
    return error.code == Errc::kCorrupt ? finish(report_of_refusal(error)) : kCheckOperational;
  };

  if (options.recover) {
    Result<Filesystem> fs = Filesystem::open(options.pool, {.busy_wait_ms = kBusyWaitMs});
    if (!fs.ok()) return refuse(fs.error());
    if (fs->info().recovered)
      fmt::print(stderr, "pmfs: {}: unfinished operations were undone\n", printable(options.pool));
    if (close_pool(*fs, options.pool, kExitOk) != kExitOk) return kCheckOperational;
  }

  // Where private pages are impossible (a device DAX), the check of an open for writing is the same check: --recover
  // has just written what there was to write.
  Result<Filesystem> fs = Filesystem::open(options.pool, {.read_only = true, .busy_wait_ms = kBusyWaitMs});
  if (!fs.ok() && fs.error().code == Errc::kNoPrivateOpen && options.recover) fs = Filesystem::open(options.pool);
  if (!fs.ok()) return refuse(fs.error());

  Result<CheckReport> found = check(*fs);
  if (!found.ok()) {
    report(options.pool, found.error());
    (void)fs->close();
    return kCheckOperational;
  }
  const int exit_code = finish(*found);
  const Result<void> closed = fs->close();
  if (!closed.ok()) {
    report(options.pool, closed.error());
    return kCheckOperational;
  }
  return exit_code;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("check", "Examine a pool; changes nothing");
  command->add_option("POOL", options->pool, "Pool file, device DAX, or poolset file")->required();
  command->add_flag("--recover", options->recover,
                    "Open for writing first, as a mount would: undo what a crash left "
                    "unfinished, then examine");
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)");
  command->footer(
      "Exit codes, as fsck: 0 clean, 4 errors found and left, 8 the check could not be done, 16 wrong usage\n"
      "Example:\n  pmfs check /dev/shm/demo.pool && echo clean");
  command->callback([options, &exit_code] { exit_code = check_pool(*options); });
}

}  // namespace pmfs::tools
