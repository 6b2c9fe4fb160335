// Text out of values, for what tests print.
#pragma once

#include <sstream>
#include <string>

#include "pmfs/types.h"

namespace pmfs::test {

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

inline std::string hex(u64 value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

}  // namespace pmfs::test
