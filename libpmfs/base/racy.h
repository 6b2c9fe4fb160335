// Reading bytes that another thread may be writing. Whoever does so uses nothing of what he read before a version has
// told him that nobody wrote (base/version.h).
//
// ThreadSanitizer is told to look away from these reads, and from nothing else: words are read as atomics (base/le.h),
// and that the versions are asked is what test/model/readers_test.cc is about.
#pragma once

#include <cstddef>
#include <cstring>

#if defined(__SANITIZE_THREAD__)
#define PMFS_RACY_READS __attribute__((no_sanitize("thread"), noinline))
#define PMFS_RACY_BY_BYTE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PMFS_RACY_READS __attribute__((no_sanitize("thread"), noinline))
#define PMFS_RACY_BY_BYTE 1
#endif
#endif
#ifndef PMFS_RACY_READS
#define PMFS_RACY_READS
#define PMFS_RACY_BY_BYTE 0
#endif

namespace pmfs {

#if PMFS_RACY_BY_BYTE  // memcpy and memcmp would be the sanitizer's own
PMFS_RACY_READS inline void racy_copy(void* own, const void* shared, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    static_cast<volatile char*>(own)[i] = static_cast<const volatile char*>(shared)[i];
}
PMFS_RACY_READS inline bool racy_equal(const void* own, const void* shared, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (static_cast<const volatile char*>(own)[i] != static_cast<const volatile char*>(shared)[i]) return false;
  return true;
}
#else
inline void racy_copy(void* own, const void* shared, std::size_t bytes) { std::memcpy(own, shared, bytes); }
inline bool racy_equal(const void* own, const void* shared, std::size_t bytes) {
  return std::memcmp(own, shared, bytes) == 0;
}
#endif

}  // namespace pmfs
