// The cases of `pmfs count` that change the tree. Budget: two fences, whatever they change.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "count_bench.h"

namespace pmfs::tools {

namespace {

constexpr unsigned kManyNames = 2000;
constexpr std::size_t kLarge = std::size_t{1} << 20;
const Credentials kRoot = Credentials::root();

const auto make_here = [](Bench& b) { b.ino = b.make_file(b.here(), kBlockBytes); };
const auto make_directory_here = [](Bench& b) { b.ino = b.make_directory(b.here()); };
const auto unlink_here = [](Bench& b) { must(b.fs.unlink(b.here(), kRoot)); };
const auto unlink_here2 = [](Bench& b) { must(b.fs.unlink(b.here2(), kRoot)); };
const auto rmdir_here = [](Bench& b) { must(b.fs.rmdir(b.here(), kRoot)); };
const auto many_names = [](Bench& b) { b.populate(b.dir, kManyNames); };

/// A name of the greatest length that differs from run to run and from `salt` to `salt`.
std::string long_name(const Bench& b, unsigned salt) {
  std::string name = b.name + "-" + std::to_string(salt) + "-";
  name.resize(kNameMax, 'n');
  return name;
}

const auto create_here = [](Bench& b) {
  b.file = must(b.fs.open_file(b.here(), O_WRONLY | O_CREAT | O_EXCL, 0644, kRoot));
};
const auto close_and_unlink = [](Bench& b) {
  must(b.file.close());
  unlink_here(b);
};

u64 directory_size(Bench& b, InodeNo ino) { return must(b.fs.stat(At::inode(ino), kRoot)).blocks_512; }

/// Fills a directory with long names until one more needs another leaf. `b.off` is how many fit, found out once.
void fill_leaf(Bench& b, InodeNo dir) {
  if (b.off == 0) {
    const InodeNo trial = b.make_directory({b.other, "trial"});
    b.make_file({trial, long_name(b, 0)});
    const u64 one_leaf = directory_size(b, trial);
    for (b.off = 1; b.off < 1000; ++b.off) {
      b.make_file({trial, long_name(b, static_cast<unsigned>(b.off))});
      if (directory_size(b, trial) != one_leaf) break;
    }
  }
  for (unsigned i = 0; i < b.off; ++i) b.make_file({dir, long_name(b, i)});
}

void add_create(std::vector<Case>& cases) {
  const auto close = [](Bench& b) { must(b.file.close()); };
  cases.push_back({.op = "create", .variant = "small-directory", .run = create_here, .tidy = close_and_unlink});
  cases.push_back({.op = "create",
                   .variant = "directory-of-2000",
                   .setup = many_names,
                   .run = create_here,
                   .tidy = close_and_unlink});
  // Nothing is removed: new leaves and growth of the inode file are among these.
  cases.push_back({.op = "create", .variant = "many-in-a-row", .run = create_here, .tidy = close});
  cases.push_back({.op = "create",
                   .variant = "first-in-directory",
                   .prepare =
                       [](Bench& b) {
                         b.ino = b.make_directory({b.other, b.name});
                       },
                   .run =
                       [](Bench& b) {
                         b.file = must(b.fs.open_file({b.ino, "first"}, O_WRONLY | O_CREAT | O_EXCL, 0644, kRoot));
                       },
                   .tidy = close});
  cases.push_back({.op = "create",
                   .variant = "new-leaf",
                   .prepare =
                       [](Bench& b) {
                         b.ino = b.make_directory({b.dir, b.name});
                         fill_leaf(b, b.ino);
                         b.name2 = long_name(b, 999);
                       },
                   .run =
                       [](Bench& b) {
                         b.file = must(b.fs.open_file({b.ino, b.name2}, O_WRONLY | O_CREAT | O_EXCL, 0644, kRoot));
                       },
                   .tidy =
                       [](Bench& b) {
                         must(b.file.close());
                         b.remove(b.dir, b.name);
                       }});
  // In a directory with an index: a leaf is split, and the index gets one more. Which name does that, its hash decides.
  cases.push_back({.op = "create",
                   .variant = "leaf-split",
                   .setup =
                       [](Bench& b) {
                         b.name = "before";
                         for (unsigned i = 0; i < 300; ++i) b.make_file({b.dir, long_name(b, i)});
                       },
                   .prepare =
                       [](Bench& b) {
                         b.name = long_name(b, 0);
                         b.off = directory_size(b, b.dir);
                       },
                   .run = create_here,
                   .keep = [](Bench& b) { return directory_size(b, b.dir) > b.off; },
                   .tidy = close});
  cases.push_back({.op = "create",
                   .variant = "longest-name",
                   .prepare = [](Bench& b) { b.name = long_name(b, 0); },
                   .run = create_here,
                   .tidy = close_and_unlink});
  cases.push_back({.op = "create",
                   .variant = "by-user",
                   .setup = [](Bench& b) { must(b.fs.set_attributes(At::inode(b.dir), {.mode = 0777}, kRoot)); },
                   .run =
                       [](Bench& b) {
                         Credentials user;
                         user.uid = user.gid = 1000;
                         user.umask = 022;
                         b.file = must(b.fs.open_file(b.here(), O_WRONLY | O_CREAT | O_EXCL, 0666, user));
                       },
                   .tidy = close_and_unlink});
}

void add_other_makers(std::vector<Case>& cases) {
  const auto mkdir = [](Bench& b) { must(b.fs.mkdir(b.here(), 0755, kRoot)); };
  cases.push_back({.op = "mkdir", .variant = "small-directory", .run = mkdir, .tidy = rmdir_here});
  cases.push_back(
      {.op = "mkdir", .variant = "directory-of-2000", .setup = many_names, .run = mkdir, .tidy = rmdir_here});
  cases.push_back({.op = "mkdir", .variant = "many-in-a-row", .run = mkdir});

  const auto mknod = [](u32 mode) {
    return [mode](Bench& b) { must(b.fs.mknod(b.here(), mode | 0644, makedev(1, 3), kRoot)); };
  };
  cases.push_back({.op = "mknod", .variant = "regular", .run = mknod(S_IFREG), .tidy = unlink_here});
  cases.push_back({.op = "mknod", .variant = "fifo", .run = mknod(S_IFIFO), .tidy = unlink_here});
  cases.push_back({.op = "mknod", .variant = "socket", .run = mknod(S_IFSOCK), .tidy = unlink_here});
  cases.push_back({.op = "mknod", .variant = "device", .run = mknod(S_IFCHR), .tidy = unlink_here});

  const auto symlink = [](std::size_t length) {
    return [target = std::string(length, 't')](Bench& b) { must(b.fs.symlink(target, b.here(), kRoot)); };
  };
  cases.push_back({.op = "symlink", .variant = "short", .run = symlink(10), .tidy = unlink_here});
  cases.push_back({.op = "symlink", .variant = "long", .run = symlink(1000), .tidy = unlink_here});
  cases.push_back({.op = "symlink", .variant = "longest", .run = symlink(kPathMax), .tidy = unlink_here});

  const auto file_in_other = [](Bench& b) { b.ino = b.make_file({b.other, "file"}); };
  cases.push_back({.op = "link",
                   .variant = "same-directory",
                   .setup =
                       [](Bench& b) {
                         b.ino = b.make_file({b.dir, "file"});
                       },
                   .run =
                       [](Bench& b) {
                         must(b.fs.link({b.dir, "file"}, b.here(), kRoot));
                       },
                   .tidy = unlink_here});
  cases.push_back({.op = "link",
                   .variant = "other-directory",
                   .setup = file_in_other,
                   .run =
                       [](Bench& b) {
                         must(b.fs.link({b.other, "file"}, b.here(), kRoot));
                       },
                   .tidy = unlink_here});
  cases.push_back({.op = "link",
                   .variant = "by-inode",
                   .setup = file_in_other,
                   .run = [](Bench& b) { must(b.fs.link(At::inode(b.ino), b.here(), kRoot)); },
                   .tidy = unlink_here});
}

void add_removers(std::vector<Case>& cases) {
  cases.push_back({.op = "unlink", .variant = "last-link", .prepare = make_here, .run = unlink_here});
  cases.push_back({.op = "unlink",
                   .variant = "last-link-empty",
                   .prepare = [](Bench& b) { b.make_file(b.here()); },
                   .run = unlink_here});
  cases.push_back({.op = "unlink",
                   .variant = "last-link-1m",
                   .prepare = [](Bench& b) { b.make_file(b.here(), kLarge); },
                   .run = unlink_here});
  cases.push_back({.op = "unlink",
                   .variant = "links-remain",
                   .prepare =
                       [](Bench& b) {
                         make_here(b);
                         must(b.fs.link(b.here(), b.here2(), kRoot));
                       },
                   .run = unlink_here,
                   .tidy = unlink_here2});
  cases.push_back({.op = "unlink",
                   .variant = "open",
                   .prepare =
                       [](Bench& b) {
                         make_here(b);
                         b.file = must(b.fs.open_file(b.here(), O_RDWR, 0, kRoot));
                       },
                   .run = unlink_here,
                   .tidy = [](Bench& b) { must(b.file.close()); }});
  cases.push_back({.op = "unlink",
                   .variant = "pinned",
                   .prepare =
                       [](Bench& b) {
                         make_here(b);
                         must(b.fs.pin(b.ino));
                       },
                   .run = unlink_here,
                   .tidy = [](Bench& b) { must(b.fs.unpin(b.ino, 1)); }});
  cases.push_back({.op = "unlink",
                   .variant = "long-symlink",
                   .prepare = [](Bench& b) { must(b.fs.symlink(std::string(1000, 't'), b.here(), kRoot)); },
                   .run = unlink_here});
  cases.push_back({.op = "unlink",
                   .variant = "fifo",
                   .prepare = [](Bench& b) { must(b.fs.mknod(b.here(), S_IFIFO | 0644, 0, kRoot)); },
                   .run = unlink_here});
  cases.push_back(
      {.op = "unlink", .variant = "directory-of-2000", .setup = many_names, .prepare = make_here, .run = unlink_here});
  // The last names of a directory: its leaves become empty one after another.
  cases.push_back({.op = "unlink",
                   .variant = "last-in-directory",
                   .prepare =
                       [](Bench& b) {
                         b.ino = b.make_directory({b.other, b.name});
                         b.make_file({b.ino, "only"});
                       },
                   .run =
                       [](Bench& b) {
                         must(b.fs.unlink({b.ino, "only"}, kRoot));
                       }});

  cases.push_back({.op = "rmdir", .variant = "never-used", .prepare = make_directory_here, .run = rmdir_here});
  cases.push_back({.op = "rmdir",
                   .variant = "emptied",
                   .prepare =
                       [](Bench& b) {
                         make_directory_here(b);
                         b.populate(b.ino, 100);
                         for (unsigned i = 0; i < 100; ++i) {
                           std::string name = "there-before-" + std::string(6, '0');
                           const std::string digits = std::to_string(i);
                           name.replace(name.size() - digits.size(), digits.size(), digits);
                           must(b.fs.unlink({b.ino, name}, kRoot));
                         }
                       },
                   .run = rmdir_here});
  cases.push_back({.op = "rmdir",
                   .variant = "open",
                   .prepare =
                       [](Bench& b) {
                         make_directory_here(b);
                         b.stream = must(b.fs.open_dir(b.here(), kRoot));
                       },
                   .run = rmdir_here,
                   .tidy = [](Bench& b) { must(b.stream->close()); }});
}

// --- Renames
// --------------------------------------------------------------------------------------------------------------

Case::Step renaming(At (Bench::*to)() const, unsigned flags = 0) {
  return [to, flags](Bench& b) { must(b.fs.rename(b.here(), (b.*to)(), flags, kRoot)); };
}
const auto unlink_there = [](Bench& b) { must(b.fs.unlink(b.there(), kRoot)); };
const auto rmdir_there = [](Bench& b) { must(b.fs.rmdir(b.there(), kRoot)); };
const auto rmdir_here2 = [](Bench& b) { must(b.fs.rmdir(b.here2(), kRoot)); };

void add_renames(std::vector<Case>& cases) {
  const auto here2 = &Bench::here2;
  const auto there = &Bench::there;
  cases.push_back(
      {.op = "rename_same_dir", .variant = "file", .prepare = make_here, .run = renaming(here2), .tidy = unlink_here2});
  cases.push_back({.op = "rename_same_dir",
                   .variant = "directory",
                   .prepare = make_directory_here,
                   .run = renaming(here2),
                   .tidy = rmdir_here2});
  cases.push_back({.op = "rename_same_dir",
                   .variant = "noreplace",
                   .prepare = make_here,
                   .run = renaming(here2, RENAME_NOREPLACE),
                   .tidy = unlink_here2});
  cases.push_back({.op = "rename_same_dir",
                   .variant = "directory-of-2000",
                   .setup = many_names,
                   .prepare = make_here,
                   .run = renaming(here2),
                   .tidy = unlink_here2});
  cases.push_back({.op = "rename_same_dir",
                   .variant = "new-leaf",
                   .prepare =
                       [](Bench& b) {
                         b.ino = b.make_directory({b.dir, b.name});
                         fill_leaf(b, b.ino);
                         b.name2 = long_name(b, 0);
                       },
                   .run =
                       [](Bench& b) {
                         must(b.fs.rename({b.ino, b.name2}, {b.ino, std::string(kNameMax, 'z')}, 0, kRoot));
                       },
                   .tidy = [](Bench& b) { b.remove(b.dir, b.name); }});

  cases.push_back({.op = "rename_cross_dir",
                   .variant = "file",
                   .prepare = make_here,
                   .run = renaming(there),
                   .tidy = unlink_there});
  cases.push_back({.op = "rename_cross_dir",
                   .variant = "directory",
                   .prepare = make_directory_here,
                   .run = renaming(there),
                   .tidy = rmdir_there});
  cases.push_back({.op = "rename_cross_dir",
                   .variant = "noreplace",
                   .prepare = make_here,
                   .run = renaming(there, RENAME_NOREPLACE),
                   .tidy = unlink_there});
  cases.push_back({.op = "rename_cross_dir", .variant = "many-in-a-row", .prepare = make_here, .run = renaming(there)});

  const auto file_and_victim = [](std::size_t victim_bytes) {
    return [victim_bytes](Bench& b) {
      make_here(b);
      b.make_file(b.here2(), victim_bytes);
    };
  };
  cases.push_back({.op = "rename_victim",
                   .variant = "file-last-link",
                   .prepare = file_and_victim(kBlockBytes),
                   .run = renaming(here2),
                   .tidy = unlink_here2});
  cases.push_back({.op = "rename_victim",
                   .variant = "file-1m",
                   .prepare = file_and_victim(kLarge),
                   .run = renaming(here2),
                   .tidy = unlink_here2});
  cases.push_back({.op = "rename_victim",
                   .variant = "file-links-remain",
                   .prepare =
                       [file_and_victim](Bench& b) {
                         file_and_victim(kBlockBytes)(b);
                         must(b.fs.link(b.here2(), {b.other, b.name2}, kRoot));
                       },
                   .run = renaming(here2),
                   .tidy = unlink_here2});
  cases.push_back({.op = "rename_victim",
                   .variant = "file-open",
                   .prepare =
                       [file_and_victim](Bench& b) {
                         file_and_victim(kBlockBytes)(b);
                         b.file = must(b.fs.open_file(b.here2(), O_RDWR, 0, kRoot));
                       },
                   .run = renaming(here2),
                   .tidy =
                       [](Bench& b) {
                         must(b.file.close());
                         unlink_here2(b);
                       }});
  cases.push_back({.op = "rename_victim",
                   .variant = "symlink",
                   .prepare =
                       [](Bench& b) {
                         make_here(b);
                         must(b.fs.symlink("somewhere", b.here2(), kRoot));
                       },
                   .run = renaming(here2),
                   .tidy = unlink_here2});
  cases.push_back({.op = "rename_victim",
                   .variant = "empty-directory",
                   .prepare =
                       [](Bench& b) {
                         make_directory_here(b);
                         b.make_directory(b.here2());
                       },
                   .run = renaming(here2),
                   .tidy = rmdir_here2});
  cases.push_back({.op = "rename_victim",
                   .variant = "file-cross-dir",
                   .prepare =
                       [](Bench& b) {
                         make_here(b);
                         b.make_file(b.there(), kBlockBytes);
                       },
                   .run = renaming(there),
                   .tidy = unlink_there});
  cases.push_back({.op = "rename_victim",
                   .variant = "empty-directory-cross-dir",
                   .prepare =
                       [](Bench& b) {
                         make_directory_here(b);
                         b.make_directory(b.there());
                       },
                   .run = renaming(there),
                   .tidy = rmdir_there});

  cases.push_back({.op = "rename_exchange",
                   .variant = "files",
                   .prepare = file_and_victim(0),
                   .run = renaming(here2, RENAME_EXCHANGE),
                   .tidy = [](Bench& b) {
                     unlink_here(b);
                     unlink_here2(b);
                   }});
  cases.push_back({.op = "rename_exchange",
                   .variant = "file-with-directory",
                   .prepare =
                       [](Bench& b) {
                         make_here(b);
                         b.make_directory(b.here2());
                       },
                   .run = renaming(here2, RENAME_EXCHANGE)});
  cases.push_back({.op = "rename_exchange",
                   .variant = "files-cross-dir",
                   .prepare =
                       [](Bench& b) {
                         make_here(b);
                         b.make_file(b.there());
                       },
                   .run = renaming(there, RENAME_EXCHANGE)});
  cases.push_back({.op = "rename_exchange",
                   .variant = "directories-cross-dir",
                   .prepare =
                       [](Bench& b) {
                         make_directory_here(b);
                         b.make_directory(b.there());
                       },
                   .run = renaming(there, RENAME_EXCHANGE)});
  cases.push_back({.op = "rename_exchange",
                   .variant = "file-with-directory-cross-dir",
                   .prepare =
                       [](Bench& b) {
                         make_here(b);
                         b.make_directory(b.there());
                       },
                   .run = renaming(there, RENAME_EXCHANGE)});
}

void add_whiteout(std::vector<Case>& cases) {
  const auto both = [](At (Bench::*to)() const) {
    return [to](Bench& b) {
      must(b.fs.unlink(b.here(), kRoot));
      must(b.fs.unlink((b.*to)(), kRoot));
    };
  };
  cases.push_back({.op = "rename_whiteout",
                   .variant = "same-dir",
                   .prepare = make_here,
                   .run = renaming(&Bench::here2, RENAME_WHITEOUT),
                   .tidy = both(&Bench::here2)});
  cases.push_back({.op = "rename_whiteout",
                   .variant = "cross-dir",
                   .prepare = make_here,
                   .run = renaming(&Bench::there, RENAME_WHITEOUT),
                   .tidy = both(&Bench::there)});
  cases.push_back({.op = "rename_whiteout",
                   .variant = "victim",
                   .prepare =
                       [](Bench& b) {
                         make_here(b);
                         b.make_file(b.here2());
                       },
                   .run = renaming(&Bench::here2, RENAME_WHITEOUT),
                   .tidy = both(&Bench::here2)});
}

}  // namespace

void add_tree_cases(std::vector<Case>& cases) {
  add_create(cases);
  add_other_makers(cases);
  add_removers(cases);
  add_renames(cases);
  add_whiteout(cases);
}

}  // namespace pmfs::tools
