// For errors.sh: pools that the `pmfs` tool cannot make, and a process that keeps one open.
//   make_pool layout NAME POOL   a libpmemobj pool of that layout, with nothing in it
//   make_pool hold POOL          opens a pmfs pool, prints "held", and waits to be killed
#include <libpmemobj.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "pmfs/pmfs.hpp"

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "layout") == 0) {
    PMEMobjpool* const pool = pmemobj_create(argv[3], argv[2], PMEMOBJ_MIN_POOL, 0600);
    if (pool == nullptr) {
      std::fprintf(stderr, "make_pool: %s\n", pmemobj_errormsg());
      return 1;
    }
    pmemobj_close(pool);
    return 0;
  }
  if (argc == 3 && std::strcmp(argv[1], "hold") == 0) {
    const pmfs::Result<pmfs::Filesystem> fs = pmfs::Filesystem::open(argv[2]);
    if (!fs.ok()) {
      std::fprintf(stderr, "make_pool: %s\n", pmfs::error_detail());
      return 1;
    }
    std::puts("held");
    std::fflush(stdout);
    pause();
  }
  return 2;
}
