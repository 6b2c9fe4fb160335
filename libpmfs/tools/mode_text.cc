#include "mode_text.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <time.h>

#include <unordered_map>

namespace pmfs::tools {

namespace {

constexpr i64 kNsPerSecond = 1'000'000'000;

char type_letter(u32 mode) {
  switch (type_of_mode(mode)) {
    case FileType::kNone:
      return '?';
    case FileType::kRegular:
      return '-';
    case FileType::kDirectory:
      return 'd';
    case FileType::kSymlink:
      return 'l';
    case FileType::kFifo:
      return 'p';
    case FileType::kCharDevice:
      return 'c';
    case FileType::kBlockDevice:
      return 'b';
    case FileType::kSocket:
      return 's';
  }
  return '?';
}

/// One of the three rwx groups; `special` is set-uid, set-gid or sticky, shown in place of x.
std::string rwx(u32 bits, bool special, char letter) {
  const bool execute = (bits & 1u) != 0;
  std::string text{(bits & 4u) != 0 ? 'r' : '-', (bits & 2u) != 0 ? 'w' : '-', execute ? 'x' : '-'};
  if (special) text[2] = execute ? letter : static_cast<char>(letter - 'a' + 'A');
  return text;
}

struct Broken {
  struct tm local {};
  i64 ns = 0;
};

Broken break_down(i64 ns) {
  Broken out;
  i64 seconds = ns / kNsPerSecond;
  out.ns = ns % kNsPerSecond;
  if (out.ns < 0) {
    out.ns += kNsPerSecond;
    --seconds;
  }
  const time_t when = seconds;
  localtime_r(&when, &out.local);
  return out;
}

std::string format_time(const char* format, const struct tm& local) {
  char text[64];
  return {text, strftime(text, sizeof text, format, &local)};
}

}  // namespace

std::string mode_text(u32 mode) {
  return type_letter(mode) + rwx(mode >> 6, (mode & S_ISUID) != 0, 's') + rwx(mode >> 3, (mode & S_ISGID) != 0, 's') +
         rwx(mode, (mode & S_ISVTX) != 0, 't');
}

const char* type_text(const Attributes& attributes) {
  switch (attributes.type()) {
    case FileType::kNone:
      return "unknown";
    case FileType::kRegular:
      return attributes.size_bytes == 0 ? "regular empty file" : "regular file";
    case FileType::kDirectory:
      return "directory";
    case FileType::kSymlink:
      return "symbolic link";
    case FileType::kFifo:
      return "fifo";
    case FileType::kCharDevice:
      return "character special file";
    case FileType::kBlockDevice:
      return "block special file";
    case FileType::kSocket:
      return "socket";
  }
  return "unknown";
}

const char* type_word(FileType type) {
  switch (type) {
    case FileType::kNone:
      return "none";
    case FileType::kRegular:
      return "regular";
    case FileType::kDirectory:
      return "directory";
    case FileType::kSymlink:
      return "symlink";
    case FileType::kFifo:
      return "fifo";
    case FileType::kCharDevice:
      return "char";
    case FileType::kBlockDevice:
      return "block";
    case FileType::kSocket:
      return "socket";
  }
  return "none";
}

std::string user_name(u32 uid) {
  static std::unordered_map<u32, std::string> known;
  const auto [slot, fresh] = known.try_emplace(uid);
  if (fresh) {
    const struct passwd* const entry = getpwuid(uid);
    slot->second = entry != nullptr ? entry->pw_name : fmt::format("{}", uid);
  }
  return slot->second;
}

std::string group_name(u32 gid) {
  static std::unordered_map<u32, std::string> known;
  const auto [slot, fresh] = known.try_emplace(gid);
  if (fresh) {
    const struct group* const entry = getgrgid(gid);
    slot->second = entry != nullptr ? entry->gr_name : fmt::format("{}", gid);
  }
  return slot->second;
}

std::string long_time(i64 ns) {
  const Broken when = break_down(ns);
  return format_time("%Y-%m-%d %H:%M:%S", when.local) + fmt::format(".{:09}", when.ns) + format_time(" %z", when.local);
}

std::string short_time(i64 ns, i64 now_ns) {
  constexpr i64 kHalfYearNs = 31'556'952 / 2 * kNsPerSecond;
  const bool recent = ns <= now_ns && ns > now_ns - kHalfYearNs;
  return format_time(recent ? "%b %e %H:%M" : "%b %e  %Y", break_down(ns).local);
}

}  // namespace pmfs::tools
