#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace pmfs {

void assert_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "pmfs: internal error: %s is false (%s:%d); stopping before anything else is stored\n",
               condition, file, line);
  std::abort();
}

}  // namespace pmfs
