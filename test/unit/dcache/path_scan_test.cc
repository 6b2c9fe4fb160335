#include "dcache/path_scan.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/support/catch.h"

using namespace pmfs;
using namespace pmfs::dcache;

namespace {

constexpr HashKeys kKeys{0x1234567890abcdef, 0xfedcba0987654321};

// Exactly as long as the text, so that a sanitizer sees every byte read beside it.
struct Exact {
  explicit Exact(const std::string& text) : bytes(new char[text.size()]), size(text.size()) {
    std::copy(text.begin(), text.end(), bytes.get());
  }
  std::string_view view() const { return {bytes.get(), size}; }
  std::unique_ptr<char[]> bytes;
  std::size_t size;
};

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> names;
  std::string name;
  for (const char c : path) {
    if (c != '/') {
      name += c;
    } else if (!name.empty()) {
      names.push_back(std::exchange(name, ""));
    }
  }
  if (!name.empty()) names.push_back(name);
  return names;
}

bool canonical(std::string_view path) {
  if (path.find("//") != std::string_view::npos) return false;
  for (const std::string& name : split(path))
    if (name == "." || name == ".." || name.size() > kNameMax) return false;
  return true;
}

void check(const std::string& path) {
  INFO("path \"" << path << '"');
  const Exact exact(path);
  PathScan scan(exact.view(), kKeys);
  std::vector<std::string> names;
  std::string prefix;
  bool first_piece = true;
  while (scan.next() != 0) {
    for (u32 i = 0; i < scan.count(); ++i) {
      names.emplace_back(scan.name(i));
      if (names.back().size() > kNameMax) continue;
      const Exact alone(names.back());
      const Component c = scan[i], same = make_component(alone.view(), kKeys);
      REQUIRE(c.hash == same.hash);
      REQUIRE(c.first == same.first);
      REQUIRE(c.second == same.second);
    }
    if (first_piece && scan.canonical()) {
      for (const u32 i : {scan.count() - 1, u32{0}, scan.count() / 2}) {
        const Exact text{std::string(scan.text_to(i))};
        PathScan other(text.view(), kKeys);
        REQUIRE(other.next() == i + 1);
        REQUIRE(other.prefix(i) == scan.prefix(i));
      }
      if (scan.last()) REQUIRE(canonical(path));
    }
    if (first_piece && scan.last()) REQUIRE(scan.canonical() == canonical(path));
    first_piece = false;
  }
  REQUIRE(names == split(path));
  REQUIRE(scan.last());
  if (!names.empty()) REQUIRE(scan.trailing_slash() == (path.back() == '/'));
}

}  // namespace

TEST_CASE("path scan: any path is cut where its slashes are, and nothing beside it is read", "[dcache]") {
  for (const char* path : {"a", "/", "//", "///", "/a", "a/", "/a/b/c", "a//b", "/a/./b", "/a/../b", "..", ".", ".x",
                           "..x", "/a/b/.", "/twelve_bytes/twelve_bytes/twelve_bytes/twelve_bytes/twelve_bytes",
                           "/sixteen__bytes__/sixteen__bytes__x/fifteen__bytes_"})
    check(path);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string path;
    for (u64 n = random() % 48; n > 0; --n) {
      if (random() % 3 != 0) path += '/';
      switch (random() % 8) {
        case 0: path += '/'; break;
        case 1: path += '.'; break;
        case 2: path += std::string(random() % 300, 'n'); break;
        default: path += std::string(1 + random() % 18, static_cast<char>('a' + random() % 26));
      }
    }
    if (!path.empty()) check(path);
  }
}

TEST_CASE("path scan: names that differ in one byte, or in length, have different hashes", "[dcache]") {
  for (std::size_t length = 1; length <= kNameMax; ++length) {
    const std::string name(length, 'x');
    const u64 hash = make_component(name, kKeys).hash;
    for (std::size_t at = 0; at < length; ++at) {
      std::string other = name;
      other[at] = 'y';
      REQUIRE(make_component(other, kKeys).hash != hash);
    }
    if (length < kNameMax) REQUIRE(make_component(name + 'x', kKeys).hash != hash);
    REQUIRE(make_component(name, {kKeys.low + 2, kKeys.high}).hash != hash);
  }
}
