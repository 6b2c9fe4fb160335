// What is in the golden image.
#pragma once

#include "pmfs/pmfs.hpp"

namespace pmfs::test {

inline constexpr u64 kGoldenBytes = u64{8} << 20;

/// Fills a new file system with at least one of everything that the format knows, with a clock that stands still.
void fill_golden(Filesystem& fs);

/// All that can be seen of a file system, as text. Says the same of the same bytes on every machine.
std::string golden_manifest(Filesystem& fs);

}  // namespace pmfs::test
