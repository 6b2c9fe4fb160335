// A program with objects of its own in a libpmemobj pool, and a file system beside them.
//
//   beside_objects [POOL]      POOL: a file to create; without it one in /dev/shm, removed at the end
//
// The pool is the program's: it opens it, allocates in it, and keeps in its root object where the file system is.
#include <fcntl.h>
#include <libpmemobj.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "pmfs/pmfs.hpp"

namespace {

// The root object: a list of visits, and the file system's locator.
struct Root {
  PMEMoid last_visit;
  std::uint64_t locator_off;
};
struct Visit {
  PMEMoid before;
  std::uint64_t number;
};

template <class T>
T must(const char* doing, pmfs::Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s: %s %s\n", doing, pmfs::describe(result.error().code), pmfs::error_detail());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// One visit: an object in the list, by a transaction of libpmemobj's, and a line in a file.
void visit(PMEMobjpool* pool, Root* root, pmfs::Filesystem& fs) {
  const pmfs::Credentials me = pmfs::Credentials::root();
  const auto* const last = static_cast<const Visit*>(pmemobj_direct(root->last_visit));
  const std::uint64_t number = last == nullptr ? 1 : last->number + 1;

  TX_BEGIN(pool) {
    pmemobj_tx_add_range_direct(&root->last_visit, sizeof root->last_visit);
    const PMEMoid made = pmemobj_tx_zalloc(sizeof(Visit), 1);
    auto* const one = static_cast<Visit*>(pmemobj_direct(made));
    one->before = root->last_visit;
    one->number = number;
    root->last_visit = made;
  }
  TX_ONABORT { std::exit(1); }
  TX_END

  pmfs::File log = must("open /log", fs.open_file("/log", O_CREAT | O_WRONLY | O_APPEND, 0644, me));
  const std::string line = "visit " + std::to_string(number) + "\n";
  must("write", log.write(0, std::as_bytes(std::span(line))));  // behind the end: O_APPEND
  must("close", log.close());
  std::printf("visit %llu: an object, and a line of /log, which has %llu bytes now\n",
              static_cast<unsigned long long>(number),
              static_cast<unsigned long long>(must("stat", fs.stat("/log", me)).size_bytes));
}

void run(const std::string& path) {
  PMEMobjpool* pool = pmemobj_create(path.c_str(), "visits", 64 << 20, 0600);
  if (pool == nullptr) pool = pmemobj_open(path.c_str(), "visits");
  if (pool == nullptr) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), pmemobj_errormsg());
    std::exit(1);
  }
  auto* const root = static_cast<Root*>(pmemobj_direct(pmemobj_root(pool, sizeof(Root))));
  if (root->locator_off == 0) {
    root->locator_off = must("format_in", pmfs::Filesystem::format_in(path, pool, 16 << 20));
    pmemobj_persist(pool, &root->locator_off, sizeof root->locator_off);
  }
  {
    pmfs::Filesystem fs = must("attach", pmfs::Filesystem::attach(path, pool, root->locator_off));
    visit(pool, root, fs);
    visit(pool, root, fs);
    must("close", fs.close());  // before the pool
  }
  pmemobj_close(pool);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) {
    std::fprintf(stderr, "usage: beside_objects [POOL]\n");
    return 2;
  }
  const std::string path = argc == 2 ? argv[1] : "/dev/shm/pmfs-beside-" + std::to_string(getpid()) + ".pool";
  run(path);
  run(path);  // the second time both are there
  if (argc == 1) unlink(path.c_str());
  return 0;
}
