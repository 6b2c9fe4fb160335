// What an operation does when it meets a busy slot, a reused slot, equal hashes, a damaged pool: each case once was a
// bug.
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "fs/attributes.h"
#include "fs/directory.h"
#include "fs/file_io.h"
#include "fs/namei.h"
#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();
const NewNode kFile{0100644, 0, {}};
const NewNode kDirectory{0040755, 0, {}};

// A volume on plain memory, without the public face: tests look at its parts.
class MemoryVolume {
 public:
  explicit MemoryVolume(u64 bytes) : fs_(bytes) { must(fs_->close()); }
  std::unique_ptr<Volume> open() { return must(open_volume(fs_.memory(), PoolOff{kBlockBytes}, {})); }
  Result<std::unique_ptr<Volume>> try_open() { return open_volume(fs_.memory(), PoolOff{kBlockBytes}, {}); }
  const Memory& memory() const { return fs_.memory(); }

 private:
  MemoryFs fs_;
};

Attributes make(Volume& volume, const std::string& path, const NewNode& node) {
  return must(make_node(volume, path, node, kRoot, {}));
}

}  // namespace

TEST_CASE("directory: names of equal hash get different keys and are all listed", "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  const auto volume = memory.open();
  volume->hash_name.bits = 4;
  for (int i = 0; i < 200; ++i) make(*volume, "/f" + std::to_string(i), kFile);
  for (int i = 0; i < 200; i += 3) must(remove_name(*volume, "/f" + std::to_string(i), RemoveKind::kFile, kRoot));
  for (int i = 0; i < 200; i += 3) make(*volume, "/f" + std::to_string(i), kFile);
  const InodeRef root = must(volume->inodes.get(kRootIno));
  std::set<u64> keys;
  must(each_entry(*volume, root, [&](const htree::Entry& entry, u64, u64) -> Result<void> {
    keys.insert(entry.key);
    return {};
  }));
  CHECK(keys.size() == 200);
  DirectoryListing listing;
  std::set<std::string> listed;
  DirEntry entry;
  for (u64 cookie = kCookieDotDot; must(listing.next(*volume, root, cookie, entry)); cookie = entry.cookie)
    listed.emplace(entry.view());
  CHECK(listed.size() == 200);
}

TEST_CASE("directory: an entry that stays is listed exactly once while others come and go", "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  const auto volume = memory.open();
  for (int i = 0; i < 500; ++i) make(*volume, "/f" + std::to_string(i), kFile);
  const InodeRef root = must(volume->inodes.get(kRootIno));
  DirectoryListing listing;
  std::multiset<std::string> listed;
  DirEntry entry;
  int step = 0;
  for (u64 cookie = kCookieDotDot; must(listing.next(*volume, root, cookie, entry)); cookie = entry.cookie, ++step) {
    listed.emplace(entry.view());
    if (step % 2 == 0 && step < 400) {  // odd numbers go, new names come, leaves are rewritten
      must(remove_name(*volume, "/f" + std::to_string(step + 1), RemoveKind::kFile, kRoot));
      make(*volume, "/" + std::string(static_cast<std::size_t>(step % 200) + 10, 'n') + std::to_string(step), kFile);
    }
  }
  for (int i = 0; i < 400; i += 2) CHECK(listed.count("f" + std::to_string(i)) == 1);
}

TEST_CASE("inodes: a slot is not reused while somebody still refers to its last life", "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  const auto volume = memory.open();
  make(*volume, "/d", kDirectory);
  const Parent parent = must(resolve_parent(*volume, "/d/f", kRoot));  // a thread that stops before it locks
  must(remove_name(*volume, "/d", RemoveKind::kDirectory, kRoot));
  volume->quarantine.drain();
  for (int i = 0; i < 200; ++i) CHECK(make(*volume, "/e" + std::to_string(i), kDirectory).ino != parent.dir.ino());
  CHECK_FALSE(check_alive(*volume, parent.dir).ok());
}

TEST_CASE("inodes: a busy free slot is passed over, and does not look like a full pool", "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  const auto volume = memory.open();
  const InodeRef busy = must(volume->inodes.get(InodeNo{9}));
  std::shared_lock lock(busy->lock);
  for (int i = 0; i < 100; ++i) CHECK(make(*volume, "/f" + std::to_string(i), kFile).ino != busy.ino());
}

TEST_CASE("space: a pool filled by small files can be checked, emptied and filled again", "[unit][fs]") {
  MemoryFs fs(u64{1} << 20);
  const auto fill = [&] {
    int made = 0;
    while (true) {
      const auto a = fs->mknod("/f" + std::to_string(made), 0644, 0, kRoot);
      if (!a.ok()) {
        CHECK(code_of(a) == Errc::kNoSpace);
        return made;
      }
      ++made;
    }
  };
  const int first = fill();
  CHECK(first > 500);
  fs.require_clean();
  for (int i = 0; i < first; ++i) must(fs->unlink("/f" + std::to_string(i), kRoot));
  fs.require_clean();
  CHECK(fill() > first * 9 / 10);  // names hash with a random seed: leaves are not always equally full
  fs.require_clean();
}

TEST_CASE("space: a write on a nearly full pool writes what fits, also when the map needs a block", "[unit][fs]") {
  MemoryFs fs(u64{1} << 20);
  File file = must(fs->open_file("/sparse", 01 | 0100, 0644, kRoot));  // O_WRONLY | O_CREAT
  const std::string data(kBlockBytes, 'x');
  u64 written = 0;
  for (u64 off = 0;; off += 2 * kBlockBytes) {  // every second block: the map is a tree
    const auto n = file.write(off, std::as_bytes(std::span(data)));
    if (!n.ok()) {
      CHECK(code_of(n) == Errc::kNoSpace);
      break;
    }
    written += *n;
  }
  CHECK(written > 50 * kBlockBytes);
  fs.require_clean();
  must(file.truncate(3));
  const std::string large(u64{4} << 20, 'y');
  const std::size_t n = must(file.write(0, std::as_bytes(std::span(large))));
  CHECK(n > 50 * kBlockBytes);
  CHECK(n < large.size());
  must(file.close());
  fs.require_clean();
}

TEST_CASE("fsync: an access time newer than utimens is durable when it returns", "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  const auto volume = memory.open();
  const Attributes a = make(*volume, "/x", kFile);
  const InodeRef file = must(volume->inodes.get(a.ino));
  const std::string data(100, 'x');
  must(write_file(*volume, file, 0, std::as_bytes(std::span(data)), false, kRoot));
  SetAttributes change;
  change.atime_ns = 5;
  must(set_attributes(*volume, file, change, kRoot));
  std::byte buffer[10];
  must(read_file(*volume, file, 0, buffer));
  must(sync_inode(*volume, file));
  CHECK(file->atime_ns == 0);
  CHECK(static_cast<i64>(file.media().atime_ns.get()) > 5);
}

TEST_CASE("damage: an entry that names a free inode is an error, not a second free", "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  {
    const auto volume = memory.open();
    const InodeRef file = must(volume->inodes.get(make(*volume, "/x", kFile).ino));
    volume->persist.store(file.media().state_gen, media::join(media::kSlotFree, 1));
  }
  const auto volume = memory.open();
  CHECK(code_of(remove_name(*volume, "/x", RemoveKind::kFile, kRoot)) == Errc::kCorrupt);
  CHECK(code_of(rename_name(*volume, "/x", "/y", 0, kRoot)) == Errc::kCorrupt);
}

TEST_CASE("damage: a block with two owners behind a forged map turns the file system read-only", "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  {
    const auto volume = memory.open();
    const InodeRef one = must(volume->inodes.get(make(*volume, "/x", kFile).ino));
    const std::string data(9000, 'x');
    must(write_file(*volume, one, 0, std::as_bytes(std::span(data)), false, kRoot));
    const InodeRef other = must(volume->inodes.get(make(*volume, "/y", kFile).ino));
    for (auto field : {&media::Inode::map_root, &media::Inode::size_bytes, &media::Inode::blocks})
      volume->persist.store(other.media().*field, (one.media().*field).get());
    must(close_volume(*volume));
  }
  const auto volume = memory.open();
  REQUIRE(volume->saved_map_used);
  must(remove_name(*volume, "/x", RemoveKind::kFile, kRoot));
  must(remove_name(*volume, "/y", RemoveKind::kFile, kRoot));
  volume->quarantine.drain();
  CHECK(code_of(volume->writable()) == Errc::kReadOnly);
}

TEST_CASE("damage: the same pool without a saved map is refused", "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  {
    const auto volume = memory.open();
    const InodeRef one = must(volume->inodes.get(make(*volume, "/x", kFile).ino));
    const std::string data(9000, 'x');
    must(write_file(*volume, one, 0, std::as_bytes(std::span(data)), false, kRoot));
    const InodeRef other = must(volume->inodes.get(make(*volume, "/y", kFile).ino));
    volume->persist.store(other.media().map_root, one.media().map_root.get());
  }
  CHECK(code_of(memory.try_open()) == Errc::kCorrupt);
}

TEST_CASE("mkfs: what it did not finish is called unfinished, whatever of the locator is there", "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  auto& locator = *reinterpret_cast<media::Locator*>(memory.memory().at(PoolOff{kBlockBytes}));
  locator.magic.set(0);
  CHECK(code_of(memory.try_open()) == Errc::kNotFormatted);
}

TEST_CASE("open: a saved map of another epoch, or with a bad checksum, is not used, and both ways know the same",
          "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  {
    const auto volume = memory.open();
    for (int i = 0; i < 300; ++i) make(*volume, "/f" + std::to_string(i), kFile);
    must(close_volume(*volume));
  }
  std::vector<u64> saved;
  {
    const auto volume = memory.open();
    CHECK(volume->saved_map_used);
    saved = volume->blocks.save();
  }
  const auto volume = memory.open();  // killed: the map is of an older epoch now
  CHECK_FALSE(volume->saved_map_used);
  CHECK(volume->blocks.save() == saved);
}

namespace {

// Names in and out of one directory, against a set; with the hash narrowed to `bits`, so that equal hashes fill leaves.
void churn(u32 bits, u64 seed, bool switch_option) {
  MemoryVolume memory(u64{32} << 20);
  auto volume = memory.open();
  volume->hash_name.bits = bits;
  std::map<std::string, InodeNo> names;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 6000; ++i) {
    INFO("bits " << bits << " seed " << seed << " step " << i);
    const bool grow = i / 1500 % 2 == 0;
    const u64 number = random() % 1500;
    const std::string name = std::string(number % 97 == 0 ? 200 : number % 30 + 1, 'n') + std::to_string(number);
    const std::string path = "/" + name;
    if (random() % 8 < (grow ? 6u : 2u)) {
      const auto made = make_node(*volume, path, kFile, kRoot, {});
      REQUIRE(made.ok() == (names.count(name) == 0));
      if (made.ok()) names[name] = made->ino;
    } else if (random() % 4 == 0) {
      // To a new name, or over one that is there.
      const std::string other = std::string(random() % 3 + 1, 'm') + std::to_string(random() % 200);
      const auto moved = rename_name(*volume, path, "/" + other, 0, kRoot);
      REQUIRE(moved.ok() == (names.count(name) == 1));
      if (moved.ok()) {
        names[other] = names[name];
        names.erase(name);
      }
    } else {
      const auto removed = remove_name(*volume, path, RemoveKind::kFile, kRoot);
      REQUIRE(removed.ok() == (names.erase(name) == 1));
    }
    if (switch_option && i % 700 == 699) volume->options.dir_index = !volume->options.dir_index;
    if (i % 500 != 499) continue;
    if (i % 1000 == 999) {  // killed and opened again
      const bool index = volume->options.dir_index;
      static auto& killed = *new std::vector<std::unique_ptr<Volume>>;  // neither destroyed nor leaked
      killed.push_back(std::move(volume));
      volume = memory.open();
      volume->hash_name.bits = bits;
      volume->options.dir_index = index;
    }
    const InodeRef root = must(volume->inodes.get(kRootIno));
    DirectoryListing listing;
    std::set<std::string> listed;
    u64 count = 0;
    DirEntry entry;
    for (u64 cookie = kCookieDotDot; must(listing.next(*volume, root, cookie, entry)); cookie = entry.cookie, ++count)
      listed.emplace(entry.view());
    REQUIRE(count == names.size());
    for (const auto& [known, ino] : names) {
      REQUIRE(listed.count(known) == 1);
      const auto found = must(find_entry(*volume, root, known));
      REQUIRE(found.has_value());
      REQUIRE(found->ino == ino);
    }
  }
}

}  // namespace

TEST_CASE("index: random names in and out agree with a set, whatever the hash", "[unit][fs]") {
  for (const u32 bits : {3u, 5u, 8u, 12u, 48u}) churn(bits, bits, false);
}

TEST_CASE("index: names renamed over each other until one is left lead to the right inodes", "[unit][fs]") {
  for (const int count : {100, 160, 300}) {
    MemoryFs fs(u64{16} << 20);
    std::vector<InodeNo> inodes;
    for (int i = 0; i < count; ++i) inodes.push_back(must(fs->mknod("/f" + std::to_string(i), 0644, 0, kRoot)).ino);
    for (int i = 0; i + 1 < count; ++i) {
      const std::string target = "/f" + std::to_string(i + 1);
      must(fs->rename("/f" + std::to_string(i), target, 0, kRoot));
      REQUIRE(must(fs->stat(target, kRoot)).ino == inodes[0]);
      fs.require_clean();
    }
  }
}

TEST_CASE("index: the option may be switched at any time", "[unit][fs]") {
  for (const u32 bits : {4u, 48u}) churn(bits, bits + 100, true);
}

TEST_CASE("index: a directory of many names has one, and shrinks again when they go", "[unit][fs]") {
  MemoryFs fs(u64{64} << 20);
  must(fs->mkdir("/d", 0755, kRoot));
  const auto name = [](int i) { return "/d/file" + std::to_string(i); };
  for (int i = 0; i < 20000; ++i) must(fs->mknod(name(i), 0644, 0, kRoot));
  fs.require_clean();
  const Attributes full = must(fs->stat("/d", kRoot));
  CHECK(full.size_bytes > 400 * kBlockBytes);
  for (int i = 0; i < 20000; ++i) CHECK(must(fs->stat(name(i), kRoot)).links == 1);
  CHECK(code_of(fs->stat("/d/none", kRoot)) == Errc::kNotFound);
  for (int i = 0; i < 20000; ++i) {
    must(fs->unlink(name(i), kRoot));
    if (i % 4096 == 0) fs.require_clean();
  }
  fs.require_clean();
  CHECK(must(fs->stat("/d", kRoot)).blocks_512 <= 16);  // a leaf, and a node of the map at most
  must(fs->rmdir("/d", kRoot));
  fs.require_clean();
}

TEST_CASE("index: of two levels loses its first nodes to removals in key order and takes low keys again",
          "[unit][fs]") {
  MemoryFs fs(u64{64} << 20);
  must(fs->mkdir("/d", 0755, kRoot));
  std::set<std::string> names;
  const auto add = [&](int i) {
    const std::string name = "name" + std::to_string(i);
    must(fs->mknod("/d/" + name, 0644, 0, kRoot));
    names.insert(name);
  };
  for (int i = 0; i < 22000; ++i) add(i);
  CHECK(must(fs->stat("/d", kRoot)).size_bytes > 300 * kBlockBytes);  // more leaves than one node names
  int next = 22000;
  for (const int share : {10, 12, 15}) {
    Dir dir = must(fs->open_dir("/d", kRoot));
    DirEntry entry;
    u64 cookie = 0;
    for (int i = 0; i < 22000 * share / 20 && must(dir.read(cookie, entry)); ++i) {
      cookie = entry.cookie;
      if (entry.view() == "." || entry.view() == "..") continue;
      must(fs->unlink("/d/" + std::string(entry.view()), kRoot));
      names.erase(std::string(entry.view()));
    }
    must(dir.close());
    fs.require_clean();
    for (int i = 0; i < 9000; ++i) add(next++);
    fs.require_clean();
  }
  for (const std::string& name : names) REQUIRE(fs->stat("/d/" + name, kRoot).ok());
}

TEST_CASE("index: a damaged one is not used, found by check, and made anew by the next change", "[unit][fs]") {
  MemoryVolume memory(u64{32} << 20);
  {
    const auto volume = memory.open();
    for (int i = 0; i < 2000; ++i) make(*volume, "/f" + std::to_string(i), kFile);
    const InodeRef root = must(volume->inodes.get(kRootIno));
    const u64 word = root.media().rdev_index.get();
    REQUIRE(word != 0);
    auto& node = *reinterpret_cast<media::IndexNode*>(volume->persist.memory().at(block_off(word / kBlockBytes)));
    volume->persist.store(node.entries[1].key, node.entries[1].key.get() + 1);
  }
  const auto volume = memory.open();
  const InodeRef root = must(volume->inodes.get(kRootIno));
  CHECK(usable_index(*volume, root) == 0);
  CHECK(volume->damaged_indexes == 1);
  for (int i = 0; i < 2000; ++i) REQUIRE(must(find_entry(*volume, root, "f" + std::to_string(i))).has_value());
  make(*volume, "/one-more", kFile);
  CHECK(usable_index(*volume, root) != 0);
  for (int i = 0; i < 2000; ++i) REQUIRE(must(find_entry(*volume, root, "f" + std::to_string(i))).has_value());
}
