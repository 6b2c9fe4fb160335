// Directories as a stranger may have left them: each field of an index node and of a leaf, damaged. No call may crash,
// hang or name a wrong file; check must say something; and what is not damaged must still be found.
#include <functional>
#include <map>

#include "fs/directory.h"
#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();
constexpr PoolOff kLocator{kBlockBytes};

// A pool with one directory of many names, closed; damaged and opened again by the tests.
class DamagedDirectory {
 public:
  explicit DamagedDirectory(int names) : fs_(u64{24} << 20) {
    dir_ = must(fs_->mkdir("/d", 0755, kRoot)).ino;
    for (int i = 0; i < names; ++i) {
      const std::string name = "name-" + std::to_string(i);
      inodes_[name] = must(fs_->mknod({dir_, name}, 0644, 0, kRoot)).ino;
    }
    must(fs_->close());
    // Damage is done to a copy that a crash could have left: no saved map answers for what is not looked at.
    good_.assign(fs_.memory().base, fs_.memory().base + fs_.memory().size_bytes);
  }

  /// Puts the pool back, then shows its parts to `damage`.
  void damage(const std::function<void(Volume&, const InodeRef& dir)>& body) {
    std::memcpy(fs_.memory().base, good_.data(), good_.size());
    auto volume = must(open_volume(fs_.memory(), kLocator, {}));
    const InodeRef dir = must(volume->inodes.get(dir_));
    body(*volume, dir);
  }
  Filesystem open() { return must(open_memory(fs_.memory(), kLocator)); }
  Result<Filesystem> try_open() { return open_memory(fs_.memory(), kLocator); }

  struct Looked {
    int right = 0, corrupt = 0, missing = 0, wrong = 0;
  };
  Looked look(Filesystem& fs) const {
    Looked looked;
    for (const auto& [name, ino] : inodes_) {
      const auto found = fs.stat({dir_, name}, kRoot);
      if (found.ok())
        (found->ino == ino ? looked.right : looked.wrong) += 1;
      else
        (found.error().code == Errc::kNotFound ? looked.missing : looked.corrupt) += 1;
    }
    return looked;
  }
  int names() const { return static_cast<int>(inodes_.size()); }
  InodeNo dir() const { return dir_; }

 private:
  MemoryFs fs_;
  InodeNo dir_{};
  std::map<std::string, InodeNo> inodes_;
  std::vector<std::byte> good_;
};

media::IndexNode& node_at(Volume& volume, u64 block) {
  return *reinterpret_cast<media::IndexNode*>(volume.persist.memory().at(block_off(block)));
}

void list_all(Filesystem& fs, InodeNo dir, int limit) {
  Dir stream = must(fs.open_dir(At::inode(dir), kRoot));
  DirEntry entry;
  int listed = 0;
  for (u64 cookie = 0; listed <= limit; ++listed) {  // it ends, whatever it says
    const auto more = stream.read(cookie, entry);
    if (!more.ok() || !*more) break;
    cookie = entry.cookie;
  }
  CHECK(listed <= limit);
  must(stream.close());
}

}  // namespace

TEST_CASE("damage: an index node with any field damaged is not used, and the scan serves", "[unit][fs][hostile]") {
  DamagedDirectory at(3000);
  struct Field {
    const char* name;
    bool reseal;  // the checksum is made right again: a stranger's work, not decay
    std::function<void(Volume&, media::IndexNode&)> damage;
  };
  const std::vector<Field> fields = {
      {"magic", false, [](Volume&, media::IndexNode& n) { n.magic.set(n.magic.get() ^ 1); }},
      {"level", true, [](Volume&, media::IndexNode& n) { n.level.set(static_cast<u16>(n.level.get() + 1)); }},
      {"count 0", true, [](Volume&, media::IndexNode& n) { n.count.set(0); }},
      {"count one less", true, [](Volume&, media::IndexNode& n) { n.count.set(static_cast<u16>(n.count.get() - 1)); }},
      {"count too many", false, [](Volume&, media::IndexNode& n) { n.count.set(255); }},
      {"count 65535", false, [](Volume&, media::IndexNode& n) { n.count.set(65535); }},
      {"checksum", false, [](Volume&, media::IndexNode& n) { n.checksum.set(n.checksum.get() + 1); }},
      {"owner", true, [](Volume&, media::IndexNode& n) { n.owner.set(n.owner.get() + 1); }},
      {"key", false, [](Volume&, media::IndexNode& n) { n.entries[1].key.set(n.entries[1].key.get() + 1); }},
      {"keys equal", true, [](Volume&, media::IndexNode& n) { n.entries[2].key.set(n.entries[1].key.get()); }},
      {"keys falling", true, [](Volume&, media::IndexNode& n) { n.entries[1].key.set(~u64{0}); }},
      {"target no leaf", true, [](Volume&, media::IndexNode& n) { n.entries[1].target.set(u64{1} << 50); }},
      {"target twice", true, [](Volume&, media::IndexNode& n) { n.entries[1].target.set(n.entries[0].target.get()); }},
      {"target a hole", true, [](Volume&, media::IndexNode& n) { n.entries[0].target.set(100000); }},
  };
  for (const Field& field : fields) {
    INFO(field.name);
    at.damage([&](Volume& volume, const InodeRef& dir) {
      const u64 root = dir.media().rdev_index.get();
      REQUIRE(root != 0);
      media::IndexNode& node = node_at(volume, root / kBlockBytes);
      field.damage(volume, node);
      if (field.reseal) node.checksum.set(htree::Index::node_checksum(node, volume.hash_name.seed));
    });
    Filesystem fs = at.open();
    const auto looked = at.look(fs);
    CHECK(looked.right == at.names());
    CHECK(must(fs.directory_info(At::inode(at.dir()), kRoot)).index_levels == 0);
    list_all(fs, at.dir(), at.names() + 2);
    CHECK_FALSE(must(check(fs)).clean());
    must(fs.mknod({at.dir(), "one more"}, 0644, 0, kRoot));  // makes the index anew
    CHECK(must(fs.directory_info(At::inode(at.dir()), kRoot)).index_levels == 1);
    CHECK(at.look(fs).right == at.names());
  }
}

TEST_CASE("damage: an index root word that cannot be is not followed", "[unit][fs][hostile]") {
  DamagedDirectory at(3000);
  for (const u64 word : {u64{1}, u64{0x0fff}, ~u64{0}, u64{1} << 62, u64{0x7000}, u64{0x7009}, u64{0x700f}}) {
    INFO(word);
    at.damage([&](Volume&, const InodeRef& dir) { dir.media().rdev_index.set(word); });
    Filesystem fs = at.open();
    CHECK(at.look(fs).right == at.names());
    CHECK_FALSE(must(check(fs)).clean());
  }
}

TEST_CASE("damage: a leaf with any field damaged is an error, or found by check; never a wrong file",
          "[unit][fs][hostile]") {
  DamagedDirectory at(400);
  enum Effect { kNamesCorrupt, kOnlyCheck, kAny };
  struct Field {
    const char* name;
    Effect effect;
    std::function<void(media::Leaf&)> damage;
  };
  const auto slot_of = [](const media::Leaf& leaf) { return static_cast<u32>(std::countr_zero(leaf.live.get())); };
  const auto entry = [=](media::Leaf& leaf) -> media::LeafEntry& {
    auto* base = reinterpret_cast<std::byte*>(&leaf);
    return *reinterpret_cast<media::LeafEntry*>(base + leaf.entry_off[slot_of(leaf)].get());
  };
  const std::vector<Field> fields = {
      {"magic", kNamesCorrupt, [](media::Leaf& l) { l.magic.set(0); }},
      {"owner", kNamesCorrupt, [](media::Leaf& l) { l.owner.set(l.owner.get() + 1); }},
      {"logical", kNamesCorrupt, [](media::Leaf& l) { l.logical.set(l.logical.get() + 1); }},
      {"checksum", kOnlyCheck, [](media::Leaf& l) { l.checksum.set(0); }},
      {"live: one less", kAny, [](media::Leaf& l) { l.live.set(l.live.get() & (l.live.get() - 1)); }},
      {"live: all", kAny, [](media::Leaf& l) { l.live.set(~u64{0}); }},
      {"fingerprint", kAny, [=](media::Leaf& l) { l.fingerprint[slot_of(l)] ^= 1; }},
      {"entry_off 0", kAny, [=](media::Leaf& l) { l.entry_off[slot_of(l)].set(0); }},
      {"entry_off odd", kAny, [=](media::Leaf& l) { l.entry_off[slot_of(l)].set(257); }},
      {"entry_off at the end", kAny, [=](media::Leaf& l) { l.entry_off[slot_of(l)].set(4088); }},
      {"entry_off far out", kAny, [=](media::Leaf& l) { l.entry_off[slot_of(l)].set(65528); }},
      {"name length 0", kAny, [=](media::Leaf& l) { entry(l).target.set(entry(l).target.get() & ~(u64{255} << 56)); }},
      {"name length 255", kAny, [=](media::Leaf& l) { entry(l).target.set(entry(l).target.get() | u64{255} << 56); }},
      {"inode 0", kAny, [=](media::Leaf& l) { entry(l).target.set(entry(l).target.get() >> 48 << 48); }},
      {"inode beyond", kAny, [=](media::Leaf& l) { entry(l).target.set(entry(l).target.get() | 0xffffffffff); }},
      {"type", kAny, [=](media::Leaf& l) { entry(l).target.set(entry(l).target.get() ^ u64{0x80} << 48); }},
      {"key", kAny, [=](media::Leaf& l) { entry(l).key.set(entry(l).key.get() ^ u64{1} << 20); }},
      {"key's top bit", kAny, [=](media::Leaf& l) { entry(l).key.set(entry(l).key.get() | u64{1} << 63); }},
  };
  for (const Field& field : fields) {
    INFO(field.name);
    int in_leaf = 0;
    at.damage([&](Volume& volume, const InodeRef& dir) {
      const Extent first = must(volume.maps.find(dir.media().map_root.get(), 0));
      media::Leaf& leaf = leaf_at(volume, first.block);
      in_leaf = std::popcount(leaf.live.get());
      field.damage(leaf);
    });
    auto opened = at.try_open();
    if (!opened.ok()) continue;  // the walk at open may refuse it
    Filesystem& fs = *opened;
    const auto looked = at.look(fs);
    CHECK(looked.wrong == 0);
    CHECK(looked.right >= at.names() - in_leaf);
    if (field.effect == kNamesCorrupt) CHECK(looked.corrupt == in_leaf);
    if (field.effect == kOnlyCheck) CHECK(looked.right == at.names());
    list_all(fs, at.dir(), at.names() + 64 + 2);
    const auto report = check(fs);
    if (report.ok()) CHECK_FALSE(report->clean());
    (void)fs.mknod({at.dir(), "one more"}, 0644, 0, kRoot);  // whatever it answers, it answers
    (void)fs.unlink({at.dir(), "name-7"}, kRoot);
  }
}
