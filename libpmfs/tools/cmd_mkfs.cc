// pmfs mkfs: makes a pool with an empty file system in it.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>

#include "commands.h"
#include "open_pool.h"
#include "report.h"
#include "size_text.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string size;
  std::string label;
  std::string reserve;
  bool force = false;
};

/// Whether the pool brings its size with it: a device DAX, a poolset file that names its parts, or, with --force, the
/// file that is to be overwritten.
bool has_own_size(const std::string& pool, bool force) {
  struct stat st {};
  if (stat(pool.c_str(), &st) != 0) return false;
  if (S_ISCHR(st.st_mode) || force) return true;
  constexpr std::string_view kSignature = "PMEMPOOLSET";
  std::string head(kSignature.size(), '\0');
  std::ifstream(pool, std::ios::binary).read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == kSignature;
}

int mkfs(const Options& options) {
  FormatOptions format;
  format.label = options.label;
  format.force = options.force;
  format.reserve_bytes = parse_size(options.reserve).value_or(0);
  format.root_uid = geteuid();
  format.root_gid = getegid();
  if (!options.size.empty()) {
    format.size_bytes = parse_size(options.size).value_or(0);
  } else if (!has_own_size(options.pool, options.force)) {
    report_text(options.pool, "the size of the pool file is missing; give one, for example --size 1G");
    return kExitUsage;
  }

  const Result<void> made = Filesystem::format(options.pool, format);
  if (!made.ok()) {
    report_pool(options.pool, made.error());
    return kExitFailure;
  }

  // Opened for writing, as a mount will: the durability shown is the one that a mount will have.
  std::optional<Filesystem> fs = open_for_writing(options.pool);
  if (!fs) return kExitFailure;
  const PoolInfo info = fs->info();
  fmt::print("made        {}\n", printable(options.pool));
  fmt::print("size        {} ({} bytes), {} free for files\n", size_text(info.pool_bytes), info.pool_bytes,
             size_text(info.space.blocks_avail * info.space.block_bytes));
  fmt::print("label       {}\n", info.label.empty() ? "(none)" : printable(info.label));
  fmt::print("uuid        {}\n", info.uuid);
  fmt::print("durability  {}\n", describe(info.durability));
  fmt::print("next        pmfs mount {0} DIR    or without FUSE: pmfs import {0} HOSTDIR /\n", printable(options.pool));
  return close_pool(*fs, options.pool, kExitOk);
}

}  // namespace

void add_mkfs(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("mkfs", "Make a pool with an empty file system in it");
  command->add_option("POOL", options->pool, "File to create, device DAX, or poolset file")->required();
  const auto is_size = [](const std::string& text) {
    return parse_size(text) ? std::string{} : "'" + text + "' is not a size; write 64M or 1G";
  };
  command
      ->add_option("--size", options->size,
                   "Size of the file to create, e.g. 64M or 1G; K, M, G, T are powers of "
                   "1024. Not for a device or a poolset: they have a size")
      ->check(is_size);
  command
      ->add_option(
          "--reserve", options->reserve,
          "Room in the pool for the objects of an application that uses libpmemobj itself (see attach() in pmfs.hpp)")
      ->check(is_size);
  command->add_option("--label", options->label, "A name for people, up to 31 bytes");
  command->add_flag("--force", options->force, "Overwrite what is there");
  command->footer("Example:\n  pmfs mkfs /dev/shm/demo.pool --size 1G --label demo");
  command->callback([options, &exit_code] { exit_code = mkfs(*options); });
}

}  // namespace pmfs::tools
