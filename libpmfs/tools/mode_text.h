// Modes, owners and times as coreutils shows them.
#pragma once

#include <string>

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

/// "drwxr-xr-x", ten characters, set-id and sticky bits included.
std::string mode_text(u32 mode);

/// "regular file", "symbolic link", ...; an empty regular file is "regular empty file".
const char* type_text(const Attributes& attributes);

/// For JSON: "regular", "directory", "symlink", "fifo", "char", "block", "socket", "none".
const char* type_word(FileType type);

/// The host's name for an id, or the number.
std::string user_name(u32 uid);
std::string group_name(u32 gid);

/// "2024-02-29 12:00:00.123456789 +0100", in the local zone, as stat(1).
std::string long_time(i64 ns);

/// "Feb 29 12:00", or "Feb 29  2023" when half a year or more away from `now_ns`, as ls(1) in the C locale.
std::string short_time(i64 ns, i64 now_ns);

}  // namespace pmfs::tools
