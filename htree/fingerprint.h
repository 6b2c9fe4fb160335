// The search through a leaf's fingerprints: which of 64 bytes are equal to one byte. Three ways, one answer.
//
// Thread rules: any thread. The bytes may be written meanwhile: then the answer for those written may be either.
#pragma once

#include "pmfs/types.h"

namespace pmfs::htree {

enum class SearchPath : u8 { kScalar, kSse2, kAvx2 };

/// What this CPU does fastest.
SearchPath best_search_path();

/// Bit i: bytes[i] == wanted.
/// @param bytes  64 of them, 64-byte aligned.
u64 equal_bytes(const u8* bytes, u8 wanted);
/// The same by one way, for comparison. REQUIRES: the CPU has it, that is path <= best_search_path().
u64 equal_bytes(SearchPath path, const u8* bytes, u8 wanted);

}  // namespace pmfs::htree
