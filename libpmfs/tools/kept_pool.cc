#include "kept_pool.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace pmfs::tools {

namespace {

std::string folder_or_default(const std::string& folder) {
  if (!folder.empty()) return folder;
  if (access("/dev/shm", W_OK) == 0) return "/dev/shm";
  const char* const tmpdir = std::getenv("TMPDIR");
  return tmpdir != nullptr && *tmpdir != '\0' ? tmpdir : "/tmp";
}

[[noreturn]] void fail(const std::string& pool, const Error& error) {
  throw std::runtime_error(fmt::format("{}: {} {}", pool, describe(error.code), error_detail()));
}

}  // namespace

KeptPool::KeptPool(const std::string& folder, u64 bytes) {
  setenv("PMEM_IS_PMEM_FORCE", "1", 0);
  std::string name = folder_or_default(folder) + "/pmfs-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": cannot be made");
  folder_ = name;
  pool_ = folder_ + "/pool";
  FormatOptions format;
  format.size_bytes = bytes;
  if (const Result<void> made = Filesystem::format(pool_, format); !made.ok()) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    fail(pool_, made.error());
  }
}

KeptPool::~KeptPool() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Filesystem KeptPool::open(const OpenOptions& options) const {
  Result<Filesystem> fs = Filesystem::open(pool_, options);
  if (!fs.ok()) fail(pool_, fs.error());
  return std::move(*fs);
}

}  // namespace pmfs::tools
