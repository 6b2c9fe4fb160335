// The case of `pmfs count` on a full pool: what was just freed must be reclaimed before it can be used again. That
// costs one fence beside the operation's own; the operation without it is the baseline that is subtracted.
#include <fcntl.h>
#include <sys/stat.h>

#include "count_bench.h"

namespace pmfs::tools {

namespace {

constexpr u64 kBlock = kBlockBytes;
constexpr unsigned kVictimBlocks = 8;
const Credentials kRoot = Credentials::root();

/// Writes blocks behind `off` until `blocks` are written or the pool is full. @return the new end.
u64 write_blocks(Bench& b, InodeNo ino, u64 off, u64 blocks) {
  for (u64 i = 0; i < blocks; ++i) {
    const Result<std::size_t> written = b.fs.write(ino, off, b.bytes(kBlock), kRoot);
    if (!written.ok() && written.error().code == Errc::kNoSpace) break;
    off += must(written);
  }
  return off;
}

constexpr unsigned kCrumbs = 16;

std::string crumb(unsigned number) { return "crumb" + std::to_string(number); }

/// A large file, and some empty ones: a first block of a file is the request that needs least, one block and nothing
/// else.
void make_fillers(Bench& b) {
  b.make_file({b.other, "filler"});
  for (unsigned i = 0; i < kCrumbs; ++i) b.make_file({b.other, crumb(i)});
}

/// Leaves a pool without one free block, but for those of a file that was deleted a moment ago.
void fill_and_delete(Bench& b) {
  const InodeNo victim = b.make_file(b.here());
  if (write_blocks(b, victim, 0, kVictimBlocks) < 4 * kBlock) fail({Errc::kNoSpace, "no room for the file to delete"});
  b.off = write_blocks(b, must(b.fs.stat({b.other, "filler"}, kRoot)).ino, b.off, ~u64{0});
  unsigned crumbs = 0;
  while (crumbs < kCrumbs && write_blocks(b, must(b.fs.stat({b.other, crumb(crumbs)}, kRoot)).ino, 0, 1) != 0) ++crumbs;
  if (crumbs == kCrumbs) fail({Errc::kNoSpace, "the pool does not get full"});
  must(b.fs.unlink(b.here(), kRoot));
}

/// Makes room for the next victim.
void empty_crumbs(Bench& b) {
  for (unsigned i = 0; i < kCrumbs; ++i) {
    must(b.fs.set_attributes({b.other, crumb(i)}, {.size_bytes = 0}, kRoot));
  }
}

}  // namespace

void add_drain_cases(std::vector<Case>& cases) {
  const auto write_block = [](u64 number) { return [number](Bench& b) { b.append(b.ino, number * kBlock, kBlock); }; };
  cases.push_back({.op = "drain",
                   .variant = "append",
                   .setup =
                       [](Bench& b) {
                         make_fillers(b);
                         b.ino = b.make_file({b.dir, "file"}, kBlock);
                       },
                   .prepare = fill_and_delete,
                   .run = write_block(1),
                   .tidy =
                       [](Bench& b) {
                         must(b.fs.set_attributes(At::inode(b.ino), {.size_bytes = kBlock}, kRoot));
                         empty_crumbs(b);
                       },
                   .baseline = write_block(2)});
  const auto symlink = [](const char* name) {
    return [name](Bench& b) { must(b.fs.symlink(std::string(1000, 't'), {b.dir, name}, kRoot)); };
  };
  cases.push_back({.op = "drain",
                   .variant = "symlink",
                   .setup = make_fillers,
                   .prepare = fill_and_delete,
                   .run = symlink("first"),
                   .tidy =
                       [](Bench& b) {
                         must(b.fs.unlink({b.dir, "first"}, kRoot));
                         must(b.fs.unlink({b.dir, "second"}, kRoot));
                         empty_crumbs(b);
                       },
                   .baseline = symlink("second")});
}

}  // namespace pmfs::tools
