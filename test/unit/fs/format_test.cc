// The layout lock of format version 1: every size and offset once more, without a look at the headers' own asserts, so
// that a change of the format by accident does not pass; FORMAT.md against both; and the ORDER tables of DESIGN.md.
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/commit.h"
#include "fs/extent_map.h"
#include "fs/format.h"
#include "fs/superblock.h"
#include "htree/index.h"
#include "htree/leaf.h"
#include "pmfs/pmfs.hpp"
#include "test/support/catch.h"
#include "test/support/memory_fs.h"

using namespace pmfs;
using pmfs::test::must;

namespace {

// --- Format version 1, as released -----------------------------------------------------------------------------------

struct Member {
  const char* in;
  const char* name;
  std::size_t off, bytes;              // version 1
  std::size_t off_now, bytes_now;      // as compiled
};

#define MEMBER(in, name, off, bytes) \
  Member { #in, #name, off, bytes, offsetof(media::in, name), sizeof(media::in::name) }

const std::vector<Member>& members_v1() {
  static const std::vector<Member> all = {
      MEMBER(Locator, magic, 0, 8),
      MEMBER(Locator, format_version, 8, 4),
      MEMBER(Locator, reserved0, 12, 4),
      MEMBER(Locator, superblock_off, 16, 8),
      MEMBER(Locator, checksum, 24, 8),
      MEMBER(Locator, reserved1, 32, 32),

      MEMBER(Superblock, magic, 0, 8),
      MEMBER(Superblock, format_version, 8, 4),
      MEMBER(Superblock, block_bytes, 12, 4),
      MEMBER(Superblock, compat, 16, 8),
      MEMBER(Superblock, ro_compat, 24, 8),
      MEMBER(Superblock, incompat, 32, 8),
      MEMBER(Superblock, uuid, 40, 16),
      MEMBER(Superblock, hash_seed, 56, 8),
      MEMBER(Superblock, label, 64, 32),
      MEMBER(Superblock, lane_area_off, 96, 8),
      MEMBER(Superblock, region_table_off, 104, 8),
      MEMBER(Superblock, lane_count, 112, 4),
      MEMBER(Superblock, reserved0, 116, 4),
      MEMBER(Superblock, checksum, 120, 8),
      MEMBER(Superblock, epoch, 128, 8),
      MEMBER(Superblock, reserved1, 136, 56),
      MEMBER(Superblock, saved_map_off, 192, 8),
      MEMBER(Superblock, saved_map_bytes, 200, 8),
      MEMBER(Superblock, saved_map_epoch, 208, 8),
      MEMBER(Superblock, saved_map_sum, 216, 8),
      MEMBER(Superblock, saved_locator_sum, 224, 8),
      MEMBER(Superblock, reserved2, 232, 24),
      MEMBER(Superblock, inode_map_root, 256, 8),
      MEMBER(Superblock, inode_slots, 264, 8),
      MEMBER(Superblock, reserved3, 272, 48),
      MEMBER(Superblock, reserved4, 320, 3776),

      MEMBER(RegionTable, next_off, 0, 8),
      MEMBER(RegionTable, reserved, 8, 8),
      MEMBER(RegionTable, regions, 16, 4080),
      MEMBER(RegionEntry, off, 0, 8),
      MEMBER(RegionEntry, length_bytes, 8, 8),

      MEMBER(LaneHeader, sequence, 0, 8),
      MEMBER(LaneHeader, reserved, 8, 56),
      MEMBER(Record, payload, 0, 48),
      MEMBER(Record, meta, 48, 8),
      MEMBER(Record, checksum, 56, 8),

      MEMBER(Inode, state_gen, 0, 8),
      MEMBER(Inode, mode_links, 8, 8),
      MEMBER(Inode, uid_gid, 16, 8),
      MEMBER(Inode, size_bytes, 24, 8),
      MEMBER(Inode, blocks, 32, 8),
      MEMBER(Inode, atime_ns, 40, 8),
      MEMBER(Inode, mtime_ns, 48, 8),
      MEMBER(Inode, ctime_ns, 56, 8),
      MEMBER(Inode, map_root, 64, 8),
      MEMBER(Inode, parent, 72, 8),
      MEMBER(Inode, rdev_index, 80, 8),
      MEMBER(Inode, birth_ns, 88, 8),
      MEMBER(Inode, xattr_ref, 96, 8),
      MEMBER(Inode, acl_ref, 104, 8),
      MEMBER(Inode, entry_count, 112, 8),
      MEMBER(Inode, gen_high, 120, 8),
      MEMBER(Inode, inline_data, 128, 128),

      MEMBER(AreaHeader, magic, 0, 4),
      MEMBER(AreaHeader, kind, 4, 2),
      MEMBER(AreaHeader, reserved, 6, 2),
      MEMBER(AreaHeader, owner, 8, 8),
      MEMBER(AreaHeader, length_bytes, 16, 8),
      MEMBER(AreaHeader, checksum, 24, 8),
      MEMBER(XattrEntry, space, 0, 1),
      MEMBER(XattrEntry, name_bytes, 1, 1),
      MEMBER(XattrEntry, reserved, 2, 2),
      MEMBER(XattrEntry, value_bytes, 4, 4),
      MEMBER(AclEntry, list, 0, 1),
      MEMBER(AclEntry, tag, 1, 1),
      MEMBER(AclEntry, permissions, 2, 1),
      MEMBER(AclEntry, reserved, 3, 1),
      MEMBER(AclEntry, id, 4, 4),

      MEMBER(MapNode, magic, 0, 4),
      MEMBER(MapNode, level, 4, 2),
      MEMBER(MapNode, count, 6, 2),
      MEMBER(MapNode, checksum, 8, 8),
      MEMBER(MapNode, reserved, 16, 16),
      MEMBER(MapNode, entries, 32, 4064),
      MEMBER(MapEntry, place, 0, 8),
      MEMBER(MapEntry, target, 8, 8),

      MEMBER(Leaf, magic, 0, 4),
      MEMBER(Leaf, reserved0, 4, 4),
      MEMBER(Leaf, live, 8, 8),
      MEMBER(Leaf, owner, 16, 8),
      MEMBER(Leaf, logical, 24, 8),
      MEMBER(Leaf, checksum, 32, 8),
      MEMBER(Leaf, reserved1, 40, 24),
      MEMBER(Leaf, fingerprint, 64, 64),
      MEMBER(Leaf, entry_off, 128, 128),
      MEMBER(Leaf, heap, 256, 3840),
      MEMBER(LeafEntry, target, 0, 8),
      MEMBER(LeafEntry, key, 8, 8),

      MEMBER(IndexEntry, key, 0, 8),
      MEMBER(IndexEntry, target, 8, 8),
      MEMBER(IndexNode, magic, 0, 4),
      MEMBER(IndexNode, level, 4, 2),
      MEMBER(IndexNode, count, 6, 2),
      MEMBER(IndexNode, checksum, 8, 8),
      MEMBER(IndexNode, owner, 16, 8),
      MEMBER(IndexNode, reserved, 24, 8),
      MEMBER(IndexNode, entries, 32, 4064),
  };
  return all;
}

// --- Memory to work on -----------------------------------------------------------------------------------------------

struct PlainMemory {
  explicit PlainMemory(u64 blocks)
      : bytes(static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, blocks * kBlockBytes)), &std::free) {
    std::memset(bytes.get(), 0, blocks * kBlockBytes);
    memory = {bytes.get(), blocks * kBlockBytes, Durability::kVolatile};
  }
  u64 word(u64 off) const {
    u64 value;
    std::memcpy(&value, bytes.get() + off, sizeof(value));
    return value;
  }
  u32 half(u64 off) const { return static_cast<u32>(word(off / 8 * 8) >> (off % 8 * 8)); }
  u64 sum(u64 off, u64 length, u64 seed) const { return checksum64(bytes.get() + off, length, seed); }

  std::unique_ptr<std::byte, void (*)(void*)> bytes;
  Memory memory;
};

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(PMFS_SOURCE_DIR) + "/" + path);
  REQUIRE(file.is_open());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("format 1: every member has its size and place", "[fs]") {
  for (const Member& member : members_v1()) {
    INFO(member.in << "::" << member.name);
    CHECK(member.off_now == member.off);
    CHECK(member.bytes_now == member.bytes);
  }
}

TEST_CASE("format 1: every struct has its size and nothing unnamed in it", "[fs]") {
  const std::vector<std::pair<std::string, std::array<std::size_t, 2>>> structs = {
      {"Locator", {64, sizeof(media::Locator)}},
      {"Superblock", {4096, sizeof(media::Superblock)}},
      {"RegionEntry", {16, sizeof(media::RegionEntry)}},
      {"RegionTable", {4096, sizeof(media::RegionTable)}},
      {"LaneHeader", {64, sizeof(media::LaneHeader)}},
      {"Record", {64, sizeof(media::Record)}},
      {"Inode", {256, sizeof(media::Inode)}},
      {"AreaHeader", {32, sizeof(media::AreaHeader)}},
      {"XattrEntry", {8, sizeof(media::XattrEntry)}},
      {"AclEntry", {8, sizeof(media::AclEntry)}},
      {"MapEntry", {16, sizeof(media::MapEntry)}},
      {"MapNode", {4096, sizeof(media::MapNode)}},
      {"Leaf", {4096, sizeof(media::Leaf)}},
      {"LeafEntry", {16, sizeof(media::LeafEntry)}},
      {"IndexEntry", {16, sizeof(media::IndexEntry)}},
      {"IndexNode", {4096, sizeof(media::IndexNode)}},
  };
  for (const auto& [name, sizes] : structs) {
    INFO(name);
    CHECK(sizes[0] == sizes[1]);
    std::size_t end = 0;
    for (const Member& member : members_v1()) {
      if (name != member.in) continue;
      CHECK(member.off == end);
      end = member.off + member.bytes;
    }
    CHECK(end == sizes[0]);
  }
}

TEST_CASE("format 1: every constant has its value", "[fs]") {
  CHECK(std::memcmp(&media::kMagic, "pmfs001", 8) == 0);
  CHECK(std::memcmp(&media::kMapNodeMagic, "FMAP", 4) == 0);
  CHECK(std::memcmp(&media::kLeafMagic, "LEAF", 4) == 0);
  CHECK(std::memcmp(&media::kIndexNodeMagic, "INTR", 4) == 0);
  CHECK(media::kFormatVersion == 1);
  CHECK(kBlockBytes == 4096);
  CHECK(media::kInodesPerBlock == 16);
  CHECK(media::kMaxRegions == 255);
  CHECK(media::kLaneCount == 64);
  CHECK(media::kRecordsPerLane == 16);
  CHECK(media::kPairsPerRecord == 3);
  CHECK(media::kPairsInLast == 2);
  CHECK(media::kWordsPerRange == 6);
  CHECK(media::kLaneAreaBytes == 69632);
  CHECK(media::kRecordRange == 1);
  CHECK(media::kRecordPairs == 2);
  CHECK(media::kRecordLast == 3);
  CHECK(media::kSlotFree == 0);
  CHECK(media::kSlotLive == 1);
  CHECK(media::kModeHasAcl == 0x10000);
  CHECK(media::kModeHasCapability == 0x20000);
  CHECK(std::memcmp(&media::kAreaMagic, "ATTR", 4) == 0);
  CHECK(media::kAreaInline == 3);
  CHECK(media::kAreaXattrs == 1);
  CHECK(media::kAreaAcl == 2);
  CHECK(media::kSpaceUser == 1);
  CHECK(media::kSpaceTrusted == 2);
  CHECK(media::kSpaceSecurity == 3);
  CHECK(media::kXattrBytesMax == 1048576);
  CHECK(media::kAclEntriesMax == 8191);
  CHECK(static_cast<int>(AclKind::kAccess) == 1);
  CHECK(static_cast<int>(AclKind::kDefault) == 2);
  CHECK(static_cast<int>(AclTag::kUserObj) == 1);
  CHECK(static_cast<int>(AclTag::kUser) == 2);
  CHECK(static_cast<int>(AclTag::kGroupObj) == 3);
  CHECK(static_cast<int>(AclTag::kGroup) == 4);
  CHECK(static_cast<int>(AclTag::kMask) == 5);
  CHECK(static_cast<int>(AclTag::kOther) == 6);
  CHECK(media::kMapTagMask == 3);
  CHECK(media::kMapDirect == 1);
  CHECK(media::kMapTree == 2);
  CHECK(media::kMapNodeEntries == 254);
  CHECK(media::kIndexNodeEntries == 254);
  CHECK(media::kLeafSlots == 64);
  CHECK(media::kLeafHeapOff == 256);
  CHECK(kMapEnd == u64{1} << 40);
  CHECK(kMaxExtentBlocks == (u64{1} << 24) - 1);
  CHECK(kMaxFileBytes == (u64{1} << 52) - 1);
  CHECK(to_u64(kRootIno) == 1);
  CHECK(static_cast<int>(FileType::kRegular) == 1);
  CHECK(static_cast<int>(FileType::kDirectory) == 2);
  CHECK(static_cast<int>(FileType::kSymlink) == 3);
  CHECK(static_cast<int>(FileType::kFifo) == 4);
  CHECK(static_cast<int>(FileType::kCharDevice) == 5);
  CHECK(static_cast<int>(FileType::kBlockDevice) == 6);
  CHECK(static_cast<int>(FileType::kSocket) == 7);
  CHECK(media::kRoCompatAreas == 1);
  CHECK(kKnownRoCompat == 1);
  CHECK(kKnownIncompat == 0);
}

TEST_CASE("format 1: mkfs puts everything where FORMAT.md says", "[fs]") {
  constexpr u64 kLocator = 4096;
  constexpr u64 kBase = 2 * 4096;
  PlainMemory plain(2 + 55);  // the smallest region that is enough
  FormatParameters parameters;
  parameters.label = "a label";
  parameters.regions = {{kBase, 55 * 4096}};
  parameters.locator_off = PoolOff{kLocator};
  parameters.fixed_ids = true;
  must(format_memory(plain.memory, parameters));

  CHECK(plain.word(kLocator) == 0x0031303073666d70);
  CHECK(plain.half(kLocator + 8) == 1);
  CHECK(plain.word(kLocator + 16) == kBase);
  CHECK(plain.word(kLocator + 24) == plain.sum(kLocator, 24, 0));

  CHECK(plain.word(kBase) == 0x0031303073666d70);
  CHECK(plain.half(kBase + 8) == 1);
  CHECK(plain.half(kBase + 12) == 4096);
  CHECK(plain.word(kBase + 16) == 0);
  CHECK(plain.word(kBase + 24) == 1);
  CHECK(plain.word(kBase + 32) == 0);
  CHECK(plain.word(kBase + 40) == 0x0746050403020100);  // RFC 4122: version 4 in the high half of byte 6,
  CHECK(plain.word(kBase + 48) == 0x0f0e0d0c0b0a0988);  // variant 1 in the top bits of byte 8
  CHECK(std::string(reinterpret_cast<const char*>(plain.bytes.get()) + kBase + 64) == "a label");
  CHECK(plain.word(kBase + 96) == kBase + 2 * 4096);
  CHECK(plain.word(kBase + 104) == kBase + 4096);
  CHECK(plain.half(kBase + 112) == 64);
  CHECK(plain.word(kBase + 120) == plain.sum(kBase, 120, 0));
  CHECK(plain.word(kBase + 128) == 1);
  CHECK(plain.word(kBase + 256) == (1 | 4 << 3 | (kBase / 4096 + 19) << 23));
  CHECK(plain.word(kBase + 264) == 64);

  CHECK(plain.word(kBase + 4096) == 0);
  CHECK(plain.word(kBase + 4096 + 16) == kBase);
  CHECK(plain.word(kBase + 4096 + 24) == 55 * 4096);
  CHECK(plain.word(kBase + 4096 + 40) == 0);

  for (u64 lane = 0; lane < 64; ++lane) CHECK(plain.word(kBase + 2 * 4096 + 64 * lane) == 1);

  const u64 root = kBase + 19 * 4096;
  CHECK(plain.word(root) == (1 | u64{1} << 32));
  CHECK(plain.word(root + 8) == (040755 | u64{2} << 32));
  CHECK(plain.word(root + 64) == 0);
  CHECK(plain.word(root + 72) == 1);
  CHECK(plain.word(root + 120) == 1);
  CHECK(plain.word(root + 256) == 0);  // the next slot is free and was never used
}

TEST_CASE("record: meta keeps target, length and kind apart", "[base]") {
  const u64 highest = (u64{1} << 48) - 8;
  for (const u64 target : {u64{0}, u64{8}, u64{4096}, highest}) {
    for (const u64 length : {u64{0}, u64{1}, u64{3}, u64{8}, u64{48}}) {
      for (const u8 kind : {media::kRecordRange, media::kRecordPairs, media::kRecordLast}) {
        const u64 meta = media::record_meta(target, length, kind);
        CHECK(meta == (target | length << 48 | u64{kind} << 56));
        CHECK(media::record_target(meta) == target);
        CHECK(media::record_length(meta) == length);
        CHECK(media::record_kind(meta) == kind);
      }
    }
  }
}

TEST_CASE("record: a commit writes the bytes that FORMAT.md describes, and recovery reads them", "[base]") {
  constexpr u64 kArea = 4096;
  constexpr u64 kWords = kArea + 17 * 4096;
  constexpr u64 kSequence = 5;
  const LaneKey key{0x1111, 0x2222, 7};
  PlainMemory plain(19);
  const auto word_at = [&](u64 index) -> Le64& {
    return *reinterpret_cast<Le64*>(plain.memory.at(PoolOff{kWords + 8 * index}));
  };
  for (u64 i = 0; i < 80; ++i) word_at(i).set(1000 + i);
  for (u64 lane = 0; lane < 64; ++lane) std::memcpy(plain.bytes.get() + kArea + 64 * lane, &kSequence, 8);

  Persist persist(plain.memory);
  Lanes lanes(persist, PoolOff{kArea}, key);
  Commit commit(lanes, persist);
  ChangeMark last;
  commit.touch(last);
  // Six neighbours, which make a range, and four words apart: three of them in a record of pairs, one in the last.
  const std::vector<u64> changed = {0, 1, 2, 3, 4, 5, 16, 32, 48, 64};
  for (auto i = changed.rbegin(); i != changed.rend(); ++i) commit.set(word_at(*i), 2000 + *i);
  const ChangeMark mark = must(commit.run());
  CHECK(mark.sequence == kSequence);
  CHECK(plain.word(kArea + 64 * mark.lane) == kSequence + 1);

  const auto record = [&](u64 index) { return kArea + 4096 + (16 * mark.lane + index) * 64; };
  CHECK(plain.word(record(0) + 48) == (kWords | u64{48} << 48 | u64{1} << 56));
  for (u64 i = 0; i < 6; ++i) CHECK(plain.word(record(0) + 8 * i) == 1000 + i);
  CHECK(plain.word(record(1) + 48) == (u64{3} << 48 | u64{2} << 56));
  for (u64 i = 0; i < 3; ++i) {
    CHECK(plain.word(record(1) + 16 * i) == kWords + 8 * changed[6 + i]);
    CHECK(plain.word(record(1) + 16 * i + 8) == 1000 + changed[6 + i]);
  }
  CHECK(plain.word(record(2) + 48) == (u64{1} << 48 | u64{3} << 56));
  CHECK(plain.word(record(2)) == kWords + 8 * 64);
  CHECK(plain.word(record(2) + 8) == 1000 + 64);
  CHECK(plain.word(record(2) + 16) == 0);
  CHECK(plain.word(record(2) + 24) == 0);
  CHECK(plain.word(record(2) + 32) == 3);
  std::vector<u64> new_words;
  for (const u64 i : changed) new_words.push_back(2000 + i);
  CHECK(plain.word(record(2) + 40) == checksum64(new_words.data(), new_words.size() * 8));
  for (u64 index = 0; index < 3; ++index) {
    u64 keyed[12];
    for (u64 i = 0; i < 7; ++i) keyed[i] = plain.word(record(index) + 8 * i);
    keyed[7] = key.uuid_low;
    keyed[8] = key.uuid_high;
    keyed[9] = key.epoch;
    keyed[10] = u64{mark.lane} << 32 | index;
    keyed[11] = kSequence;
    CHECK(plain.word(record(index) + 56) == checksum64(keyed, sizeof(keyed)));
  }

  // As if the bump had not reached the medium: all is in place, so it stays. Then as if one word had not, either.
  const auto valid = [](u64) { return true; };
  std::memcpy(plain.bytes.get() + kArea + 64 * mark.lane, &kSequence, 8);
  CHECK(must(recover_lane(persist, PoolOff{kArea}, key, mark.lane, valid)) == LaneVerdict::kCommitted);
  for (const u64 i : changed) CHECK(word_at(i).get() == 2000 + i);
  word_at(32).set(1032);
  CHECK(must(recover_lane(persist, PoolOff{kArea}, key, mark.lane, valid)) == LaneVerdict::kUndone);
  for (u64 i = 0; i < 80; ++i) CHECK(word_at(i).get() == 1000 + i);
  // Of another epoch, the same bytes are nothing.
  CHECK(must(recover_lane(persist, PoolOff{kArea}, {0x1111, 0x2222, 8}, mark.lane, valid)) == LaneVerdict::kEmpty);
}

TEST_CASE("file map: root words and nodes decode to what they encode", "[fs]") {
  PlainMemory plain(64);
  Persist persist(plain.memory);
  const Regions here({{4096, 63 * 4096}});
  const Regions anywhere({{4096, u64{1} << 52}});  // block numbers that no memory stands behind
  BlockAlloc blocks(here);
  BlockHold hold(blocks, Purpose::kFreeing);
  const ExtentMap maps(persist, anywhere, 99);
  const auto direct = [](u64 count, u64 block, bool unwritten) {
    return u64{1} | u64{unwritten} << 2 | count << 3 | block << 23;
  };

  SECTION("one extent from block 0 on is in the root word") {
    for (const u64 count : {u64{1}, u64{7}, (u64{1} << 20) - 1}) {
      for (const u64 block : {u64{1}, u64{30}, (u64{1} << 40) - (u64{1} << 20)}) {
        for (const bool unwritten : {false, true}) {
          const MapChange change = must(maps.replace(0, 0, count, {{0, count, block, unwritten}}, hold));
          CHECK(change.root == direct(count, block, unwritten));
          const Extent back = must(maps.find(change.root, 0));
          CHECK(back.count == count);
          CHECK(back.block == block);
          CHECK(back.unwritten == unwritten);
        }
      }
    }
  }
  SECTION("anything else is a tree") {
    const u64 long_extent = u64{1} << 20;  // one block too long for the word
    const std::vector<Extent> put = {{0, long_extent, 5000, false}, {long_extent + 10, 3, 77, true}};
    const u64 root = must(maps.replace(0, 0, long_extent + 13, put, hold)).root;
    CHECK((root & 0xfff) == 2);  // tag 2, level 0
    const u64 node = root & ~u64{0xfff};
    CHECK(plain.half(node) == 0x50414d46);
    CHECK(plain.half(node + 4) == (0 | 2 << 16));  // level 0, two entries
    CHECK(plain.word(node + 8) == plain.sum(node + 32, 2 * 16, plain.sum(node, 8, 99)));
    CHECK(plain.word(node + 32) == long_extent);
    CHECK(plain.word(node + 40) == 5000);
    CHECK(plain.word(node + 48) == ((long_extent + 10) << 24 | 3));
    CHECK(plain.word(node + 56) == (77 | u64{1} << 63));
    CHECK(must(maps.find(root, 3)).block == 5003);
    CHECK(must(maps.find(root, long_extent)).hole());
    CHECK(must(maps.find(root, long_extent + 11)).block == 78);
    CHECK(must(maps.find(root, long_extent + 11)).unwritten);
  }
  SECTION("a tree that outgrows a node has its level in the root word") {
    std::vector<Extent> put;
    for (u64 i = 0; i < 255; ++i) put.push_back({2 * i, 1, 100 + 2 * i, false});
    const u64 root = must(maps.replace(0, 0, 2 * 255, put, hold)).root;
    CHECK((root & 0xfff) == (2 | 1 << 4));
    const u64 node = root & ~u64{0xfff};
    CHECK(plain.half(node + 4) == (1 | 2 << 16));
    CHECK(plain.word(node + 32) == 0);
    CHECK(plain.word(node + 48) == u64{2 * 254} << 24);
    for (const u64 at : {node + 40, node + 56}) CHECK(plain.half(plain.word(at) * 4096) == 0x50414d46);
    CHECK(must(maps.find(root, 2 * 254)).block == 100 + 2 * 254);
  }
  SECTION("what no root word is, is refused") {
    for (const u64 root : {u64{3}, u64{4}, direct(0, 5, false), direct(1, 0, false), u64{4096 | 2 | 9 << 4}}) {
      INFO(root);
      CHECK(test::code_of(maps.find(root, 0)) == Errc::kCorrupt);
      CHECK_FALSE(maps.each(root, 0, kMapEnd, [](const Extent&) { return Result<void>(); }).ok());
    }
  }
}

TEST_CASE("directory entry: target, key and length decode to what they encode", "[htree]") {
  const u64 highest_ino = (u64{1} << 48) - 1;
  for (const u64 ino : {u64{1}, u64{77}, highest_ino}) {
    const u64 target = htree::make_target(InodeNo{ino}, 7, 255);
    CHECK(target == (ino | u64{7} << 48 | u64{255} << 56));
    CHECK(htree::target_ino(target) == InodeNo{ino});
    CHECK(htree::target_type(target) == 7);
    CHECK(htree::target_name_len(target) == 255);
  }
  for (const u64 hash : {u64{1}, u64{12345}, (u64{1} << 48) - 2}) {
    for (const u32 ordinal : {0u, 1u, htree::kOrdinals - 1}) {
      const u64 key = htree::make_key(hash, ordinal);
      CHECK(key == (hash << 15 | ordinal));
      CHECK(key >> 63 == 0);
      CHECK(key >= 32768);
      CHECK(key < ((u64{1} << 48) - 1) << 15);
      CHECK(htree::key_hash(key) == hash);
      CHECK(htree::key_ordinal(key) == ordinal);
    }
  }
  CHECK(htree::entry_bytes(1) == 24);
  CHECK(htree::entry_bytes(8) == 24);
  CHECK(htree::entry_bytes(9) == 32);
  CHECK(htree::entry_bytes(255) == 272);
}

TEST_CASE("directory leaf: hash, header and entry lie where FORMAT.md says", "[htree]") {
  PlainMemory plain(2);
  Persist persist(plain.memory);
  const u64 seed = 4711;
  const std::string name = "a name";
  const u64 all = checksum64(name.data(), name.size(), seed);
  const htree::NameHash hash = htree::NameHasher{seed}(name);
  CHECK(hash.hash == all >> 16);
  CHECK(hash.fingerprint == (hash.hash & 0xff));

  auto& leaf = *reinterpret_cast<media::Leaf*>(plain.memory.at(PoolOff{4096}));
  htree::init(persist, leaf, InodeNo{9}, 3, seed);
  const u64 key = htree::make_key(hash.hash, 2);
  htree::add_fresh(persist, leaf, htree::make_target(InodeNo{12}, 1, name.size()), key, hash, name);
  CHECK(plain.half(4096) == 0x4641454c);
  CHECK(plain.word(4096 + 8) == 1);
  CHECK(plain.word(4096 + 16) == 9);
  CHECK(plain.word(4096 + 24) == 3);
  const u64 covered[3] = {0x4641454c, 9, 3};
  CHECK(plain.word(4096 + 32) == checksum64(covered, sizeof(covered), seed));
  CHECK(static_cast<u8>(plain.bytes.get()[4096 + 64]) == hash.fingerprint);
  CHECK((plain.word(4096 + 128) & 0xffff) == 256);
  CHECK(plain.word(4096 + 256) == (12 | u64{1} << 48 | u64{6} << 56));
  CHECK(plain.word(4096 + 264) == key);
  CHECK(std::memcmp(plain.bytes.get() + 4096 + 272, "a name\0\0", 8) == 0);
}

TEST_CASE("directory index: root word and nodes lie where FORMAT.md says", "[htree]") {
  PlainMemory plain(16);
  Persist persist(plain.memory);
  const Regions here({{4096, 15 * 4096}});
  BlockAlloc blocks(here);
  BlockHold hold(blocks, Purpose::kFreeing);
  constexpr u64 kSeed = 4711;
  const htree::IndexSpace space{persist, [&](u64 block) { return here.contains_blocks({block, 1}); }, kSeed};
  const htree::Index index(space, InodeNo{9});
  const auto check_head = [&](u64 node, u64 level, u64 count) {
    CHECK(plain.half(node) == 0x52544e49);
    CHECK(plain.half(node + 4) == (level | count << 16));
    const u64 covered[2] = {plain.word(node), plain.word(node + 16)};
    CHECK(plain.word(node + 8) == plain.sum(node + 32, count * 16, checksum64(covered, sizeof(covered), kSeed)));
    CHECK(plain.word(node + 16) == 9);
    CHECK(plain.word(node + 24) == 0);
  };

  SECTION("two leaves: one node") {
    const u64 root = must(index.build({{0, 0, 5, false}, {700, 0, 2, false}}, hold)).root;
    CHECK((root & 0xfff) == 0);
    check_head(root, 0, 2);
    CHECK(plain.word(root + 32) == 0);
    CHECK(plain.word(root + 40) == 5);
    CHECK(plain.word(root + 48) == 700);
    CHECK(plain.word(root + 56) == 2);
    CHECK(must(index.find(root, 699)).logical == 5);
    CHECK(must(index.find(root, 700)).logical == 2);
  }
  SECTION("more leaves than a node has entries: the level is in the root word") {
    std::vector<htree::IndexedLeaf> leaves;
    for (u64 i = 0; i < 255; ++i) leaves.push_back({1000 * i, 0, i, false});
    const u64 root = must(index.build(leaves, hold)).root;
    CHECK((root & 0xfff) == 1);
    const u64 node = root & ~u64{0xfff};
    check_head(node, 1, 2);
    CHECK(plain.word(node + 32) == 0);
    const u64 low = plain.word(node + 40) * 4096;
    const u64 high = plain.word(node + 56) * 4096;
    const u64 in_low = plain.half(low + 4) >> 16;
    check_head(low, 0, in_low);
    check_head(high, 0, 255 - in_low);
    CHECK(plain.word(node + 48) == 1000 * in_low);
    CHECK(plain.word(high + 32) == 1000 * in_low);
    CHECK(must(index.find(root, 254999)).logical == 254);
  }
}

TEST_CASE("areas: attributes and ACLs lie where FORMAT.md says", "[fs]") {
  pmfs::test::MemoryFs memory(u64{8} << 20);
  const Credentials root = Credentials::root();
  const Attributes file = must(memory->mknod("/f", 0640, 0, root));
  const Volume& volume = volume_of(memory.fs());
  const std::byte* const inode =
      reinterpret_cast<const std::byte*>(&volume.inodes.slot(to_u64(file.ino) - 1));
  const auto word = [](const std::byte* at) {
    u64 value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  const std::string value(3, 'v'), large(5000, 'w');
  must(memory->set_xattr("/f", "trusted.bc", std::as_bytes(std::span(value)), 0, root));
  must(memory->set_acl("/f", AclKind::kAccess,
                       {{AclTag::kUserObj, 6, 0},
                        {AclTag::kUser, 5, 258},
                        {AclTag::kGroupObj, 4, 0},
                        {AclTag::kMask, 7, 0},
                        {AclTag::kOther, 1, 0}},
                       root));
  CHECK((word(inode + 8) & 0xffffffff) == (0x10000 | 0100671));
  CHECK(word(inode + 104) == (3 | 0 << 8 | 16 << 16));
  CHECK(word(inode + 128) == (1 | 2 << 8 | 5 << 16 | u64{258} << 32));
  CHECK(word(inode + 136) == (1 | 3 << 8 | 4 << 16));
  CHECK(word(inode + 96) == (3 | 16 << 8 | 13 << 16));
  CHECK(word(inode + 144) == (2 | 2 << 8 | u64{3} << 32));
  CHECK(std::memcmp(inode + 152, "bcvvv", 5) == 0);

  must(memory->set_xattr("/f", "user.a", std::as_bytes(std::span(large)), 0, root));
  const u64 reference = word(inode + 96);
  CHECK((reference & 7) == 1);
  CHECK((reference >> 3 & 0xfffff) == 2);
  CHECK(word(inode + 32) == 2);
  const std::byte* const area = volume.persist.memory().at(PoolOff{(reference >> 23) * 4096});
  const u64 bytes = 8 + 1 + 5000 + 8 + 2 + 3;
  CHECK(word(area) == (0x52545441 | u64{1} << 32));
  CHECK(word(area + 8) == to_u64(file.ino));
  CHECK(word(area + 16) == bytes);
  CHECK(word(area + 24) == checksum64(area + 32, bytes, checksum64(area, 24, volume.superblock.hash_seed.get())));
  CHECK(word(area + 32) == (1 | 1 << 8 | u64{5000} << 32));
  CHECK(std::memcmp(area + 40, "aww", 3) == 0);
  CHECK(std::memcmp(area + 32 + 9 + 5000 + 8, "bcvvv", 5) == 0);
}

// --- FORMAT.md -------------------------------------------------------------------------------------------------------

TEST_CASE("FORMAT.md has a row with place and size for every member", "[fs]") {
  const std::string text = text_of("libpmfs/FORMAT.md");
  for (const Member& member : members_v1()) {
    INFO(member.in << "::" << member.name);
    const std::size_t from = text.find("`media::" + std::string(member.in) + "`, ");
    REQUIRE(from != std::string::npos);
    const std::size_t to = std::min(text.find("`media::", from + 1), text.find("\n## ", from));
    std::ostringstream row;
    row << "| " << member.off << " | " << member.bytes << " | `" << member.name << "` |";
    CHECK(text.substr(from, to - from).find(row.str()) != std::string::npos);
  }
}

TEST_CASE("the format headers have no struct and no member that version 1 does not know", "[fs]") {
  std::set<std::string> known;
  for (const Member& member : members_v1()) known.insert(std::string(member.in) + "::" + member.name);
  std::size_t found = 0;
  for (const char* header :
       {"libpmfs/fs/format.h", "libpmfs/base/lane_format.h", "htree/leaf_format.h", "htree/node_format.h"}) {
    std::istringstream lines(text_of(header));
    std::string in;
    const std::regex begins(R"(^struct (?:alignas\(\d+\) )?(\w+) \{.*)");
    const std::regex declares(R"(^\s+(?:Le16|Le32|Le64|u8|[A-Z]\w*) (\w+)(?:\[[^\]]*\])?;.*)");
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_match(line, match, begins)) in = match[1];
      if (line.starts_with("};")) in.clear();
      if (in.empty() || !std::regex_match(line, match, declares)) continue;
      found += 1;
      INFO(in << "::" << match[1] << " in " << header);
      CHECK(known.contains(in + "::" + match[1].str()));
    }
  }
  CHECK(found == known.size());
}

TEST_CASE("DESIGN.md: the ORDER tables have every tag with the reason that the header gives", "[base]") {
  const std::string text = text_of("libpmfs/DESIGN.md");
  for (unsigned i = 0; i < kOrderCount; ++i) {
    const auto why = static_cast<Order>(i);
    const std::string row = std::string("| `") + order_name(why) + "` | " + order_reason(why) + " |";
    INFO(row);
    CHECK(text.find(row) != std::string::npos);
  }
}
