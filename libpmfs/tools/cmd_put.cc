// pmfs put: a file of the host, or standard input, to a file of the pool.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>

#include "commands.h"
#include "file_copy.h"
#include "host_fd.h"
#include "open_pool.h"
#include "pool_work.h"
#include "report.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string path;
  std::string host_file = "-";
};

/// @return whether everything is in the pool.
bool put_file(Filesystem& fs, const Options& options, int host_fd, u32 mode) {
  const std::string subject = options.pool + ": " + options.path;
  Result<File> file = fs.open_file(options.path, O_WRONLY | O_CREAT | O_TRUNC, mode, creator_credentials());
  if (!file.ok()) {
    report(subject, file.error());
    return false;
  }
  std::vector<std::byte> buffer(kCopyBytes);
  for (u64 off = 0;;) {
    std::size_t count = 0;
    if (const int failed = read_full(host_fd, buffer, count); failed != 0) {
      report_errno(options.host_file, "cannot read it", failed);
      return false;
    }
    if (count == 0) break;
    const Result<std::size_t> written = file->write(off, {buffer.data(), count});
    if (!written.ok() || *written < count) {
      report(subject, written.ok() ? Error{Errc::kNoSpace, "only a part was written"} : written.error());
      return false;
    }
    off += count;
  }
  const Result<void> closed = file->close();
  if (!closed.ok()) report(subject, closed.error());
  return closed.ok();
}

int put(const Options& options) {
  HostFd opened;
  int host_fd = STDIN_FILENO;
  u32 mode = 0666;
  if (options.host_file != "-") {
    opened = HostFd(open(options.host_file.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat st {};
    if (!opened.is_open() || fstat(opened.get(), &st) != 0) {
      report_errno(options.host_file, "cannot open it for reading", errno);
      return kExitFailure;
    }
    if (S_ISDIR(st.st_mode)) {
      report_text(options.host_file, "this is a directory; `pmfs import` copies whole trees");
      return kExitFailure;
    }
    mode = st.st_mode & 0777u;
    host_fd = opened.get();
  }
  std::optional<Filesystem> fs = open_for_writing(options.pool);
  if (!fs) return kExitFailure;
  const bool done = put_file(*fs, options, host_fd, mode);
  return close_pool(*fs, options.pool, done ? kExitOk : kExitFailure);
}

}  // namespace

void add_put(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("put", "Copy one file into a pool; an existing file gets the new contents");
  command->add_option("POOL", options->pool, "Pool file, device DAX, or poolset file")->required();
  command->add_option("PATH", options->path, "File in the pool")->required();
  command->add_option("HOSTFILE", options->host_file, "Where from; - or nothing is standard input");
  command->footer("Example:\n  echo hello | pmfs put /dev/shm/demo.pool /notes.txt");
  command->callback([options, &exit_code] { exit_code = put(*options); });
}

}  // namespace pmfs::tools
