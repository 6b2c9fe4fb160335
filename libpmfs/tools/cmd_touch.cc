// pmfs touch, truncate: times and sizes in an unmounted pool, as the tools of those names.
#include <fcntl.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "commands.h"
#include "pool_work.h"
#include "report.h"
#include "size_text.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::vector<std::string> paths;
  std::string text;       ///< of touch a date, of truncate a size
  std::string reference;  ///< whose times
  bool only_access = false;
  bool only_modification = false;
  bool no_create = false;
  bool no_follow = false;
};

/// Makes an empty file unless something is there. @return nothing: it is missing, and shall be.
Result<std::optional<Attributes>> find_or_create(Filesystem& fs, const std::string& path, const Options& options) {
  const Follow follow = options.no_follow ? Follow::kNo : Follow::kYes;
  const Result<Attributes> found = fs.stat(path, Credentials::root(), follow);
  if (found.ok()) return std::optional(*found);
  if (found.error().code != Errc::kNotFound) return found.error();
  if (options.no_create || options.no_follow) return std::optional<Attributes>();
  PMFS_ASSIGN(File file, fs.open_file(path, O_WRONLY | O_CREAT, 0666, creator_credentials()));
  PMFS_ASSIGN(const Attributes created, file.stat());
  PMFS_TRY(file.close());
  return std::optional(created);
}

// --- touch
// ------------------------------------------------------------------------------------------------------------

/// "@SECONDS", or "2024-02-29", "2024-02-29 12:00", "2024-02-29T12:00:30.25", in the local zone or with +HHMM or Z.
std::optional<i64> parse_time(const std::string& text) {
  constexpr i64 kSecond = 1'000'000'000;
  struct tm broken {};
  broken.tm_isdst = -1;
  i64 seconds = 0;
  const char* rest = text.c_str();
  bool zone = false;
  if (text.starts_with('@')) {
    char* end = nullptr;
    errno = 0;
    seconds = std::strtoll(rest + 1, &end, 10);
    if (end == rest + 1 || errno != 0) return std::nullopt;
    rest = end;
  } else {
    rest = strptime(rest, "%Y-%m-%d", &broken);
    if (rest == nullptr) return std::nullopt;
    if (*rest == ' ' || *rest == 'T') {
      rest = strptime(rest + 1, "%H:%M", &broken);
      if (rest == nullptr) return std::nullopt;
      if (*rest == ':') rest = strptime(rest, ":%S", &broken);
      if (rest == nullptr) return std::nullopt;
    }
  }
  i64 ns = 0;
  if (*rest == '.') {
    i64 unit = kSecond / 10;
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest, unit /= 10) ns += (*rest - '0') * unit;
  }
  if (!text.starts_with('@')) {
    while (*rest == ' ') ++rest;
    if (*rest != '\0') {
      struct tm offset {};
      rest = strptime(rest, "%z", &offset);
      if (rest == nullptr) return std::nullopt;
      zone = true;
      seconds = timegm(&broken) - offset.tm_gmtoff;
    }
    if (!zone) seconds = mktime(&broken);
  }
  if (*rest != '\0') return std::nullopt;
  i64 when = 0;
  if (__builtin_mul_overflow(seconds, kSecond, &when) || __builtin_add_overflow(when, ns, &when)) return std::nullopt;
  return when;
}

int touch(const Options& options) {
  std::optional<i64> date;
  if (!options.text.empty()) {
    date = parse_time(options.text);
    if (!date) {
      report_text("--date " + options.text, "not a date like 2024-02-29, 2024-02-29 12:00:30 or @SECONDS");
      return kExitUsage;
    }
  }
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    std::optional<i64> access = date, modification = date;
    if (!options.reference.empty()) {
      const Result<Attributes> like = fs.stat(options.reference, Credentials::root());
      if (!like.ok()) return failures.add(options.reference, like.error());
      access = like->atime_ns;
      modification = like->mtime_ns;
    }
    for_each_path(options.paths, failures, [&](const std::string& path) -> Result<void> {
      PMFS_ASSIGN(const std::optional<Attributes> found, find_or_create(fs, path, options));
      if (!found) {
        if (options.no_follow && !options.no_create) return Error{Errc::kNotFound, ""};
        return {};
      }
      SetAttributes change;
      if (!options.only_modification || options.only_access) {
        change.atime_ns = access;
        change.atime_now = !access;
      }
      if (!options.only_access || options.only_modification) {
        change.mtime_ns = modification;
        change.mtime_now = !modification;
      }
      PMFS_TRY(fs.set_attributes(At::inode(found->ino), change, Credentials::root(), Follow::kNo));
      return {};
    });
  });
}

// --- truncate
// ---------------------------------------------------------------------------------------------------------

/// A size, or how it comes from the one that a file has.
struct Resize {
  char how = '=';  ///< = + - and < (at most) > (at least) / (down to a multiple) % (up to one)
  u64 bytes = 0;

  static std::optional<Resize> parse(std::string_view text) {
    Resize resize;
    if (!text.empty() && std::string_view("+-<>/%").find(text.front()) != std::string_view::npos) {
      resize.how = text.front();
      text.remove_prefix(1);
    }
    const std::optional<u64> bytes = parse_size(text);
    if (!bytes || (*bytes == 0 && (resize.how == '/' || resize.how == '%'))) return std::nullopt;
    resize.bytes = *bytes;
    return resize;
  }

  /// Both sizes have 63 bits, so their sum is none that wraps.
  u64 of(u64 size) const {
    switch (how) {
      case '+': return size + bytes;
      case '-': return size - std::min(size, bytes);
      case '<': return std::min(size, bytes);
      case '>': return std::max(size, bytes);
      case '/': return size / bytes * bytes;
      case '%': return (size + bytes - 1) / bytes * bytes;
      default: return bytes;
    }
  }
};

int truncate_command(const Options& options) {
  const std::optional<Resize> resize = Resize::parse(options.text);
  if (!resize) {
    report_text("--size " + options.text, "not a size like 4096, 1M, +1K, -1K, <1M, >1M, /4K or %4K");
    return kExitUsage;
  }
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    for_each_path(options.paths, failures, [&](const std::string& path) -> Result<void> {
      PMFS_ASSIGN(const std::optional<Attributes> found, find_or_create(fs, path, options));
      if (!found) return {};
      SetAttributes change;
      change.size_bytes = resize->of(found->size_bytes);
      PMFS_TRY(fs.set_attributes(At::inode(found->ino), change, Credentials::root(), Follow::kNo));
      return {};
    });
  });
}

}  // namespace

void add_touch(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("touch", "Set times in a pool, and make empty files");
  add_pool_and_paths(*command, options->pool, options->paths, "Files; made if missing");
  command->set_help_flag("--help", "Print this help message and exit");  // -h is touch's own
  command->add_flag("-a", options->only_access, "Only the access time");
  command->add_flag("-m", options->only_modification, "Only the modification time");
  command->add_flag("-c,--no-create", options->no_create, "Make nothing; what is missing is no error");
  command->add_flag("-h,--no-dereference", options->no_follow, "A symbolic link itself; makes nothing");
  CLI::Option* const date = command->add_option(
      "-d,--date", options->text, "Not the present: 2024-02-29, 2024-02-29 12:00:30.5 +0100 or @SECONDS since 1970");
  command->add_option("-r,--reference", options->reference, "The times of this one, in the pool")->excludes(date);
  command->footer("Example:\n  pmfs touch /dev/shm/demo.pool /photos/.nomedia");
  command->callback([options, &exit_code] { exit_code = touch(*options); });
}

void add_truncate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("truncate", "Shrink or extend files of a pool");
  add_pool_and_paths(*command, options->pool, options->paths, "Files; made if missing");
  command
      ->add_option("-s,--size", options->text,
                   "SIZE; or +SIZE more, -SIZE less, <SIZE at most, >SIZE at least, /SIZE and %SIZE down and up to a "
                   "multiple")
      ->required();
  command->add_flag("-c,--no-create", options->no_create, "Make nothing; what is missing is no error");
  command->footer(
      "What is added is a hole: it reads as zeroes and takes no room. K, M, G, T are powers of 1024.\n\n"
      "Example:\n  pmfs truncate -s 10G /dev/shm/demo.pool /disk.img");
  command->callback([options, &exit_code] { exit_code = truncate_command(*options); });
}

}  // namespace pmfs::tools
