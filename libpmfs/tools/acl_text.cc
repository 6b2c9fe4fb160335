#include "acl_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "mode_text.h"
#include "owner_text.h"

namespace pmfs::tools {

namespace {

std::string permissions_text(u32 permissions) {
  return fmt::format("{}{}{}", (permissions & 4) != 0 ? 'r' : '-', (permissions & 2) != 0 ? 'w' : '-',
                     (permissions & 1) != 0 ? 'x' : '-');
}

const char* tag_text(AclTag tag) {
  switch (tag) {
    case AclTag::kUserObj:
    case AclTag::kUser: return "user";
    case AclTag::kGroupObj:
    case AclTag::kGroup: return "group";
    case AclTag::kMask: return "mask";
    case AclTag::kOther: return "other";
  }
  return "?";
}

bool is_masked(AclTag tag) { return tag == AclTag::kUser || tag == AclTag::kGroup || tag == AclTag::kGroupObj; }

AclEntry* find(Acl& acl, AclTag tag, u32 id = 0) {
  const auto at = std::find_if(acl.begin(), acl.end(), [&](const AclEntry& e) { return e.tag == tag && e.id == id; });
  return at == acl.end() ? nullptr : &*at;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Takes the part before the next colon off `rest`. @return false: there is no colon; then it is all of it.
bool take_field(std::string_view& rest, std::string_view& field) {
  const std::size_t colon = rest.find(':');
  field = rest.substr(0, colon);
  rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
  return colon != std::string_view::npos;
}

bool is_word(std::string_view text, std::string_view word) { return text == word || text == word.substr(0, 1); }

/// One octal digit, or letters of rwxX-, each at most once but the minus.
bool parse_permissions(std::string_view text, AclStep& step) {
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '7') {
    step.entry.permissions = static_cast<u32>(text[0] - '0');
    return true;
  }
  if (text.empty() || text.size() > 4) return false;
  for (const char letter : text) {
    const u32 bit = letter == 'r' ? 4 : letter == 'w' ? 2 : letter == 'x' ? 1 : 0;
    if (letter == 'X') {
      if (step.execute_if_any) return false;
      step.execute_if_any = true;
    } else if ((bit == 0 && letter != '-') || (step.entry.permissions & bit) != 0) {
      return false;
    }
    step.entry.permissions |= bit;
  }
  return true;
}

bool parse_entry(std::string_view text, AclStep& step, bool into_defaults) {
  std::string_view rest = text, field;
  bool more = take_field(rest, field);
  if (!into_defaults && more && is_word(field, "default")) {
    step.list = AclKind::kDefault;
    more = take_field(rest, field);
  }
  if (into_defaults) step.list = AclKind::kDefault;
  const bool set = step.action == AclStep::Action::kSet;
  if (is_word(field, "mask") || is_word(field, "other")) {
    step.entry.tag = field[0] == 'm' ? AclTag::kMask : AclTag::kOther;
    if (rest.starts_with(':')) rest.remove_prefix(1);  // an id may stand here, of nobody
  } else {
    const bool group = more && is_word(field, "group");
    if (group || (more && is_word(field, "user"))) more = take_field(rest, field);
    if (set && !more) return false;
    step.entry.tag = group ? AclTag::kGroupObj : AclTag::kUserObj;
    if (!field.empty()) {
      const std::optional<u32> id = group ? group_id(std::string(field)) : user_id(std::string(field));
      if (!id) return false;
      step.entry.tag = group ? AclTag::kGroup : AclTag::kUser;
      step.entry.id = *id;
    }
  }
  return set ? parse_permissions(rest, step) : rest.empty();
}

/// The union of what the mask limits.
u32 union_of_masked(const Acl& acl) {
  u32 all = 0;
  for (const AclEntry& e : acl)
    if (is_masked(e.tag)) all |= e.permissions;
  return all;
}

void strip(Acl& acl) {
  if (const AclEntry* const mask = find(acl, AclTag::kMask); mask != nullptr) {
    if (AclEntry* const group = find(acl, AclTag::kGroupObj); group != nullptr) group->permissions &= mask->permissions;
  }
  std::erase_if(acl, [](const AclEntry& e) {
    return e.tag == AclTag::kUser || e.tag == AclTag::kGroup || e.tag == AclTag::kMask;
  });
}

void take(const AclStep& step, bool is_directory, Acl& acl) {
  switch (step.action) {
    case AclStep::Action::kClear: return acl.clear();
    case AclStep::Action::kStrip: return strip(acl);
    case AclStep::Action::kUnset:
      std::erase_if(acl, [&](const AclEntry& e) { return e.tag == step.entry.tag && e.id == step.entry.id; });
      return;
    case AclStep::Action::kSet: break;
  }
  AclEntry entry = step.entry;
  const bool executable =
      std::any_of(acl.begin(), acl.end(), [](const AclEntry& e) { return (e.permissions & 1) != 0; });
  if (step.execute_if_any && (is_directory || executable)) entry.permissions |= 1;
  if (AclEntry* const there = find(acl, entry.tag, entry.id); there != nullptr) {
    *there = entry;
  } else {
    acl.push_back(entry);
  }
}

void complete_mask(Acl& acl, bool named_by_step, bool recalculate) {
  if (acl.empty() || named_by_step) return;
  AclEntry* const mask = find(acl, AclTag::kMask);
  const bool named = std::any_of(acl.begin(), acl.end(),
                                 [](const AclEntry& e) { return e.tag == AclTag::kUser || e.tag == AclTag::kGroup; });
  if (mask != nullptr) {
    if (recalculate) mask->permissions = union_of_masked(acl);
  } else if (named) {
    const AclEntry* const group = find(acl, AclTag::kGroupObj);
    const u32 kept = group == nullptr ? 0 : group->permissions;
    acl.push_back({AclTag::kMask, recalculate ? union_of_masked(acl) : kept, 0});
  }
}

}  // namespace

std::string acl_text(const Acl& acl, std::string_view prefix, bool numeric) {
  u32 mask = 7;
  for (const AclEntry& e : acl)
    if (e.tag == AclTag::kMask) mask = e.permissions;
  std::string text;
  for (const AclEntry& e : acl) {
    std::string who;
    if (e.tag == AclTag::kUser) who = numeric ? std::to_string(e.id) : user_name(e.id);
    if (e.tag == AclTag::kGroup) who = numeric ? std::to_string(e.id) : group_name(e.id);
    text += fmt::format("{}{}:{}:{}", prefix, tag_text(e.tag), who, permissions_text(e.permissions));
    if (is_masked(e.tag) && (e.permissions & ~mask) != 0) {
      text += fmt::format("\t#effective:{}", permissions_text(e.permissions & mask));
    }
    text += '\n';
  }
  return text;
}

bool parse_acl_entries(std::string_view text, AclStep::Action action, bool into_defaults, std::vector<AclStep>& steps,
                       std::string& wrong) {
  while (!text.empty()) {
    const std::size_t line_end = text.find('\n');
    std::string_view line = text.substr(0, line_end);
    text = line_end == std::string_view::npos ? std::string_view{} : text.substr(line_end + 1);
    line = trimmed(line.substr(0, line.find('#')));
    while (!line.empty()) {
      const std::size_t comma = line.find(',');
      const std::string_view entry = trimmed(line.substr(0, comma));
      line = comma == std::string_view::npos ? std::string_view{} : line.substr(comma + 1);
      AclStep step;
      step.action = action;
      if (!parse_entry(entry, step, into_defaults)) {
        wrong = entry;
        return false;
      }
      steps.push_back(step);
    }
  }
  return true;
}

void apply_acl_steps(const std::vector<AclStep>& steps, bool is_directory, bool recalculate, AclPair& lists) {
  bool access_mask = false, default_mask = false, access_changed = false, defaults_changed = false;
  for (const AclStep& step : steps) {
    const bool access = step.list == AclKind::kAccess;
    const bool on_entry = step.action == AclStep::Action::kSet || step.action == AclStep::Action::kUnset;
    take(step, is_directory, access ? lists.access : lists.defaults);
    (access ? access_changed : defaults_changed) = true;
    if (on_entry && step.entry.tag == AclTag::kMask) (access ? access_mask : default_mask) = true;
  }
  if (access_changed) complete_mask(lists.access, access_mask, recalculate);
  if (defaults_changed && !lists.defaults.empty()) {
    for (const AclTag tag : {AclTag::kUserObj, AclTag::kGroupObj, AclTag::kOther}) {
      if (find(lists.defaults, tag) != nullptr) continue;
      if (const AclEntry* const from = find(lists.access, tag); from != nullptr) lists.defaults.push_back(*from);
    }
    complete_mask(lists.defaults, default_mask, recalculate);
  }
}

}  // namespace pmfs::tools
