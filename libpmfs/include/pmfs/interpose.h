// For programs that count libpmemobj's own flushes and fences by defining libpmem's functions themselves, in front of
// libpmem (libpmemobj calls them through its PLT). The `pmfs` tool and this project's tests do; nobody else needs this.
#pragma once

#pragma GCC visibility push(default)
extern "C" {

/// Whether the calling thread is inside a call that the library itself makes to libpmem. Such a call is counted by the
/// library already and must not be reported.
/// Concurrency: any thread, also in a constructor of the program. Cost: one thread-local read.
bool pmfs_interpose_own() noexcept;

/// Reports a call into libpmem that was not the library's own: adds to the calling thread's pmemobj_* counters, and
/// makes pmfs::counting_pmemobj() true from now on.
/// @param flushes  calls that start write-back: 0 or 1.
/// @param lines    64-byte lines handed to it.
/// @param fences   ordering points: 0 or 1.
void pmfs_interpose_count(unsigned long flushes, unsigned long lines, unsigned long fences) noexcept;
}
#pragma GCC visibility pop
