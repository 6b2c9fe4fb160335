#include "mode_change.h"

#include <sys/stat.h>

namespace pmfs::tools {

namespace {

constexpr u32 kAllBits = 07777;
constexpr u32 kSetIds = S_ISUID | S_ISGID;

/// The bits that belong to one of u, g, o and a; 0 for other letters.
u32 bits_of(char who) {
  switch (who) {
    case 'u': return S_ISUID | S_IRWXU;
    case 'g': return S_ISGID | S_IRWXG;
    case 'o': return S_ISVTX | S_IRWXO;
    case 'a': return kAllBits;
    default: return 0;
  }
}

/// The bits that a permission's letter stands for, everybody's; 0 for other letters.
u32 bits_of_permission(char letter) {
  switch (letter) {
    case 'r': return 0444;
    case 'w': return 0222;
    case 'x': return 0111;
    case 's': return kSetIds;
    case 't': return S_ISVTX;
    default: return 0;
  }
}

bool is_operation(char c) { return c == '+' || c == '-' || c == '='; }

/// rwx that one of user, group and other has in `mode`, given to all three.
u32 spread(u32 mode, u32 from) {
  const u32 own = mode & from & 0777u;
  u32 all = 0;
  for (const u32 permission : {0444u, 0222u, 0111u})
    if ((own & permission) != 0) all |= permission;
  return all;
}

}  // namespace

std::optional<ModeChange> ModeChange::parse(std::string_view text) {
  ModeChange change;
  if (!text.empty() && text.find_first_not_of("01234567") == std::string_view::npos) {
    u32 mode = 0;
    for (const char digit : text) {
      mode = mode * 8 + static_cast<u32>(digit - '0');
      if (mode > kAllBits) return std::nullopt;
    }
    change.steps_.push_back({'=', kAllBits, mode, false, false, text.size() < 5 ? mode & kSetIds : kSetIds});
    return change;
  }
  for (std::size_t begin = 0;;) {
    const std::size_t comma = text.find(',', begin);
    if (!parse_clause(text.substr(begin, comma - begin), change.steps_)) return std::nullopt;
    if (comma == std::string_view::npos) return change;
    begin = comma + 1;
  }
}

bool ModeChange::parse_clause(std::string_view clause, std::vector<Step>& steps) {
  std::size_t at = 0;
  u32 affected = 0;
  while (at < clause.size() && bits_of(clause[at]) != 0) affected |= bits_of(clause[at++]);
  if (at == clause.size()) return false;
  while (at < clause.size()) {
    if (!is_operation(clause[at])) return false;
    Step step;
    step.operation = clause[at++];
    step.affected = affected;
    if (at < clause.size() && (clause[at] == 'u' || clause[at] == 'g' || clause[at] == 'o')) {
      step.copy = true;
      step.bits = bits_of(clause[at++]);
    } else {
      for (; at < clause.size() && !is_operation(clause[at]); ++at) {
        const u32 bits = bits_of_permission(clause[at]);
        if (bits == 0 && clause[at] != 'X') return false;
        step.bits |= bits;
        step.execute_if_any = step.execute_if_any || clause[at] == 'X';
      }
      step.mentioned = step.bits & (affected != 0 ? affected : kAllBits) & kSetIds;
    }
    steps.push_back(step);
  }
  return true;
}

u32 ModeChange::apply(u32 mode, bool is_directory, u32 umask, u32* decided) const {
  mode &= kAllBits;
  u32 bits_decided = 0;
  for (const Step& step : steps_) {
    const u32 kept = is_directory ? kSetIds & ~step.mentioned : 0;
    u32 bits = step.copy ? spread(mode, step.bits) : step.bits;
    if (step.execute_if_any && (is_directory || (mode & 0111u) != 0)) bits |= 0111u;
    bits &= (step.affected != 0 ? step.affected : ~umask) & ~kept;
    if (step.operation == '+') mode |= bits;
    if (step.operation == '-') mode &= ~bits;
    const u32 left = (step.affected != 0 ? ~step.affected : 0) | kept;  // alone, by =
    if (step.operation == '=') mode = (mode & left) | bits;
    mode &= kAllBits;
    bits_decided |= step.operation == '=' ? kAllBits & ~left : bits;
  }
  if (decided != nullptr) *decided = bits_decided;
  return mode;
}

}  // namespace pmfs::tools
