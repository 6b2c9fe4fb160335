#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "size_text.h"

namespace pmfs::tools {

namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::milliseconds kInterval{100};
constexpr u64 kBytesPerObject = 4096;  ///< weight of an object beside its bytes: roughly what creating one costs

}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1), start_(Clock::now()), next_draw_(start_ + kPatience) {}

void Progress::set_total(u64 objects, u64 bytes) {
  total_objects_ = objects;
  total_bytes_ = bytes;
}

void Progress::add(u64 objects, u64 bytes) {
  objects_ += objects;
  bytes_ += bytes;
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (now >= next_draw_) draw(now);
}

void Progress::add_skipped(u64 objects, u64 bytes) {
  skipped_bytes_ += bytes;
  add(objects, bytes);
}

void Progress::hide() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void Progress::draw(Clock::time_point now) {
  constexpr u64 kWidth = 30;
  const u64 total = std::max<u64>(1, total_bytes_ + total_objects_ * kBytesPerObject);
  const u64 done = std::min(total, bytes_ + objects_ * kBytesPerObject);
  const double part = static_cast<double>(done) / static_cast<double>(total);
  const auto filled = static_cast<u64>(part * static_cast<double>(kWidth));
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto rate = static_cast<u64>(static_cast<double>(bytes_ - skipped_bytes_) / seconds);
  fmt::print(stderr, "\r[{:#<{}}{:.<{}}] {:3.0f}%  {} objects, {}, {}/s\033[K", "", filled, "", kWidth - filled,
             part * 100, objects_, size_text(bytes_), size_text(rate));
  std::fflush(stderr);
  shown_ = true;
  next_draw_ = now + kInterval;
}

}  // namespace pmfs::tools
