// What an operation does when it meets a busy slot, a reused slot, equal hashes, a damaged pool: each case once was a
// bug.
#include <set>

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
  DirectorySnapshot snapshot;
  must(snapshot.take(*volume, root));
  std::set<std::string> listed;
  DirEntry entry;
  for (u64 cookie = kCookieDotDot; must(snapshot.next(*volume, root, cookie, entry)); cookie = entry.cookie)
    listed.emplace(entry.view());
  CHECK(listed.size() == 200);
}

TEST_CASE("directory: an entry that stays is listed exactly once while others come and go", "[unit][fs]") {
  MemoryVolume memory(u64{16} << 20);
  const auto volume = memory.open();
  for (int i = 0; i < 500; ++i) make(*volume, "/f" + std::to_string(i), kFile);
  const InodeRef root = must(volume->inodes.get(kRootIno));
  DirectorySnapshot snapshot;
  must(snapshot.take(*volume, root));
  std::multiset<std::string> listed;
  DirEntry entry;
  int step = 0;
  for (u64 cookie = kCookieDotDot; must(snapshot.next(*volume, root, cookie, entry)); cookie = entry.cookie, ++step) {
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
  CHECK(fill() == first);
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
