// Random operations on the file system and on the oracle: the same answers, errors included, and the same tree, also
// after the file system was closed and opened, or killed and opened. Every operation of the library that changes
// something is in here, but those that need several processes or pools.
//
// PMFS_SEED=n repeats the walk that was printed, PMFS_LONG=1 makes a million operations.
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "test/support/memory_fs.h"
#include "test/support/model_fs.h"

using namespace pmfs;
using namespace pmfs::test;

namespace {

const Credentials kRoot = Credentials::root();
constexpr u64 kBytes = u64{48} << 20;
constexpr int kStepsOfWalk = 4096;
constexpr std::size_t kHandles = 6;

// What is looked at has to stay as it is.
OpenOptions quiet() {
  OpenOptions options;
  options.atime = OpenOptions::Atime::kNone;
  return options;
}

class Walk {
 public:
  explicit Walk(u64 seed) : random_(seed), fs_(kBytes, quiet()) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      INFO("operation " << i);
      step();
      if (i % 256 == 255) compare();
      if (i % 1024 == 1023) open_again();
    }
    compare();
    drop_handles(false);
    fs_.require_clean();  // nothing of what was open and nameless is left
  }

 private:
  using NodePtr = ModelFs::NodePtr;

  struct Handle {
    File file;
    NodePtr node;
  };

  // An inode that an operation is done to: by its path, or an open one by its number.
  struct Target {
    std::string path;  // empty: by number
    InodeNo ino{};
    NodePtr node;
    At at() const { return path.empty() ? At::inode(ino) : At(path); }
  };

  // --- Choices -------------------------------------------------------------------------------------------------------

  u64 pick(u64 n) { return random_() % n; }
  bool once_in(u64 n) { return pick(n) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[pick(all.size())];
  }

  // Few names, so that operations meet; some long ones.
  std::string path() {
    if (once_in(24)) return link_path();
    std::string result;
    for (u64 depth = 1 + pick(3); depth > 0; --depth) {
      result += '/';
      const u64 which = pick(12);
      result += which == 11 ? std::string(200 + pick(56), 'n') : std::string(1, static_cast<char>('a' + which));
    }
    return result;
  }
  std::string link_path() { return "/link" + std::to_string(pick(8)); }

  Target target() {
    if (!handles_.empty() && once_in(3)) {
      const Handle& handle = handles_[pick(handles_.size())];
      return {"", handle.file.ino(), handle.node};
    }
    Target found{once_in(60) ? "/" : path(), {}, nullptr};
    const auto real = fs_->stat(found.path, kRoot, Follow::kNo);
    const auto model = model_.find(found.path);
    same("stat", found.path, code_of(real), model.error);
    found.node = model.node;
    if (real.ok()) found.ino = real->ino;
    return found;
  }
  // Most targets must be files, or little would happen.
  Target file_target() {
    Target found = target();
    for (int tries = 0; tries < 8 && (found.node == nullptr || !found.node->is_file()); ++tries) found = target();
    return found;
  }

  u64 offset() { return once_in(4) ? pick(200000) : pick(9000); }
  std::string text(u64 least, u64 most) {
    return std::string(least + pick(most - least), static_cast<char>('A' + pick(26)));
  }
  Credentials user_or_root() {
    Credentials who;
    if (once_in(3)) who.uid = 1000;
    return who;
  }
  Credentials with_umask() {
    Credentials who;
    if (once_in(2)) who.umask = one_of<u32>({022, 027, 077, 0});
    return who;
  }
  std::string xattr_name() {
    switch (pick(12)) {
      case 0: return "security.capability";
      case 1: return one_of<const char*>({"", "user.", "trusted.", "nospace.x", "user", "system.other"});
      case 2: return "user." + std::string(240 + pick(20), 'l');  // some too long
      case 3:
      case 4: return "trusted." + std::string(1, static_cast<char>('a' + pick(3)));
      default: return "user." + std::string(1, static_cast<char>('a' + pick(5)));
    }
  }
  std::string xattr_value() {
    switch (pick(24)) {
      case 0: return text(65530, 65540);  // some too long
      case 1: return text(3000, 20000);
      case 2: return "";
      default: return text(1, once_in(3) ? 400 : 40);
    }
  }
  Acl acl() {
    if (once_in(6)) return {};
    const auto may = [&] { return static_cast<u32>(pick(8)); };
    Acl list{{AclTag::kUserObj, may(), 0}};
    for (u32 id = 1; id < 4; ++id)
      if (once_in(3)) list.push_back({AclTag::kUser, may(), id});
    list.push_back({AclTag::kGroupObj, may(), 0});
    const u32 groups = once_in(10) ? 40 : 3;  // 40 do not lie in the inode
    for (u32 id = 1; id < groups; ++id)
      if (!once_in(3)) list.push_back({AclTag::kGroup, may(), id});
    if (!once_in(8)) list.push_back({AclTag::kMask, may(), 0});
    list.push_back({AclTag::kOther, may(), 0});
    return list;
  }

  // --- Steps ---------------------------------------------------------------------------------------------------------

  void same(const std::string& operation, const std::string& what, Errc real, Errc model) {
    INFO(operation << " " << what);
    REQUIRE(static_cast<int>(real) == static_cast<int>(model));
  }
  void same(const std::string& operation, const Target& on, Errc real, Errc model) {
    same(operation, on.path.empty() ? "inode " + std::to_string(to_u64(on.ino)) : on.path, real, model);
  }

  void step() {
    static constexpr struct {
      u64 weight;
      void (Walk::*run)();
    } kSteps[] = {
        {8, &Walk::step_mknod},     {7, &Walk::step_mkdir},        {2, &Walk::step_symlink}, {4, &Walk::step_link},
        {6, &Walk::step_unlink},    {4, &Walk::step_rmdir},        {8, &Walk::step_rename},  {10, &Walk::step_write},
        {8, &Walk::step_set},       {6, &Walk::step_open},         {3, &Walk::step_tmpfile}, {3, &Walk::step_close},
        {10, &Walk::step_allocate}, {3, &Walk::step_seek},         {4, &Walk::step_copy},    {8, &Walk::step_set_xattr},
        {3, &Walk::step_get_xattr}, {4, &Walk::step_remove_xattr}, {5, &Walk::step_acl},     {3, &Walk::step_read}};
    u64 sum = 0;
    for (const auto& each : kSteps) sum += each.weight;
    u64 at = pick(sum);
    const auto* chosen = kSteps;
    for (; at >= chosen->weight; ++chosen) at -= chosen->weight;
    (this->*chosen->run)();
    if (once_in(8000)) fill_with_xattrs();
  }

  void step_mknod() {
    const std::string a = path();
    const u32 type = once_in(3) ? one_of<u32>({S_IFIFO, S_IFCHR, S_IFBLK, S_IFSOCK}) : u32{S_IFREG};
    const u64 rdev = type == S_IFCHR || type == S_IFBLK ? pick(1 << 20) : 0;
    const u32 mode = type | static_cast<u32>(pick(010000));
    const Credentials who = with_umask();
    same("mknod", a, code_of(fs_->mknod(a, mode, rdev, who)), model_.make(a, mode, rdev, who.umask));
  }
  void step_mkdir() {
    const std::string a = path();
    const u32 mode = static_cast<u32>(pick(02000));
    const Credentials who = with_umask();
    same("mkdir", a, code_of(fs_->mkdir(a, mode, who)), model_.make(a, S_IFDIR | mode, 0, who.umask));
  }
  void step_symlink() {
    std::string target = std::string(1 + pick(300), 't');
    for (std::size_t at = 100; at < target.size(); at += 100) target[at] = '/';
    const std::string link = link_path();
    same("symlink", link, code_of(fs_->symlink(target, link, kRoot)), model_.make(link, S_IFLNK | 0777, 0, 0, target));
  }
  void step_link() {
    const Target from = target();
    if (from.node == nullptr) return;
    const std::string to = path();
    same("link", from.path + " " + to, code_of(fs_->link(from.at(), to, kRoot)), model_.link(from.node, to));
  }
  void step_unlink() {
    const std::string a = path();
    same("unlink", a, code_of(fs_->unlink(a, kRoot)), model_.unlink(a));
  }
  void step_rmdir() {
    const std::string a = path();
    same("rmdir", a, code_of(fs_->rmdir(a, kRoot)), model_.rmdir(a));
  }
  void step_rename() {
    const std::string a = path();
    const std::string b = path();
    const auto flags = static_cast<unsigned>(pick(7));
    INFO("flags " << flags);
    same("rename", a + " " + b, code_of(fs_->rename(a, b, flags, kRoot)), model_.rename(a, b, flags));
  }
  void step_write() {
    const Target to = file_target();
    if (to.node == nullptr) return;
    const u64 off = offset();
    const std::string data = text(1, once_in(2) ? 200 : 20000);
    const Credentials who = user_or_root();
    const auto real = fs_->write(to.ino, off, std::as_bytes(std::span(data)), who);
    same("write", to, code_of(real), ModelFs::write(*to.node, off, data, who.uid != 0));
    if (real.ok()) REQUIRE(*real == data.size());
  }
  // chmod, chown, utimens, truncate, or several of them in one call.
  void step_set() {
    SetAttributes change;
    const bool resize = once_in(3);
    const Target to = resize ? file_target() : target();
    if (to.node == nullptr) return;
    if (resize) change.size_bytes = once_in(3) ? 0 : pick(50000);
    if (once_in(3)) change.mode = static_cast<u32>(pick(010000));
    if (once_in(4)) change.uid = static_cast<u32>(pick(5));
    if (once_in(4)) change.gid = static_cast<u32>(pick(5));
    if (once_in(3)) change.mtime_ns = static_cast<i64>(pick(1 << 30)) - 1000;
    if (once_in(4)) change.atime_ns = static_cast<i64>(pick(1 << 30)) - 1000;
    change.atime_now = !change.atime_ns.has_value() && once_in(8);
    change.mtime_now = !change.mtime_ns.has_value() && once_in(8);
    same("set_attributes", to, code_of(fs_->set_attributes(to.at(), change, kRoot, Follow::kNo)),
         ModelFs::set(*to.node, change));
  }

  void step_open() {
    if (handles_.size() == kHandles) return step_close();
    const std::string a = path();
    int flags = once_in(2) ? O_CREAT : 0;
    if (flags != 0 && once_in(4)) flags |= O_EXCL;
    if (once_in(3)) flags |= O_TRUNC;
    const u32 mode = static_cast<u32>(pick(010000));
    const Credentials who = with_umask();
    auto real = fs_->open_file(a, O_RDWR | O_NOFOLLOW | flags, mode, who);
    same("open", a, code_of(real), model_.open(a, flags, mode, who.umask));
    if (real.ok()) handles_.push_back({std::move(*real), model_.find(a).node});
  }
  void step_tmpfile() {
    if (handles_.size() == kHandles) return step_close();
    const std::string a = path();
    const u32 mode = static_cast<u32>(pick(010000));
    const Credentials who = with_umask();
    const bool linkable = !once_in(4);
    NodePtr node;
    auto real = fs_->open_file(a, O_TMPFILE | O_RDWR | (linkable ? 0 : O_EXCL), mode, who);
    same("tmpfile", a, code_of(real), model_.tmpfile(a, mode, who.umask, linkable, node));
    if (real.ok()) handles_.push_back({std::move(*real), node});
  }
  void step_close() {
    if (handles_.empty()) return;
    const auto at = handles_.begin() + static_cast<i64>(pick(handles_.size()));
    must(at->file.close());
    handles_.erase(at);
  }
  void step_read() {
    if (handles_.empty()) return;
    const Handle& handle = handles_[pick(handles_.size())];
    const std::string& all = handle.node->data;
    const u64 off = pick(all.size() + 10);
    const u64 len = 1 + pick(30000);
    std::string got(len, '?');
    got.resize(must(handle.file.read(off, std::as_writable_bytes(std::span(got)))));
    REQUIRE(got == (off < all.size() ? all.substr(off, len) : ""));
  }

  void step_allocate() {
    const Target to = file_target();
    if (to.node == nullptr) return;
    constexpr int kKeep = FALLOC_FL_KEEP_SIZE;
    const int mode = one_of<int>({0, kKeep, FALLOC_FL_PUNCH_HOLE | kKeep, FALLOC_FL_PUNCH_HOLE | kKeep,
                                  FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | kKeep, FALLOC_FL_COLLAPSE_RANGE,
                                  FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_INSERT_RANGE,
                                  FALLOC_FL_PUNCH_HOLE, FALLOC_FL_INSERT_RANGE | kKeep});
    const bool whole = !once_in(3);
    const u64 unit = whole ? kBlockBytes : 1;
    const u64 off = offset() / unit * unit;
    // What makes files longer does so by little, or the pool would fill.
    const u64 len = pick(whole ? 6 : 20000) * unit;
    const Credentials who = user_or_root();
    INFO("mode " << mode << " off " << off << " len " << len << " size " << to.node->data.size());
    if (mode == FALLOC_FL_INSERT_RANGE && to.node->data.size() > 500000) return;
    same("allocate", to, code_of(fs_->allocate(to.ino, mode, off, len, who)),
         ModelFs::allocate(*to.node, mode, off, len, who.uid != 0));
  }
  void step_seek() {
    const Target in = file_target();
    if (in.node == nullptr) return;
    u64 model_at = 0;
    const u64 from = pick(in.node->data.size() + 5000);
    for (const bool data : {true, false}) {
      INFO((data ? "data" : "hole") << " from " << from << " size " << in.node->data.size());
      const auto real = fs_->seek(in.ino, from, data ? SEEK_DATA : SEEK_HOLE);
      same("seek", in, code_of(real), ModelFs::seek(*in.node, from, data, model_at));
      if (real.ok()) REQUIRE(*real == model_at);
    }
  }
  void step_copy() {
    const Target from = file_target();
    const Target to = once_in(3) ? from : file_target();
    if (from.node == nullptr || to.node == nullptr) return;
    const u64 from_off = offset();
    const u64 to_off = offset();
    const u64 len = pick(once_in(2) ? 5000 : 100000);
    const Credentials who = user_or_root();
    u64 copied = 0;
    const auto real = fs_->copy_range(from.ino, from_off, to.ino, to_off, len, who);
    same("copy_range", to, code_of(real),
         ModelFs::copy_range(*from.node, from_off, *to.node, to_off, len, who.uid != 0, copied));
    if (real.ok()) REQUIRE(*real == copied);
  }

  void step_set_xattr() {
    const Target to = target();
    if (to.node == nullptr) return;
    set_xattr(to, xattr_name(), xattr_value(), once_in(3) ? one_of<int>({XATTR_CREATE, XATTR_REPLACE}) : 0);
  }
  Errc set_xattr(const Target& to, const std::string& name, const std::string& value, int flags) {
    INFO(name << " " << value.size() << " bytes, flags " << flags);
    const Errc real =
        code_of(fs_->set_xattr(to.at(), name, std::as_bytes(std::span(value)), flags, kRoot, Follow::kNo));
    same("set_xattr", to, real, ModelFs::set_xattr(*to.node, name, value, flags));
    return real;
  }
  void step_get_xattr() {
    const Target of = target();
    if (of.node == nullptr) return;
    const std::string name = xattr_name();
    std::string value;
    std::string got(70000, '\0');
    const auto real = fs_->get_xattr(of.at(), name, std::as_writable_bytes(std::span(got)), kRoot, Follow::kNo);
    same("get_xattr ", of, code_of(real), ModelFs::get_xattr(*of.node, name, value));
    if (real.ok()) REQUIRE(got.substr(0, *real) == value);
    if (value.size() < 2) return;
    got.resize(value.size() - 1);
    const auto cut = fs_->get_xattr(of.at(), name, std::as_writable_bytes(std::span(got)), kRoot, Follow::kNo);
    REQUIRE(code_of(cut) == Errc::kRange);
  }
  void step_remove_xattr() {
    const Target of = target();
    if (of.node == nullptr) return;
    std::string name = xattr_name();
    if (!of.node->xattrs.empty() && !once_in(4)) name = of.node->xattrs.begin()->first;
    same("remove_xattr " + name, of, code_of(fs_->remove_xattr(of.at(), name, kRoot, Follow::kNo)),
         ModelFs::remove_xattr(*of.node, name));
  }
  // Up to both limits, and back.
  void fill_with_xattrs() {
    const Target to = target();
    if (to.node == nullptr || to.node->type == FileType::kSymlink) return;
    const bool values = once_in(2);
    const std::string name = values ? "trusted.v" : "trusted." + std::string(240, 'n');
    Errc result{};
    int count = 0;
    for (; result == kFine; ++count)
      result = set_xattr(to, name + std::to_string(count), values ? std::string(65536, 'v') : "", 0);
    REQUIRE(result == Errc::kNoSpace);
    for (int i = 0; i < count - 1; ++i) {
      const std::string gone = name + std::to_string(i);
      same("remove_xattr", to, code_of(fs_->remove_xattr(to.at(), gone, kRoot, Follow::kNo)),
           ModelFs::remove_xattr(*to.node, gone));
    }
  }
  void step_acl() {
    const Target to = target();
    if (to.node == nullptr) return;
    const AclKind kind = once_in(2) ? AclKind::kAccess : AclKind::kDefault;
    const Acl list = acl();
    INFO(text_of(list));
    same("set_acl", to, code_of(fs_->set_acl(to.at(), kind, list, kRoot, Follow::kNo)),
         ModelFs::set_acl(*to.node, kind, list));
  }

  // --- The whole -----------------------------------------------------------------------------------------------------

  void compare() {
    const auto [real, model] = first_difference(tree_of(fs_.fs()), model_.tree());
    REQUIRE(real == model);
    for (const Handle& handle : handles_)
      REQUIRE(look_at(fs_.fs(), At::inode(handle.file.ino())).line("open") == handle.node->line("open"));
    fs_.require_clean();
  }

  void drop_handles(bool killed) {
    if (killed) {
      // As the file system itself, they are leaked: a killed process closes nothing.
      static auto* const leaked = new std::vector<Handle>;
      std::move(handles_.begin(), handles_.end(), std::back_inserter(*leaked));
    }
    for (Handle& handle : handles_)
      if (handle.file.is_open()) must(handle.file.close());
    handles_.clear();
  }

  void open_again() {
    const bool killed = once_in(2);
    drop_handles(killed);
    killed ? fs_.reopen_after_kill(quiet()) : fs_.reopen(quiet());
    compare();
  }

  std::mt19937_64 random_;
  MemoryFs fs_;
  ModelFs model_;
  std::vector<Handle> handles_;
};

u64 number_from_environment(const char* name, u64 otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("model: random operations give the oracle's answers and tree", "[model]") {
  const bool repeat = std::getenv("PMFS_SEED") != nullptr;
  const bool long_form = std::getenv("PMFS_LONG") != nullptr;
  const u64 first = number_from_environment("PMFS_SEED", 1);
  const u64 walks = repeat ? 1 : long_form ? 250 : 12;  // 250: 1,024,000 operations
  for (u64 seed = first; seed < first + walks; ++seed) {
    INFO("PMFS_SEED=" << seed);
    Walk(seed).run(kStepsOfWalk);
  }
}
