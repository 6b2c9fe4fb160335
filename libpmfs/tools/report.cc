#include "report.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace pmfs::tools {

namespace {

void say(std::string_view subject, std::string_view text) {
  std::fflush(stdout);
  const std::string line = fmt::format("pmfs: {}: {}\n", printable(subject), text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

/// What the code means and what to do, then the particular case if the library knows one, then the place.
std::string sentence(const Error& error, std::string_view particular) {
  std::string text = describe(error.code);
  if (!particular.empty() && text.find(particular) == std::string::npos) text += fmt::format(" ({})", particular);
  if (error.media_off != 0) text += fmt::format(" [at byte {:#x} of the pool]", error.media_off);
  return text;
}

}  // namespace

std::string printable(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\{:03o}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

void report(std::string_view subject, const Error& error) { say(subject, sentence(error, error.what)); }

void report_pool(std::string_view pool, const Error& error) {
  // Copied: it lives until this thread's next call into the library. It begins with a name; ours is there already.
  const std::string detail = error_detail();
  std::string_view particular = detail;
  if (particular.starts_with(pool) && particular.substr(pool.size()).starts_with(": ")) {
    particular.remove_prefix(pool.size() + 2);
  }
  say(pool, sentence(error, particular.empty() ? error.what : particular));
}

void report_errno(std::string_view subject, std::string_view doing, int error_number) {
  say(subject, fmt::format("{}: {}", doing, std::strerror(error_number)));
}

void report_text(std::string_view subject, std::string_view text) { say(subject, text); }

int finish_stdout(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  report_errno("standard output", "not everything could be written", errno);
  return kExitFailure;
}

}  // namespace pmfs::tools
