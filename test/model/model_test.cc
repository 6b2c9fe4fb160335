// Random operations on the file system and on the oracle: the same answers, errors included, and the same tree, also
// after the file system was closed and opened, or killed and opened.
#include <fcntl.h>

#include <cstdlib>
#include <random>

#include "test/support/memory_fs.h"
#include "test/support/model_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();

class Walk {
 public:
  explicit Walk(u64 seed) : random_(seed), fs_(u64{8} << 20) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      INFO("operation " << i);
      step();
      if (i % 256 == 255) compare();
      if (i % 1024 == 1023) pick(2) == 0 ? fs_.reopen() : fs_.reopen_after_kill();
    }
    compare();
  }

 private:
  u64 pick(u64 n) { return random_() % n; }

  // Few names, so that operations meet; some long ones, some that hash alike do not matter here.
  std::string path() {
    std::string result;
    for (u64 depth = 1 + pick(3); depth > 0; --depth) {
      result += '/';
      const u64 which = pick(12);
      result += which == 11 ? std::string(200 + pick(56), 'n') : std::string(1, static_cast<char>('a' + which));
    }
    return result;
  }

  void same(const char* operation, const std::string& what, Errc real, Errc model) {
    INFO(operation << " " << what);
    REQUIRE(static_cast<int>(real) == static_cast<int>(model));
  }

  Errc write_real(const std::string& at, u64 off, std::string_view data) {
    auto file = fs_->open_file(at, O_WRONLY | O_NOFOLLOW, 0, kRoot);
    if (!file.ok()) return file.error().code;
    const auto n = file->write(off, std::as_bytes(std::span(data)));
    if (n.ok()) REQUIRE(*n == data.size());
    return code_of(n);
  }

  Errc truncate_real(const std::string& at, u64 size) {
    SetAttributes change;
    change.size_bytes = size;
    return code_of(fs_->set_attributes(at, change, kRoot, Follow::kNo));
  }

  void step() {
    const std::string a = path();
    const std::string b = path();
    switch (pick(14)) {
      case 0:
      case 1: return same("mknod", a, code_of(fs_->mknod(a, 0644, 0, kRoot)), model_.mknod(a));
      case 2:
      case 3: return same("mkdir", a, code_of(fs_->mkdir(a, 0755, kRoot)), model_.mkdir(a));
      case 4: {
        // A target that leads nowhere: what is below such a link does not exist, and the oracle knows no links to
        // follow.
        const std::string target = std::string(1 + pick(300), 't');
        const std::string link = "/link" + std::to_string(pick(8));
        return same("symlink", link, code_of(fs_->symlink(target, link, kRoot)), model_.symlink(target, link));
      }
      case 5: return same("link", a + " " + b, code_of(fs_->link(a, b, kRoot)), model_.link(a, b));
      case 6:
      case 7: return same("unlink", a, code_of(fs_->unlink(a, kRoot)), model_.unlink(a));
      case 8: return same("rmdir", a, code_of(fs_->rmdir(a, kRoot)), model_.rmdir(a));
      case 9:
      case 10: {
        const auto flags = static_cast<unsigned>(pick(3));
        return same("rename", a + " " + b, code_of(fs_->rename(a, b, flags, kRoot)), model_.rename(a, b, flags));
      }
      case 11:
      case 12: {
        const u64 off = pick(4) == 0 ? pick(200000) : pick(9000);
        const std::string data(1 + pick(pick(2) == 0 ? 200 : 20000), static_cast<char>('A' + pick(26)));
        return same("write", a, write_real(a, off, data), model_.write(a, off, data));
      }
      default: {
        if (pick(3) == 0) {
          SetAttributes change;
          change.mode = static_cast<u32>(pick(01000));
          return same("chmod", a, code_of(fs_->set_attributes(a, change, kRoot, Follow::kNo)),
                      model_.chmod(a, *change.mode));
        }
        const u64 size = pick(3) == 0 ? 0 : pick(50000);
        return same("truncate", a, truncate_real(a, size), model_.truncate(a, size));
      }
    }
  }

  void compare() {
    REQUIRE(tree_of(fs_.fs()) == model_.tree());
    fs_.require_clean();
  }

  std::mt19937_64 random_;
  MemoryFs fs_;
  ModelFs model_;
};

u64 seed_from_environment(u64 otherwise) {
  const char* text = std::getenv("PMFS_SEED");
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("model: random operations give the oracle's answers and tree", "[model]") {
  const bool long_form = std::getenv("PMFS_LONG") != nullptr;
  const u64 first = seed_from_environment(1);
  for (u64 seed = first; seed < first + (long_form ? 200 : 12); ++seed) {
    INFO("PMFS_SEED=" << seed);
    Walk(seed).run(4096);
  }
}
