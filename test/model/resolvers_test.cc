// Random changes, and random look-ups by several users: every resolver gives the answer that a file system without a
// cache gives, warm or cold, alone or in a batch.
#include <fcntl.h>

#include <cstdlib>
#include <random>

#include "test/support/memory_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

class Agreement {
 public:
  explicit Agreement(u64 seed) : random_(seed) {
    for (int kind = 0; kind < 6; ++kind) {
      OpenOptions options;
      options.pivots_adaptive = false;
      options.pivot_period_ms = 60'000;
      if (kind == 0) options.dcache_bytes = 0;
      if (kind == 1) options.resolver = OpenOptions::Resolver::kWalk;
      if (kind == 2) options.resolver = OpenOptions::Resolver::kFullpath;
      if (kind == 3) options.pivots = 64;
      if (kind == 4) options.pivots = 8, options.pivots_hashed = false, options.heat_inline = true;
      if (kind == 5) options.dcache_bytes = 1, options.pivots = 4;  // as small as can be: it evicts all the time
      systems_.push_back(std::make_unique<MemoryFs>(u64{16} << 20, options));
    }
  }

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      INFO("operation " << i);
      if (pick(4) == 0) {
        change();
      } else {
        look();
      }
      if (pick(64) == 0)
        for (const auto& system : systems_) volume_of(system->fs()).paths.maintain_now();
    }
    for (const auto& system : systems_) system->require_clean();
  }

 private:
  u64 pick(u64 n) { return random_() % n; }

  std::string path() {
    std::string result = pick(16) == 0 ? "" : "/";
    for (u64 depth = 1 + pick(5); depth > 0; --depth) {
      const u64 which = pick(24);
      if (which == 23) {
        result += "..";
      } else if (which == 22) {
        result += ".";
      } else if (which == 21) {
        result += std::string(100 + pick(200), 'n');
      } else if (which == 20) {
        result += "/";
      } else {
        result += std::string(1 + which % 2, static_cast<char>('a' + which % 5));
      }
      if (depth > 1 || pick(10) == 0) result += '/';
    }
    return result;
  }

  Credentials somebody() {
    Credentials who;
    who.uid = who.gid = static_cast<u32>(pick(3));
    static const u32 group[] = {1};
    if (pick(3) == 0) who.groups = group;
    return who;
  }

  // The same on all: their inode numbers stay the same, too.
  template <class Operation>
  void all(const char* what, Operation&& operation) {
    std::optional<Errc> first;
    for (std::size_t kind = 0; kind < systems_.size(); ++kind) {
      INFO(what << ", system " << kind);
      const auto result = operation(systems_[kind]->fs());
      const Errc code = result.ok() ? Errc{} : result.error().code;
      if (!first.has_value()) first = code;
      REQUIRE(static_cast<int>(code) == static_cast<int>(*first));
    }
  }

  void change() {
    const std::string a = path(), b = path();
    INFO("\"" << a << "\" \"" << b << '"');
    const Credentials who = somebody();
    const unsigned flags = pick(4) == 0 ? 1u << 1 : 0;  // RENAME_EXCHANGE
    switch (pick(12)) {
      case 0:
      case 1:
      case 2: all("mkdir", [&](Filesystem& fs) { return fs.mkdir(a, 0755, kRoot); }); break;
      case 3: all("mknod", [&](Filesystem& fs) { return fs.mknod(a, 0644, 0, kRoot); }); break;
      case 4: all("symlink", [&](Filesystem& fs) { return fs.symlink(b.empty() ? "a" : b, a, who); }); break;
      case 5: all("unlink", [&](Filesystem& fs) { return fs.unlink(a, kRoot); }); break;
      case 6: all("rmdir", [&](Filesystem& fs) { return fs.rmdir(a, who); }); break;
      case 7: all("rename", [&](Filesystem& fs) { return fs.rename(a, b, flags, kRoot); }); break;
      case 8: {
        SetAttributes set;
        const u32 modes[] = {0755, 0700, 0711, 0000, 0070, 0007};
        set.mode = modes[pick(6)];
        if (pick(2) == 0) set.uid = static_cast<u32>(pick(3));
        if (pick(2) == 0) set.gid = static_cast<u32>(pick(3));
        all("set_attributes", [&](Filesystem& fs) { return fs.set_attributes(a, set, kRoot); });
        break;
      }
      case 9:
      case 10: {
        Acl acl;
        const bool removes = pick(5) == 0;
        if (!removes) {
          for (const AclTag tag : {AclTag::kUserObj, AclTag::kGroupObj, AclTag::kOther})
            acl.push_back({tag, static_cast<u32>(pick(8)), 0});
          if (pick(4) != 0) {
            acl.push_back({AclTag::kMask, static_cast<u32>(pick(8)), 0});
            acl.push_back({AclTag::kUser, static_cast<u32>(pick(8)), static_cast<u32>(pick(3))});
            acl.push_back({AclTag::kGroup, static_cast<u32>(pick(8)), static_cast<u32>(pick(3))});
          }
        }
        const AclKind kind = pick(4) == 0 ? AclKind::kDefault : AclKind::kAccess;
        all("set_acl", [&](Filesystem& fs) { return fs.set_acl(a, kind, acl, kRoot); });
        break;
      }
      default: all("link", [&](Filesystem& fs) { return fs.link(a, b, kRoot); });
    }
  }

  void look() {
    const std::string p = path();
    const Credentials who = somebody();
    const Follow follow = pick(2) == 0 ? Follow::kYes : Follow::kNo;
    INFO("\"" << p << "\" as " << who.uid << (follow == Follow::kYes ? " following" : ""));
    const u64 times = 1 + pick(4);
    std::optional<Result<Attributes>> expected;
    for (std::size_t kind = 0; kind < systems_.size(); ++kind)
      for (u64 i = 0; i < times; ++i) {
        INFO("system " << kind << ", time " << i);
        const auto found = systems_[kind]->fs().stat(p, who, follow);
        if (!expected.has_value()) expected = found;
        REQUIRE(found.ok() == expected->ok());
        if (found.ok()) {
          REQUIRE(to_u64(found->ino) == to_u64((*expected)->ino));
          REQUIRE(found->generation == (*expected)->generation);
          REQUIRE(found->mode == (*expected)->mode);
        } else {
          REQUIRE(static_cast<int>(found.error().code) == static_cast<int>(expected->error().code));
        }
      }
    if (pick(8) == 0) batch(who, follow);
  }

  void batch(const Credentials& who, Follow follow) {
    std::vector<std::string> texts;
    for (u64 n = 1 + pick(60); n > 0; --n) texts.push_back(path());
    const std::vector<std::string_view> paths(texts.begin(), texts.end());
    BatchOptions options;
    options.follow = follow;
    options.beneath = pick(3) == 0;
    options.no_links = pick(3) == 0;
    if (pick(2) == 0)
      if (const auto start = systems_[0]->fs().stat(path(), kRoot); start.ok()) options.start = start->ino;
    for (std::size_t kind = 0; kind < systems_.size(); ++kind) {
      std::vector<Resolved> results(paths.size());
      must(systems_[kind]->fs().resolve(paths, results, who, options));
      for (std::size_t i = 0; i < paths.size(); ++i) {
        INFO("batch of system " << kind << ": \"" << texts[i] << "\" from inode " << to_u64(options.start)
                                << (options.beneath ? ", beneath" : "") << (options.no_links ? ", no links" : ""));
        At at(options.start, paths[i]);
        at.beneath = options.beneath;
        at.no_links = options.no_links;
        const auto alone = systems_[0]->fs().stat(at, who, follow);
        REQUIRE(results[i].error.has_value() == !alone.ok());
        if (alone.ok()) {
          REQUIRE(to_u64(results[i].attributes.ino) == to_u64(alone->ino));
        } else {
          REQUIRE(static_cast<int>(*results[i].error) == static_cast<int>(alone.error().code));
        }
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<MemoryFs>> systems_;
};

}  // namespace

TEST_CASE("resolvers: all give the answers of a file system without a cache", "[model]") {
  const char* const given = std::getenv("PMFS_SEED");
  const u64 first = given != nullptr ? std::strtoull(given, nullptr, 0) : 1;
  const u64 seeds = given != nullptr ? 1 : std::getenv("PMFS_LONG") != nullptr ? 200 : 6;
  for (u64 seed = first; seed < first + seeds; ++seed) {
    INFO("PMFS_SEED=" << seed);
    Agreement(seed).run(4000);
  }
}
