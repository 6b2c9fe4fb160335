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

/// What the code means, and the particular case if the library gave one.
std::string sentence(const Error& error) {
  std::string text = describe(error.code);
  if (error.what[0] != '\0' && text.find(error.what) == std::string::npos) text += fmt::format(" ({})", error.what);
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

void report(std::string_view subject, const Error& error) { say(subject, sentence(error)); }

void report_pool(std::string_view pool, const Error& error) {
  const std::string detail = error_detail();  // copied first: it lives until this thread's next call into the library
  std::string text = sentence(error);
  if (!detail.empty()) text += fmt::format(" [{}]", detail);
  say(pool, text);
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
