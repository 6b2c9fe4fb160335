// Every operation of the file system, crashed everywhere: before or after, nothing else; after, once it has returned.
#include <cstdio>

#include "test/support/catch.h"
#include "test/support/fs_scenario.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

Report total;

void crash(Scenario scenario, const ScenarioOptions& options = usual_options()) {
  const Report report = explore(scenario, options);
  std::puts(describe(report).c_str());
  std::fflush(stdout);
  total += report;
  INFO(describe_failures(report));
  CHECK(report.clean());
  CHECK(report.states > 1);
}

using Step = std::function<Allowance(User&)>;
Scenario one(const std::string& name, std::function<void(User&)> prepare, Step step) {
  return {.name = name, .prepare = std::move(prepare), .steps = {std::move(step)}};
}

const std::string kLong(255, 'l');

TEST_CASE("create: a crash shows the whole file or none", "[crash][fs]") {
  crash(one("create", [](User& u) { u.create("/other"); }, [](User& u) { return u.create("/file"); }));
  crash(one("create, first name", [](User&) {}, [](User& u) { return u.create("/file"); }));
  crash(one(
      "create, name of 255 bytes", [](User& u) { u.create("/other"); }, [](User& u) { return u.create("/" + kLong); }));
  crash(one("create in a subdirectory", [](User& u) { u.mkdir("/d"); }, [](User& u) { return u.create("/d/file"); }));
  crash(one("mkdir", [](User& u) { u.mkdir("/other"); }, [](User& u) { return u.mkdir("/dir"); }));
  crash(one("mknod", [](User&) {}, [](User& u) { return u.create("/dev", S_IFCHR | 0600, 0x501); }));
  crash(one("symlink, short", [](User&) {}, [](User& u) { return u.symlink("target", "/s"); }));
  crash(one("symlink, 128 bytes", [](User&) {}, [](User& u) { return u.symlink(std::string(128, 't'), "/s"); }));
  crash(one("symlink, long", [](User&) {}, [](User& u) { return u.symlink(std::string(700, 't'), "/s"); }));
}

TEST_CASE("link: a crash shows the other name and the count, or neither", "[crash][fs]") {
  crash(one("link", [](User& u) { u.create("/file"); }, [](User& u) { return u.link("/file", "/other"); }));
  crash(one("link into another directory", [](User& u) { u.mkdir("/d"), u.create("/file"); },
            [](User& u) { return u.link("/file", "/d/other"); }));
}

void file_with_data(User& u, const std::string& path, u64 bytes) {
  u.create(path);
  u.write(path, 0, some_bytes(bytes, 1));
}

TEST_CASE("unlink and rmdir: a crash shows all of it or nothing", "[crash][fs]") {
  crash(one(
      "unlink, last name", [](User& u) { file_with_data(u, "/file", 5000); },
      [](User& u) { return u.unlink("/file"); }));
  crash(one("unlink, names remain", [](User& u) { u.create("/file"), u.link("/file", "/other"); },
            [](User& u) { return u.unlink("/file"); }));
  crash(one("unlink, still open", [](User& u) { file_with_data(u, "/file", 5000), u.hold("/file"); },
            [](User& u) { return u.unlink("/file"); }));
  crash(one("unlink a long symlink", [](User& u) { u.symlink(std::string(700, 't'), "/s"); },
            [](User& u) { return u.unlink("/s"); }));
  crash(one("rmdir", [](User& u) { u.mkdir("/d"), u.create("/d/x"), u.unlink("/d/x"); },
            [](User& u) { return u.rmdir("/d"); }));
}

TEST_CASE("unlink: a file that is removed and then closed stays removed", "[crash][fs]") {
  crash({.name = "unlink while open, write, close, create",
         .prepare = [](User& u) { file_with_data(u, "/file", 5000), u.hold("/file"); },
         .steps = {[](User& u) { return u.unlink("/file"); },
                   [](User& u) {
                     u.let_go();
                     return Allowance{};
                   },
                   [](User& u) { return u.create("/next"); }}});
}

TEST_CASE("rename: a crash shows exactly one of the two names", "[crash][fs]") {
  const auto two = [](User& u) {
    u.mkdir("/d");
    file_with_data(u, "/a", 100);
    u.create("/b");
  };
  crash(one("rename in one directory", two, [](User& u) { return u.rename("/a", "/c"); }));
  crash(one("rename in one directory, long name", two, [](User& u) { return u.rename("/a", "/" + kLong); }));
  crash(one("rename to another directory", two, [](User& u) { return u.rename("/a", "/d/c"); }));
  crash(one("rename over a file", two, [](User& u) { return u.rename("/a", "/b"); }));
  crash(one("rename over a file that has other names", [&](User& u) { two(u), u.link("/b", "/d/b"); },
            [](User& u) { return u.rename("/a", "/b"); }));
  crash(one("rename over a file that is open", [&](User& u) { two(u), u.hold("/b"); },
            [](User& u) { return u.rename("/a", "/b"); }));
  crash(one("rename over a file in another directory", [&](User& u) { two(u), u.create("/d/b"); },
            [](User& u) { return u.rename("/a", "/d/b"); }));
  crash(one("rename without replacing", two, [](User& u) { return u.rename("/a", "/c", RENAME_NOREPLACE); }));
}

TEST_CASE("rename of directories: a crash shows exactly one place, and parents that agree", "[crash][fs]") {
  const auto dirs = [](User& u) {
    u.mkdir("/a"), u.mkdir("/b"), u.mkdir("/a/x"), u.create("/a/x/file");
  };
  crash(one("rename a directory in its parent", dirs, [](User& u) { return u.rename("/a", "/c"); }));
  crash(one("rename a directory to another parent", dirs, [](User& u) { return u.rename("/a/x", "/b/y"); }));
  crash(one("rename a directory over an empty one", [&](User& u) { dirs(u), u.mkdir("/b/y"); },
            [](User& u) { return u.rename("/a/x", "/b/y"); }));
  crash(one("rename a directory over an empty one in its parent", dirs, [](User& u) { return u.rename("/a", "/b"); }));
}

TEST_CASE("exchange: a crash shows both names as before or both as after", "[crash][fs]") {
  const auto some = [](User& u) {
    u.mkdir("/d"), u.mkdir("/e"), u.mkdir("/d/x"), u.mkdir("/e/y"), u.create("/d/f"), u.create("/e/g"), u.create("/h");
  };
  const unsigned flag = RENAME_EXCHANGE;
  crash(one("exchange files in one directory", [&](User& u) { some(u), u.create("/i"); },
            [=](User& u) { return u.rename("/h", "/i", flag); }));
  crash(one("exchange files of two directories", some, [=](User& u) { return u.rename("/d/f", "/e/g", flag); }));
  crash(one("exchange a file and a directory", some, [=](User& u) { return u.rename("/h", "/d", flag); }));
  crash(one("exchange a file and a directory of two parents", some,
            [=](User& u) { return u.rename("/d/f", "/e/y", flag); }));
  crash(one("exchange directories in one parent", some, [=](User& u) { return u.rename("/d", "/e", flag); }));
  crash(one("exchange directories of two parents", some, [=](User& u) { return u.rename("/d/x", "/e/y", flag); }));
}

Step write(const std::string& path, u64 off, u64 bytes, u32 uid = 0) {
  return [=](User& u) { return u.write(path, off, some_bytes(bytes, off + bytes), uid); };
}

TEST_CASE("write: what extends a file or fills a hole is there entirely or not", "[crash][fs]") {
  const auto empty = [](User& u) { u.create("/f"); };
  crash(one("append, first block", empty, write("/f", 0, 4096)));
  crash(one("append, 1 byte", empty, write("/f", 0, 1)));
  crash(one(
      "append within a block, unaligned", [](User& u) { file_with_data(u, "/f", 1003); }, write("/f", 1003, 517)));
  crash(one("append over a block's end", [](User& u) { file_with_data(u, "/f", 4001); }, write("/f", 4001, 777)));
  crash(one("append, contiguous", [](User& u) { file_with_data(u, "/f", 8192); }, write("/f", 8192, 12288)));
  crash(one("append behind a gap", [](User& u) { file_with_data(u, "/f", 1003); }, write("/f", 3001, 333)));
  crash(one("append far behind the end", [](User& u) { file_with_data(u, "/f", 1003); }, write("/f", 20001, 333)));
  crash(one("append, not contiguous", [](User& u) {
    file_with_data(u, "/f", 4096), file_with_data(u, "/between", 4096);
  }, write("/f", 4096, 4096)));
  crash(one("append in several extents", [](User& u) {
    // Holes of one block each in the free space.
    for (int i = 0; i < 6; ++i) file_with_data(u, text("/x", i), 4096);
    file_with_data(u, "/rest", 40960);
    for (int i = 0; i < 6; i += 2) u.unlink(text("/x", i));
    u.create("/f");
  }, write("/f", 0, 40960)));
  const auto holes = [](User& u) {
    u.create("/f");
    u.truncate("/f", 40000);
    u.write("/f", 8192, some_bytes(4096, 2));
  };
  crash(one("write into a hole", holes, write("/f", 16384, 4096)));
  crash(one("write into a hole, unaligned", holes, write("/f", 17001, 333)));
  crash(one("write over data and holes", holes, write("/f", 6001, 9999)));
}

TEST_CASE("write: a file's map grows from a word to a tree, and the tree by copying", "[crash][fs]") {
  const auto scattered = [](u64 pieces) {
    return [=](User& u) {
      u.create("/f");
      for (u64 i = 0; i < pieces; ++i) u.write("/f", i * 8192, some_bytes(100, i));
    };
  };
  crash(one("map: word to tree", scattered(1), write("/f", 8192, 100)));
  crash(one("map: another extent in the tree", scattered(5), write("/f", 5 * 8192, 100)));
  crash(one("map: extents join", scattered(3), write("/f", 4096, 4096)));
}

TEST_CASE("write: data overwritten in place is old or new, word by word", "[crash][fs]") {
  const auto file = [](User& u) { file_with_data(u, "/f", 9000); };
  crash(one("overwrite a block", file, write("/f", 4096, 4096)));
  crash(one("overwrite, unaligned", file, write("/f", 1001, 77)));
  crash(one("overwrite over blocks", file, write("/f", 3001, 5555)));
  crash(one("overwrite and extend", file, write("/f", 8001, 5555)));
  crash(one("overwrite clears set-id", [&](User& u) { file(u), u.chmod("/f", 06755); }, write("/f", 100, 200, 1000)));
  crash(one("extend clears set-id", [&](User& u) { file(u), u.chmod("/f", 06755); }, write("/f", 9000, 200, 1000)));
  crash({.name = "overwrite, overwrite, fsync", .prepare = file, .steps = {write("/f", 0, 10), write("/f", 100, 10),
         [](User& u) { return u.fsync("/f"); }}});
  crash({.name = "overwrite, then a logged change, then overwrite", .prepare = file, .steps = {write("/f", 0, 10),
         [](User& u) { return u.chmod("/f", 0600); }, write("/f", 100, 10)}});
}

TEST_CASE("truncate: a crash shows the old or the new size, and no old bytes behind it", "[crash][fs]") {
  const auto file = [](User& u) { file_with_data(u, "/f", 20000); };
  const auto to = [](u64 size) { return [=](User& u) { return u.truncate("/f", size); }; };
  crash(one("truncate to nothing", file, to(0)));
  crash(one("truncate in a block", file, to(5001)));
  crash(one("truncate at a block's end", file, to(8192)));
  crash(one("truncate within the last block", file, to(19999)));
  crash(one("truncate up", file, to(30001)));
  crash(one("truncate up from a block's end", [](User& u) { file_with_data(u, "/f", 8192); }, to(30001)));
  crash({.name = "truncate down and up", .prepare = file, .steps = {to(5001), to(7003), to(20000)}});
  crash({.name = "truncate down and append", .prepare = file, .steps = {to(5001), write("/f", 5001, 100)}});
  crash(one("truncate a mapped tree", [](User& u) {
    u.create("/f");
    for (u64 i = 0; i < 6; ++i) u.write("/f", i * 8192, some_bytes(100, i));
  }, to(20000)));
}

TEST_CASE("attributes: a crash shows all of a change or none of it", "[crash][fs]") {
  const auto file = [](User& u) { u.create("/f"), u.mkdir("/d"); };
  crash(one("chmod", file, [](User& u) { return u.chmod("/f", 0600); }));
  crash(one("chmod of a directory", file, [](User& u) { return u.chmod("/d", 0700); }));
  crash(one("chown", file, [](User& u) { return u.chown("/f", 5, 6); }));
  crash(one("utimens", file, [](User& u) { return u.utimens("/f", 1, 2); }));
  crash(one("all at once", file, [](User& u) {
    SetAttributes change;
    change.mode = 0640, change.uid = 3, change.gid = 4, change.size_bytes = 12345, change.atime_ns = 5,
    change.mtime_ns = 6;
    return u.set("/f", change);
  }));
}

TEST_CASE("times: lazily stored ones are durable once fsync has returned", "[crash][fs]") {
  const auto file = [](User& u) { file_with_data(u, "/f", 100); };
  crash({.name = "read, fsync", .prepare = file, .steps = {[](User& u) { return u.read("/f"); },
         [](User& u) { return u.fsync("/f"); }}, .open = SimFs::strict_atime()});
  crash({.name = "read, chmod", .prepare = file, .steps = {[](User& u) { return u.read("/f"); },
         [](User& u) { return u.chmod("/f", 0600); }}, .open = SimFs::strict_atime()});
  crash({.name = "utimens, read, utimens, read, fsync", .prepare = file, .steps = {
         [](User& u) { return u.utimens("/f", 10, 20); }, [](User& u) { return u.read("/f"); },
         [](User& u) { return u.utimens("/f", 11, 21); }, [](User& u) { return u.read("/f"); },
         [](User& u) { return u.fsync("/f"); }}, .open = SimFs::strict_atime()});
  crash({.name = "overwrite, read, sync of everything", .prepare = file, .steps = {write("/f", 0, 10),
         [](User& u) { return u.read("/f"); }, [](User& u) { return u.sync(); }}, .open = SimFs::strict_atime()});
}

TEST_CASE("directories: full leaves, fragmented leaves and a growing inode file are part of one commit",
          "[crash][fs]") {
  const auto names = [](u64 count, std::size_t length) {
    return [=](User& u) {
      for (u64 i = 0; i < count; ++i) u.create(text("/", std::string(length, 'n'), i));
    };
  };
  crash(one("a leaf's bytes are full: a new leaf", names(14, 250), [](User& u) { return u.create("/" + kLong); }));
  crash(one("a leaf's slots are full: a new leaf", [](User& u) {
    u.create("/f");
    for (u64 i = 0; i < 63; ++i) u.link("/f", text("/l", i));
  }, [](User& u) { return u.link("/f", "/one-more"); }));
  crash(one("a fragmented leaf is rewritten", [&](User& u) {
    names(14, 250)(u);
    for (u64 i = 0; i < 14; i += 2) u.unlink(text("/", std::string(250, 'n'), i));
    for (u64 i = 0; i < 7; ++i) u.create(text("/", std::string(150, 'm'), i));
    for (u64 i = 0; i < 7; ++i) u.unlink(text("/", std::string(150, 'm'), i));
  }, [](User& u) { return u.create("/" + kLong); }));
  crash(one("the inode file grows", [](User& u) {
    u.mkdir("/d");
    for (u64 i = 0; i < 62; ++i) u.create(text("/d/", i));
  }, [](User& u) { return u.create("/d/one-more"); }));
  crash({.name = "the bytes of a removed entry", .prepare = names(14, 250), .steps = {
         [](User& u) { return u.unlink(text("/", std::string(250, 'n'), 3)); },
         [](User& u) { return u.create("/" + std::string(250, 'z')); },
         [](User& u) { return u.create("/" + std::string(251, 'z')); }}});
}

TEST_CASE("full pools: an operation that does not fit changes nothing; deleting works", "[crash][fs]") {
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
      CHECK(!made.ok());
      return Allowance{};
    };
  };
  crash({.name = "full: refused, removed, allowed", .prepare = [&](User& u) { file_with_data(u, "/x", 8192), fill(u); },
         .steps = {refused("/s"), [](User& u) { return u.unlink("/x"); },
                   [](User& u) { return u.symlink(std::string(700, 't'), "/s"); }}});
  crash({.name = "full: truncated, written again", .prepare = fill, .steps = {
         [](User& u) { return u.truncate("/fill", 4096); }, write("/fill", 4096, 20000)}});
}

TEST_CASE("close and open: a crash in them shows what was there before", "[crash][fs]") {
  const auto some = [](User& u) {
    u.mkdir("/d"), file_with_data(u, "/d/f", 5000), u.create("/g"), u.unlink("/g");
  };
  crash(one("close", some, [](User& u) {
    must(u.fs().close(), "close");
    u.fs() = must(SimFs::open(u.memory(), SimFs::quiet()), "open again");
    return Allowance{};
  }));
  crash({.name = "lazy times, close, open, work", .prepare = some, .steps = {write("/d/f", 0, 100),
         [](User& u) {
           Allowance allowance = u.sync();
           must(u.fs().close(), "close");
           u.fs() = must(SimFs::open(u.memory(), SimFs::quiet()), "open again");
           return allowance;
         },
         [](User& u) { return u.create("/after"); }}});
}

TEST_CASE("total", "[crash]") {
  total.name = "operations";
  std::puts(describe(total).c_str());
}

}  // namespace
}  // namespace pmfs::test
