// A small number for each thread, so that threads use different ones of several equal things and seldom meet.
#pragma once

#include <atomic>

#include "pmfs/types.h"

namespace pmfs {

/// 0, 1, 2, ... in the order in which threads first asked. Never changes for a thread.
inline u32 thread_index() {
  static std::atomic<u32> next{0};
  thread_local const u32 index = next.fetch_add(1, std::memory_order_relaxed);
  return index;
}

}  // namespace pmfs
