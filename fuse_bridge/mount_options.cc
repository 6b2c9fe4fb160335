// What -o says. Options of the mount table that are for mount(8) and its relatives are swallowed; what is not known is
// refused by name, since an option that does nothing is worse than an error.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuse_bridge/fuse_api.h"
#include "fuse_bridge/mount.h"

namespace pmfs::bridge {

namespace {

using Text = std::string_view;
constexpr bool kHasUring = PMFS_FUSE_HAS_URING;

/// For mount(8), systemd and their kin; nothing to do here. What needs no doing is here too: every change is durable
/// when its call returns, so `sync` and `dirsync` hold anyway.
bool is_for_others(Text option) {
  static constexpr std::array<Text, 13> kSwallowed{"defaults", "auto",  "noauto", "user",   "nouser",
                                                   "users",    "owner", "group",  "nofail", "_netdev",
                                                   "async",    "sync",  "dirsync"};
  for (const Text known : kSwallowed) {
    if (option == known) return true;
  }
  return option.starts_with("x-") || option.starts_with("X-") || option.starts_with("comment=") ||
         option.starts_with("user=");
}

/// A number of seconds, 0 or more.
bool parse_seconds(const std::string& text, double& out) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0) return false;
  out = value < kForever_s ? value : kForever_s;
  return true;
}

/// A user's or group's number. @return  false: none, or -1, which means "nobody said".
bool parse_id(const std::string& text, std::optional<u32>& out) {
  u32 id = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, id);
  if (error != std::errc() || stop != end || id == ~u32{0}) return false;
  out = id;
  return true;
}

std::string quoted(Text option) { return "'" + std::string(option) + "'"; }

/// @return  empty, or what is wrong.
std::string parse_one(Text option, MountOptions& options) {
  const std::size_t equals = option.find('=');
  const Text key = option.substr(0, equals);
  const std::string value(equals == Text::npos ? Text{} : option.substr(equals + 1));

  if (option == "ro")
    options.read_only = true;
  else if (option == "rw")
    options.read_only = false;
  else if (option == "noatime")
    options.atime = OpenOptions::Atime::kNone;
  else if (option == "relatime" || option == "atime")
    options.atime = OpenOptions::Atime::kRelative;
  else if (option == "strictatime")
    return "option 'strictatime': the kernel serves cached reads itself and reports no access; use relatime or noatime";
  else if (option == "dir_index")
    options.dir_index = true;
  else if (option == "nodir_index")
    options.dir_index = false;
  else if (option == "allow_other")
    options.allow_other = true;
  else if (option == "suid")
    options.suid = true;
  else if (option == "nosuid")
    options.suid = false;
  else if (option == "dev")
    options.dev = true;
  else if (option == "nodev")
    options.dev = false;
  else if (option == "exec")
    options.exec = true;
  else if (option == "noexec")
    options.exec = false;
  else if (key == "entry_timeout" || key == "attr_timeout" || key == "negative_timeout") {
    double& target = key == "entry_timeout"  ? options.timeouts.entry_s
                     : key == "attr_timeout" ? options.timeouts.attr_s
                                             : options.timeouts.negative_s;
    if (!parse_seconds(value, target)) return "option " + quoted(option) + ": a number of seconds is needed, 0 or more";
  } else if (key == "uid" || key == "gid") {
    if (!parse_id(value, key == "uid" ? options.owner.uid : options.owner.gid))
      return "option " + quoted(option) + ": a number is needed";
  } else if (option == "io_uring") {
    if (!kHasUring) return "option 'io_uring': needs libfuse 3.18 or later, and this pmfs was built with an older one";
    options.io_uring = true;
  } else if (option == "remount") {
    return "option 'remount': a mount cannot be changed; unmount it, and mount the pool with the other options";
  } else if (key == "resolver") {
    if (value == "walk")
      options.resolver = OpenOptions::Resolver::kWalk;
    else if (value == "stage")
      options.resolver = OpenOptions::Resolver::kStage;
    else if (value == "fullpath")
      options.resolver = OpenOptions::Resolver::kFullpath;
    else
      return "option " + quoted(option) + ": the choices are 'walk', 'stage' and 'fullpath'";
  } else if (key == "durability") {
    if (value != "relaxed") return "option " + quoted(option) + ": the only choice is 'relaxed'";
    options.relaxed = true;
  } else if (!option.empty() && !is_for_others(option) && !options.sloppy) {
    return "unknown mount option " + quoted(option);
  }
  return {};
}

}  // namespace

std::string parse_mount_options(std::string_view list, MountOptions& options) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (std::string wrong = parse_one(list.substr(0, comma), options); !wrong.empty()) return wrong;
    list = comma == Text::npos ? Text{} : list.substr(comma + 1);
  }
  return {};
}

}  // namespace pmfs::bridge
