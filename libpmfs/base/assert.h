// PMFS_ASSERT: our own code is wrong. On in release builds too: stop before storing more. Never for what a pool says;
// that is input, and answered with kCorrupt.
#pragma once

namespace pmfs {
[[noreturn]] void assert_failed(const char* condition, const char* file, int line);
}

#define PMFS_ASSERT(condition) \
  (static_cast<bool>(condition) ? void(0) : ::pmfs::assert_failed(#condition, __FILE__, __LINE__))
