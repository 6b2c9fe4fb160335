// A progress bar on stderr: only on a terminal, and only when the work takes longer than a second.
#pragma once

#include <chrono>

#include "pmfs/types.h"

namespace pmfs::tools {

class Progress {
 public:
  Progress();
  ~Progress() { hide(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Whether anybody will see it, so that the totals are worth finding out.
  bool is_wanted() const { return terminal_; }
  void set_total(u64 objects, u64 bytes);
  void add(u64 objects, u64 bytes);
  /// What needed no work: part of what is done, but not of the rate.
  void add_skipped(u64 objects, u64 bytes);
  /// Takes the bar away, before a message or at the end; the next add() may bring it back.
  void hide();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  bool terminal_ = false;
  bool shown_ = false;
  Clock::time_point start_;
  Clock::time_point next_draw_;
  u64 objects_ = 0, bytes_ = 0;
  u64 skipped_bytes_ = 0;  ///< of bytes_
  u64 total_objects_ = 0, total_bytes_ = 0;
};

}  // namespace pmfs::tools
