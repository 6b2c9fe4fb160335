// Sizes as people write them. K, M, G and T are powers of 1024.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pmfs/types.h"

namespace pmfs::tools {

/// "4096", "64M", "1G", "1GiB"; the letter in either case. Nothing for anything else, and for what exceeds 63 bits.
std::optional<u64> parse_size(std::string_view text);

/// "512 B", "1.0 GiB": three digits or so, for reading.
std::string size_text(u64 bytes);

/// "512", "1.5K", "234M", rounded up, as `ls -h` has it.
std::string short_size_text(u64 bytes);

}  // namespace pmfs::tools
