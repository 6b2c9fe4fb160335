// ACLs as getfacl(1) shows them and setfacl(1) takes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

/// The entries, a line each: "user:alice:rw-", and what the mask takes away behind them.
/// @param prefix  of each line, "default:" or nothing.
std::string acl_text(const Acl& acl, std::string_view prefix, bool numeric);

/// Both lists of one object. `defaults` is empty without a default one.
struct AclPair {
  Acl access;
  Acl defaults;
};

/// One thing that is done to a list.
struct AclStep {
  enum class Action : u8 {
    kSet,    ///< gives `entry` to the list, in place of one for the same
    kUnset,  ///< removes the entry for the same tag and id, if there is one
    kStrip,  ///< leaves the entries that the mode stands for, the group's less what the mask took from it
    kClear,  ///< removes them all
  } action = Action::kSet;
  AclKind list = AclKind::kAccess;
  AclEntry entry = {};
  bool execute_if_any = false;  ///< X: execute for directories, and where anybody may execute already
};

/// Reads entries like "u:alice:rw,d:g:staff:r-x,m::rx", separated by commas, or by lines with # for comments.
/// @param action         kSet; kUnset: entries carry no permissions.
/// @param into_defaults  entries without "default:" are for the default list, and none may carry it.
/// @param wrong          gets the entry that makes no sense.
/// @return  false: `wrong` is said. Users and groups are those of the host, or numbers.
bool parse_acl_entries(std::string_view text, AclStep::Action action, bool into_defaults, std::vector<AclStep>& steps,
                       std::string& wrong);

/// Takes the steps in their order, and completes the lists as setfacl(1) does: entries that a new default list lacks
/// come from the access list; the mask becomes the union of what it limits, unless a step named it.
/// @param recalculate  false: a mask that is there stays.
void apply_acl_steps(const std::vector<AclStep>& steps, bool is_directory, bool recalculate, AclPair& lists);

}  // namespace pmfs::tools
