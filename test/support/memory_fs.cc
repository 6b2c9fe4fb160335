#include "test/support/memory_fs.h"

#include <sys/mman.h>

namespace pmfs::test {

namespace {
constexpr PoolOff kLocatorOff{kBlockBytes};
constexpr u64 kRegionOff = 2 * kBlockBytes;
}  // namespace

MemoryFs::MemoryFs(u64 bytes, OpenOptions options, u32 lanes) {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(base != MAP_FAILED);
  memory_ = {static_cast<std::byte*>(base), bytes, Durability::kVolatile};
  FormatParameters parameters;
  parameters.regions = {{kRegionOff, bytes - kRegionOff}};
  parameters.locator_off = kLocatorOff;
  parameters.lane_count = lanes;
  must(format_memory(memory_, parameters));
  fs_ = must(open_memory(memory_, kLocatorOff, options));
}

MemoryFs::~MemoryFs() {
  fs_ = Filesystem();
  ::munmap(memory_.base, memory_.size_bytes);
}

void MemoryFs::reopen(OpenOptions options) {
  must(fs_.close());
  fs_ = must(open_memory(memory_, kLocatorOff, options));
}

void MemoryFs::reopen_after_kill(OpenOptions options) {
  // The old one is leaked, not destroyed: its destructor would close it cleanly.
  static auto* killed = new std::vector<Filesystem>;
  killed->push_back(std::move(fs_));
  fs_ = must(open_memory(memory_, kLocatorOff, options));
}

void MemoryFs::require_clean() {
  const CheckReport report = must(check(fs_));
  for (const Finding& finding : report.findings) UNSCOPED_INFO(finding.code << ": " << finding.text);
  REQUIRE(report.findings.empty());
}

}  // namespace pmfs::test
