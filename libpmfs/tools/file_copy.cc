#include "file_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "host_fd.h"
#include "open_pool.h"
#include "report.h"

namespace pmfs::tools {

bool copy_to_host(Filesystem& fs, const std::string& pool, const std::string& path, int host_fd,
                  const std::string& host_name) {
  const std::string subject = pool + ": " + path;
  Result<File> file = fs.open_file(path, O_RDONLY | O_NOATIME, 0, Credentials::root());
  if (!file.ok()) {
    report(subject, file.error());
    return false;
  }
  std::vector<std::byte> buffer(kCopyBytes);
  for (u64 off = 0;;) {
    const Result<std::size_t> count = file->read(off, buffer);
    if (!count.ok()) {
      report(subject, count.error());
      return false;
    }
    if (*count == 0) break;
    if (const int failed = write_all(host_fd, {buffer.data(), *count}); failed != 0) {
      report_errno(host_name, "cannot write it", failed);
      return false;
    }
    off += *count;
  }
  if (const Result<void> closed = file->close(); !closed.ok()) {
    report(subject, closed.error());
    return false;
  }
  return true;
}

int get_file(const std::string& pool, const std::string& path, const std::string& host_name) {
  std::optional<Filesystem> fs = open_for_reading(pool);
  if (!fs) return kExitFailure;

  // Looked at first, so that a wrong path does not empty an existing host file.
  bool done = false;
  const Result<Attributes> source = fs->stat(path, Credentials::root());
  if (!source.ok()) {
    report(pool + ": " + path, source.error());
  } else if (source->type() == FileType::kDirectory) {
    report_text(pool + ": " + path, "this is a directory; `pmfs export` copies whole trees");
  } else if (host_name == "-") {
    done = copy_to_host(*fs, pool, path, STDOUT_FILENO, "standard output");
  } else {
    HostFd host(open(host_name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, source->mode & 0777u));
    if (!host.is_open()) {
      report_errno(host_name, "cannot open it for writing", errno);
    } else {
      done = copy_to_host(*fs, pool, path, host.get(), host_name);
      if (const int failed = host.close_now(); failed != 0) {
        report_errno(host_name, "cannot write it", failed);
        done = false;
      }
    }
  }
  return close_pool(*fs, pool, done ? kExitOk : kExitFailure);
}

}  // namespace pmfs::tools
