// The cases of `pmfs count` that give files blocks and take them away, copy, and make files without names. Budget: two
// fences; a nameless file one, or two when the inode file grows.
#include <fcntl.h>
#include <linux/falloc.h>

#include "count_bench.h"

namespace pmfs::tools {

namespace {

constexpr u64 kBlock = kBlockBytes;
const Credentials kRoot = Credentials::root();
constexpr int kKeep = FALLOC_FL_KEEP_SIZE, kPunch = FALLOC_FL_PUNCH_HOLE | kKeep, kZero = FALLOC_FL_ZERO_RANGE;

const auto unlink_here = [](Bench& b) { must(b.fs.unlink(b.here(), kRoot)); };
Case::Step file_here(std::size_t bytes_long) {
  return [bytes_long](Bench& b) { b.ino = b.make_file(b.here(), bytes_long); };
}
Case::Step allocating(int mode, u64 off, u64 len) {
  return [=](Bench& b) { must(b.fs.allocate(b.ino, mode, off, len, kRoot)); };
}

void add_allocation(std::vector<Case>& cases) {
  const auto add = [&](const char* op, const char* variant, std::size_t size, int mode, u64 off, u64 len) {
    cases.push_back({.op = op,
                     .variant = variant,
                     .prepare = file_here(size),
                     .run = allocating(mode, off, len),
                     .tidy = unlink_here});
  };
  add("fallocate", "empty-file", 0, 0, 0, 16 * kBlock);
  add("fallocate", "keep-size", 4 * kBlock, kKeep, 4 * kBlock, 16 * kBlock);
  add("fallocate", "unaligned", 100, 0, 50, 16 * kBlock);
  add("fallocate", "all-there", 16 * kBlock, 0, 0, 8 * kBlock);
  add("punch", "whole-blocks", 16 * kBlock, kPunch, 4 * kBlock, 4 * kBlock);
  add("punch", "in-one-block", 16 * kBlock, kPunch, 4 * kBlock + 100, 1000);
  add("punch", "unaligned", 16 * kBlock, kPunch, 4 * kBlock + 100, 4 * kBlock);
  add("punch", "all", 16 * kBlock, kPunch, 0, 16 * kBlock);
  add("zero_range", "whole-blocks", 16 * kBlock, kZero, 4 * kBlock, 4 * kBlock);
  add("zero_range", "unaligned", 16 * kBlock, kZero, 4 * kBlock + 100, 4 * kBlock);
  add("zero_range", "over-the-end", 16 * kBlock, kZero, 12 * kBlock, 8 * kBlock);
  add("collapse", "first-blocks", 16 * kBlock, FALLOC_FL_COLLAPSE_RANGE, 0, 4 * kBlock);
  add("collapse", "in-the-middle", 16 * kBlock, FALLOC_FL_COLLAPSE_RANGE, 4 * kBlock, 4 * kBlock);
  add("insert", "in-front", 16 * kBlock, FALLOC_FL_INSERT_RANGE, 0, 4 * kBlock);
  add("insert", "in-the-middle", 16 * kBlock, FALLOC_FL_INSERT_RANGE, 4 * kBlock, 4 * kBlock);
}

void add_copies(std::vector<Case>& cases) {
  const auto source = [](Bench& b) {
    b.file2 = must(b.fs.open_file(At::inode(b.make_file({b.other, "from"}, 16 * kBlock)), O_RDONLY, 0, kRoot));
  };
  const auto copying = [](u64 to, u64 len) {
    return [=](Bench& b) { must(b.fs.copy_range(b.file2.ino(), 0, b.ino, to, len, kRoot)); };
  };
  cases.push_back({.op = "copy_range",
                   .variant = "to-empty-file",
                   .setup = source,
                   .prepare = file_here(0),
                   .run = copying(0, 16 * kBlock),
                   .tidy = unlink_here});
  cases.push_back({.op = "copy_range",
                   .variant = "unaligned",
                   .setup = source,
                   .prepare = file_here(100),
                   .run = copying(100, 10'000),
                   .tidy = unlink_here});
}

void add_nameless(std::vector<Case>& cases) {
  const auto make = [](Bench& b) { b.file = must(b.fs.open_file(At::inode(b.dir), O_TMPFILE | O_RDWR, 0600, kRoot)); };
  const auto close = [](Bench& b) { must(b.file.close()); };
  cases.push_back({.op = "tmpfile", .variant = "closed", .run = make, .tidy = close});
  cases.push_back({.op = "tmpfile_link",
                   .variant = "empty",
                   .prepare = make,
                   .run = [](Bench& b) { must(b.fs.link(At::inode(b.file.ino()), b.here(), kRoot)); },
                   .tidy =
                       [close](Bench& b) {
                         close(b);
                         unlink_here(b);
                       }});
  cases.push_back({.op = "tmpfile_link",
                   .variant = "written",
                   .prepare =
                       [make](Bench& b) {
                         make(b);
                         must(b.file.write(0, b.bytes(kBlock)));
                       },
                   .run = [](Bench& b) { must(b.fs.link(At::inode(b.file.ino()), b.here(), kRoot)); },
                   .tidy =
                       [close](Bench& b) {
                         close(b);
                         unlink_here(b);
                       }});
}

}  // namespace

void add_space_cases(std::vector<Case>& cases) {
  add_allocation(cases);
  add_copies(cases);
  add_nameless(cases);
}

}  // namespace pmfs::tools
