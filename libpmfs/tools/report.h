// What the commands say when something fails, and the exit codes that go with it. Everything here goes to stderr, as
//   pmfs: SUBJECT: what happened; what to do next
// with the control characters of names made visible, so that one message is always one line.
#pragma once

#include <string>
#include <string_view>

#include "pmfs/result.h"

namespace pmfs::tools {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitSignal = 128;  ///< and the signal's number: stopped by it, in order

/// `check` speaks the codes of fsck(8).
inline constexpr int kCheckClean = 0;
inline constexpr int kCheckCorrected = 1;  ///< not used yet
inline constexpr int kCheckErrors = 4;     ///< found and left
inline constexpr int kCheckOperational = 8;
inline constexpr int kCheckUsage = 16;

/// A name fit for a message or a terminal: control characters as \ooo, everything else as it is.
std::string printable(std::string_view name);

/// A library's error about `subject` (a pool, or a path in it).
void report(std::string_view subject, const Error& error);

/// As above, for a failed open or format: adds what error_detail() knows. Call it before any other call into the
/// library.
void report_pool(std::string_view pool, const Error& error);

/// A failed system call on the host's side. @param doing  what was tried, e.g. "cannot open it".
void report_errno(std::string_view subject, std::string_view doing, int error_number);

/// Anything else.
void report_text(std::string_view subject, std::string_view text);

/// Writes what stdout still holds. @return `exit_code`, or kExitFailure (reported) if stdout did not take everything.
int finish_stdout(int exit_code);

}  // namespace pmfs::tools
