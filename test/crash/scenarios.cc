// What the crash tests of the file system do, listed once: operations_crash_test.cc explores it, mutation_crash_test.cc
// leaves out its flushes and fences one by one.
#include "test/crash/scenarios.h"

#include <linux/falloc.h>

#include "fs/filesystem_impl.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

using Scenarios = std::vector<Scenario>;

Scenario one(const std::string& group, const std::string& name, std::function<void(User&)> prepare, Step step) {
  return {.group = group, .name = name, .prepare = std::move(prepare), .steps = {std::move(step)}};
}

const std::string kLong(255, 'l');

void file_with_data(User& u, const std::string& path, u64 bytes) {
  u.create(path);
  u.write(path, 0, some_bytes(bytes, 1));
}

Step write(const std::string& path, u64 off, u64 bytes, u32 uid = 0) {
  return [=](User& u) { return u.write(path, off, some_bytes(bytes, off + bytes), uid); };
}

// create: a crash shows the whole file or none
void add_create(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  add(one(
      "create", "create", [](User& u) { u.create("/other"); }, [](User& u) { return u.create("/file"); }));
  add(one(
      "create", "create, first name", [](User&) {}, [](User& u) { return u.create("/file"); }));
  add(one(
      "create", "create, name of 255 bytes", [](User& u) { u.create("/other"); },
      [](User& u) { return u.create("/" + kLong); }));
  add(one(
      "create", "create in a subdirectory", [](User& u) { u.mkdir("/d"); },
      [](User& u) { return u.create("/d/file"); }));
  add(one(
      "create", "mkdir", [](User& u) { u.mkdir("/other"); }, [](User& u) { return u.mkdir("/dir"); }));
  add(one(
      "create", "mknod", [](User&) {}, [](User& u) { return u.create("/dev", S_IFCHR | 0600, 0x501); }));
  add(one(
      "create", "symlink, short", [](User&) {}, [](User& u) { return u.symlink("target", "/s"); }));
  add(one(
      "create", "symlink, 128 bytes", [](User&) {}, [](User& u) { return u.symlink(std::string(128, 't'), "/s"); }));
  add(one(
      "create", "symlink, long", [](User&) {}, [](User& u) { return u.symlink(std::string(700, 't'), "/s"); }));
}

// link: a crash shows the other name and the count, or neither
void add_link(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  add(one(
      "link", "link", [](User& u) { u.create("/file"); }, [](User& u) { return u.link("/file", "/other"); }));
  add(one(
      "link", "link into another directory", [](User& u) { u.mkdir("/d"), u.create("/file"); },
      [](User& u) { return u.link("/file", "/d/other"); }));
}

// unlink and rmdir: a crash shows all of it or nothing
void add_remove(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  add(one(
      "remove", "unlink, last name", [](User& u) { file_with_data(u, "/file", 5000); },
      [](User& u) { return u.unlink("/file"); }));
  add(one(
      "remove", "unlink, names remain", [](User& u) { u.create("/file"), u.link("/file", "/other"); },
      [](User& u) { return u.unlink("/file"); }));
  add(one(
      "remove", "unlink, still open", [](User& u) { file_with_data(u, "/file", 5000), u.hold("/file"); },
      [](User& u) { return u.unlink("/file"); }));
  add(one(
      "remove", "unlink a long symlink", [](User& u) { u.symlink(std::string(700, 't'), "/s"); },
      [](User& u) { return u.unlink("/s"); }));
  add(one(
      "remove", "rmdir", [](User& u) { u.mkdir("/d"), u.create("/d/x"), u.unlink("/d/x"); },
      [](User& u) { return u.rmdir("/d"); }));
}

// unlink: a file that is removed and then closed stays removed
void add_remove2(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  add({.group = "remove",
       .name = "unlink while open, write, close, create",
       .prepare = [](User& u) { file_with_data(u, "/file", 5000), u.hold("/file"); },
       .steps = {[](User& u) { return u.unlink("/file"); },
                 [](User& u) {
                   u.let_go();
                   return Allowance{};
                 },
                 [](User& u) { return u.create("/next"); }}});
}

// rename: a crash shows exactly one of the two names
void add_rename(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto two = [](User& u) {
    u.mkdir("/d");
    file_with_data(u, "/a", 100);
    u.create("/b");
  };
  add(one("rename", "rename in one directory", two, [](User& u) { return u.rename("/a", "/c"); }));
  add(one("rename", "rename in one directory, long name", two, [](User& u) { return u.rename("/a", "/" + kLong); }));
  add(one("rename", "rename to another directory", two, [](User& u) { return u.rename("/a", "/d/c"); }));
  add(one("rename", "rename over a file", two, [](User& u) { return u.rename("/a", "/b"); }));
  add(one(
      "rename", "rename over a file that has other names", [&](User& u) { two(u), u.link("/b", "/d/b"); },
      [](User& u) { return u.rename("/a", "/b"); }));
  add(one(
      "rename", "rename over a file that is open", [&](User& u) { two(u), u.hold("/b"); },
      [](User& u) { return u.rename("/a", "/b"); }));
  add(one(
      "rename", "rename over a file in another directory", [&](User& u) { two(u), u.create("/d/b"); },
      [](User& u) { return u.rename("/a", "/d/b"); }));
  add(one("rename", "rename without replacing", two, [](User& u) { return u.rename("/a", "/c", RENAME_NOREPLACE); }));
}

// rename of directories: a crash shows exactly one place, and parents that agree
void add_rename_directory(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto dirs = [](User& u) { u.mkdir("/a"), u.mkdir("/b"), u.mkdir("/a/x"), u.create("/a/x/file"); };
  add(one("rename-directory", "rename a directory in its parent", dirs, [](User& u) { return u.rename("/a", "/c"); }));
  add(one("rename-directory", "rename a directory to another parent", dirs,
          [](User& u) { return u.rename("/a/x", "/b/y"); }));
  add(one(
      "rename-directory", "rename a directory over an empty one", [&](User& u) { dirs(u), u.mkdir("/b/y"); },
      [](User& u) { return u.rename("/a/x", "/b/y"); }));
  add(one("rename-directory", "rename a directory over an empty one in its parent", dirs,
          [](User& u) { return u.rename("/a", "/b"); }));
}

// exchange: a crash shows both names as before or both as after
void add_exchange(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto some = [](User& u) {
    u.mkdir("/d"), u.mkdir("/e"), u.mkdir("/d/x"), u.mkdir("/e/y"), u.create("/d/f"), u.create("/e/g"), u.create("/h");
  };
  const unsigned flag = RENAME_EXCHANGE;
  add(one(
      "exchange", "exchange files in one directory", [&](User& u) { some(u), u.create("/i"); },
      [=](User& u) { return u.rename("/h", "/i", flag); }));
  add(one("exchange", "exchange files of two directories", some,
          [=](User& u) { return u.rename("/d/f", "/e/g", flag); }));
  add(one("exchange", "exchange a file and a directory", some, [=](User& u) { return u.rename("/h", "/d", flag); }));
  add(one("exchange", "exchange a file and a directory of two parents", some,
          [=](User& u) { return u.rename("/d/f", "/e/y", flag); }));
  add(one("exchange", "exchange directories in one parent", some, [=](User& u) { return u.rename("/d", "/e", flag); }));
  add(one("exchange", "exchange directories of two parents", some,
          [=](User& u) { return u.rename("/d/x", "/e/y", flag); }));
}

// whiteout: a crash shows the old name alone, or the new one and a whiteout
void add_whiteout(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto some = [](User& u) { u.mkdir("/d"), file_with_data(u, "/a", 100), u.create("/b"), u.create("/d/c"); };
  const auto move = [](const std::string& from, const std::string& to, unsigned more = 0) {
    return [=](User& u) { return u.rename(from, to, RENAME_WHITEOUT | more); };
  };
  add(one("whiteout", "whiteout in one directory", some, move("/a", "/n")));
  add(one("whiteout", "whiteout in one directory, nothing to replace", some, move("/a", "/n", RENAME_NOREPLACE)));
  add(one("whiteout", "whiteout in one directory, over a file", some, move("/a", "/b")));
  add(one("whiteout", "whiteout in another directory", some, move("/a", "/d/n")));
  add(one("whiteout", "whiteout in another directory, over a file", some, move("/a", "/d/c")));
  add(one(
      "whiteout", "whiteout for a directory", [=](User& u) { some(u), u.mkdir("/e"); }, move("/d", "/e/n")));
  // The old name's entry moves into a fresh leaf, in the commit that makes it lead to the whiteout.
  for (const char digit : {'0', '5', '9', 'd'})
    add(one(
        "whiteout", text("whiteout while the leaf is split, entry ", digit),
        [](User& u) {
          for (u64 i = 0; i < 14; ++i) u.create("/" + std::string(250, 'n') + "0123456789abcd"[i]);
        },
        move("/" + std::string(250, 'n') + digit, "/" + kLong)));
  add(one(
      "whiteout", "whiteout while the inode file grows",
      [](User& u) {
        u.mkdir("/d");
        for (u64 i = 0; i < 62; ++i) u.create(text("/d/", i));
      },
      move("/d/7", "/n")));
}

// write: what extends a file or fills a hole is there entirely or not
void add_write(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto empty = [](User& u) { u.create("/f"); };
  add(one("write", "append, first block", empty, write("/f", 0, 4096)));
  add(one("write", "append, 1 byte", empty, write("/f", 0, 1)));
  add(one(
      "write", "append within a block, unaligned", [](User& u) { file_with_data(u, "/f", 1003); },
      write("/f", 1003, 517)));
  add(one(
      "write", "append over a block's end", [](User& u) { file_with_data(u, "/f", 4001); }, write("/f", 4001, 777)));
  add(one(
      "write", "append, contiguous", [](User& u) { file_with_data(u, "/f", 8192); }, write("/f", 8192, 12288)));
  add(one(
      "write", "append behind a gap", [](User& u) { file_with_data(u, "/f", 1003); }, write("/f", 3001, 333)));
  add(one(
      "write", "append far behind the end", [](User& u) { file_with_data(u, "/f", 1003); }, write("/f", 20001, 333)));
  add(one(
      "write", "append, not contiguous",
      [](User& u) { file_with_data(u, "/f", 4096), file_with_data(u, "/between", 4096); }, write("/f", 4096, 4096)));
  add(one(
      "write", "append in several extents",
      [](User& u) {
        // Holes of one block each in the free space.
        for (int i = 0; i < 6; ++i) file_with_data(u, text("/x", i), 4096);
        file_with_data(u, "/rest", 40960);
        for (int i = 0; i < 6; i += 2) u.unlink(text("/x", i));
        u.create("/f");
      },
      write("/f", 0, 40960)));
  const auto holes = [](User& u) {
    u.create("/f");
    u.truncate("/f", 40000);
    u.write("/f", 8192, some_bytes(4096, 2));
  };
  add(one("write", "write into a hole", holes, write("/f", 16384, 4096)));
  add(one("write", "write into a hole, unaligned", holes, write("/f", 17001, 333)));
  add(one("write", "write over data and holes", holes, write("/f", 6001, 9999)));
}

Step allocate(int mode, u64 off, u64 len, u32 uid = 0) {
  return [=](User& u) { return u.allocate("/f", mode, off, len, uid); };
}
Step reserve(u64 first, u64 count) { return allocate(0, first * kBlockBytes, count * kBlockBytes); }

// reserved blocks read as zero until a write into them is there, whatever lay in them
void add_reserved(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  // What is reserved later held data before.
  const auto dirty = [](User& u) {
    file_with_data(u, "/old", 100'000), u.unlink("/old"), u.create("/f");
    volume_of(u.fs()).quarantine.drain();
  };
  const auto reserved = [=](User& u) { dirty(u), reserve(0, 6)(u); };
  add(one("write", "reserve blocks", dirty, reserve(0, 6)));
  add(one(
      "write", "reserve blocks around data", [=](User& u) { dirty(u), write("/f", 8192, 5000)(u); }, reserve(0, 8)));
  add(one("write", "write into reserved blocks", reserved, write("/f", 8192, 4096)));
  add(one("write", "write into reserved blocks, unaligned", reserved, write("/f", 5001, 9333)));
  add(one("write", "write into reserved blocks and behind them", reserved, write("/f", 20001, 9333)));
  add(one("write", "write into all reserved blocks", reserved, write("/f", 0, 6 * 4096)));
}

// fallocate: a crash shows all of it or nothing, whatever lay in the blocks
void add_fallocate(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  constexpr int kKeep = FALLOC_FL_KEEP_SIZE, kPunch = FALLOC_FL_PUNCH_HOLE | kKeep, kZero = FALLOC_FL_ZERO_RANGE;
  constexpr int kCollapse = FALLOC_FL_COLLAPSE_RANGE, kInsert = FALLOC_FL_INSERT_RANGE;
  const auto dirty = [](User& u) {
    file_with_data(u, "/old", 100'000), u.unlink("/old"), u.create("/f");
    volume_of(u.fs()).quarantine.drain();
  };
  const auto file = [=](User& u) { dirty(u), u.write("/f", 0, some_bytes(20'003, 1)); };
  const auto pieces = [=](User& u) {  // data, hole, data, reserved, data
    dirty(u), u.write("/f", 0, some_bytes(5000, 1)), u.write("/f", 12'288, some_bytes(4096, 2));
    u.allocate("/f", 0, 16'384, 4096), u.write("/f", 20'480, some_bytes(3000, 3));
  };
  add(one("fallocate", "allocate behind the end, in the middle of blocks", file, allocate(0, 19'000, 9000)));
  add(one("fallocate", "allocate behind the end, the size stays", file, allocate(kKeep, 19'000, 9000)));
  add(one("fallocate", "allocate around data", pieces, allocate(0, 1, 24'000)));
  add(one(
      "fallocate", "allocate clears set-id", [=](User& u) { file(u), u.chmod("/f", 06755); },
      allocate(0, 0, 4096, 1000)));
  add({.group = "fallocate",
       .name = "blocks behind the end: written into, then cut",
       .prepare = [=](User& u) { file(u), u.allocate("/f", kKeep, 0, 40'960); },
       .steps = {write("/f", 25'001, 3333), [](User& u) { return u.truncate("/f", 28'334); }}});
  add(one(
      "fallocate", "blocks behind the end: truncated up over them",
      [=](User& u) { file(u), u.allocate("/f", kKeep, 0, 40'960); }, [](User& u) { return u.truncate("/f", 33'333); }));
  add(one("fallocate", "punch whole blocks", file, allocate(kPunch, 4096, 8192)));
  add(one("fallocate", "punch in one block", file, allocate(kPunch, 5001, 777)));
  add(one("fallocate", "punch over blocks, unaligned", file, allocate(kPunch, 5001, 9999)));
  add(one("fallocate", "punch to the end and behind", file, allocate(kPunch, 9001, 99'999)));
  add(one("fallocate", "punch data, holes and reserved blocks", pieces, allocate(kPunch, 1001, 21'000)));
  add(one("fallocate", "zero in one block", file, allocate(kZero, 5001, 777)));
  add(one("fallocate", "zero over blocks", file, allocate(kZero, 5001, 9999)));
  add(one("fallocate", "zero over the end", file, allocate(kZero, 17'001, 9999)));
  add(one("fallocate", "zero over the end, the size stays", file, allocate(kZero | kKeep, 17'001, 9999)));
  add(one("fallocate", "zero data, holes and reserved blocks", pieces, allocate(kZero, 1001, 21'000)));
  add({.group = "fallocate",
       .name = "zero, then write into it",
       .prepare = file,
       .steps = {allocate(kZero, 4096, 8192), write("/f", 5001, 5001)}});
  add(one("fallocate", "collapse", file, allocate(kCollapse, 4096, 8192)));
  add(one("fallocate", "collapse among pieces", pieces, allocate(kCollapse, 4096, 8192)));
  add(one("fallocate", "insert", file, allocate(kInsert, 8192, 8192)));
  add(one("fallocate", "insert among pieces", pieces, allocate(kInsert, 16'384, 4096)));
  add({.group = "fallocate",
       .name = "insert, collapse, by two threads",
       .prepare = file,
       .steps = {on_thread(1, allocate(kInsert, 4096, 4096)), on_thread(2, allocate(kCollapse, 4096, 4096)),
                 on_thread(1, write("/f", 4000, 500))}});
  add({.group = "fallocate",
       .name = "a block that was punched out is used again at once",
       .prepare = file,
       .steps = {on_thread(1, allocate(kPunch, 4096, 8192)), on_thread(2, [](User& u) { return u.create("/g"); }),
                 on_thread(2, write("/g", 0, 8192))}});
}

// copies: what extends the target is there entirely or not
void add_copy(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto files = [](User& u) {
    u.create("/from"), u.write("/from", 0, some_bytes(5000, 1)), u.write("/from", 13'000, some_bytes(5000, 2));
    file_with_data(u, "/to", 6000);
  };
  const auto copy = [](u64 off, const std::string& to, u64 to_off, u64 len) {
    return [=](User& u) { return u.copy("/from", off, to, to_off, len); };
  };
  add(one("copy", "copy to the end of a file", files, copy(0, "/to", 6000, 9000)));
  add(one("copy", "copy data and a hole, unaligned", files, copy(1001, "/to", 7777, 16'001)));
  add(one("copy", "copy over data", files, copy(13'001, "/to", 101, 3333)));
  add(one("copy", "copy over data and behind it", files, copy(100, "/to", 3000, 6000)));
  add(one("copy", "copy within a file", files, copy(0, "/from", 5001, 4444)));
}

// nameless files: a crash frees them, or shows them with their name and all that was in them
void add_nameless(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto made = [](User& u) { u.mkdir("/d"), u.tmpfile("/d"), u.write_tmpfile(0, some_bytes(5000, 1)); };
  const auto name = [](User& u) { return u.link_tmpfile("/d/f"); };
  add(one(
      "nameless", "a nameless file is made", [](User& u) { u.mkdir("/d"); }, [](User& u) { return u.tmpfile("/d"); }));
  add(one("nameless", "a nameless file is written", made,
          [](User& u) { return u.write_tmpfile(5000, some_bytes(5000, 2)); }));
  add(one("nameless", "a nameless file gets a name", made, name));
  add({.group = "nameless",
       .name = "made by one thread, written by another, named by a third",
       .prepare = [](User& u) { u.mkdir("/d"); },
       .steps = {on_thread(1, [](User& u) { return u.tmpfile("/d"); }),
                 on_thread(2, [](User& u) { return u.write_tmpfile(0, some_bytes(300, 2)); }), on_thread(3, name),
                 on_thread(2, [](User& u) { return u.write_tmpfile(300, some_bytes(300, 3)); })}});
  add({.group = "nameless",
       .name = "made by one thread, named by another",
       .prepare = [](User& u) { u.mkdir("/d"); },
       .steps = {on_thread(1, [](User& u) { return u.tmpfile("/d"); }), on_thread(2, name)}});
  add({.group = "nameless",
       .name = "given up, and its slot used again",
       .prepare = made,
       .steps = {[](User& u) {
                   u.let_go();
                   return Allowance{};
                 },
                 [](User& u) { return u.create("/next"); }}});
  add(one(
      "nameless", "made while the inode file grows",
      [](User& u) {
        u.mkdir("/d");
        for (u64 i = 0; i < 62; ++i) u.create(text("/d/", i));
      },
      [](User& u) { return u.tmpfile("/d"); }));
}

// write: a file's map grows from a word to a tree, and the tree by copying
void add_map(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto scattered = [](u64 pieces) {
    return [=](User& u) {
      u.create("/f");
      for (u64 i = 0; i < pieces; ++i) u.write("/f", i * 8192, some_bytes(100, i));
    };
  };
  add(one("map", "map: word to tree", scattered(1), write("/f", 8192, 100)));
  add(one("map", "map: another extent in the tree", scattered(5), write("/f", 5 * 8192, 100)));
  add(one("map", "map: extents join", scattered(3), write("/f", 4096, 4096)));
}

// write: data overwritten in place is old or new, word by word
void add_overwrite(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto file = [](User& u) { file_with_data(u, "/f", 9000); };
  add(one("overwrite", "overwrite a block", file, write("/f", 4096, 4096)));
  add(one("overwrite", "overwrite, unaligned", file, write("/f", 1001, 77)));
  add(one("overwrite", "overwrite over blocks", file, write("/f", 3001, 5555)));
  add(one("overwrite", "overwrite and extend", file, write("/f", 8001, 5555)));
  add(one(
      "overwrite", "overwrite clears set-id", [&](User& u) { file(u), u.chmod("/f", 06755); },
      write("/f", 100, 200, 1000)));
  add(one(
      "overwrite", "extend clears set-id", [&](User& u) { file(u), u.chmod("/f", 06755); },
      write("/f", 9000, 200, 1000)));
  const auto store = [](u64 off, u64 len) {  // through pointers into the pool
    return [=](User& u) {
      const File open = must(u.fs().open_file("/f", O_RDWR, 0, Credentials::root()), "open");
      const Lease lease = must(open.direct(off, len, DirectUse::kWrite), "lease");
      const std::vector<std::byte> bytes = some_bytes(len, off);
      u64 done = 0;
      for (const auto& piece : lease.writable_pieces()) {
        volume_of(u.fs()).persist.write(piece.data(), &bytes[done], piece.size());  // tells the simulator of it
        done += piece.size();
      }
      must(lease.persist(0, len), "persist");
      Allowance allowance;
      allowance.mixed_ino = open.ino();
      allowance.mixed_off = off;
      allowance.mixed_len = len;
      allowance.times_lazy = {open.ino()};
      return allowance;
    };
  };
  add(one("overwrite", "store through a lease", file, store(3001, 5555)));
  add(one(
      "overwrite", "store through a lease after a logged change", [&](User& u) { file(u), u.chmod("/f", 0600); },
      store(100, 50)));
  add({.group = "overwrite",
       .name = "overwrite, overwrite, fsync",
       .prepare = file,
       .steps = {write("/f", 0, 10), write("/f", 100, 10), [](User& u) { return u.fsync("/f"); }}});
  add({.group = "overwrite",
       .name = "overwrite, then a logged change, then overwrite",
       .prepare = file,
       .steps = {write("/f", 0, 10), [](User& u) { return u.chmod("/f", 0600); }, write("/f", 100, 10)}});
}

// truncate: a crash shows the old or the new size, and no old bytes behind it
void add_truncate(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto file = [](User& u) { file_with_data(u, "/f", 20000); };
  const auto to = [](u64 size) { return [=](User& u) { return u.truncate("/f", size); }; };
  add(one("truncate", "truncate to nothing", file, to(0)));
  add(one("truncate", "truncate in a block", file, to(5001)));
  add(one("truncate", "truncate at a block's end", file, to(8192)));
  add(one("truncate", "truncate within the last block", file, to(19999)));
  add(one("truncate", "truncate up", file, to(30001)));
  add(one(
      "truncate", "truncate up from a block's end", [](User& u) { file_with_data(u, "/f", 8192); }, to(30001)));
  add({.group = "truncate", .name = "truncate down and up", .prepare = file, .steps = {to(5001), to(7003), to(20000)}});
  add({.group = "truncate",
       .name = "truncate down and append",
       .prepare = file,
       .steps = {to(5001), write("/f", 5001, 100)}});
  add(one(
      "truncate", "truncate a mapped tree",
      [](User& u) {
        u.create("/f");
        for (u64 i = 0; i < 6; ++i) u.write("/f", i * 8192, some_bytes(100, i));
      },
      to(20000)));
}

// attributes: a crash shows all of a change or none of it
void add_attributes(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto file = [](User& u) { u.create("/f"), u.mkdir("/d"); };
  add(one("attributes", "chmod", file, [](User& u) { return u.chmod("/f", 0600); }));
  add(one("attributes", "chmod of a directory", file, [](User& u) { return u.chmod("/d", 0700); }));
  add(one("attributes", "chown", file, [](User& u) { return u.chown("/f", 5, 6); }));
  add(one("attributes", "utimens", file, [](User& u) { return u.utimens("/f", 1, 2); }));
  add(one("attributes", "all at once", file, [](User& u) {
    SetAttributes change;
    change.mode = 0640, change.uid = 3, change.gid = 4, change.size_bytes = 12345, change.atime_ns = 5,
    change.mtime_ns = 6;
    return u.set("/f", change);
  }));
}

// times: lazily stored ones are durable once fsync has returned
void add_times(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto file = [](User& u) { file_with_data(u, "/f", 100); };
  add({.group = "times",
       .name = "read, fsync",
       .prepare = file,
       .steps = {[](User& u) { return u.read("/f"); }, [](User& u) { return u.fsync("/f"); }},
       .open = SimFs::strict_atime()});
  add({.group = "times",
       .name = "read, chmod",
       .prepare = file,
       .steps = {[](User& u) { return u.read("/f"); }, [](User& u) { return u.chmod("/f", 0600); }},
       .open = SimFs::strict_atime()});
  add({.group = "times",
       .name = "utimens, read, utimens, read, fsync",
       .prepare = file,
       .steps = {[](User& u) { return u.utimens("/f", 10, 20); }, [](User& u) { return u.read("/f"); },
                 [](User& u) { return u.utimens("/f", 11, 21); }, [](User& u) { return u.read("/f"); },
                 [](User& u) { return u.fsync("/f"); }},
       .open = SimFs::strict_atime()});
  add({.group = "times",
       .name = "utimens, read, sync of everything",
       .prepare = file,
       .steps = {[](User& u) { return u.utimens("/f", 10, 20); }, [](User& u) { return u.read("/f"); },
                 [](User& u) { return u.sync(); }},
       .open = SimFs::strict_atime()});
  add({.group = "times",
       .name = "overwrite, read, sync of everything",
       .prepare = file,
       .steps = {write("/f", 0, 10), [](User& u) { return u.read("/f"); }, [](User& u) { return u.sync(); }},
       .open = SimFs::strict_atime()});
}

// directories: full leaves, fragmented leaves and a growing inode file are part of one commit
void add_leaves(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto names = [](u64 count, std::size_t length) {
    return [=](User& u) {
      for (u64 i = 0; i < count; ++i) u.create(text("/", std::string(length, 'n'), i));
    };
  };
  add(one("leaves", "a leaf's bytes are full: a new leaf", names(14, 250),
          [](User& u) { return u.create("/" + kLong); }));
  add(one(
      "leaves", "a leaf's slots are full: a new leaf",
      [](User& u) {
        u.create("/f");
        for (u64 i = 0; i < 63; ++i) u.link("/f", text("/l", i));
      },
      [](User& u) { return u.link("/f", "/one-more"); }));
  add(one(
      "leaves", "a fragmented leaf is rewritten",
      [&](User& u) {
        names(14, 250)(u);
        for (u64 i = 0; i < 14; i += 2) u.unlink(text("/", std::string(250, 'n'), i));
        for (u64 i = 0; i < 7; ++i) u.create(text("/", std::string(150, 'm'), i));
        for (u64 i = 0; i < 7; ++i) u.unlink(text("/", std::string(150, 'm'), i));
      },
      [](User& u) { return u.create("/" + kLong); }));
  add(one(
      "leaves", "the inode file grows",
      [](User& u) {
        u.mkdir("/d");
        for (u64 i = 0; i < 62; ++i) u.create(text("/d/", i));
      },
      [](User& u) { return u.create("/d/one-more"); }));
  add(one(
      "leaves", "the inode file grows over old data",
      [](User& u) {
        file_with_data(u, "/old", 300000), u.unlink("/old"), u.mkdir("/d");
        for (u64 i = 0; i < 62; ++i) u.create(text("/d/", i));
        u.fs() = Filesystem();  // closed: what was freed may be used
        u.fs() = must(SimFs::open(u.memory(), SimFs::quiet()), "open again");
      },
      [](User& u) { return u.create("/d/one-more"); }));
  add({.group = "leaves",
       .name = "the bytes of a removed entry",
       .prepare = names(14, 250),
       .steps = {[](User& u) { return u.unlink(text("/", std::string(250, 'n'), 3)); },
                 [](User& u) { return u.create("/" + std::string(250, 'z')); },
                 [](User& u) { return u.create("/" + std::string(251, 'z')); }}});
}

// full pools: an operation that does not fit changes nothing; deleting works
void add_full(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto fill = [](User& u) {
    u.create("/fill");
    const std::vector<std::byte> chunk = some_bytes(65536, 3);
    const Attributes a = must(u.fs().stat("/fill", Credentials::root()), "stat");
    for (u64 off = 0;;) {
      const auto written = u.fs().write(a.ino, off, chunk, Credentials::root());
      if (!written.ok()) break;
      off += *written;
    }
  };
  const auto refused = [](const char* path) {
    return [=](User& u) {
      const auto made = u.fs().symlink(std::string(700, 't'), path, Credentials::root());
      if (made.ok() || made.error().code != Errc::kNoSpace) throw std::runtime_error("the pool is not full");
      return Allowance{};
    };
  };
  add({.group = "full",
       .name = "full: refused, removed, allowed",
       .prepare = [&](User& u) { file_with_data(u, "/x", 8192), fill(u); },
       .steps = {refused("/s"), [](User& u) { return u.unlink("/x"); },
                 [](User& u) { return u.symlink(std::string(700, 't'), "/s"); }}});
  add({.group = "full",
       .name = "full: truncated, written again",
       .prepare = fill,
       .steps = {[](User& u) { return u.truncate("/fill", 4096); }, write("/fill", 4096, 20000)}});
}

// close and open: a crash in them shows what was there before
void add_close(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto some = [](User& u) { u.mkdir("/d"), file_with_data(u, "/d/f", 5000), u.create("/g"), u.unlink("/g"); };
  add(one("close", "close", some, [](User& u) {
    Allowance allowance;
    must(u.fs().close(), "close");
    allowance.closes = true;
    return allowance;
  }));
  const auto reopen = [](User& u) {
    must(u.fs().close(), "close");
    u.fs() = must(SimFs::open(u.memory(), SimFs::quiet()), "open again");
    return Allowance{};
  };
  add({.group = "close", .name = "close, open, work", .prepare = some, .steps = {reopen, [](User& u) {
                                                                                   return u.create("/after");
                                                                                 }}});
  add({.group = "close",
       .name = "opened by one thread, used by another",
       .prepare = some,
       .steps = {reopen, on_thread(1, [](User& u) { return u.create("/after"); })}});
  add({.group = "close",
       .name = "lazy times, close, open, work",
       .prepare = some,
       .steps = {write("/d/f", 0, 100),
                 [](User& u) {
                   Allowance allowance = u.sync();
                   must(u.fs().close(), "close");
                   u.fs() = must(SimFs::open(u.memory(), SimFs::quiet()), "open again");
                   return allowance;
                 },
                 [](User& u) { return u.create("/after"); }}});
}

// Several threads, each with a lane of its own, one after the other on the same objects.
void add_threads(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto create = [](const std::string& path) { return [=](User& u) { return u.create(path); }; };
  const auto unlink = [](const std::string& path) { return [=](User& u) { return u.unlink(path); }; };
  const auto chmod = [](const std::string& path, u32 mode) { return [=](User& u) { return u.chmod(path, mode); }; };
  add({.group = "threads",
       .name = "two threads create in one directory",
       .prepare = [](User& u) { u.create("/x"); },
       .steps = {on_thread(1, create("/a")), on_thread(2, create("/b")), on_thread(1, create("/c"))}});
  add({.group = "threads",
       .name = "one creates, another removes, the first creates again",
       .steps = {on_thread(1, create("/a")), on_thread(2, unlink("/a")), on_thread(1, create("/a"))}});
  add({.group = "threads",
       .name = "one writes, another truncates, a third writes in place",
       .prepare = [](User& u) { file_with_data(u, "/f", 9000); },
       .steps = {on_thread(1, write("/f", 9000, 3000)), on_thread(2, [](User& u) { return u.truncate("/f", 6000); }),
                 on_thread(3, write("/f", 100, 100)), on_thread(1, chmod("/f", 0600))}});
  add({.group = "threads",
       .name = "one renames, another exchanges back",
       .prepare = [](User& u) { u.mkdir("/d"), u.create("/d/f"), u.create("/g"); },
       .steps = {on_thread(1, [](User& u) { return u.rename("/d/f", "/f"); }),
                 on_thread(2, [](User& u) { return u.rename("/f", "/g", RENAME_EXCHANGE); }),
                 on_thread(3, [](User& u) { return u.rename("/f", "/d/f"); })}});
  for (const bool other_way : {false, true})
    add({.group = "threads",
         .name = text("two directories changed by two threads, a file moves ", other_way ? "back" : "there"),
         .prepare = [](User& u) { u.mkdir("/d"), u.mkdir("/e"), u.create("/d/f"), u.create("/e/g"); },
         .steps = {on_thread(1, create("/d/a")), on_thread(2, create("/e/b")), on_thread(3, [=](User& u) {
                     return other_way ? u.rename("/e/g", "/d/f") : u.rename("/d/f", "/e/g");
                   })}});
  add({.group = "threads",
       .name = "a file and a directory changed by two threads, a third links",
       .prepare = [](User& u) { u.mkdir("/d"), u.create("/f"); },
       .steps = {on_thread(1, chmod("/f", 0600)), on_thread(2, create("/d/b")),
                 on_thread(3, [](User& u) { return u.link("/f", "/d/f"); })}});
  add({.group = "threads",
       .name = "one removes, another reuses the entry's bytes, a third the inode",
       .prepare =
           [](User& u) {
             for (u64 i = 0; i < 14; ++i) u.create(text("/", std::string(250, 'n'), i));
           },
       .steps = {on_thread(1, unlink(text("/", std::string(250, 'n'), 3))), on_thread(2, chmod("/", 0711)),
                 on_thread(2, create("/" + std::string(250, 'z'))), on_thread(3, create("/y"))}});
}

// A pool in which freed space is needed again at once: it is drained from the quarantine.
void add_drain(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto fill = [](User& u) {
    u.create("/fill");
    const Attributes a = must(u.fs().stat("/fill", Credentials::root()), "stat");
    const std::vector<std::byte> chunk = some_bytes(65536, 3);
    for (u64 off = 0;;) {
      const auto written = u.fs().write(a.ino, off, chunk, Credentials::root());
      if (!written.ok()) break;
      off += *written;
    }
  };
  add({.group = "drain",
       .name = "the blocks of a removed file are written again at once",
       .prepare = [=](User& u) { file_with_data(u, "/old", 40000), u.create("/new"), fill(u); },
       .steps = {on_thread(1, [](User& u) { return u.unlink("/old"); }), on_thread(2, write("/new", 0, 40000)),
                 on_thread(1, [](User& u) { return u.truncate("/new", 0); }), on_thread(1, write("/fill", 1000, 9))}});
  // No free slot but the quarantined one, and no room to grow the inode file.
  add({.group = "drain",
       .name = "the inode of a removed file is used again at once",
       .prepare =
           [=](User& u) {  // no free inode, and no room for more
             for (u64 i = 0; i < 62; ++i) u.create(text("/", i));
             fill(u);
           },
       .steps = {on_thread(1, [](User& u) { return u.unlink("/7"); }),
                 on_thread(3, [](User& u) { return u.mkdir("/again"); }),
                 on_thread(2, [](User& u) { return u.chmod("/again", 0700); })}});
}

// Attributes and ACLs: a crash shows all that one call changes, mode and change time too, or nothing of it.
void add_xattrs(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto set = [](const std::string& path, const std::string& name, u64 bytes) {
    return [=](User& u) { return u.set_xattr(path, name, bytes); };
  };
  const auto file = [](User& u) { u.create("/f"); };
  const auto with = [=](u64 bytes) { return [=](User& u) { u.create("/f"), u.set_xattr("/f", "user.a", bytes); }; };
  add(one("xattr", "setxattr, the first, small", file, set("/f", "user.a", 20)));
  add(one("xattr", "setxattr, the first, large", file, set("/f", "user.a", 5000)));
  add(one("xattr", "setxattr, a small one is replaced", with(20), set("/f", "user.a", 60)));
  add(one("xattr", "setxattr, a small one gets large", with(20), set("/f", "user.a", 5000)));
  add(one("xattr", "setxattr, a large one gets small", with(5000), set("/f", "user.a", 20)));
  add(one("xattr", "setxattr, a large one is replaced", with(5000), set("/f", "user.a", 4500)));
  add(one("xattr", "setxattr, a second one", with(20), set("/f", "trusted.b", 30)));
  add(one(
      "xattr", "setxattr of a symbolic link", [](User& u) { u.symlink("target", "/s"); }, set("/s", "trusted.a", 9)));
  for (const u64 bytes : {u64{20}, u64{5000}}) {
    const auto remove = [](User& u) { return u.remove_xattr("/f", "user.a"); };
    const auto unlink = [](User& u) { return u.unlink("/f"); };
    add(one("xattr", text("removexattr, ", bytes, " bytes"), with(bytes), remove));
    add(one("xattr", text("unlink of a file with an attribute of ", bytes, " bytes"), with(bytes), unlink));
  }
  add(one("xattr", "setxattr in pieces of free space",
          [](User& u) {  // holes of one block each
            for (int i = 0; i < 6; ++i) file_with_data(u, text("/x", i), 4096);
            file_with_data(u, "/rest", 40960);
            for (int i = 0; i < 6; i += 2) u.unlink(text("/x", i));
            u.create("/f");
          },
          set("/f", "user.a", 20000)));
  add(one("xattr", "a write takes security.capability away",
          [](User& u) {
            file_with_data(u, "/f", 5000);
            u.set_xattr("/f", "user.a", 3000), u.set_xattr("/f", "security.capability", 20);
          },
          write("/f", 100, 50)));
}

void add_acls(Scenarios& all) {
  const auto add = [&](Scenario scenario) { all.push_back(std::move(scenario)); };
  const auto set = [](const std::string& path, AclKind kind, u32 users) {
    return [=](User& u) { return u.set_acl(path, kind, some_acl(users)); };
  };
  const auto remove = [](const std::string& path, AclKind kind) {
    return [=](User& u) { return u.set_acl(path, kind, {}); };
  };
  const auto with = [=](u32 users, u64 attribute) {
    return [=](User& u) {
      u.create("/f");
      u.set_acl("/f", AclKind::kAccess, some_acl(users));
      if (attribute != 0) u.set_xattr("/f", "user.a", attribute);
    };
  };
  const auto inherits = [=](u32 users) {
    return [=](User& u) { u.mkdir("/d"), u.set_acl("/d", AclKind::kDefault, some_acl(users)); };
  };
  add(one(
      "acl", "set an ACL, the first", [](User& u) { u.create("/f"); }, set("/f", AclKind::kAccess, 2)));
  add(one(
      "acl", "set an ACL of many entries, the first", [](User& u) { u.create("/f"); },
      set("/f", AclKind::kAccess, 40)));
  add(one("acl", "set an ACL, an attribute moves out of the inode", with(1, 90), set("/f", AclKind::kAccess, 9)));
  add(one("acl", "set an ACL, all in the inode", with(2, 30), set("/f", AclKind::kAccess, 4)));
  add(one("acl", "an ACL of many entries becomes one of few", with(40, 30), set("/f", AclKind::kAccess, 2)));
  add(one("acl", "an ACL goes", with(2, 30), remove("/f", AclKind::kAccess)));
  add(one("acl", "an ACL of many entries goes", with(40, 0), remove("/f", AclKind::kAccess)));
  add(one("acl", "a mode is set as an ACL", with(2, 0), [](User& u) {
    return u.set_acl("/f", AclKind::kAccess,
                     {{AclTag::kUserObj, 6, 0}, {AclTag::kGroupObj, 4, 0}, {AclTag::kOther, 0, 0}});
  }));
  add(one("acl", "chmod with an ACL", with(2, 0), [](User& u) { return u.chmod("/f", 0640); }));
  add(one("acl", "unlink with an ACL of many entries", with(40, 0), [](User& u) { return u.unlink("/f"); }));
  add(one("acl", "a default ACL beside an access ACL",
          [](User& u) { u.mkdir("/d"), u.set_acl("/d", AclKind::kAccess, some_acl(3)); },
          set("/d", AclKind::kDefault, 3)));
  for (const u32 users : {2u, 40u}) {
    add(one("acl", text("create under a default ACL of ", users), inherits(users),
            [](User& u) { return u.create("/d/f"); }));
    add(one("acl", text("mkdir under a default ACL of ", users), inherits(users),
            [](User& u) { return u.mkdir("/d/e"); }));
    add(one("acl", text("rmdir of a directory with a default ACL of ", users), inherits(users),
            [](User& u) { return u.rmdir("/d"); }));
  }
  add({.group = "acl",
       .name = "attributes and ACLs of one file changed by three threads",
       .prepare = with(2, 20),
       .steps = {on_thread(1, [](User& u) { return u.set_xattr("/f", "user.a", 5000); }),
                 on_thread(2, [](User& u) { return u.set_acl("/f", AclKind::kAccess, some_acl(12)); }),
                 on_thread(3, [](User& u) { return u.remove_xattr("/f", "user.a"); }),
                 on_thread(1, [](User& u) { return u.chmod("/f", 0604); })}});
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = [] {
    Scenarios list;
    for (const auto add :
         {add_create,   add_link,     add_remove,    add_remove2,  add_rename,     add_rename_directory,
          add_exchange, add_whiteout, add_write,     add_reserved, add_fallocate,  add_copy,
          add_nameless, add_map,      add_overwrite, add_truncate, add_attributes, add_times,
          add_leaves,   add_full,     add_close,     add_threads,  add_drain,      add_xattrs,
          add_acls})
      add(list);
    return list;
  }();
  return all;
}

std::vector<Scenario> scenarios(const std::string& group) {
  std::vector<Scenario> some;
  for (const Scenario& scenario : scenarios())
    if (scenario.group == group) some.push_back(scenario);
  return some;
}

}  // namespace pmfs::test
