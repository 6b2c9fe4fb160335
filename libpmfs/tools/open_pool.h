// Opening and closing a pool, with the error said.
#pragma once

#include <optional>
#include <string>

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

/// How long commands wait for a pool that is open elsewhere, in milliseconds: the lock of a server that was killed a
/// moment ago is not free yet.
inline constexpr u32 kBusyWaitMs = 1000;

/// Opens in private pages: nothing reaches the medium. Nothing on failure, which has been reported.
std::optional<Filesystem> open_privately(const std::string& pool);

/// Opens for looking: in private pages, or, on a device DAX, which has none, as a mount would, without access times.
/// Nothing on failure, which has been reported.
std::optional<Filesystem> open_for_reading(const std::string& pool);

/// Opens for writing, which also recovers. Nothing on failure, which has been reported.
std::optional<Filesystem> open_for_writing(const std::string& pool);

/// Closes. @return kExitFailure (reported) if that failed, else `exit_code`.
int close_pool(Filesystem& fs, const std::string& pool, int exit_code);

/// The one who runs the command, as owner of what it creates. Access is not checked: who can open the pool file can do
/// everything to it anyway.
Credentials operator_credentials();

}  // namespace pmfs::tools
