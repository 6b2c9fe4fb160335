// Users and groups as people write them: names of the host, or numbers.
#pragma once

#include <optional>
#include <string>

#include "pmfs/types.h"

namespace pmfs::tools {

/// A name goes before a number; a plus says that it is one. Nothing: neither.
std::optional<u32> user_id(const std::string& text);
std::optional<u32> group_id(const std::string& text);

}  // namespace pmfs::tools
