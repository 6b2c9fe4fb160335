// Modes as chmod(1) takes them: octal, or symbolic like u+x,g=u,o-rwx.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "pmfs/types.h"

namespace pmfs::tools {

/// What is to become of a mode.
class ModeChange {
 public:
  /// @return nothing: that is no mode.
  static std::optional<ModeChange> parse(std::string_view text);

  /// The permission, set-id and sticky bits that `mode` becomes.
  /// @param is_directory  then X means x, and set-id bits stay that are not mentioned: by an octal mode of five or more
  ///                      digits, or by a symbolic s.
  /// @param umask         bits that a clause without u, g, o and a leaves alone.
  /// @param decided       if given: gets the bits that the change speaks of, whatever it makes of them.
  /// Source: POSIX.1-2017 chmod (the utility), with the rules of GNU coreutils for set-id bits of directories.
  u32 apply(u32 mode, bool is_directory, u32 umask, u32* decided = nullptr) const;

 private:
  struct Step {
    char operation = '=';  ///< + - =
    u32 affected = 0;      ///< the bits of those named; 0: nobody was named
    u32 bits = 0;          ///< kCopy: the three bits, of user, group or other, that are copied
    bool execute_if_any = false;
    bool copy = false;
    u32 mentioned = 0;  ///< set-id bits that a directory does not keep
  };
  static bool parse_clause(std::string_view clause, std::vector<Step>& steps);
  std::vector<Step> steps_;
};

}  // namespace pmfs::tools
