// The POSIX behaviour matrix: what a file system does in ordinary and odd cases, asked through a door (door.h). Nothing
// is expected here: two doors are asked the same, and must say the same. One of them is tmpfs, where Linux says what is
// right.
#pragma once

#include <string>
#include <vector>

#include "test/posix/door.h"

namespace pmfs::test {

/// What one door has said: by case, a line "what = answer" for each check.
class Log {
 public:
  void begin(const std::string& name) { cases_.push_back({name, {}}); }
  void check(const std::string& what, const std::string& answer) {
    cases_.back().lines.push_back(what + " = " + answer);
  }
  void check(const std::string& what, u64 answer) { check(what, std::to_string(answer)); }
  /// An errno, by its name.
  void error(const std::string& what, int error);

  struct Case {
    std::string name;
    std::vector<std::string> lines;
  };
  const std::vector<Case>& cases() const { return cases_; }
  u64 checks() const;

 private:
  std::vector<Case> cases_;
};

/// Tells `told` of the first difference in each case that has one. @return how many have.
u64 compare(const Log& expected, const Log& found, const std::function<void(const std::string&)>& told);

/// Runs all of it. The top is empty before, and afterwards.
void run_matrix(Door& door, Log& log);

}  // namespace pmfs::test
