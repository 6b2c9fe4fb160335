// The library says what Linux says on tmpfs, in every case of the matrix.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "test/posix/matrix.h"
#include "test/support/catch.h"
#include "test/support/memory_fs.h"
#include "test/support/scratch.h"

using namespace pmfs;
using namespace pmfs::test;

TEST_CASE("posix: the library does what Linux does on tmpfs", "[posix]") {
  if (::geteuid() != 0) {
    std::puts("SKIP: devices are made by root alone");
    std::fflush(stdout);
    std::_Exit(77);
  }
  const Scratch scratch;
  MemoryFs fs(u64{64} << 20);
  Log linux_says, library_says;
  run_matrix(*host_door(scratch.dir()), linux_says);
  run_matrix(*library_door(fs.fs()), library_says);
  int shown = 0;
  const u64 differences = compare(linux_says, library_says, [&](const std::string& text) {
    if (++shown <= 40) UNSCOPED_INFO(text);
  });
  std::printf("%llu checks in %zu cases\n", static_cast<unsigned long long>(linux_says.checks()),
              linux_says.cases().size());
  CHECK(differences == 0);
  CHECK(linux_says.checks() > 10'000);
  fs.require_clean();
}
