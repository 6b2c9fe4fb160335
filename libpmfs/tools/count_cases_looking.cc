// The cases of `pmfs count` that change nothing: lookup, stat, readdir, read, close. Budget: no fence.
#include <fcntl.h>

#include "count_bench.h"

namespace pmfs::tools {

namespace {

constexpr unsigned kFewNames = 20;     ///< fit one leaf
constexpr unsigned kManyNames = 2000;  ///< some forty leaves
constexpr std::size_t kLarge = std::size_t{1} << 20;
const Credentials kRoot = Credentials::root();

void open_own_file(Bench& b, int flags) { b.file = must(b.fs.open_file(At::inode(b.ino), flags, 0, kRoot)); }

void add_lookup(std::vector<Case>& cases) {
  const auto find = [](Bench& b) { must(b.fs.stat({b.dir, "there-before-000007"}, kRoot, Follow::kNo)); };
  const auto miss = [](Bench& b) {
    if (b.fs.stat({b.dir, "not-there"}, kRoot, Follow::kNo).ok()) fail({Errc::kExists, "a name that was never made"});
  };
  const auto few = [](Bench& b) { b.populate(b.dir, kFewNames); };
  const auto many = [](Bench& b) { b.populate(b.dir, kManyNames); };

  cases.push_back({.op = "lookup", .variant = "present", .setup = few, .run = find});
  cases.push_back({.op = "lookup", .variant = "absent", .setup = few, .run = miss});
  cases.push_back({.op = "lookup", .variant = "present-of-2000", .setup = many, .run = find});
  cases.push_back({.op = "lookup", .variant = "absent-of-2000", .setup = many, .run = miss});
  cases.push_back({.op = "lookup",
                   .variant = "pinned",
                   .setup = few,
                   .run =
                       [](Bench& b) {
                         b.ino = must(b.fs.stat({b.dir, "there-before-000007"}, kRoot, Follow::kNo, Ref::kPin)).ino;
                       },
                   .tidy = [](Bench& b) { must(b.fs.unpin(b.ino, 1)); }});
  cases.push_back({.op = "lookup",
                   .variant = "path-of-8",
                   .setup =
                       [](Bench& b) {
                         InodeNo parent = b.dir;
                         for (const char* step : {"a", "b", "c", "d", "e", "f", "g"})
                           parent = b.make_directory({parent, step});
                         b.make_file({parent, "h"});
                       },
                   .run =
                       [](Bench& b) {
                         must(b.fs.stat({b.dir, "a/b/c/d/e/f/g/h"}, kRoot));
                       }});
  cases.push_back({.op = "lookup",
                   .variant = "through-symlink",
                   .setup =
                       [](Bench& b) {
                         b.make_file({b.dir, "target"});
                         must(b.fs.symlink("target", {b.dir, "link"}, kRoot));
                       },
                   .run =
                       [](Bench& b) {
                         must(b.fs.stat({b.dir, "link"}, kRoot));
                       }});
}

void add_stat(std::vector<Case>& cases) {
  const auto make = [](Bench& b) { b.ino = b.make_file({b.dir, "file"}, kBlockBytes); };
  cases.push_back({.op = "stat", .variant = "by-inode", .setup = make, .run = [](Bench& b) {
                     must(b.fs.stat(At::inode(b.ino), kRoot));
                   }});
  cases.push_back({.op = "stat",
                   .variant = "open-file",
                   .setup =
                       [make](Bench& b) {
                         make(b);
                         open_own_file(b, O_RDONLY);
                       },
                   .run = [](Bench& b) { must(b.file.stat()); }});
  cases.push_back({.op = "stat",
                   .variant = "after-change",
                   .setup = make,
                   .prepare =
                       [](Bench& b) {
                         must(b.fs.set_attributes(At::inode(b.ino), {.mode = b.number % 2 == 0 ? 0600 : 0644}, kRoot));
                       },
                   .run = [](Bench& b) { must(b.fs.stat(At::inode(b.ino), kRoot)); }});
}

void add_readdir(std::vector<Case>& cases) {
  const auto few = [](Bench& b) { b.populate(b.dir, kFewNames); };
  const auto many = [](Bench& b) { b.populate(b.dir, kManyNames); };
  const auto open = [](Bench& b) { b.stream = must(b.fs.open_dir(At::inode(b.dir), kRoot)); };
  const auto close = [](Bench& b) { must(b.stream->close()); };
  const auto first = [](Bench& b) { must(b.stream->read(0, b.entry)); };
  const auto next = [](Bench& b) { must(b.stream->read(b.entry.cookie, b.entry)); };
  const auto skip = [open](Bench& b) {
    open(b);
    b.entry.cookie = 0;
    for (int i = 0; i < 5; ++i) must(b.stream->read(b.entry.cookie, b.entry));
  };
  cases.push_back({.op = "readdir", .variant = "first", .setup = few, .prepare = open, .run = first, .tidy = close});
  cases.push_back({.op = "readdir", .variant = "next", .setup = few, .prepare = skip, .run = next, .tidy = close});
  cases.push_back({.op = "readdir",
                   .variant = "end",
                   .setup = few,
                   .prepare =
                       [open](Bench& b) {
                         open(b);
                         b.entry.cookie = 0;
                         while (must(b.stream->read(b.entry.cookie, b.entry))) {
                         }
                       },
                   .run = next,
                   .tidy = close});
  cases.push_back(
      {.op = "readdir", .variant = "next-of-2000", .setup = many, .prepare = skip, .run = next, .tidy = close});
  cases.push_back({.op = "readdir",
                   .variant = "open-and-whole",
                   .setup = few,
                   .run =
                       [open](Bench& b) {
                         open(b);
                         for (b.entry.cookie = 0; must(b.stream->read(b.entry.cookie, b.entry));) {
                         }
                       },
                   .tidy = close});
}

void add_read(std::vector<Case>& cases) {
  const auto open = [](Bench& b) {
    b.ino = b.make_file({b.dir, "file"}, kLarge);
    open_own_file(b, O_RDONLY);
  };
  cases.push_back({.op = "read", .variant = "4k", .setup = open, .run = [](Bench& b) {
                     must(b.file.read(8 * kBlockBytes, b.bytes(kBlockBytes)));
                   }});
  cases.push_back({.op = "read", .variant = "unaligned", .setup = open, .run = [](Bench& b) {
                     must(b.file.read(100, b.bytes(10'000)));
                   }});
  cases.push_back({.op = "read", .variant = "past-end", .setup = open, .run = [](Bench& b) {
                     must(b.file.read(2 * kLarge, b.bytes(kBlockBytes)));
                   }});
  cases.push_back({.op = "read",
                   .variant = "hole",
                   .setup =
                       [](Bench& b) {
                         b.ino = b.make_file({b.dir, "file"});
                         must(b.fs.set_attributes(At::inode(b.ino), {.size_bytes = kLarge}, kRoot));
                         open_own_file(b, O_RDONLY);
                       },
                   .run = [](Bench& b) { must(b.file.read(0, b.bytes(kBlockBytes))); }});
  cases.push_back({.op = "read", .variant = "by-inode", .setup = open, .run = [](Bench& b) {
                     must(b.fs.read(b.ino, 0, b.bytes(kBlockBytes)));
                   }});
  // The access time changes at the first read behind a write; it stays in DRAM.
  cases.push_back({.op = "read",
                   .variant = "first-since-write",
                   .setup = open,
                   .prepare = [](Bench& b) { b.append(b.ino, 0, kBlockBytes); },
                   .run = [](Bench& b) { must(b.file.read(0, b.bytes(kBlockBytes))); }});
}

void add_close(std::vector<Case>& cases) {
  const auto close = [](Bench& b) { must(b.file.close()); };
  const auto open_new = [](std::size_t bytes_long) {
    return [bytes_long](Bench& b) {
      b.ino = b.make_file(b.here(), bytes_long);
      open_own_file(b, O_RDWR);
    };
  };
  const auto and_unlink = [open_new](std::size_t bytes_long) {
    return [prepare = open_new(bytes_long)](Bench& b) {
      prepare(b);
      must(b.fs.unlink(b.here(), kRoot));
    };
  };
  cases.push_back({.op = "close", .variant = "linked", .prepare = open_new(kBlockBytes), .run = close});
  cases.push_back({.op = "close",
                   .variant = "after-overwrite",
                   .prepare =
                       [open_new](Bench& b) {
                         open_new(kBlockBytes)(b);
                         must(b.file.write(0, b.bytes(kBlockBytes)));
                       },
                   .run = close});
  cases.push_back({.op = "close", .variant = "unlinked", .prepare = and_unlink(kBlockBytes), .run = close});
  cases.push_back({.op = "close", .variant = "unlinked-empty", .prepare = and_unlink(0), .run = close});
  cases.push_back({.op = "close", .variant = "unlinked-1m", .prepare = and_unlink(std::size_t{1} << 20), .run = close});
  cases.push_back({.op = "close",
                   .variant = "directory",
                   .prepare = [](Bench& b) { b.stream = must(b.fs.open_dir(At::inode(b.dir), kRoot)); },
                   .run = [](Bench& b) { must(b.stream->close()); }});
  cases.push_back({.op = "close",
                   .variant = "last-pin-unlinked",
                   .prepare =
                       [](Bench& b) {
                         b.ino = b.make_file(b.here(), kBlockBytes);
                         must(b.fs.pin(b.ino));
                         must(b.fs.unlink(b.here(), kRoot));
                       },
                   .run = [](Bench& b) { must(b.fs.unpin(b.ino, 1)); }});
}

}  // namespace

void add_looking_cases(std::vector<Case>& cases) {
  add_lookup(cases);
  add_stat(cases);
  add_readdir(cases);
  add_read(cases);
  add_close(cases);
}

}  // namespace pmfs::tools
