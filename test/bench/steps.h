// Instructions of a piece of code, counted by the processor's trap flag: a signal after each of them. Exact, the same
// on any machine for the same binary, and slow: microseconds for an instruction.
#pragma once

#include <csignal>

#include "pmfs/types.h"

namespace pmfs::bench {

/// Counts what `body` executes, in user mode, on this thread. REQUIRES: nobody else uses SIGTRAP, and `body` blocks no
/// signals.
template <class Body>
u64 instructions_of(Body&& body) {
  static volatile u64 steps;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { steps = steps + 1; };
  sigaction(SIGTRAP, &action, &before);
  steps = 0;
  // The 128 bytes below the stack pointer may be in use: they are left alone.
  asm volatile("leaq -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
  body();
  asm volatile("leaq -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
  sigaction(SIGTRAP, &before, nullptr);
  return steps;
}

}  // namespace pmfs::bench
