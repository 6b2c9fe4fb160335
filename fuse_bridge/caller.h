// caller: what a request does not say of who sent it, from /proc: the groups, the capabilities, the mounts it sees.
// The caller's thread waits for the answer, so what /proc says of it is true while we read.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "pmfs/types.h"

namespace pmfs::bridge {

struct CallerDetails {
  std::vector<u32> groups;      ///< supplementary
  bool may_search_all = false;  ///< CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE
  bool may_change_all = false;  ///< CAP_DAC_OVERRIDE
};

/// Whether thread `tid` sees the mounts that this process sees. No: also when it cannot be told.
bool sees_our_mounts(pid_t tid);

/// @return  nothing when it cannot be told. Capabilities of another user namespace are none here.
std::optional<CallerDetails> details_of(pid_t tid);

}  // namespace pmfs::bridge
