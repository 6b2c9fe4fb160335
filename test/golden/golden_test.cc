// The golden image: a pool of format version 1, made once and kept. It must open for ever, and show what it showed when
// it was made. See README.md beside this file.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "test/golden/contents.h"
#include "test/support/must.h"
#include "test/support/scratch.h"
#include "test/support/tree_text.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const std::string kFolder = PMFS_GOLDEN_DIR;
const std::string kImage = kFolder + "/v1.pool.gz";
const std::string kManifest = kFolder + "/v1.manifest";

void run(const std::string& command) {
  INFO(command);
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
}

std::string unpacked(const Scratch& scratch, const std::string& name = "pool") {
  const std::string pool = scratch.file(name);
  run("gzip -dc '" + kImage + "' > '" + pool + "'");
  return pool;
}

OpenOptions read_only() {
  OpenOptions options;
  options.read_only = true;
  return options;
}

OpenOptions quiet() {
  OpenOptions options;
  options.atime = OpenOptions::Atime::kNone;
  return options;
}

void require_clean(Filesystem& fs) {
  const CheckReport report = must(check(fs));
  for (const Finding& finding : report.findings) UNSCOPED_INFO(finding.code << ": " << finding.text);
  REQUIRE(report.clean());
}

void require_as_kept(Filesystem& fs) {
  require_clean(fs);
  const auto [found, kept] = first_difference(golden_manifest(fs), read_file(kManifest));
  REQUIRE(found == kept);
}

}  // namespace

TEST_CASE("golden: the image of version 1 opens, is clean, and shows what it showed when it was made", "[golden]") {
  const Scratch scratch;
  const std::string pool = unpacked(scratch);
  const u64 before = hash_file(pool);
  {
    Filesystem fs = must(Filesystem::open(pool, read_only()));
    CHECK(fs.info().saved_map_used);
    require_as_kept(fs);
    must(fs.close());
    CHECK(hash_file(pool) == before);
  }
  {
    Filesystem fs = must(Filesystem::open(pool, quiet()));
    CHECK(fs.info().saved_map_used);
    require_as_kept(fs);
    must(fs.close());
  }
  // And again, of what this version has written at close.
  Filesystem fs = must(Filesystem::open(pool, quiet()));
  CHECK(fs.info().saved_map_used);
  require_as_kept(fs);
}

TEST_CASE("golden: without the saved map the same is found by walking", "[golden]") {
  const Scratch scratch;
  const std::string pool = unpacked(scratch);
  // A process that opens and is gone without closing: the epoch is raised, so the map is void.
  REQUIRE(in_child([&] {
            const auto left = Filesystem::open(pool, quiet());
            ::_exit(left.ok() ? 0 : 1);
            return 0;
          }) == 0);
  OpenOptions options = quiet();
  options.busy_wait_ms = 5000;
  Filesystem fs = must(Filesystem::open(pool, options));
  CHECK(!fs.info().saved_map_used);
  require_as_kept(fs);
}

TEST_CASE("golden: the image can be changed and emptied", "[golden]") {
  const Scratch scratch;
  const std::string pool = unpacked(scratch);
  Filesystem fs = must(Filesystem::open(pool, quiet()));
  const Credentials root = Credentials::root();
  must(fs.mkdir("/new", 0755, root));
  must(fs.mknod("/some/new", 0644, 0, root));
  must(fs.mknod("/many/new", 0644, 0, root));
  const std::string text = "new contents";
  for (const char* path : {"/data/many-extents", "/data/unwritten", "/types/file"})
    must(fs.write(must(fs.stat(path, root)).ino, 3000, std::as_bytes(std::span(text)), root));
  require_clean(fs);
  const std::function<void(const std::string&)> empty = [&](const std::string& dir) {
    std::vector<std::pair<std::string, FileType>> names;
    Dir stream = must(fs.open_dir(dir, root));
    DirEntry entry;
    for (u64 cookie = 0; must(stream.read(cookie, entry)); cookie = entry.cookie)
      if (entry.view() != "." && entry.view() != "..") names.emplace_back(dir + std::string(entry.view()), entry.type);
    must(stream.close());
    for (const auto& [path, type] : names) {
      if (type == FileType::kDirectory) empty(path + "/");
      must(type == FileType::kDirectory ? fs.rmdir(path, root) : fs.unlink(path, root));
    }
  };
  empty("/");
  require_clean(fs);
  CHECK(must(check(fs)).inodes == 1);
  must(fs.close());
}

// Hidden: run by hand, as README.md says.
TEST_CASE("golden: make the image", "[.make]") {
  const Scratch scratch;
  const std::string pool = scratch.file("pool");
  FormatOptions format;
  format.size_bytes = kGoldenBytes;
  format.label = "golden image, version 1";
  must(Filesystem::format(pool, format));
  Filesystem fs = must(Filesystem::open(pool, quiet()));
  fill_golden(fs);
  require_clean(fs);
  must(fs.close());
  run("gzip -9nc '" + pool + "' > '" + kImage + "'");
  fs = must(Filesystem::open(pool, read_only()));
  write_file(kManifest, golden_manifest(fs));
}
