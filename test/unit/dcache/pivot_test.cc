// The parts of Stage Lookup on a cache that holds just what each case puts in.
#include <map>
#include <string>

#include "dcache/fullpath.h"
#include "dcache/stage.h"
#include "test/support/catch.h"

using namespace pmfs;
using namespace pmfs::dcache;

namespace {

// A cache filled by paths: every name becomes a directory of its own.
class Tree {
 public:
  explicit Tree(u64 bytes = u64{1} << 20) : cache(DentryCache::make(bytes, 1)) { REQUIRE(cache != nullptr); }

  Dentry* add(std::string_view path, u32 mode = 0755) {
    const RcuReadGuard reading;
    InodeNo at = kRootIno;
    u64 generation = 1;
    Dentry* dentry = nullptr;
    while (!path.empty()) {
      path.remove_prefix(1);
      const std::string_view name = path.substr(0, path.find('/'));
      path.remove_prefix(name.size());
      const Component c = make_component(name, cache->keys());
      Answer answer;
      answer.ino = at;
      answer.generation = generation;
      answer.permission = {0040000 | mode, 0, 0, 0};
      Dir* const dir = cache->remember(answer, nullptr);
      REQUIRE(dir != nullptr);
      dentry = cache->find(dir, c);
      if (dentry == nullptr) {
        answer.target = Target{InodeNo{++last_ino_}, last_ino_ * 7, kTypeDirectory};
        REQUIRE(cache->remember(answer, &c) != nullptr);
        dentry = cache->find(dir, c);
      }
      REQUIRE(dentry != nullptr);
      at = InodeNo{dentry->ino};
      generation = dentry->generation;
    }
    return dentry;
  }

  std::unique_ptr<DentryCache> cache;

 private:
  u64 last_ino_ = 1;
};

const Searcher kAnybody{false, 1000, 1000, {}};

std::string found_name(Tree& tree, const Prefix& prefix) {
  if (prefix.components == 0) return "";
  Chain chain;
  REQUIRE(chain.build_path(*tree.cache, *prefix.dentry));
  REQUIRE(chain.depth == prefix.components);
  return "/" + std::string(chain.path, chain.length);
}

Prefix find(Tree& tree, const PivotPool& pool, std::string_view path, const Searcher& who = kAnybody) {
  const RcuReadGuard reading;
  PathScan scan(path, tree.cache->keys());
  return pool.find(scan, scan.next(), who);
}

void fill(Tree& tree, PivotPool& pool, const std::vector<std::string>& paths, u32 mode = 0755) {
  std::vector<Dentry*> dentries;
  for (const std::string& path : paths) dentries.push_back(tree.add(path, mode));
  std::lock_guard lock(tree.cache->mutex());
  pool.reserve(paths.size());
  for (Dentry* const dentry : dentries) REQUIRE(pool.add(*dentry, 1));
  pool.finish();
}

}  // namespace

TEST_CASE("pivot pool: the paper's example gets the paper's overlaps and its best pivot", "[dcache]") {
  Tree tree;
  for (const bool hashed : {false, true}) {
    PivotPool pool(*tree.cache, hashed);
    // Figure 4: the overlaps are 0, 2, 4, 0, 3.
    fill(tree, pool, {"/a2/b1/c1/d2", "/a1/b1/c2/d2/e1", "/a2/b1/c1/d1", "/a1/b1/c1", "/a1/b1/c2/d2/e3/f3/g3"});
    REQUIRE(pool.size() == 5);
    std::vector<u32> overlaps;
    for (u64 i = 0; i < pool.size(); ++i) overlaps.push_back(pool[i].overlap);
    CHECK(overlaps == std::vector<u32>{0, 2, 4, 0, 3});
    // The pivot lies one level deeper than the path goes: it rolls up.
    CHECK(found_name(tree, find(tree, pool, "/a1/b1/c2/d2/e3/f3/foo")) == "/a1/b1/c2/d2/e3/f3");
    CHECK(found_name(tree, find(tree, pool, "/a1/b1/c2/d2/e1")) == "/a1/b1/c2/d2/e1");
    CHECK(found_name(tree, find(tree, pool, "/a1")) == "/a1");
    CHECK(found_name(tree, find(tree, pool, "/a2/b1/c1/d9/x")) == "/a2/b1/c1");
    CHECK(found_name(tree, find(tree, pool, "/a3/b1")).empty());
    // Names that only begin alike are not the same component.
    CHECK(found_name(tree, find(tree, pool, "/a1/b1/c22/d2")) == "/a1/b1");
    CHECK(found_name(tree, find(tree, pool, "/a")).empty());
    std::lock_guard lock(tree.cache->mutex());
    pool.clean();
  }
}

TEST_CASE("pivot pool: list and hash find the same depth for every path", "[dcache]") {
  Tree tree;
  std::vector<std::string> pivots, asked;
  u64 state = 7;
  const auto random = [&](u64 n) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % n;
  };
  const auto path = [&] {
    std::string result;
    for (u64 depth = 1 + random(12); depth > 0; --depth) {
      result += '/';
      const u64 which = random(6);
      result += which == 5 ? std::string(20 + random(3) * 90, 'l')
                           : std::string(1 + random(2), static_cast<char>('a' + which % 3));
    }
    return result;
  };
  for (int i = 0; i < 60; ++i) pivots.push_back(path());
  std::sort(pivots.begin(), pivots.end());
  pivots.erase(std::unique(pivots.begin(), pivots.end()), pivots.end());
  PivotPool list(*tree.cache, false), hash(*tree.cache, true);
  fill(tree, list, pivots);
  fill(tree, hash, pivots);
  for (int i = 0; i < 4000; ++i) {
    const std::string p = random(2) == 0 ? path() : pivots[random(pivots.size())] + path();
    INFO(p);
    u32 expected = 0;  // the longest prefix, in components, that some pivot has
    for (const std::string& pivot : pivots) {
      u32 shared = 0;
      std::size_t at = 0;
      while (at < p.size()) {
        const std::size_t end = std::min(p.find('/', at + 1), p.size());
        if (pivot.compare(0, end, p, 0, end) != 0 || (pivot.size() > end && pivot[end] != '/')) break;
        shared += 1;
        at = end;
      }
      expected = std::max(expected, shared);
    }
    REQUIRE(find(tree, list, p).components == expected);
    REQUIRE(find(tree, hash, p).components == expected);
    REQUIRE(find(tree, list, p).dentry == find(tree, hash, p).dentry);
  }
  std::lock_guard lock(tree.cache->mutex());
  list.clean();
  hash.clean();
}

TEST_CASE("pivot pool: an invalidation takes what lies below, keeps the rest, and the list closes up", "[dcache]") {
  for (const bool hashed : {false, true}) {
    Tree tree;
    PivotPool pool(*tree.cache, hashed);
    fill(tree, pool, {"/a", "/a/b", "/a/b/c", "/a/bb", "/b/c", "/b/d"});
    Dentry* const b = tree.add("/a/b");
    {
      std::lock_guard lock(tree.cache->mutex());
      CHECK(b->links.pins == 2);
      CHECK(pool.invalidate(b) == 2);
    }
    const auto check_rest = [&] {
      CHECK(found_name(tree, find(tree, pool, "/a/b/c")) == "/a");
      CHECK(found_name(tree, find(tree, pool, "/a/b")) == "/a");
      CHECK(found_name(tree, find(tree, pool, "/a/bb")) == "/a/bb");
      CHECK(found_name(tree, find(tree, pool, "/b/d/x")) == "/b/d");
    };
    check_rest();
    {
      std::lock_guard lock(tree.cache->mutex());
      pool.remove_invalid();
      CHECK(b->links.pins == 0);
    }
    check_rest();
    std::lock_guard lock(tree.cache->mutex());
    CHECK(pool.invalidate(nullptr) == 4);  // the root: all that are left
    pool.clean();
  }
}

TEST_CASE("pivot pool: the permissions of skipped directories decide as those of the walk would", "[dcache]") {
  Tree tree;
  PivotPool pool(*tree.cache, true);
  fill(tree, pool, {"/open/shut/below"}, 0755);
  {
    const RcuReadGuard reading;
    tree.cache->permission_changed(InodeNo{tree.add("/open/shut")->ino}, {0040700, 5, 6, 0});
  }
  PivotPool after(*tree.cache, true);
  fill(tree, after, {"/open/shut/below"});
  CHECK(find(tree, after, "/open/shut").denied == false);  // what is asked of "shut" comes with the next component
  CHECK(find(tree, after, "/open/shut/below").denied);
  CHECK(find(tree, after, "/open/shut/below", {false, 5, 9, {}}).denied == false);
  CHECK(find(tree, after, "/open/shut/below", {false, 9, 6, {}}).denied);
  CHECK(find(tree, after, "/open/shut/below", {true, 9, 9, {}}).denied == false);
  std::lock_guard lock(tree.cache->mutex());
  pool.clean();
  after.clean();
}

TEST_CASE("candidate set: a newcomer replaces least_popular_cand when its heat exceeds it by more than the threshold",
          "[dcache]") {
  Tree tree;
  Dentry *const a = tree.add("/a"), *const b = tree.add("/b"), *const c = tree.add("/c");
  std::lock_guard lock(tree.cache->mutex());
  CandidateSet set(*tree.cache, 2);
  set.set_threshold(1);
  const auto look = [&](Dentry* d, int times) {
    while (times-- > 0) set.looked_up(*d);
  };
  look(a, 2);
  look(b, 1);
  CHECK(set.size() == 2);
  CHECK(set.least_popular() == b);
  look(c, 2);  // 2 is not more than 1 + 1
  CHECK(c->candidate == 0);
  look(c, 1);
  CHECK(c->candidate == 1);
  CHECK(b->candidate == 0);
  CHECK(set.replaced() == 1);
  CHECK(set.least_popular() == c);  // the newcomer, until another loses against it
  look(a, 1);                       // 3 against 3: c stays the loser
  CHECK(set.least_popular() == c);
  look(c, 3);
  CHECK(set.least_popular() == c);  // c was the one that grew; only who is compared with it can take its place
  look(a, 1);
  CHECK(set.least_popular() == a);  // 4 against 6: the loser
  set.next_version();
  look(a, 1);
  CHECK(a->links.heat == 1);  // a heat of another version counts for nothing
  set.remove(*a);
  CHECK(set.size() == 1);
  CHECK(set.least_popular() == c);
  set.clear();
  CHECK(set.size() == 0);
  CHECK(set.least_popular() == nullptr);
}

TEST_CASE("stage: candidates become pivots at the end of a period, heat is that of targets alone", "[dcache]") {
  Tree tree;
  StageOptions options;
  options.pivots = 4;
  options.adaptive = false;
  StageResolver stage(*tree.cache, options);
  tree.cache->watch(&stage);
  Dentry* const deep = tree.add("/x/y/z");
  ThreadBlock& counts = tree.cache->threads().here();
  const auto look = [&] {
    const RcuReadGuard reading;
    PathScan scan("/x/y/z", tree.cache->keys());
    const u32 count = scan.next();
    const Prefix prefix = stage.begin(scan, count, kAnybody, counts);
    stage.arrived(count, prefix.components, nullptr, *deep, counts);
    return prefix.components;
  };
  for (int i = 0; i < 10; ++i) CHECK(look() == 0);
  CHECK(stage.end_period());
  CHECK(look() == 3);
  const auto pivots = stage.pivots();
  REQUIRE(pivots.size() == 1);  // not "/x", not "/x/y": they were passed, not looked up
  CHECK(pivots[0].path == "/x/y/z");
  CHECK(pivots[0].heat == 10);
  CHECK(!stage.end_period());  // nothing else is popular: the pools stay where they are
  CHECK(look() == 3);

  // A change of a component: the pivot is untrue at once, and stays so while nothing is found at its path.
  tree.cache->renamed(InodeNo{tree.add("/x")->ino}, "y", tree.add("/x/y")->target(), kRootIno, "moved", nullptr, false);
  CHECK(look() == 0);
  CHECK(stage.statistics().invalidations == 1);
  CHECK(stage.statistics().invalidated == 1);
  tree.cache->defer().barrier();
  CHECK(stage.pivots().empty());
  tree.cache->watch(nullptr);
}

TEST_CASE("stage: a pivot becomes true again by the next look-up that finds its path, and only for what is there now",
          "[dcache]") {
  Tree tree;
  StageOptions options;
  options.adaptive = false;
  StageResolver stage(*tree.cache, options);
  tree.cache->watch(&stage);
  ThreadBlock& counts = tree.cache->threads().here();
  Dentry* z = tree.add("/x/y/z");
  // What a path walk does: ask for the whole path, walk, and tell where it arrived.
  const auto look = [&](const Searcher& who = kAnybody) {
    const RcuReadGuard reading;
    PathScan scan("/x/y/z", tree.cache->keys());
    const Prefix prefix = stage.whole(scan, who, counts);
    if (prefix.components == 0 && z != nullptr) stage.arrived(3, 0, prefix.untrue, *z, counts);
    return prefix;
  };
  for (int i = 0; i < 2; ++i) look();
  REQUIRE(stage.end_period());
  CHECK(look().dentry == z);
  const InodeNo x{tree.add("/x")->ino};
  const Target y = tree.add("/x/y")->target();

  // Away and back: another dentry has the name in between, and the pivot has that one now.
  tree.cache->renamed(x, "y", y, kRootIno, "moved", nullptr, false);
  z = tree.add("/moved/z");
  CHECK(look().components == 0);  // arrives at another path than the pivot's
  CHECK(stage.statistics().revived == 0);
  tree.cache->renamed(kRootIno, "moved", y, x, "y", nullptr, false);
  CHECK(look().components == 0);
  CHECK(stage.statistics().revived == 1);
  CHECK(look().dentry == z);
  CHECK(tree.add("/x/y")->links.pins == 1);

  // Other permissions: the pivot has the new ones.
  tree.cache->permission_changed(InodeNo{y.ino}, {0040700, 5, 5, 0});
  look();
  CHECK(look().denied);
  CHECK_FALSE(look({false, 5, 5, {}}).denied);
  tree.cache->permission_changed(InodeNo{y.ino}, {0040755, 5, 5, 0});
  look();
  CHECK_FALSE(look().denied);

  // Another file in its place.
  tree.cache->name_removed(InodeNo{y.ino}, "z", z->target());
  z = nullptr;
  CHECK(look().components == 0);
  z = tree.add("/x/y/z");
  look();
  CHECK(look().dentry == z);
  CHECK(stage.statistics().revived == 4);
  tree.cache->watch(nullptr);
}

TEST_CASE("stage: a change while the waiting pool is built concerns what it concerns of it, and no more", "[dcache]") {
  Tree tree;
  PivotPool pool(*tree.cache, true);
  Dentry *const a = tree.add("/a/b"), *const c = tree.add("/c/d"), *const above = tree.add("/a");
  {
    std::lock_guard lock(tree.cache->mutex());
    pool.reserve(2);
    REQUIRE(pool.add(*a, 1));
    REQUIRE(pool.add(*c, 1));
    pool.invalidate_unfinished(above);
  }
  pool.finish();
  pool.settle();
  CHECK(found_name(tree, find(tree, pool, "/a/b")).empty());
  CHECK(found_name(tree, find(tree, pool, "/c/d")) == "/c/d");
  std::lock_guard lock(tree.cache->mutex());
  pool.clean();
}

TEST_CASE("pivot pool: only a pool's own untrue pivots are made true", "[dcache]") {
  Tree tree;
  PivotPool pool(*tree.cache, true), other(*tree.cache, true);
  fill(tree, pool, {"/a/b"});
  fill(tree, other, {"/a/b"});
  Dentry *const a = tree.add("/a/b"), *const sibling = tree.add("/a/c");
  std::lock_guard lock(tree.cache->mutex());
  CHECK_FALSE(pool.make_true(pool[0], *a));  // it is
  CHECK(pool.invalidate(a) == 1);
  CHECK(other.invalidate(a) == 1);
  CHECK_FALSE(pool.make_true(other[0], *a));
  CHECK_FALSE(pool.make_true(pool[0], *sibling));
  CHECK(pool.make_true(pool[0], *a));
  CHECK(a->links.pins == 2);
  pool.clean();
  other.clean();
  CHECK(a->links.pins == 0);
}

TEST_CASE("fullpath: a table of paths that grows too full asks for maintenance itself", "[dcache]") {
  Tree tree(u64{8} << 20);
  const auto fullpath = FullpathResolver::make(*tree.cache, 10000);
  REQUIRE(fullpath != nullptr);
  tree.cache->watch(fullpath.get());
  std::vector<Dentry*> dentries;
  for (int i = 0; i < 4000; ++i) dentries.push_back(tree.add("/name" + std::to_string(i)));
  tree.cache->maintain();
  REQUIRE_FALSE(tree.cache->should_maintain());
  int asked = 0;
  tree.cache->on_maintenance([&] { ++asked; });
  {
    const RcuReadGuard reading;
    for (Dentry* const dentry : dentries) fullpath->arrived(1, 0, nullptr, *dentry, tree.cache->threads().here());
  }
  CHECK(asked > 0);
  CHECK(fullpath->should_maintain());
  fullpath->maintain();
  CHECK_FALSE(fullpath->should_maintain());
  tree.cache->watch(nullptr);
}
