#include "open_pool.h"

#include <unistd.h>

#include "report.h"

namespace pmfs::tools {

namespace {

std::optional<Filesystem> opened_or_reported(const std::string& pool, Result<Filesystem> fs) {
  if (fs.ok()) return std::move(*fs);
  report_pool(pool, fs.error());
  return std::nullopt;
}

}  // namespace

std::optional<Filesystem> open_privately(const std::string& pool) {
  return opened_or_reported(pool, Filesystem::open(pool, {.read_only = true, .busy_wait_ms = kBusyWaitMs}));
}

std::optional<Filesystem> open_for_reading(const std::string& pool) {
  Result<Filesystem> fs = Filesystem::open(pool, {.read_only = true, .busy_wait_ms = kBusyWaitMs});
  if (fs.ok() || fs.error().code != Errc::kNoPrivateOpen) return opened_or_reported(pool, std::move(fs));
  // A file that may not be written is refused as before: with the words of the first refusal, which say what to do.
  Result<Filesystem> writable =
      Filesystem::open(pool, {.atime = OpenOptions::Atime::kNone, .busy_wait_ms = kBusyWaitMs});
  if (!writable.ok() && writable.error().code == Errc::kPoolDenied) return open_privately(pool);
  return opened_or_reported(pool, std::move(writable));
}

std::optional<Filesystem> open_for_writing(const std::string& pool) {
  return opened_or_reported(pool, Filesystem::open(pool, {.busy_wait_ms = kBusyWaitMs}));
}

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
