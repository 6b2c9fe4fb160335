// The words behind pmfs::error_detail(): one buffer per thread, written by whoever makes an Error about a pool.
//   No allocation, so it works when memory is short. Longer texts are cut and end in "...".
#pragma once

#include <string_view>

namespace pmfs {

/// Sets what error_detail() returns in this thread: "POOL: words", or just the words if `pool` is empty. Control
/// characters become '?', so that a hostile name cannot write to somebody's terminal.
/// Concurrency: touches the calling thread's buffer only. Durability: none.
void set_error_detail(std::string_view pool, std::string_view words);

/// As above for three pieces of text, which are joined without anything between them.
void set_error_detail(std::string_view pool, std::string_view words, std::string_view more, std::string_view rest = {});

/// Empties it. Every call that may set it begins with this, so that no stale words are shown.
void clear_error_detail();

}  // namespace pmfs
