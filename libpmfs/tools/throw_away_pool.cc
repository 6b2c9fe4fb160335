#include "throw_away_pool.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace pmfs::tools {

namespace {

/// Folders for a throw-away pool, the best first.
std::vector<std::string> folders(u64 bytes, const std::string& wanted) {
  std::vector<std::string> out;
  const char* const tmpdir = std::getenv("TMPDIR");
  std::vector<const char*> candidates{"/dev/shm", tmpdir, "/tmp"};
  if (!wanted.empty()) candidates = {wanted.c_str()};
  for (const char* folder : candidates) {
    struct statvfs st {};
    if (folder == nullptr || *folder == '\0' || access(folder, W_OK) != 0 || statvfs(folder, &st) != 0) continue;
    if (st.f_bavail * st.f_frsize > bytes) out.emplace_back(folder);
  }
  return out;
}

}  // namespace

Filesystem throw_away_pool(u64 bytes, const std::string& folder, const OpenOptions& options) {
  setenv("PMEM_IS_PMEM_FORCE", "1", 0);
  std::string why = folder.empty() ? fmt::format("no folder has {} bytes free; set TMPDIR to one that has", bytes)
                                   : fmt::format("{} has no {} bytes free, or cannot be written", folder, bytes);
  for (const std::string& place : folders(bytes, folder)) {
    std::string own = place + "/pmfs-XXXXXX";
    if (mkdtemp(own.data()) == nullptr) continue;
    const std::string pool = own + "/pool";
    FormatOptions format;
    format.size_bytes = bytes;
    format.label = "throw-away";
    Result<void> made = Filesystem::format(pool, format);
    Result<Filesystem> fs = made.ok() ? Filesystem::open(pool, options) : Result<Filesystem>(made.error());
    if (!fs.ok()) why = fmt::format("{}: {} {}", pool, describe(fs.error().code), error_detail());
    unlink(pool.c_str());
    rmdir(own.c_str());
    if (fs.ok()) return std::move(*fs);
  }
  throw std::runtime_error("no throw-away pool could be made: " + why);
}

}  // namespace pmfs::tools
