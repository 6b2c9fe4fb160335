// The cases of `pmfs count` that change one inode: data, size, attributes. Budget: two fences; an overwrite in place
// one; fsync one or none.
#include <fcntl.h>
#include <sys/stat.h>

#include "count_bench.h"

namespace pmfs::tools {

namespace {

constexpr u64 kBlock = kBlockBytes;
constexpr std::size_t kLarge = std::size_t{1} << 20;
const Credentials kRoot = Credentials::root();

const auto unlink_here = [](Bench& b) { must(b.fs.unlink(b.here(), kRoot)); };
const auto one_file = [](std::size_t bytes_long) {
  return [bytes_long](Bench& b) { b.ino = b.make_file({b.dir, "file"}, bytes_long); };
};
/// Writes 4 KiB at `b.off`.
const auto write_4k = [](Bench& b) { b.append(b.ino, b.off, kBlock); };
const auto advance = [](Bench& b) { b.off += kBlock; };

void set_size(Bench& b, u64 size_bytes) {
  must(b.fs.set_attributes(At::inode(b.ino), {.size_bytes = size_bytes}, kRoot));
}
Case::Step truncating(u64 size_bytes) {
  return [size_bytes](Bench& b) { set_size(b, size_bytes); };
}

/// Blocks of two files in turn, so that neither finds free space behind its last block.
void interleaved(Bench& b, unsigned blocks) {
  b.ino = b.make_file({b.dir, "file"});
  const InodeNo rival = b.make_file({b.other, "rival"});
  for (unsigned i = 0; i < blocks; ++i) {
    b.append(b.ino, i * kBlock, kBlock);
    b.append(rival, i * kBlock, kBlock);
  }
}

void add_append(std::vector<Case>& cases) {
  cases.push_back({.op = "append_4k",
                   .variant = "first-block",
                   .prepare = [](Bench& b) { b.ino = b.make_file(b.here()); },
                   .run = write_4k,
                   .tidy = unlink_here});
  cases.push_back({.op = "append_4k", .variant = "contiguous", .setup = one_file(0), .run = write_4k, .tidy = advance});
  cases.push_back({.op = "append_4k",
                   .variant = "open-append",
                   .setup =
                       [](Bench& b) {
                         b.file = must(b.fs.open_file({b.dir, "log"}, O_WRONLY | O_CREAT | O_APPEND, 0644, kRoot));
                       },
                   .run = [](Bench& b) { must(b.file.write(0, b.bytes(kBlock))); }});
  cases.push_back({.op = "append_4k",
                   .variant = "unaligned",
                   .setup = one_file(100),
                   .prepare = [](Bench& b) { b.off = b.number * kBlock + 100; },
                   .run = write_4k});
  // Each block becomes an extent of its own: the map grows from the inode into blocks, and they fill.
  cases.push_back({.op = "append_4k",
                   .variant = "fragmented",
                   .setup =
                       [](Bench& b) {
                         b.ino = b.make_file({b.dir, "file"});
                         b.file2 = must(b.fs.open_file({b.other, "rival"}, O_WRONLY | O_CREAT, 0644, kRoot));
                       },
                   .prepare = [](Bench& b) { must(b.file2.write(b.off, b.bytes(kBlock))); },
                   .run = write_4k,
                   .tidy = advance});
  cases.push_back({.op = "append_4k",
                   .variant = "fragmented-300",
                   .setup =
                       [](Bench& b) {
                         interleaved(b, 300);
                         b.off = 300 * kBlock;
                         b.file2 = must(b.fs.open_file({b.other, "rival"}, O_WRONLY, 0, kRoot));
                       },
                   .prepare = [](Bench& b) { must(b.file2.write(b.off, b.bytes(kBlock))); },
                   .run = write_4k,
                   .tidy = advance});
}

void add_write_hole(std::vector<Case>& cases) {
  const auto sparse = [](Bench& b) {
    one_file(0)(b);
    set_size(b, u64{1} << 30);
    b.off = kLarge;
  };
  const auto leap = [](Bench& b) { b.off += 4 * kBlock; };
  cases.push_back({.op = "write_hole", .variant = "adjacent", .setup = sparse, .run = write_4k, .tidy = advance});
  cases.push_back({.op = "write_hole", .variant = "scattered", .setup = sparse, .run = write_4k, .tidy = leap});
  cases.push_back({.op = "write_hole",
                   .variant = "backwards",
                   .setup = sparse,
                   .prepare = [](Bench& b) { b.off = kLarge + 2 * kBlock * (1000 - b.number % 1000); },
                   .run = write_4k});
  cases.push_back({.op = "write_hole",
                   .variant = "100-bytes",
                   .setup = sparse,
                   .run = [](Bench& b) { b.append(b.ino, b.off + 1000, 100); },
                   .tidy = leap});
  cases.push_back({.op = "write_hole",
                   .variant = "hole-and-data",
                   .setup = sparse,
                   .prepare = [](Bench& b) { b.append(b.ino, b.off + kBlock, kBlock); },
                   .run = [](Bench& b) { b.append(b.ino, b.off, 2 * kBlock); },
                   .tidy = leap});
  cases.push_back({.op = "write_hole",
                   .variant = "beyond-end",
                   .setup = one_file(100),
                   .prepare = [](Bench& b) { b.off += 16 * kBlock; },
                   .run = write_4k});
}

void add_overwrite(std::vector<Case>& cases) {
  const auto file = one_file(64 * kBlock);
  cases.push_back({.op = "overwrite_4k", .variant = "aligned", .setup = file, .run = write_4k});
  cases.push_back({.op = "overwrite_4k", .variant = "unaligned", .setup = file, .run = [](Bench& b) {
                     b.append(b.ino, 100, kBlock);
                   }});
  cases.push_back(
      {.op = "overwrite_4k", .variant = "8-bytes", .setup = file, .run = [](Bench& b) { b.append(b.ino, 800, 8); }});
  cases.push_back({.op = "overwrite_4k",
                   .variant = "open-file",
                   .setup =
                       [file](Bench& b) {
                         file(b);
                         b.file = must(b.fs.open_file(At::inode(b.ino), O_RDWR, 0, kRoot));
                       },
                   .run = [](Bench& b) { must(b.file.write(4 * kBlock, b.bytes(kBlock))); }});
  cases.push_back({.op = "overwrite_4k",
                   .variant = "two-extents",
                   .setup = [](Bench& b) { interleaved(b, 16); },
                   .run = [](Bench& b) { b.append(b.ino, 3 * kBlock + kBlock / 2, kBlock); }});
  // The change before is not known to be durable in its lane: its header rides along.
  cases.push_back({.op = "overwrite_4k",
                   .variant = "after-chmod",
                   .setup = file,
                   .prepare =
                       [](Bench& b) {
                         must(b.fs.set_attributes(At::inode(b.ino), {.mode = b.number % 2 == 0 ? 0600 : 0644}, kRoot));
                       },
                   .run = write_4k});

  const auto setid = [](u32 mode) {
    return [mode](Bench& b) { must(b.fs.set_attributes(At::inode(b.ino), {.mode = mode}, kRoot)); };
  };
  const auto as_user = [](Bench& b) {
    Credentials user;
    user.uid = user.gid = 1000;
    must(b.fs.write(b.ino, 0, b.bytes(kBlock), user));
  };
  cases.push_back(
      {.op = "overwrite_setid", .variant = "setuid", .setup = file, .prepare = setid(04755), .run = as_user});
  cases.push_back(
      {.op = "overwrite_setid", .variant = "setgid", .setup = file, .prepare = setid(02755), .run = as_user});
}

void add_truncate(std::vector<Case>& cases) {
  constexpr std::size_t kBlocks16 = 16 * kBlockBytes;
  const auto fresh = [](std::size_t bytes_long) {
    return [bytes_long](Bench& b) { b.ino = b.make_file(b.here(), bytes_long); };
  };
  const auto add = [&](const char* variant, std::size_t from, u64 to) {
    cases.push_back(
        {.op = "truncate", .variant = variant, .prepare = fresh(from), .run = truncating(to), .tidy = unlink_here});
  };
  add("down", kBlocks16, 8 * kBlock);
  add("mid-block", kBlocks16, 8 * kBlock + 100);
  add("to-zero", kBlocks16, 0);
  add("1m-to-zero", kLarge, 0);
  add("up", kBlocks16, 64 * kBlock);
  add("up-from-mid-block", 100, 64 * kBlock);
  cases.push_back({.op = "truncate",
                   .variant = "fragmented-mid-block",
                   .prepare = [](Bench& b) { interleaved(b, 40); },
                   .run = truncating(20 * kBlock + 100),
                   .tidy =
                       [](Bench& b) {
                         must(b.fs.unlink({b.dir, "file"}, kRoot));
                         must(b.fs.unlink({b.other, "rival"}, kRoot));
                       }});
  cases.push_back({.op = "truncate",
                   .variant = "open-file",
                   .prepare =
                       [fresh](Bench& b) {
                         fresh(kBlocks16)(b);
                         b.file = must(b.fs.open_file(b.here(), O_RDWR, 0, kRoot));
                       },
                   .run = [](Bench& b) { must(b.file.truncate(100)); },
                   .tidy =
                       [](Bench& b) {
                         must(b.file.close());
                         unlink_here(b);
                       }});
  cases.push_back({.op = "truncate",
                   .variant = "by-open",
                   .prepare = fresh(kBlocks16),
                   .run = [](Bench& b) { b.file = must(b.fs.open_file(b.here(), O_WRONLY | O_TRUNC, 0, kRoot)); },
                   .tidy =
                       [](Bench& b) {
                         must(b.file.close());
                         unlink_here(b);
                       }});
}

void add_attributes(std::vector<Case>& cases) {
  const auto set = [](SetAttributes change) {
    return [change](Bench& b) { must(b.fs.set_attributes(At::inode(b.ino), change, kRoot)); };
  };
  const auto file = one_file(kBlock);
  const auto itself = [](Bench& b) { b.ino = b.dir; };
  cases.push_back({.op = "chmod", .variant = "file", .setup = file, .run = set({.mode = 0640})});
  cases.push_back({.op = "chmod", .variant = "directory", .setup = itself, .run = set({.mode = 0750})});
  cases.push_back({.op = "chmod",
                   .variant = "by-owner",
                   .setup =
                       [set, file](Bench& b) {
                         file(b);
                         set({.uid = 1000, .gid = 1000})(b);
                       },
                   .run =
                       [](Bench& b) {
                         Credentials user;
                         user.uid = user.gid = 1000;
                         must(b.fs.set_attributes(At::inode(b.ino), {.mode = 0600}, user));
                       }});
  cases.push_back({.op = "chown", .variant = "file", .setup = file, .run = set({.uid = 1000, .gid = 1000})});
  cases.push_back({.op = "chown", .variant = "directory", .setup = itself, .run = set({.uid = 1000, .gid = 1000})});
  cases.push_back({.op = "chown",
                   .variant = "clears-setid",
                   .setup = file,
                   .prepare = set({.mode = 06755}),
                   .run = set({.uid = 1000, .gid = 1000})});
  constexpr i64 kThen = 1'000'000'000'000'000'000;
  cases.push_back(
      {.op = "utimens", .variant = "both", .setup = file, .run = set({.atime_ns = kThen, .mtime_ns = kThen})});
  cases.push_back(
      {.op = "utimens", .variant = "now", .setup = file, .run = set({.atime_now = true, .mtime_now = true})});
  cases.push_back({.op = "utimens", .variant = "mtime-only", .setup = file, .run = set({.mtime_ns = kThen})});
}

void add_xattrs(std::vector<Case>& cases) {
  const auto file = one_file(kBlock);
  const auto set = [](std::size_t bytes_long) {
    return [bytes_long](Bench& b) { must(b.fs.set_xattr(At::inode(b.ino), "user.a", b.bytes(bytes_long), 0, kRoot)); };
  };
  const auto remove = [](Bench& b) { must(b.fs.remove_xattr(At::inode(b.ino), "user.a", kRoot)); };
  cases.push_back({.op = "setxattr", .variant = "small", .setup = file, .run = set(20), .tidy = remove});
  cases.push_back({.op = "setxattr", .variant = "large", .setup = file, .run = set(kBlock), .tidy = remove});
  cases.push_back({.op = "setxattr", .variant = "64-kib", .setup = file, .run = set(65536), .tidy = remove});
  cases.push_back(
      {.op = "setxattr", .variant = "small-to-large", .setup = file, .prepare = set(20), .run = set(kBlock)});
  cases.push_back({.op = "removexattr", .variant = "small", .setup = file, .prepare = set(20), .run = remove});
  cases.push_back({.op = "removexattr", .variant = "large", .setup = file, .prepare = set(kBlock), .run = remove});
  const auto acl = [](u32 users) {
    return [users](Bench& b) {
      Acl list{{AclTag::kUserObj, 6, 0}, {AclTag::kGroupObj, 4, 0}, {AclTag::kMask, 7, 0}, {AclTag::kOther, 0, 0}};
      for (u32 i = 0; i < users; ++i) list.push_back({AclTag::kUser, 4, 1000 + i});
      must(b.fs.set_acl(At::inode(b.ino), AclKind::kAccess, list, kRoot));
    };
  };
  const auto no_acl = [](Bench& b) { must(b.fs.set_acl(At::inode(b.ino), AclKind::kAccess, {}, kRoot)); };
  cases.push_back({.op = "setacl", .variant = "small", .setup = file, .run = acl(3), .tidy = no_acl});
  cases.push_back({.op = "setacl", .variant = "large", .setup = file, .run = acl(40), .tidy = no_acl});
  cases.push_back({.op = "setacl", .variant = "removed", .setup = file, .prepare = acl(3), .run = no_acl});
  cases.push_back({.op = "create",
                   .variant = "default-acl",
                   .setup =
                       [](Bench& b) {
                         must(b.fs.set_acl(At::inode(b.dir), AclKind::kDefault,
                                           {{AclTag::kUserObj, 7, 0},
                                            {AclTag::kUser, 7, 1000},
                                            {AclTag::kGroupObj, 5, 0},
                                            {AclTag::kMask, 7, 0},
                                            {AclTag::kOther, 0, 0}},
                                           kRoot));
                       },
                   .run = [](Bench& b) { b.make_file(b.here()); },
                   .tidy = unlink_here});
}

void add_fsync(std::vector<Case>& cases) {
  const auto open = [](Bench& b) {
    one_file(4 * kBlock)(b);
    b.file = must(b.fs.open_file(At::inode(b.ino), O_RDWR, 0, kRoot));
  };
  const auto sync = [](Bench& b) { must(b.file.sync()); };
  cases.push_back({.op = "fsync", .variant = "clean", .setup = open, .run = sync});
  cases.push_back({.op = "fsync",
                   .variant = "after-append",
                   .setup = open,
                   .prepare = [](Bench& b) { must(b.file.write((4 + b.number) * kBlock, b.bytes(kBlock))); },
                   .run = sync});
  cases.push_back({.op = "fsync",
                   .variant = "lazy-times",
                   .setup = open,
                   .prepare = [](Bench& b) { must(b.file.write(0, b.bytes(kBlock))); },
                   .run = sync});
  cases.push_back({.op = "fsync",
                   .variant = "lazy-access-time",
                   .setup = open,
                   .prepare =
                       [](Bench& b) {
                         must(b.file.write(0, b.bytes(kBlock)));
                         must(b.file.sync());
                         must(b.file.read(0, b.bytes(kBlock)));
                       },
                   .run = sync});
}

}  // namespace

void add_file_cases(std::vector<Case>& cases) {
  add_append(cases);
  add_write_hole(cases);
  add_overwrite(cases);
  add_truncate(cases);
  add_attributes(cases);
  add_xattrs(cases);
  add_fsync(cases);
}

}  // namespace pmfs::tools
