#include "owner_text.h"

#include <grp.h>
#include <pwd.h>

#include <charconv>
#include <string_view>

namespace pmfs::tools {

namespace {

std::optional<u32> id_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  u32 id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || id == ~u32{0}) return std::nullopt;
  return id;
}

}  // namespace

std::optional<u32> user_id(const std::string& text) {
  const struct passwd* const known = getpwnam(text.c_str());
  return known != nullptr ? std::optional<u32>(known->pw_uid) : id_number(text);
}

std::optional<u32> group_id(const std::string& text) {
  const struct group* const known = getgrnam(text.c_str());
  return known != nullptr ? std::optional<u32>(known->gr_gid) : id_number(text);
}

}  // namespace pmfs::tools
