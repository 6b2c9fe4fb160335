// The arithmetic of splits: leaves filled by names of every length there is.
#include <set>

#include "fs/directory.h"
#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

// A name of that length; different for each number below 65536, or as many as the length allows.
std::string name_of(std::size_t length, u32 number) {
  std::string name(length, 'n');
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
  for (std::size_t i = 0; i < length && number != 0; ++i, number /= 64) name[i] = kDigits[number % 64];
  if (name == ".") name = ",";
  return name;
}

void require_there(Filesystem& fs, InodeNo dir, const std::set<std::string>& names) {
  for (const std::string& name : names) {
    INFO(name);
    REQUIRE(fs.stat({dir, name}, kRoot).ok());
  }
  Dir stream = must(fs.open_dir(At::inode(dir), kRoot));
  DirEntry entry;
  std::size_t listed = 0;
  for (u64 cookie = 0; must(stream.read(cookie, entry)); cookie = entry.cookie) ++listed;
  must(stream.close());
  REQUIRE(listed == names.size() + 2);
}

}  // namespace

TEST_CASE("splits: leaves of names of every length are split, and every name is found", "[unit][fs]") {
  MemoryFs fs(u64{64} << 20);
  for (std::size_t length = 1; length <= kNameMax; ++length) {
    CAPTURE(length);
    const InodeNo dir = must(fs->mkdir("/d", 0755, kRoot)).ino;
    std::set<std::string> names;
    // Enough for three leaves, with one-byte names as many as there are.
    const std::size_t in_leaf = std::min<std::size_t>(64, 3840 / htree::entry_bytes(length));
    for (u32 i = 0; names.size() < in_leaf * 5 / 2 && i < (length == 1 ? 64u : 4096u); ++i) {
      const std::string name = name_of(length, i);
      if (!names.insert(name).second) continue;
      must(fs->mknod({dir, name}, 0644, 0, kRoot));
    }
    require_there(fs.fs(), dir, names);
    if (length > 1) CHECK(must(fs->directory_info(At::inode(dir), kRoot)).index_levels == 1);
    for (const std::string& name : names) must(fs->unlink({dir, name}, kRoot));
    CHECK(must(fs->directory_info(At::inode(dir), kRoot)).index_levels == 0);
    must(fs->rmdir("/d", kRoot));
  }
  fs.require_clean();
}

TEST_CASE("splits: a full leaf of names of one length takes one of any other length", "[unit][fs]") {
  MemoryFs fs(u64{64} << 20);
  for (std::size_t filler = 1; filler <= kNameMax; filler += filler < 24 ? 1 : 11) {
    for (std::size_t length = 1; length <= kNameMax; length += length < 24 ? 3 : 23) {
      CAPTURE(filler, length);
      const InodeNo dir = must(fs->mkdir("/d", 0755, kRoot)).ino;
      std::set<std::string> names;
      for (u32 i = 1; must(fs->directory_info(At::inode(dir), kRoot)).leaves < 2 && i < 65; ++i) {
        const std::string name = name_of(filler, i);
        if (names.insert(name).second) must(fs->mknod({dir, name}, 0644, 0, kRoot));
      }
      for (u32 i = 200; i < 212; ++i) {
        const std::string name = name_of(length, i);
        if (names.insert(name).second) must(fs->mknod({dir, name}, 0644, 0, kRoot));
      }
      require_there(fs.fs(), dir, names);
      for (const std::string& name : names) must(fs->unlink({dir, name}, kRoot));
      must(fs->rmdir("/d", kRoot));
    }
  }
  fs.require_clean();
}
