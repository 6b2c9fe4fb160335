#include "open_pool.h"

#include <unistd.h>

#include "report.h"

namespace pmfs::tools {

namespace {

std::optional<Filesystem> open_pool(const std::string& pool, bool read_only) {
  OpenOptions options;
  options.read_only = read_only;
  options.busy_wait_ms = kBusyWaitMs;
  Result<Filesystem> fs = Filesystem::open(pool, options);
  if (!fs.ok()) {
    report_pool(pool, fs.error());
    return std::nullopt;
  }
  return std::move(*fs);
}

}  // namespace

std::optional<Filesystem> open_for_reading(const std::string& pool) { return open_pool(pool, true); }

std::optional<Filesystem> open_for_writing(const std::string& pool) { return open_pool(pool, false); }

int close_pool(Filesystem& fs, const std::string& pool, int exit_code) {
  const Result<void> closed = fs.close();
  if (closed.ok()) return exit_code;
  report_pool(pool, closed.error());
  return kExitFailure;
}

Credentials operator_credentials() {
  Credentials who;
  who.uid = geteuid();
  who.gid = getegid();
  who.checked_elsewhere = true;
  return who;
}

}  // namespace pmfs::tools
