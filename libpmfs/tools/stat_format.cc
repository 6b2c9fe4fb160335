#include "stat_format.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "mode_text.h"
#include "report.h"

namespace pmfs::tools {

namespace {

struct Directive {
  bool left = false, zeros = false, alternate = false;
  std::size_t width = 0;
  bool has_precision = false, precision_given = false;
  std::size_t precision = 0;
};

std::string padded(const Directive& d, std::string text, bool number) {
  if (text.size() >= d.width) return text;
  const std::size_t missing = d.width - text.size();
  if (d.left) return text + std::string(missing, ' ');
  return std::string(missing, number && d.zeros ? '0' : ' ') + text;
}

std::string quoted(const std::string& name) { return fmt::format("'{}'", printable(name)); }

/// Seconds since 1970, rounded down, with as many digits behind the point as the precision says: nine if it is empty.
std::string seconds(const Directive& d, i64 ns) {
  constexpr i64 kSecond = 1'000'000'000;
  i64 whole = ns / kSecond, rest = ns % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --whole;
  }
  if (!d.has_precision) return std::to_string(whole);
  const std::size_t digits = d.precision_given ? d.precision : 9;
  std::string fraction = fmt::format("{:09}", rest);
  fraction.resize(digits, '0');
  return digits == 0 ? std::to_string(whole) : fmt::format("{}.{}", whole, fraction);
}

/// One directive's value. @param which  'H' or 'L' of %Hr and %Lr, or 0.
std::string value(const Described& object, const Directive& d, char which, char letter) {
  const Attributes& a = object.attributes;
  const auto number = [&](u64 n) { return padded(d, std::to_string(n), true); };
  const auto text = [&](std::string s) { return padded(d, std::move(s), false); };
  const auto time = [&](i64 ns) { return padded(d, seconds(d, ns), true); };
  if (which != 0) return letter != 'r' ? text("?") : number(which == 'H' ? major(a.rdev) : minor(a.rdev));
  switch (letter) {
    case 'a': return padded(d, fmt::format("{}{:o}", d.alternate ? "0" : "", a.mode & 07777u), true);
    case 'A': return text(mode_text(a.mode));
    case 'b': return number(a.blocks_512);
    case 'B': return number(512);
    case 'f': return padded(d, fmt::format("{}{:x}", d.alternate ? "0x" : "", a.mode), true);
    case 'F': return text(type_text(a));
    case 'g': return number(a.gid);
    case 'G': return text(group_name(a.gid));
    case 'h': return number(a.links);
    case 'i': return number(to_u64(a.ino));
    case 'n': return text(object.path);
    case 'N': return text(quoted(object.path) + (a.type() == FileType::kSymlink ? " -> " + quoted(object.target) : ""));
    case 'o': return number(kBlockBytes);
    case 'r': return number(a.rdev);
    case 's': return number(a.size_bytes);
    case 't': return padded(d, fmt::format("{:x}", major(a.rdev)), true);
    case 'T': return padded(d, fmt::format("{:x}", minor(a.rdev)), true);
    case 'u': return number(a.uid);
    case 'U': return text(user_name(a.uid));
    case 'w': return text(long_time(a.birth_ns));
    case 'W': return time(a.birth_ns);
    case 'x': return text(long_time(a.atime_ns));
    case 'X': return time(a.atime_ns);
    case 'y': return text(long_time(a.mtime_ns));
    case 'Y': return time(a.mtime_ns);
    case 'z': return text(long_time(a.ctime_ns));
    case 'Z': return time(a.ctime_ns);
    default: return text("?");
  }
}

std::size_t take_number(std::string_view format, std::size_t& at) {
  std::size_t number = 0;
  for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at) {
    number = std::min<std::size_t>(number * 10 + static_cast<std::size_t>(format[at] - '0'), 4096);
  }
  return number;
}

}  // namespace

std::string stat_text(const Described& object) {
  const Attributes& a = object.attributes;
  const bool device = a.type() == FileType::kCharDevice || a.type() == FileType::kBlockDevice;
  Described shown = object;
  shown.path = printable(object.path);
  if (a.type() == FileType::kSymlink) shown.path += " -> " + printable(object.target);
  return stat_text(shown,
                   "  File: %n\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: ?\tInode: %-11i Links: " +
                       std::string(device ? "%-5h Device type: %Hr,%Lr" : "%h") +
                       "\nAccess: (%04a/%10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\n"
                       "Access: %x\nModify: %y\nChange: %z\n Birth: %w\n");
}

std::string stat_text(const Described& object, std::string_view format) {
  std::string text;
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      text += format[at++];
      continue;
    }
    const std::size_t begin = at++;
    Directive d;
    for (; at < format.size() && std::string_view("-0#+ '").find(format[at]) != std::string_view::npos; ++at) {
      d.left = d.left || format[at] == '-';
      d.zeros = d.zeros || format[at] == '0';
      d.alternate = d.alternate || format[at] == '#';
    }
    d.width = take_number(format, at);
    if (at < format.size() && format[at] == '.') {
      d.has_precision = true;
      const std::size_t digits = ++at;
      d.precision = take_number(format, at);
      d.precision_given = at != digits;
    }
    if (at == format.size()) {  // nothing behind it: as it stands
      text += format.substr(begin);
      break;
    }
    char which = 0;
    if ((format[at] == 'H' || format[at] == 'L') && at + 1 < format.size()) which = format[at++];
    const char letter = format[at++];
    text += letter == '%' && which == 0 ? "%" : value(object, d, which, letter);
  }
  return text;
}

}  // namespace pmfs::tools
