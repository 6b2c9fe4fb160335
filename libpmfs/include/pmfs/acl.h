// POSIX access control lists, as values.
// Source: POSIX.1e draft 17; acl(5).
#pragma once

#include <vector>

#include "pmfs/types.h"

namespace pmfs {

/// Which of an inode's two lists. Only directories have a default one: what is made in them begins with it.
enum class AclKind : u8 { kAccess = 1, kDefault = 2 };

/// Whom an entry speaks of; in this order in a list.
enum class AclTag : u8 {
  kUserObj = 1,  ///< the owner
  kUser,         ///< the user `id`
  kGroupObj,     ///< the owning group
  kGroup,        ///< the group `id`
  kMask,         ///< the most that kUser, kGroupObj and kGroup entries can give
  kOther,
};

struct AclEntry {
  AclTag tag{};
  u32 permissions = 0;  ///< a sum of 4 read, 2 write, 1 execute
  u32 id = 0;           ///< of kUser and kGroup; otherwise 0

  bool operator==(const AclEntry&) const = default;
};

/// A list is valid if it has one entry each of kUserObj, kGroupObj and kOther, any number of kUser and kGroup entries
/// of different ids, and, if it has any of those, one kMask. An empty one stands for none.
using Acl = std::vector<AclEntry>;

}  // namespace pmfs
