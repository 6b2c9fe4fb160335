// Asking a mount what it has counted.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "mounted/wire.h"
#include "pmfs/mounted.hpp"

namespace pmfs::mounted {

namespace {

Error failure(int error_number) {
  if (error_number == ENOENT || error_number == ENOTDIR) return {Errc::kNotFound, "no such directory", 0};
  if (error_number == EACCES || error_number == EPERM) return {Errc::kAccess, "the directory cannot be opened", 0};
  return {Errc::kNotSupported, "not a pmfs mount, or an older one", 0};
}

}  // namespace

Result<Statistics> statistics(const std::string& dir) {
  const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failure(errno);
  const auto counts = std::make_unique<StatisticsReply>();
  const auto pivots = std::make_unique<PivotsReply>();
  const bool answered =
      ::ioctl(fd, kStatisticsIoctl, counts.get()) == 0 && ::ioctl(fd, kPivotsIoctl, pivots.get()) == 0;
  ::close(fd);
  if (!answered || counts->version != kBatchVersion || pivots->version != kBatchVersion) return failure(ENOTTY);
  Statistics out;
  for (const NamedCount& row :
       std::span(counts->rows).first(std::min<std::size_t>(counts->counts, std::size(counts->rows))))
    out.counts.emplace_back(std::string(row.name, ::strnlen(row.name, sizeof row.name)), row.value);
  for (const PivotRow& row :
       std::span(pivots->rows).first(std::min<std::size_t>(pivots->count, std::size(pivots->rows)))) {
    PivotInfo pivot;
    pivot.path.assign(row.path, ::strnlen(row.path, sizeof row.path));
    pivot.heat = row.heat;
    pivot.overlap = row.overlap;
    out.pivots.push_back(std::move(pivot));
  }
  return out;
}

}  // namespace pmfs::mounted
