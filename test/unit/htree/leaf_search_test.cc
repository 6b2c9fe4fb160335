// The search in a leaf: three ways to look through its fingerprints, and how many names are compared.
#include <cstring>
#include <random>

#include "htree/fingerprint.h"
#include "htree/leaf.h"
#include "test/support/catch.h"

using namespace pmfs;
using namespace pmfs::htree;

namespace {

std::vector<SearchPath> paths_here() {
  std::vector<SearchPath> paths{SearchPath::kScalar, SearchPath::kSse2};
  if (best_search_path() == SearchPath::kAvx2) paths.push_back(SearchPath::kAvx2);
  return paths;
}

// The answer, from its definition.
u64 expected(const u8* bytes, u8 wanted) {
  u64 found = 0;
  for (int i = 0; i < 64; ++i)
    if (bytes[i] == wanted) found |= u64{1} << i;
  return found;
}

struct OneLeaf {
  OneLeaf() : bytes(kBlockBytes) {
    auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
    persist.emplace(Memory{reinterpret_cast<std::byte*>(at), kBlockBytes, Durability::kVolatile});
    init(*persist, leaf(), InodeNo{1}, 0, 77);
  }
  media::Leaf& leaf() { return *reinterpret_cast<media::Leaf*>(bytes.data()); }
  void add(std::string_view name, const NameHash& hash, u32 ordinal = 0) {
    add_fresh(*persist, leaf(), make_target(InodeNo{5}, 1, name.size()), make_key(hash.hash, ordinal), hash, name);
  }

  struct Aligned {
    explicit Aligned(std::size_t n) : at(static_cast<std::byte*>(std::aligned_alloc(4096, n))) {
      std::memset(at, 0xa5, n);
    }
    ~Aligned() { std::free(at); }
    Aligned(const Aligned&) = delete;
    Aligned& operator=(const Aligned&) = delete;
    std::byte* data() { return at; }
    std::byte* at;
  } bytes;
  std::optional<Persist> persist;
};

}  // namespace

TEST_CASE("leaf search: every way gives the same answer on random and on hostile fingerprints", "[unit][htree]") {
  alignas(64) u8 bytes[64];
  std::mt19937 random(20);
  const auto compare = [&](u8 wanted) {
    const u64 answer = expected(bytes, wanted);
    for (const SearchPath path : paths_here()) {
      CAPTURE(static_cast<int>(path), static_cast<int>(wanted));
      CHECK(equal_bytes(path, bytes, wanted) == answer);
    }
    CHECK(equal_bytes(bytes, wanted) == answer);
  };
  for (int round = 0; round < 2000; ++round) {
    const unsigned values = 1 + random() % 256;  // from all equal to all different
    for (u8& byte : bytes) byte = static_cast<u8>(random() % values);
    compare(static_cast<u8>(random() % values));
    compare(bytes[random() % 64]);
  }
  for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {  // signs, and all slots at once
    std::memset(bytes, value, sizeof(bytes));
    for (const int wanted : {0x00, 0x01, 0x7f, 0x80, 0xff}) compare(static_cast<u8>(wanted));
  }
  for (int i = 0; i < 64; ++i) {  // each place alone
    std::memset(bytes, 0x80, sizeof(bytes));
    bytes[i] = 0x7f;
    compare(0x7f);
    compare(0x80);
  }
}

TEST_CASE("leaf search: every way gives the same answer on every damage of one byte", "[unit][htree]") {
  // A leaf's bytes as a stranger may have left them: whatever lies in it, the three agree, and nothing is read outside.
  OneLeaf at;
  NameHasher hasher{77};
  for (int i = 0; i < 40; ++i) {
    const std::string name = "name" + std::to_string(i);
    at.add(name, hasher(name));
  }
  std::mt19937 random(3);
  for (u32 byte = 0; byte < kBlockBytes; byte += 1 + static_cast<u32>(random() % 7)) {
    const std::byte before = at.bytes.data()[byte];
    at.bytes.data()[byte] = static_cast<std::byte>(random());
    for (int k = 0; k < 4; ++k) {
      const auto wanted = static_cast<u8>(random());
      const u64 scalar = equal_bytes(SearchPath::kScalar, at.leaf().fingerprint, wanted);
      for (const SearchPath path : paths_here()) CHECK(equal_bytes(path, at.leaf().fingerprint, wanted) == scalar);
    }
    const std::string name = "name" + std::to_string(random() % 40);
    const auto found = find(at.leaf(), hasher(name), name, 0);
    if (found.ok() && found->has_value()) CHECK((*found)->name == name);
    at.bytes.data()[byte] = before;
  }
}

TEST_CASE("leaf search: a name that is there costs one comparison of names, one that is not costs none",
          "[unit][htree]") {
  OneLeaf at;
  NameHasher hasher{77};
  for (int i = 0; i < 60; ++i) {
    const std::string name = "file-" + std::to_string(i);
    at.add(name, hasher(name));
  }
  for (int i = 0; i < 60; ++i) {
    const std::string name = "file-" + std::to_string(i);
    u32 compared = 0;
    const auto found = find(at.leaf(), hasher(name), name, 0, &compared);
    REQUIRE(found.ok());
    REQUIRE(found->has_value());
    CHECK((*found)->name == name);
    CHECK(compared == 1);
  }
  u32 compared = 0;
  for (int i = 60; i < 2000; ++i) {
    const std::string name = "file-" + std::to_string(i);
    const auto found = find(at.leaf(), hasher(name), name, 0, &compared);
    REQUIRE(found.ok());
    CHECK_FALSE(found->has_value());
  }
  CHECK(compared == 0);
}

TEST_CASE("leaf search: names of one hash are compared until the right one", "[unit][htree]") {
  OneLeaf at;
  const NameHash same{0x123456, 0x56};
  for (u32 i = 0; i < 10; ++i) at.add(std::string(1, static_cast<char>('a' + i)), same, i);
  for (u32 i = 0; i < 10; ++i) {
    u32 compared = 0;
    const std::string name(1, static_cast<char>('a' + i));
    const auto found = find(at.leaf(), same, name, 0, &compared);
    REQUIRE(found.ok());
    REQUIRE(found->has_value());
    CHECK((*found)->name == name);
    CHECK(key_ordinal((*found)->key) == i);
    CHECK(compared == i + 1);  // they lie in the order in which they came
  }
}
