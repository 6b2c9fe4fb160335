// Two or more programs in step: each runs on a thread of its own, but only the one that holds the baton moves. After
// each of its events (store, flush, fence, point, mark) a chooser says who goes on. So an interleaving is decided by
// the test, and a seed repeats it.
// A program must not wait for another one (for a lock, say): it would wait for ever, and the run is given up with an
// assertion after some seconds.
#pragma once

#include <functional>
#include <vector>

#include "test/support/sim_persist.h"

namespace pmfs::test {

class Baton {
 public:
  /// @param who  the programs that have not ended yet; `last`: what the holder has just done (null at the start and
  ///             when a program has ended). Returns one of `who`.
  using Chooser = std::function<u32(const std::vector<u32>& who, u32 holder, const Event* last)>;

  /// Runs the programs to their ends. Program i plays simulated thread i.
  static void run(SimMemory& memory, std::vector<std::function<void()>> programs, const Chooser& choose);
};

}  // namespace pmfs::test
