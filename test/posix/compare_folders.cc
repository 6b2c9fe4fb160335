// compare_folders EXPECTED FOUND: the POSIX matrix in two empty folders, through the kernel. Says where the second
// answers otherwise than the first, which is usually one on tmpfs. Exit code 1 if it does anywhere.
#include <cstdio>
#include <string>

#include "test/posix/matrix.h"

int main(int argc, char** argv) {
  using namespace pmfs::test;
  if (argc != 3) {
    std::fprintf(stderr, "usage: compare_folders EXPECTED FOUND\n");
    return 2;
  }
  Log expected, found;
  run_matrix(*host_door(argv[1]), expected);
  run_matrix(*host_door(argv[2]), found);
  const auto differences = compare(expected, found, [](const std::string& text) { std::printf("%s\n", text.c_str()); });
  std::printf("%llu checks in %zu cases, %llu cases differ\n", static_cast<unsigned long long>(expected.checks()),
              expected.cases().size(), static_cast<unsigned long long>(differences));
  return differences == 0 ? 0 : 1;
}
