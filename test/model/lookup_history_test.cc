// What "exact" means, checked against a history. One thread changes a small tree and notes, for each change, the moment
// before its call and the moment after its return. Others look paths up, and note the same of each look-up. Afterwards
// each answer must be one that the definition allows: every component's step sees the tree as it was at one instant
// within the look-up, instants in path order; a change takes effect at one instant between its two moments.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();
constexpr dcache::Searcher kAnybody{false, 1000, 1000, {}};

// The things of the tree. Their places, permissions and inode numbers change, what they are does not.
enum Thing : int { kTop, kA, kB, kC, kD, kE, kF, kThings };
constexpr bool is_directory(int thing) { return thing != kF; }

struct State {
  int parent[kThings];  // -1: it is not there
  std::string name[kThings];
  bool open[kThings];  // user 1000 may search it, by its mode or an ACL
  u64 ino[kThings];
};

struct Version {
  u64 from = 0, to = 0;  // it took effect between these moments
  State state;
};

struct Look {
  u64 from = 0, to = 0;
  std::vector<std::string> names;
  Errc error{};
  u64 ino = 0;
};

using Answer = std::pair<Errc, u64>;

// All answers that the definition allows for the names, from `thing` on, if the steps see versions [low, high].
class Allowed {
 public:
  Allowed(const std::vector<Version>& versions, const Look& look) : versions_(versions), look_(look) {
    // Both moments grow from version to version.
    const auto behind = [](const auto& first, const auto& found) {
      return static_cast<std::size_t>(found - first) - 1;
    };
    const std::size_t low =
        behind(versions.begin(), std::upper_bound(versions.begin(), versions.end(), look.from,
                                                  [](u64 at, const Version& v) { return at < v.to; }));
    high_ = behind(versions.begin(), std::upper_bound(versions.begin(), versions.end(), look.to,
                                                      [](u64 at, const Version& v) { return at < v.from; }));
    walk(kTop, versions[0].state.ino[kTop], 0, low);
  }
  bool contains(const Answer& answer) const { return answers_.contains(answer); }

 private:
  void walk(int thing, u64 ino, std::size_t at, std::size_t version) {
    if (at == look_.names.size()) {
      answers_.insert({Errc{}, ino});
      return;
    }
    if (!is_directory(thing)) {
      answers_.insert({Errc::kNotDirectory, 0});
      return;
    }
    for (std::size_t i = version; i <= high_; ++i) {
      if (!seen_.insert({thing, ino, at, i}).second) continue;
      const State& s = versions_[i].state;
      if (s.parent[thing] == -1 || s.ino[thing] != ino) {  // the walk stands in a directory that is no more
        answers_.insert({Errc::kNotFound, 0});
        continue;
      }
      if (!s.open[thing]) {
        answers_.insert({Errc::kAccess, 0});
        continue;
      }
      int child = -1;
      for (int other = kA; other < kThings; ++other)
        if (s.parent[other] == thing && s.name[other] == look_.names[at]) child = other;
      if (child == -1) {
        answers_.insert({Errc::kNotFound, 0});
      } else {
        walk(child, s.ino[child], at + 1, i);
      }
    }
  }

  const std::vector<Version>& versions_;
  const Look& look_;
  std::size_t high_ = 0;
  std::set<Answer> answers_;
  std::set<std::tuple<int, u64, std::size_t, std::size_t>> seen_;
};

class History {
 public:
  History(OpenOptions options, u64 seed) : random_(seed), memory_(u64{16} << 20, options) {
    State& s = now_;
    for (int thing = 0; thing < kThings; ++thing) s.open[thing] = true;
    const char* names[] = {"", "a", "b", "c", "d", "e", "f"};
    const int parents[] = {kTop, kTop, kTop, kA, kC, kC, kD};
    s.ino[kTop] = to_u64(kRootIno);
    s.parent[kTop] = kTop;
    for (int thing = kA; thing < kThings; ++thing) {
      s.parent[thing] = parents[thing];
      s.name[thing] = names[thing];
      make(thing);
    }
    versions_.push_back({0, 0, now_});
  }

  void run(int changes, int readers) {
    std::vector<std::vector<Look>> looks(static_cast<std::size_t>(readers));
    std::vector<std::thread> threads;
    for (int t = 0; t < readers; ++t)
      threads.emplace_back([this, t, &looks, seed = random_()] { read(seed, looks[static_cast<std::size_t>(t)]); });
    for (int i = 0; i < changes; ++i) {
      // Look-ups meet every change, and leave it a gap: the system's locks let readers pass waiting writers for ever.
      const u64 now = looked_;
      allowed_ = now + 24;
      while (looked_ < now + 3) std::this_thread::yield();
      change();
    }
    stop_ = true;
    for (std::thread& thread : threads) thread.join();
    u64 wrong = 0;
    for (const auto& list : looks)
      for (const Look& look : list)
        if (!Allowed(versions_, look).contains({look.error, look.ino})) {
          std::string path;
          for (const std::string& name : look.names) path += "/" + name;
          UNSCOPED_INFO(path << " between " << look.from << " and " << look.to << ": error "
                             << static_cast<int>(look.error) << ", inode " << look.ino);
          if (++wrong == 5) break;
        }
    CHECK(wrong == 0);
    memory_.require_clean();
  }

 private:
  u64 pick(u64 n) { return random_() % n; }

  std::string path_of(int thing) const {
    return thing == kTop ? "" : path_of(now_.parent[thing]) + "/" + now_.name[thing];
  }
  void make(int thing) {
    const std::string path = path_of(thing);
    now_.ino[thing] = to_u64(is_directory(thing) ? must(memory_->mkdir(path, 0755, kRoot)).ino
                                                 : must(memory_->mknod(path, 0644, 0, kRoot)).ino);
  }
  bool taken(int parent, std::string_view name) const {
    for (int other = kA; other < kThings; ++other)
      if (now_.parent[other] == parent && now_.name[other] == name) return true;
    return false;
  }
  bool empty(int thing) const {
    for (int other = kA; other < kThings; ++other)
      if (now_.parent[other] == thing) return false;
    return true;
  }

  // One change that can be done now; the history gets its two moments and what it led to.
  void change() {
    const u64 kind = pick(8);
    const int thing = static_cast<int>(pick(kThings));
    const u64 from = clock_.fetch_add(1);
    if (kind <= 2) {  // c or d moves
      const int moving = kind == 0 ? kC : kD;
      const int places[] = {kTop, kA, kB, kC};
      const int to = places[pick(moving == kC ? 3 : 4)];
      const std::string name = moving == kC ? (pick(2) == 0 ? "c" : "c2") : "d";
      if (taken(to, name)) return;
      const std::string old = path_of(moving);
      now_.parent[moving] = to;
      now_.name[moving] = name;
      must(memory_->rename(old, path_of(moving), 0, kRoot));
    } else if (kind == 3) {
      must(memory_->rename("/a", "/b", 1 << 1, kRoot));
      std::swap(now_.name[kA], now_.name[kB]);
    } else if (kind <= 5) {
      if (!is_directory(thing) || now_.parent[thing] == -1) return;
      now_.open[thing] = !now_.open[thing] || pick(3) == 0;
      allow(thing == kTop ? "/" : path_of(thing), now_.open[thing], thing);
    } else {
      const int leaf = kind == 6 ? kE : kF;
      if (now_.parent[leaf] != -1) {
        if (leaf == kE && !empty(kE)) return;
        const std::string path = path_of(leaf);
        must(leaf == kE ? memory_->rmdir(path, kRoot) : memory_->unlink(path, kRoot));
        now_.parent[leaf] = -1;
      } else {
        const int places[] = {kC, kD, kA};
        now_.parent[leaf] = places[pick(3)];
        now_.open[leaf] = true;
        has_acl_[leaf] = false;
        make(leaf);
      }
    }
    versions_.push_back({from, clock_.fetch_add(1), now_});
  }

  // By chmod while there is no ACL; by an ACL that names the user against what others may; by one that is only a mode.
  void allow(const std::string& path, bool open, int thing) {
    const u64 way = pick(3);
    if (way == 0 && !has_acl_[thing]) {
      SetAttributes set;
      set.mode = open ? 0755 : 0700;
      must(memory_->set_attributes(path, set, kRoot));
      return;
    }
    has_acl_[thing] = way == 1;
    const u32 may = open ? 1 : 0, others = way == 1 ? 1 - may : may;
    Acl acl{{AclTag::kUserObj, 7, 0}, {AclTag::kGroupObj, others, 0}, {AclTag::kOther, others, 0}};
    if (way == 1) {
      acl.push_back({AclTag::kUser, may, 1000});
      acl.push_back({AclTag::kMask, 7, 0});
    }
    must(memory_->set_acl(path, AclKind::kAccess, acl, kRoot));
  }

  void read(u64 seed, std::vector<Look>& looks) {
    std::mt19937_64 random(seed);
    dcache::PathCache& paths = volume_of(memory_.fs()).paths;
    const char* const likely[][5] = {{"a", "c", "d", "f", nullptr},      {"b", "c", "d", "f", nullptr},
                                     {"a", "c2", "d", "f", nullptr},     {"a", "d", "f", nullptr, nullptr},
                                     {"c", "d", "f", nullptr, nullptr},  {"a", "c", "e", nullptr, nullptr},
                                     {"b", "c2", "d", nullptr, nullptr}, {"a", "f", "x", nullptr, nullptr}};
    while (!stop_) {
      if (looked_ >= allowed_) {
        std::this_thread::yield();
        continue;
      }
      std::vector<Look> batch(random() % 16 == 0 ? 4 : 1);
      std::vector<std::string> texts;
      for (Look& look : batch) {
        for (const char* name : likely[random() % 8])
          if (name != nullptr) look.names.emplace_back(name);
        if (random() % 8 == 0) look.names.resize(1 + random() % look.names.size());
        std::string& text = texts.emplace_back();
        for (const std::string& name : look.names) text += "/" + name;
      }
      const u64 from = clock_.fetch_add(1);
      if (batch.size() == 1) {
        const auto found = paths.resolve(kRootIno, texts[0], kAnybody, true);
        batch[0].error = found.ok() ? Errc{} : found.error().code;
        batch[0].ino = found.ok() ? to_u64(found->ino) : 0;
      } else {
        std::vector<dcache::BatchItem> items(batch.size());
        for (std::size_t i = 0; i < items.size(); ++i) items[i].path = texts[i];
        paths.resolve_batch(kRootIno, items, kAnybody);
        for (std::size_t i = 0; i < items.size(); ++i) {
          batch[i].error = items[i].error;
          batch[i].ino = items[i].error == Errc{} ? to_u64(items[i].found.ino) : 0;
        }
      }
      const u64 to = clock_.fetch_add(1);
      for (Look& look : batch) {
        look.from = from;
        look.to = to;
        if (looks.size() < 100'000) looks.push_back(std::move(look));
      }
      looked_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::mt19937_64 random_;
  MemoryFs memory_;
  State now_;
  bool has_acl_[kThings] = {};
  std::vector<Version> versions_;
  std::atomic<u64> clock_{1};
  std::atomic<u64> looked_{0};
  std::atomic<u64> allowed_{0};
  std::atomic<bool> stop_{false};
};

void explore(const OpenOptions& options) {
  const char* const given = std::getenv("PMFS_SEED");
  const u64 first = given != nullptr ? std::strtoull(given, nullptr, 0) : 1;
  const u64 seeds = given != nullptr ? 1 : std::getenv("PMFS_LONG") != nullptr ? 40 : 2;
  for (u64 seed = first; seed < first + seeds; ++seed) {
    INFO("PMFS_SEED=" << seed);
    History(options, seed).run(1500, 2);
  }
}

}  // namespace

TEST_CASE("history: without a cache every answer is one that the definition allows", "[model]") {
  OpenOptions options;
  options.dcache_bytes = 0;
  explore(options);
}

TEST_CASE("history: the walk's answers are ones that the definition allows", "[model]") {
  OpenOptions options;
  options.resolver = OpenOptions::Resolver::kWalk;
  explore(options);
}

TEST_CASE("history: the full path's answers are ones that the definition allows", "[model]") {
  OpenOptions options;
  options.resolver = OpenOptions::Resolver::kFullpath;
  explore(options);
}

TEST_CASE("history: answers through pivots are ones that the definition allows", "[model]") {
  OpenOptions options;
  options.pivots_adaptive = false;
  options.pivot_period_ms = 1;
  explore(options);
  options.pivots_hashed = false;
  options.heat_inline = true;
  options.pivots = 4;
  explore(options);
}

TEST_CASE("history: a cache that evicts all the time gives answers that the definition allows", "[model]") {
  OpenOptions options;
  options.dcache_bytes = 1;
  options.pivot_period_ms = 1;
  explore(options);
}
