#include "test/support/sim_fs.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "fs/clock.h"
#include "fs/filesystem_impl.h"
#include "fs/superblock.h"
#include "test/support/text.h"

namespace pmfs::test {

namespace {

constexpr i64 kClockStart = 1'700'000'000'000'000'000;
const Credentials kRoot = Credentials::root();

std::string failed(const char* what, const std::string& path, const Error& error) {
  return text(what, " ", path, ": ", error.what, " (", describe(error.code), ", at ", hex(error.media_off), ")");
}

}  // namespace

// --- Seeing ----------------------------------------------------------------------------------------------------------

const SeenNode* SeenTree::at(const std::string& path) const {
  for (const SeenNode& node : nodes)
    if (node.path == path) return &node;
  return nullptr;
}

namespace {

class Fingerprint {
 public:
  void add(u64 value) { hash_ = mix(hash_ + value * 0x9e3779b97f4a7c15 + 1); }
  void add(const void* at, std::size_t bytes) { add(checksum64(at, bytes, bytes)); }
  void add(const std::string& bytes) { add(bytes.data(), bytes.size()); }
  u64 value() const { return hash_; }

 private:
  u64 hash_ = 0;
};

std::string see_xattrs(Filesystem& fs, SeenNode& node) {
  const auto length = fs.list_xattrs(node.path, {}, kRoot, Follow::kNo);
  if (!length.ok()) return failed("listxattr", node.path, length.error());
  if (*length == 0) return {};
  std::string names(*length, '\0');
  if (const auto listed = fs.list_xattrs(node.path, names, kRoot, Follow::kNo); !listed.ok())
    return failed("listxattr", node.path, listed.error());
  for (std::size_t at = 0; at < names.size();) {
    const std::string name(names.c_str() + at);
    at += name.size() + 1;
    std::string value(65536, '\0');
    const auto got =
        fs.get_xattr(node.path, name, std::as_writable_bytes(std::span(value)), kRoot, Follow::kNo);
    if (!got.ok()) return failed("getxattr", node.path, got.error());
    value.resize(*got);
    node.xattrs.push_back(name + "=" + value);
  }
  return {};
}

std::string see_node(Filesystem& fs, const std::string& path, u32 depth, SeenTree& tree) {
  if (depth > 64) return "directories below each other without end at " + path;
  SeenNode node;
  node.path = path;
  auto attributes = fs.stat(path, kRoot, Follow::kNo);
  if (!attributes.ok()) return failed("stat", path, attributes.error());
  node.attributes = *attributes;
  std::vector<std::string> below;
  switch (node.attributes.type()) {
    case FileType::kRegular: {
      auto file = fs.open_file(path, O_RDONLY | O_NOATIME, 0, kRoot);
      if (!file.ok()) return failed("open", path, file.error());
      node.contents.resize(node.attributes.size_bytes);
      const auto read = file->read(0, node.contents);
      if (!read.ok()) return failed("read", path, read.error());
      if (*read != node.contents.size()) return text("short read of ", path);
      break;
    }
    case FileType::kSymlink: {
      auto target = fs.readlink(path, kRoot);
      if (!target.ok()) return failed("readlink", path, target.error());
      node.target = *target;
      break;
    }
    case FileType::kDirectory: {
      auto dir = fs.open_dir(path, kRoot);
      if (!dir.ok()) return failed("opendir", path, dir.error());
      DirEntry entry;
      for (u64 cookie = 0;; cookie = entry.cookie) {
        const auto more = dir->read(cookie, entry);
        if (!more.ok()) return failed("readdir", path, more.error());
        if (!*more) break;
        const std::string name(entry.view());
        node.listing.push_back(text(name, " ", to_u64(entry.ino), " ", unsigned(entry.type), " ", entry.cookie));
        if (name != "." && name != "..") below.push_back(text(path == "/" ? "" : path, "/", name));
      }
      break;
    }
    default: break;
  }
  if (std::string wrong = see_xattrs(fs, node); !wrong.empty()) return wrong;
  tree.nodes.push_back(std::move(node));
  for (const std::string& name : below)
    if (std::string wrong = see_node(fs, name, depth + 1, tree); !wrong.empty()) return wrong;
  return {};
}

void add_attributes(Fingerprint& sum, const Attributes& a) {
  for (const u64 value : {to_u64(a.ino), a.generation, u64{a.mode}, u64{a.links}, u64{a.uid}, u64{a.gid}, a.size_bytes,
                          a.blocks_512, a.rdev, static_cast<u64>(a.atime_ns), static_cast<u64>(a.mtime_ns),
                          static_cast<u64>(a.ctime_ns), static_cast<u64>(a.birth_ns)})
    sum.add(value);
}

std::string attributes_text(const Attributes& a) {
  constexpr i64 base = kClockStart;
  return text("ino ", to_u64(a.ino), " gen ", hex(a.generation), " mode 0", std::oct, a.mode, std::dec, " links ",
              a.links, " uid ", a.uid, " gid ", a.gid, " size ", a.size_bytes, " blocks ", a.blocks_512, " rdev ",
              a.rdev, " a+", a.atime_ns - base, " m+", a.mtime_ns - base, " c+", a.ctime_ns - base, " b+",
              a.birth_ns - base);
}

}  // namespace

std::string see(Filesystem& fs, SeenTree& tree, const std::string& top) {
  tree = SeenTree{};
  if (std::string wrong = see_node(fs, top, 0, tree); !wrong.empty()) return wrong;
  const auto space = fs.space();
  if (!space.ok()) return failed("statfs", "/", space.error());
  tree.space = *space;
  Fingerprint sum;
  for (const SeenNode& node : tree.nodes) {
    sum.add(node.path);
    add_attributes(sum, node.attributes);
    sum.add(node.target);
    sum.add(node.contents.data(), node.contents.size());
    for (const std::string& entry : node.listing) sum.add(entry);
    for (const std::string& attribute : node.xattrs) sum.add(attribute);
  }
  for (const u64 value : {space->blocks, space->blocks_free, space->blocks_avail, space->inodes, space->inodes_free})
    sum.add(value);
  tree.fingerprint = sum.value();
  return {};
}

std::string to_text(const SeenTree& tree) {
  std::string out;
  for (const SeenNode& node : tree.nodes) {
    out += text("    ", node.path, " ", attributes_text(node.attributes));
    if (!node.target.empty()) out += " -> " + node.target.substr(0, 40);
    if (!node.contents.empty()) out += text(" contents ", hex(checksum64(node.contents.data(), node.contents.size())));
    for (const std::string& entry : node.listing) out += " [" + entry + "]";
    for (const std::string& attribute : node.xattrs)
      out += text(" {", attribute.substr(0, attribute.find('=')), " ", attribute.size(), " bytes ",
                  hex(checksum64(attribute.data(), attribute.size())), "}");
    out += "\n";
  }
  return out + text("    blocks free ", tree.space.blocks_free, " of ", tree.space.blocks, ", inodes free ",
                    tree.space.inodes_free, " of ", tree.space.inodes, "\n");
}

std::string findings(Filesystem& fs) {
  const auto report = check(fs);
  if (!report.ok()) return failed("check", "", report.error());
  std::string out;
  for (const Finding& finding : report->findings)
    out +=
        text(finding.code, ": ", finding.text, " (at ", hex(finding.media_off), ", inode ", to_u64(finding.ino), ")\n");
  return out;
}

std::vector<std::byte> some_bytes(u64 count, u64 seed) {
  std::vector<std::byte> bytes(count);
  Prng prng(seed);
  for (u64 i = 0; i < count; i += 8) {
    const u64 word = prng.next();
    std::memcpy(bytes.data() + i, &word, std::min<u64>(8, count - i));
  }
  return bytes;
}

// --- FsSubject -------------------------------------------------------------------------------------------------------

std::string FsSubject::open(Memory memory) {
  memory_ = memory;
  // Read-only: recovery is the same, and letting go stores nothing.
  OpenOptions options = SimFs::quiet();
  options.read_only = true;
  auto fs = SimFs::open(memory, options);
  if (!fs.ok()) return failed("open", "", fs.error());
  fs_.emplace(std::move(*fs));
  saved_map_used_ = fs_->info().saved_map_used;
  return {};
}

std::string FsSubject::look() {
  if (std::string wrong = findings(*fs_); !wrong.empty()) return wrong;
  return see(*fs_, seen_);
}

namespace {

// Creates, writes, lists, renames, links; fills the pool; removes everything; closes; opens; looks.
std::string work(Memory memory, Prng& prng) {
  auto opened = SimFs::open(memory, SimFs::quiet());
  if (!opened.ok()) return failed("open for use", "", opened.error());
  Filesystem fs = std::move(*opened);
  const std::string base = text("/use", prng.below(1000));
  const std::vector<std::byte> data = some_bytes(1 + prng.below(9000), prng.next());
  {
    if (auto r = fs.mkdir(base, 0755, kRoot); !r.ok() && r.error().code != Errc::kNoSpace)
      return failed("mkdir", base, r.error());
    // A pool that is nearly full may refuse; what it does do must be right.
    auto file = fs.open_file(base + "/f", O_RDWR | O_CREAT, 0644, kRoot);
    if (file.ok()) {
      const auto written = file->write(3, data);
      if (written.ok()) {
        std::vector<std::byte> back(*written);
        const auto read = file->read(3, back);
        if (!read.ok() || *read != *written || std::memcmp(back.data(), data.data(), *written) != 0)
          return "in use: what was read is not what was written";
      } else if (written.error().code != Errc::kNoSpace) {
        return failed("write", base, written.error());
      }
      if (auto r = fs.rename(base + "/f", "/moved", 0, kRoot); !r.ok() && r.error().code != Errc::kNoSpace)
        return failed("rename", base, r.error());
    } else if (file.error().code != Errc::kNoSpace && file.error().code != Errc::kNotFound) {
      return failed("create", base, file.error());
    }
    (void)fs.link("/moved", base + "/l", kRoot);
    (void)fs.symlink("target", base + "/s", kRoot);
  }
  if (std::string wrong = findings(fs); !wrong.empty()) return "after some work: " + wrong;

  {
    auto filler = fs.open_file("/fill", O_WRONLY | O_CREAT, 0644, kRoot);
    const std::vector<std::byte> chunk = some_bytes(u64{1} << 16, 1);
    for (u64 off = 0; filler.ok();) {
      const auto written = filler->write(off, chunk);
      if (!written.ok() && written.error().code == Errc::kNoSpace) break;
      if (!written.ok()) return failed("filling", "/fill", written.error());
      off += *written;
    }
    for (int i = 0; i < 2000; ++i) {
      const auto made = fs.mknod(text("/used-", i), 0644, 0, kRoot);
      if (made.ok()) continue;
      if (made.error().code != Errc::kNoSpace) return failed("filling", "/used-", made.error());
      break;
    }
  }
  if (std::string wrong = findings(fs); !wrong.empty()) return "when full: " + wrong;

  SeenTree tree;
  if (std::string wrong = see(fs, tree); !wrong.empty()) return "when full: " + wrong;
  for (std::size_t i = tree.nodes.size(); i-- > 1;) {
    const SeenNode& node = tree.nodes[i];
    const auto removed =
        node.attributes.type() == FileType::kDirectory ? fs.rmdir(node.path, kRoot) : fs.unlink(node.path, kRoot);
    if (!removed.ok()) return failed("removing everything:", node.path, removed.error());
  }
  if (std::string wrong = findings(fs); !wrong.empty()) return "when empty again: " + wrong;
  if (const auto closed = fs.close(); !closed.ok()) return failed("close", "", closed.error());
  fs = Filesystem();

  auto again = SimFs::open(memory, SimFs::quiet());
  if (!again.ok()) return failed("open after use", "", again.error());
  if (std::string wrong = findings(*again); !wrong.empty()) return "after reopening: " + wrong;
  if (std::string wrong = see(*again, tree); !wrong.empty()) return "after reopening: " + wrong;
  return tree.nodes.size() == 1 ? "" : "what was removed is back after reopening:\n" + to_text(tree);
}

}  // namespace

std::string FsSubject::use(Prng& prng) {
  drop();
  return work(memory_, prng);
}

// --- TreeJudge -------------------------------------------------------------------------------------------------------

TreeJudge::TreeJudge(std::vector<SeenTree> trees, std::vector<Allowance> allowances)
    : trees_(std::move(trees)), allowances_(std::move(allowances)) {
  for (const Allowance& allowance : allowances_)
    exact_ &= allowance.mixed_ino == kNoInode && allowance.times_lazy.empty();
}

void TreeJudge::happened(const Event& event) {
  if (event.kind != Event::Kind::kMark) return;
  if (event.mark_kind == MarkKind::kBegin) {
    in_flight_ = true;
    for (const InodeNo ino : allowances_[event.mark].times_lazy) lazy_[ino] = true;
  } else if (event.mark_kind == MarkKind::kReturn) {
    in_flight_ = false;
    done_ = event.mark + 1;
    for (const InodeNo ino : allowances_[event.mark].times_settled) lazy_[ino] = false;
  } else {
    return;
  }
  ++phase_;
}

std::string TreeJudge::difference(const SeenTree& seen, std::size_t expected) const {
  const SeenTree& want = trees_[expected];
  if (seen.fingerprint == want.fingerprint) return {};
  const Allowance none;
  const Allowance& allowance = in_flight_ ? allowances_[done_] : none;
  const SpaceInfo& a = seen.space;
  const SpaceInfo& b = want.space;
  if (a.blocks_free != b.blocks_free || a.blocks_avail != b.blocks_avail || a.inodes != b.inodes ||
      a.inodes_free != b.inodes_free || a.blocks != b.blocks)
    return text("free space: blocks ", a.blocks_free, " instead of ", b.blocks_free, ", inodes ", a.inodes_free, " of ",
                a.inodes, " instead of ", b.inodes_free, " of ", b.inodes);
  for (std::size_t i = 0; i < std::max(seen.nodes.size(), want.nodes.size()); ++i) {
    if (i >= seen.nodes.size()) return "missing: " + want.nodes[i].path;
    if (i >= want.nodes.size()) return "not expected: " + seen.nodes[i].path;
    const SeenNode& x = seen.nodes[i];
    const SeenNode& y = want.nodes[i];
    if (x.path != y.path) return text(x.path, " instead of ", y.path);
    if (x.listing != y.listing) return "listing of " + x.path;
    if (x.target != y.target) return "target of " + x.path;

    Attributes attributes = x.attributes;
    const auto lazy = lazy_.find(attributes.ino);
    if (lazy != lazy_.end() && lazy->second) {
      // Any time that this inode had since then.
      const auto one_of = [&](i64 Attributes::*time) {
        if (attributes.*time == y.attributes.*time) return;
        for (std::size_t t = 0; t < trees_.size() && t <= done_ + 1; ++t)
          for (const SeenNode& node : trees_[t].nodes)
            if (node.attributes.ino == attributes.ino && node.attributes.*time == attributes.*time) {
              attributes.*time = y.attributes.*time;
              return;
            }
      };
      one_of(&Attributes::atime_ns);
      one_of(&Attributes::mtime_ns);
      one_of(&Attributes::ctime_ns);
    }
    const std::string have = attributes_text(attributes);
    const std::string wish = attributes_text(y.attributes);
    if (have != wish) return text("attributes of ", x.path, ":\n      ", have, "\n      instead of\n      ", wish);

    if (x.contents == y.contents) continue;
    if (x.attributes.ino != allowance.mixed_ino) return "contents of " + x.path;
    // Old contents are those before the operation, new ones those after, whatever `expected` is.
    const SeenNode* before = nullptr;
    const SeenNode* after = nullptr;
    for (const SeenNode& node : trees_[done_].nodes)
      if (node.attributes.ino == allowance.mixed_ino) before = &node;
    for (const SeenNode& node : trees_[done_ + 1].nodes)
      if (node.attributes.ino == allowance.mixed_ino) after = &node;
    for (u64 off = 0; off < x.contents.size(); off += 8) {
      const auto word = [&](const std::vector<std::byte>& bytes) {
        u64 value = 0;
        if (off < bytes.size()) std::memcpy(&value, bytes.data() + off, std::min<u64>(8, x.contents.size() - off));
        return value;
      };
      const bool within = off + 8 > allowance.mixed_off && off < allowance.mixed_off + allowance.mixed_len;
      if (word(x.contents) == word(y.contents)) continue;
      if (within && before != nullptr && after != nullptr &&
          (word(x.contents) == word(before->contents) || word(x.contents) == word(after->contents)))
        continue;
      return text("contents of ", x.path, " at ", off);
    }
  }
  return {};  // all that differs is allowed
}

std::string TreeJudge::verdict(const Subject& subject) {
  const auto& opened = dynamic_cast<const FsSubject&>(subject);
  const SeenTree& seen = opened.seen();
  if (!in_flight_ && done_ > 0 && allowances_[done_ - 1].closes && !opened.saved_map_used())
    return "close had returned, and the map it saved was not taken";
  const std::string from_before = difference(seen, done_);
  if (from_before.empty()) return {};
  std::string from_after;
  if (in_flight_) {
    from_after = difference(seen, done_ + 1);
    if (from_after.empty()) return {};
  }
  return text("differs from before: ", from_before, in_flight_ ? "\n  differs from after: " : "", from_after,
              "\n  found:\n", to_text(seen), "  before:\n", to_text(trees_[done_]),
              in_flight_ ? "  after:\n" + to_text(trees_[done_ + 1]) : "");
}

// --- SimFs -----------------------------------------------------------------------------------------------------------

OpenOptions SimFs::quiet() {
  OpenOptions options;
  options.atime = OpenOptions::Atime::kNone;
  return options;
}

OpenOptions SimFs::strict_atime() {
  OpenOptions options;
  options.atime = OpenOptions::Atime::kStrict;
  return options;
}

Result<void> SimFs::format(Memory memory) {
  FormatParameters parameters;
  parameters.label = "simulated";
  parameters.regions = {{kBlockBytes, memory.size_bytes - kBlockBytes}};
  parameters.locator_off = kLocator;
  parameters.fixed_ids = true;
  return format_memory(memory, parameters);
}

Result<Filesystem> SimFs::open(Memory memory, const OpenOptions& options) {
  OpenOptions without_cache = options;  // crash states are opened by the thousand, and look at each name once
  without_cache.dcache_bytes = 0;
  return open_memory(memory, kLocator, without_cache);
}

Layout SimFs::layout_of(Memory memory) {
  const auto superblock = find_superblock(memory, kLocator);
  return {superblock.ok() ? (*superblock)->lane_area_off.get() : 0};
}

SimFs::SimFs(u64 size_bytes, const OpenOptions& options, const std::set<Rule>& switched_off) : memory_(size_bytes) {
  set_clock_for_test(kClockStart);
  memory_.switch_off(switched_off);
  must(format(memory_.memory()), "format");
  layout_ = layout_of(memory_.memory());
  fs_ = must(open(memory_.memory(), options), "open");
  memory_.settle();
}

SimFs::SimFs(std::span<const std::byte> image, const OpenOptions& options, const std::set<Rule>& switched_off)
    : memory_(image.size()) {
  memory_.load(image);
  memory_.switch_off(switched_off);
  layout_ = layout_of(memory_.memory());
  fs_ = must(open(memory_.memory(), options), "open an image");
}

SimFs::SimFs(PersistencyModel left_behind, const OpenOptions& options) : memory_(left_behind.contents().size_bytes()) {
  left_behind.forget_threads();
  memory_.load(std::move(left_behind));
  layout_ = layout_of(memory_.memory());
  fs_ = must(open(memory_.memory(), options), "open what a killed process left");
}

}  // namespace pmfs::test
