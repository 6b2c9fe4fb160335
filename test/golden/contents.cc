#include "test/golden/contents.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/checksum.h"
#include "fs/clock.h"
#include "test/support/must.h"
#include "test/support/tree_text.h"

namespace pmfs::test {

namespace {

const Credentials kRoot = Credentials::root();
constexpr i64 kClockNs = 1'000'000'000'000'000'000;  // in 2001; below kTimeIsNow, so that all times are in the manifest

constexpr std::size_t kListed = 300;  // larger directories are in the manifest as a sum

std::string number(u64 n) { return std::to_string(n); }

void write(Filesystem& fs, const std::string& path, u64 off, const std::string& data) {
  const Attributes file = must(fs.stat(path, kRoot));
  REQUIRE(must(fs.write(file.ino, off, std::as_bytes(std::span(data)), kRoot)) == data.size());
}

InodeNo make_file(Filesystem& fs, const std::string& path, u32 mode = 0644) {
  return must(fs.mknod(path, S_IFREG | mode, 0, kRoot)).ino;
}

void set_xattr(Filesystem& fs, const std::string& path, const std::string& name, const std::string& value) {
  must(fs.set_xattr(path, name, std::as_bytes(std::span(value)), 0, kRoot, Follow::kNo));
}

std::string letters(u64 bytes) {
  std::string text(bytes, '\0');
  for (u64 i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + (i / 7 + i / 4096) % 26);
  return text;
}

void fill_types(Filesystem& fs) {
  must(fs.mkdir("/types", 0755, kRoot));
  make_file(fs, "/types/file", 06751);
  must(fs.mkdir("/types/directory", 01777, kRoot));
  must(fs.mkdir("/types/directory/inside", 0700, kRoot));
  must(fs.symlink("a short target", "/types/short-link", kRoot));
  must(fs.symlink(letters(129), "/types/long-link", kRoot));
  must(fs.symlink(letters(4095), "/types/longest-link", kRoot));
  must(fs.mknod("/types/fifo", S_IFIFO | 0640, 0, kRoot));
  must(fs.mknod("/types/character", S_IFCHR | 0600, 0x12345, kRoot));
  must(fs.mknod("/types/block", S_IFBLK | 0660, 0x801, kRoot));
  must(fs.mknod("/types/socket", S_IFSOCK | 0777, 0, kRoot));
  must(fs.link("/types/file", "/types/second-name", kRoot));
  must(fs.link("/types/file", "/types/directory/third-name", kRoot));
  make_file(fs, "/types/renamed");
  must(fs.rename("/types/renamed", "/types/moved", RENAME_WHITEOUT, kRoot));
  SetAttributes change;
  change.uid = 70000;
  change.gid = 4'000'000'000;
  change.atime_ns = -1;  // before 1970
  change.mtime_ns = 123'456'789'012'345'678;
  must(fs.set_attributes("/types/fifo", change, kRoot));
}

void fill_data(Filesystem& fs) {
  must(fs.mkdir("/data", 0755, kRoot));
  make_file(fs, "/data/empty");
  make_file(fs, "/data/one-extent");
  write(fs, "/data/one-extent", 0, letters(50'000));
  make_file(fs, "/data/holes");
  write(fs, "/data/holes", 5000, letters(3000));
  write(fs, "/data/holes", u64{1} << 40, letters(100));
  // A map of two levels.
  make_file(fs, "/data/many-extents");
  for (u64 i = 0; i < 300; ++i) write(fs, "/data/many-extents", 2 * i * kBlockBytes, number(i));
  const InodeNo reserved = make_file(fs, "/data/unwritten");
  must(fs.allocate(reserved, 0, 0, 40'000, kRoot));
  write(fs, "/data/unwritten", 10'000, letters(1000));
  must(fs.allocate(reserved, FALLOC_FL_KEEP_SIZE, 40'000, 20'000, kRoot));
  const InodeNo direct = make_file(fs, "/data/unwritten-direct");
  must(fs.allocate(direct, 0, 0, 30'000, kRoot));
  const InodeNo cut = make_file(fs, "/data/cut-and-shifted");
  write(fs, "/data/cut-and-shifted", 0, letters(80'000));
  must(fs.allocate(cut, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 9000, 20'000, kRoot));
  must(fs.allocate(cut, FALLOC_FL_COLLAPSE_RANGE, 4096, 8192, kRoot));
  must(fs.allocate(cut, FALLOC_FL_INSERT_RANGE, 0, 4096, kRoot));
  must(fs.allocate(cut, FALLOC_FL_ZERO_RANGE, 50'000, 10'000, kRoot));
}

void fill_directories(Filesystem& fs) {
  // Without an index, with one, with one of two levels.
  must(fs.mkdir("/few", 0755, kRoot));
  for (const std::string& name : {std::string("a"), std::string(255, 'l'), std::string("\xff\x01 no UTF-8")})
    must(fs.mknod("/few/" + name, 0644, 0, kRoot));
  make_file(fs, "/target");
  must(fs.mkdir("/some", 0755, kRoot));
  for (u64 i = 0; i < 200; ++i) must(fs.link("/target", "/some/" + number(i), kRoot));
  must(fs.mkdir("/many", 0755, kRoot));
  const std::string name(245, 'm');
  u64 count = 0;
  while (must(fs.directory_info("/many", kRoot)).index_levels < 2)
    must(fs.link("/target", "/many/" + name + number(count++), kRoot));
  for (u64 i = 0; i < 200; i += 3) must(fs.unlink("/some/" + number(i), kRoot));
}

void fill_attributes(Filesystem& fs) {
  must(fs.mkdir("/attributes", 0755, kRoot));
  for (const char* name : {"inline", "block", "blocks", "both", "capability", "acl", "long-acl"})
    make_file(fs, std::string("/attributes/") + name);
  set_xattr(fs, "/attributes/inline", "user.name", "value");
  set_xattr(fs, "/attributes/inline", "trusted.empty", "");
  set_xattr(fs, "/attributes/block", "user.block", letters(1000));
  set_xattr(fs, "/attributes/block", "security.other", "label");
  set_xattr(fs, "/attributes/blocks", "user.large", letters(65536));
  set_xattr(fs, "/attributes/blocks", "user." + std::string(250, 'n'), letters(3000));
  set_xattr(fs, "/attributes/capability", "security.capability", letters(20));
  must(fs.symlink("nowhere", "/attributes/link", kRoot));
  set_xattr(fs, "/attributes/link", "trusted.of-a-link", "value");

  const Acl acl = {{AclTag::kUserObj, 7, 0}, {AclTag::kUser, 6, 1000}, {AclTag::kGroupObj, 5, 0},
                   {AclTag::kGroup, 4, 50},  {AclTag::kMask, 3, 0},    {AclTag::kOther, 1, 0}};
  Acl long_acl = acl;
  for (u32 id = 0; id < 100; ++id) long_acl.insert(long_acl.begin() + 4 + id, {AclTag::kGroup, id % 8, 100 + id});
  set_xattr(fs, "/attributes/both", "user.beside", "an ACL");
  must(fs.set_acl("/attributes/both", AclKind::kAccess, acl, kRoot));
  must(fs.set_acl("/attributes/acl", AclKind::kAccess, acl, kRoot));
  must(fs.set_acl("/attributes/long-acl", AclKind::kAccess, long_acl, kRoot));
  must(fs.mkdir("/attributes/heirs", 02755, kRoot));
  must(fs.set_acl("/attributes/heirs", AclKind::kDefault, acl, kRoot));
  make_file(fs, "/attributes/heirs/file", 0666);
  must(fs.mkdir("/attributes/heirs/directory", 0777, kRoot));
}

// What is free holds what was there before, which makes the image larger.
void overwrite_free_blocks(Filesystem& fs) {
  const InodeNo file = make_file(fs, "/zeroes");
  const std::string zeroes(kBlockBytes, '\0');
  for (u64 off = 0; fs.write(file, off, std::as_bytes(std::span(zeroes)), kRoot).ok();) off += kBlockBytes;
  must(fs.unlink("/zeroes", kRoot));
}

void show_inode(Filesystem& fs, const std::string& path, std::string& out) {
  const Attributes a = must(fs.stat(path, kRoot, Follow::kNo));
  out += path + " inode " + number(to_u64(a.ino)) + " generation " + number(a.generation) + " size " +
         number(a.size_bytes) + " blocks " + number(a.blocks_512) + " changed " + std::to_string(a.ctime_ns) +
         " born " + std::to_string(a.birth_ns);
  out += '\n';
  if (a.type() != FileType::kDirectory) return;
  const DirectoryInfo info = must(fs.directory_info(path, kRoot));
  out += path + " entries " + number(info.entries) + " leaves " + number(info.leaves) + " index levels " +
         number(info.index_levels) + "\n";
  // In listing order, that is by keys.
  Dir dir = must(fs.open_dir(path, kRoot));
  std::vector<std::string> names;
  std::string listing;
  DirEntry entry;
  for (u64 cookie = 0; must(dir.read(cookie, entry)); cookie = entry.cookie) {
    listing += "  " + number(entry.cookie) + " " + std::string(entry.view()) + "\n";
    if (entry.view() != "." && entry.view() != "..") names.emplace_back(entry.view());
  }
  if (names.size() > kListed) {
    out += "  listing " + number(checksum64(listing.data(), listing.size())) + "\n";
    return;
  }
  out += listing;
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) show_inode(fs, path + (path == "/" ? "" : "/") + name, out);
}

}  // namespace

void fill_golden(Filesystem& fs) {
  set_clock_for_test(kClockNs);
  fill_types(fs);
  fill_data(fs);
  fill_directories(fs);
  fill_attributes(fs);
  overwrite_free_blocks(fs);
  must(fs.sync());
  set_clock_for_test(0);
}

std::string golden_manifest(Filesystem& fs) {
  const PoolInfo info = fs.info();
  std::string out = "label " + info.label + "\nuuid " + info.uuid + "\nformat " + number(info.format_version) +
                    "\nfeatures " + number(info.compat) + " " + number(info.ro_compat) + " " + number(info.incompat) +
                    "\nfree blocks " + number(info.space.blocks_free) + " of " + number(info.space.blocks) + "\n";
  // Of the large directory only a sum.
  const std::string tree = tree_of(fs);
  std::string large;
  for (std::size_t at = 0; at < tree.size();) {
    const std::size_t end = tree.find('\n', at) + 1;
    const std::string_view line = std::string_view(tree).substr(at, end - at);
    (line.starts_with("/many/") ? large : out) += line;
    at = end;
  }
  out += "/many/ " + number(checksum64(large.data(), large.size())) + "\n";
  show_inode(fs, "/", out);
  return out;
}

}  // namespace pmfs::test
