#include "htree/fingerprint.h"

#include <immintrin.h>

#include "base/racy.h"

namespace pmfs::htree {

namespace {

constexpr u32 kBytes = 64;

PMFS_RACY_READS u64 equal_scalar(const u8* bytes, u8 wanted) {
  u64 found = 0;
  for (u32 i = 0; i < kBytes; ++i) found |= u64{bytes[i] == wanted} << i;
  return found;
}

PMFS_RACY_READS u64 equal_sse2(const u8* bytes, u8 wanted) {
  const __m128i all = _mm_set1_epi8(static_cast<char>(wanted));
  u64 found = 0;
  for (u32 i = 0; i < kBytes; i += 16) {
    const __m128i some = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes + i));
    found |= u64{static_cast<u32>(_mm_movemask_epi8(_mm_cmpeq_epi8(some, all)))} << i;
  }
  return found;
}

__attribute__((target("avx2"))) PMFS_RACY_READS u64 equal_avx2(const u8* bytes, u8 wanted) {
  const __m256i all = _mm256_set1_epi8(static_cast<char>(wanted));
  u64 found = 0;
  for (u32 i = 0; i < kBytes; i += 32) {
    const __m256i some = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes + i));
    found |= u64{static_cast<u32>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(some, all)))} << i;
  }
  return found;
}

}  // namespace

// One load and one test: the compiler's start-up code has asked the CPU once.
SearchPath best_search_path() { return __builtin_cpu_supports("avx2") ? SearchPath::kAvx2 : SearchPath::kSse2; }

u64 equal_bytes(const u8* bytes, u8 wanted) {
  return __builtin_cpu_supports("avx2") ? equal_avx2(bytes, wanted) : equal_sse2(bytes, wanted);
}

u64 equal_bytes(SearchPath path, const u8* bytes, u8 wanted) {
  switch (path) {
    case SearchPath::kScalar: return equal_scalar(bytes, wanted);
    case SearchPath::kSse2: return equal_sse2(bytes, wanted);
    case SearchPath::kAvx2: return equal_avx2(bytes, wanted);
  }
  return 0;
}

}  // namespace pmfs::htree
