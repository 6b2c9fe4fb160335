// A long life, compressed: mixed operations on a pool that is kept nearly full.
//   churn [--ops N] [--mib N] [--seed N] [--full PERCENT]
// Ten million operations: churn --ops 10000000 --mib 2048
// It fails if space is lost: check must be clean (which accounts for each block), also after a killed process, and when
// everything has been removed the pool must have as many free blocks as when it was new, but for its inode file and the
// leaves of its root directory. Rates and fragmentation are printed, and judged by nobody: no time is measured to pass.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "fs/filesystem_impl.h"
#include "fs/superblock.h"

namespace {

using namespace pmfs;

const Credentials kRoot = Credentials::root();
constexpr PoolOff kLocatorOff{kBlockBytes};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "FAIL: %s\n", what.c_str());
  std::exit(1);
}
template <class T>
T must(Result<T> result, const char* what) {
  if (!result.ok()) fail(std::string(what) + ": " + result.error().what);
  return std::move(*result);
}
void must(const Result<void>& result, const char* what) {
  if (!result.ok()) fail(std::string(what) + ": " + result.error().what);
}

struct Options {
  u64 ops = 100'000;
  u64 mib = 128;
  u64 seed = 1;
  u64 full_percent = 90;
};

/// Files in 64 directories; each step creates, appends, overwrites, cuts, renames or removes one.
class Churn {
 public:
  Churn(Filesystem& fs, const Options& options) : fs_(fs), random_(options.seed) {
    const SpaceInfo space = must(fs_.space(), "space");
    target_free_ = space.blocks * (100 - options.full_percent) / 100;
    data_.resize(u64{1} << 20, std::byte{0x33});
    for (int i = 0; i < 64; ++i) must(fs_.mkdir(directory(static_cast<u64>(i)), 0755, kRoot), "mkdir");
  }

  void fill() {
    while (free_blocks() > target_free_) create();
  }
  void step() {
    const bool full = free_blocks() <= target_free_;
    const u64 what = random_() % 100;
    if (files_.empty() || what < 25) {
      // Room is made first, as whoever lives on a full disk does.
      while (full && free_blocks() <= target_free_ && !files_.empty()) remove();
      create();
    } else if (what < 45) {
      append();
    } else if (what < 65) {
      overwrite();
    } else if (what < 75) {
      cut();
    } else if (what < 85) {
      rename();
    } else {
      remove();
      if (free_blocks() > target_free_ + target_free_ / 16) create();
    }
  }
  void remove_all() {
    while (!files_.empty()) remove();
    for (int i = 0; i < 64; ++i) must(fs_.rmdir(directory(static_cast<u64>(i)), kRoot), "rmdir");
  }
  u64 files() const { return files_.size(); }
  u64 refused() const { return refused_; }

 private:
  struct OneFile {
    std::string path;
    InodeNo ino;
    u64 bytes;
  };
  static std::string directory(u64 i) { return "/d" + std::to_string(i); }
  std::string fresh_path() { return directory(random_() % 64) + "/f" + std::to_string(number_++); }
  u64 free_blocks() { return must(fs_.space(), "space").blocks_avail; }
  // Most files are small, most bytes are in large ones.
  u64 size() { return (random_() % 4096 + 1) << random_() % 8; }
  std::size_t any() { return static_cast<std::size_t>(random_() % files_.size()); }

  void write(OneFile& file, u64 off, u64 bytes) {
    const auto done = fs_.write(file.ino, off, std::span(data_).first(bytes), kRoot);
    if (!done.ok()) {
      if (done.error().code != Errc::kNoSpace) fail(std::string("write: ") + done.error().what);
      refused_ += 1;
      return;
    }
    file.bytes = std::max(file.bytes, off + *done);
  }
  void create() {
    OneFile file{fresh_path(), {}, 0};
    const auto made = fs_.mknod(file.path, 0644, 0, kRoot);
    if (!made.ok()) {
      if (made.error().code != Errc::kNoSpace) fail(std::string("create: ") + made.error().what);
      refused_ += 1;
      return;
    }
    file.ino = made->ino;
    write(file, 0, size());
    files_.push_back(file);
  }
  void append() {
    OneFile& file = files_[any()];
    write(file, file.bytes, size() / 8 + 1);
  }
  void overwrite() {
    OneFile& file = files_[any()];
    if (file.bytes != 0) write(file, random_() % file.bytes, 1 + random_() % 8192);
  }
  void cut() {
    OneFile& file = files_[any()];
    SetAttributes change;
    change.size_bytes = file.bytes == 0 ? 0 : random_() % file.bytes;
    must(fs_.set_attributes(file.path, change, kRoot), "truncate");
    file.bytes = *change.size_bytes;
  }
  void rename() {
    OneFile& file = files_[any()];
    const std::string to = fresh_path();
    const auto moved = fs_.rename(file.path, to, 0, kRoot);
    if (moved.ok())
      file.path = to;
    else if (moved.error().code == Errc::kNoSpace)
      refused_ += 1;
    else
      fail(std::string("rename: ") + moved.error().what);
  }
  void remove() {
    const std::size_t at = any();
    must(fs_.unlink(files_[at].path, kRoot), "unlink");
    std::swap(files_[at], files_.back());
    files_.pop_back();
  }

  Filesystem& fs_;
  std::mt19937_64 random_;
  u64 target_free_ = 0;
  u64 number_ = 0;
  u64 refused_ = 0;
  std::vector<OneFile> files_;
  std::vector<std::byte> data_;
};

void require_clean(Filesystem& fs, const char* when) {
  const CheckReport report = must(check(fs), "check");
  if (!report.clean()) fail(std::string(when) + ": " + report.findings[0].code + ": " + report.findings[0].text);
}

void print_survey(Filesystem& fs, const char* when) {
  const Survey found = must(survey(fs), "survey");
  std::printf("%-8s %llu files, %llu extents (%.2f a file, at most %llu), %llu free runs, the longest %llu blocks\n",
              when, static_cast<unsigned long long>(found.regular_files),
              static_cast<unsigned long long>(found.extents),
              static_cast<double>(found.extents) / static_cast<double>(std::max<u64>(1, found.regular_files)),
              static_cast<unsigned long long>(found.most_extents), static_cast<unsigned long long>(found.free_runs),
              static_cast<unsigned long long>(found.longest_free_run));
}

int run(const Options& options) {
  const u64 bytes = options.mib << 20;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) fail("no memory");
  const Memory memory{static_cast<std::byte*>(at), bytes, Durability::kVolatile};
  FormatParameters parameters;
  parameters.regions = {{2 * kBlockBytes, bytes - 2 * kBlockBytes}};
  parameters.locator_off = kLocatorOff;
  must(format_memory(memory, parameters), "format");
  Filesystem fs = must(open_memory(memory, kLocatorOff), "open");
  const u64 free_before = must(fs.space(), "space").blocks_free;
  const u64 slots_before = volume_of(fs).inodes.slots();

  Churn churn(fs, options);
  churn.fill();
  require_clean(fs, "filled");
  print_survey(fs, "filled");

  // The operations in ten parts; the rate of each.
  std::vector<double> rates;
  for (u64 part = 0; part < 10; ++part) {
    const std::clock_t begin = std::clock();  // processor time: the machine may have other things to do
    const u64 steps = options.ops * (part + 1) / 10 - options.ops * part / 10;
    for (u64 i = 0; i < steps; ++i) churn.step();
    const double took_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    rates.push_back(static_cast<double>(steps) / took_s);
    require_clean(fs, "in use");
    std::printf("%3llu %%    %.0f operations a second of processor time, %llu files\n",
                static_cast<unsigned long long>((part + 1) * 10), rates.back(),
                static_cast<unsigned long long>(churn.files()));
    std::fflush(stdout);
  }
  print_survey(fs, "churned");
  std::printf("rate     start %.0f, end %.0f: %.2f times; %llu operations found no space\n", rates.front(),
              rates.back(), rates.front() / rates.back(), static_cast<unsigned long long>(churn.refused()));

  churn.remove_all();
  require_clean(fs, "emptied");
  const u64 free_now = must(fs.space(), "space").blocks_free;
  const u64 inode_blocks = (volume_of(fs).inodes.slots() - slots_before) / media::kInodesPerBlock;
  const Survey left = must(survey(fs), "survey");
  const u64 root_blocks = must(fs.stat("/", kRoot), "stat").blocks_512 / (kBlockBytes / 512);
  const media::Superblock& sb = volume_of(fs).superblock;
  u64 map_nodes = 0;
  must(volume_of(fs).maps.each_node(sb.inode_map_root.get(),
                                    [&](u64, u32) -> Result<void> {
                                      map_nodes += 1;
                                      return {};
                                    }),
       "the inode file's map");
  std::printf(
      "emptied  %llu blocks free of %llu; %llu more in the inode file, %llu in its map, %llu in the root directory\n",
      static_cast<unsigned long long>(free_now), static_cast<unsigned long long>(free_before),
      static_cast<unsigned long long>(inode_blocks), static_cast<unsigned long long>(map_nodes),
      static_cast<unsigned long long>(root_blocks));
  if (left.regular_files != 0 || left.directories != 1) fail("something is left");
  if (free_now + inode_blocks + map_nodes + root_blocks != free_before) fail("blocks are lost");
  must(fs.close(), "close");
  fs = must(open_memory(memory, kLocatorOff), "open");
  if (!fs.info().saved_map_used) fail("the saved map was not used");
  if (must(fs.space(), "space").blocks_free != free_now) fail("the saved map knows another number of free blocks");
  require_clean(fs, "opened again");
  std::puts("churn: no block lost, clean");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    u64* const value = name == "--ops"    ? &options.ops
                       : name == "--mib"  ? &options.mib
                       : name == "--seed" ? &options.seed
                       : name == "--full" ? &options.full_percent
                                          : nullptr;
    if (value == nullptr) fail("unknown option " + name);
    *value = std::strtoull(argv[i + 1], nullptr, 10);
  }
  if (argc % 2 == 0 || options.mib < 16 || options.full_percent > 95 || options.ops < 10)
    fail("usage: churn [--ops N] [--mib N] [--seed N] [--full PERCENT]");
  std::printf("churn: %llu operations on %llu MiB, %llu %% full, seed %llu\n",
              static_cast<unsigned long long>(options.ops), static_cast<unsigned long long>(options.mib),
              static_cast<unsigned long long>(options.full_percent), static_cast<unsigned long long>(options.seed));
  return run(options);
}
