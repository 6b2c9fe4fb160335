// The operations of the file system, as scenarios to crash.
#pragma once

#include "test/support/fs_scenario.h"

namespace pmfs::test {

const std::vector<Scenario>& scenarios();
std::vector<Scenario> scenarios(const std::string& group);

}  // namespace pmfs::test
