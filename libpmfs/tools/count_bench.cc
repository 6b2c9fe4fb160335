#include "count_bench.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <stdexcept>

#include "throw_away_pool.h"

namespace pmfs::tools {

namespace {

void call(const Case::Step& step, Bench& bench) {
  if (step) step(bench);
}

void run_case(Bench& bench, const Case& item, std::size_t row, unsigned runs, unsigned warm_up, Meter& meter) {
  const std::string dir_name = fmt::format("case{}", row);
  const std::string other_name = fmt::format("other{}", row);
  bench.dir = bench.make_directory({kRootIno, dir_name});
  bench.other = bench.make_directory({kRootIno, other_name});
  bench.ino = kNoInode;
  bench.off = 0;
  bench.number = 0;
  call(item.setup, bench);
  constexpr unsigned kPatience = 1000;  // runs made for one that is kept
  for (unsigned kept = 0; kept < warm_up + runs; ++bench.number) {
    if (bench.number / kPatience > kept) fail({Errc::kInvalid, "what this case is about does not happen"});
    bench.name = fmt::format("{}-{:06}", item.op, bench.number);
    bench.name2 = fmt::format("{}+{:06}", item.op, bench.number);
    call(item.prepare, bench);
    const bool measured = kept >= warm_up;
    if (measured) meter.begin(row, Part::kRun);
    item.run(bench);
    if (measured) meter.end();
    if (!item.keep || item.keep(bench)) {
      ++kept;
    } else if (measured) {
      meter.discard();
    }
    if (item.baseline) {
      if (measured) meter.begin(row, Part::kBaseline);
      item.baseline(bench);
      if (measured) meter.end();
    }
    call(item.tidy, bench);
  }
  for (File* file : {&bench.file, &bench.file2}) {
    if (file->is_open()) must(file->close());
  }
  bench.stream.reset();
  bench.remove(kRootIno, dir_name);
  bench.remove(kRootIno, other_name);
}

}  // namespace

void fail(const Error& error) { throw std::runtime_error(fmt::format("{} ({})", describe(error.code), error.what)); }

void must(const Result<void>& result) {
  if (!result.ok()) fail(result.error());
}

InodeNo Bench::make_file(const At& at, std::size_t bytes_long) {
  const InodeNo made = must(fs.mknod(at, S_IFREG | 0644, 0, Credentials::root())).ino;
  if (bytes_long != 0) append(made, 0, bytes_long);
  return made;
}

InodeNo Bench::make_directory(const At& at) { return must(fs.mkdir(at, 0755, Credentials::root())).ino; }

void Bench::append(InodeNo into, u64 at, std::size_t bytes_long) {
  must(fs.write(into, at, bytes(bytes_long), Credentials::root()));
}

void Bench::populate(InodeNo into, unsigned entries) {
  for (unsigned i = 0; i < entries; ++i) make_file({into, fmt::format("there-before-{:06}", i)});
}

void Bench::remove(InodeNo parent, const std::string& what) {
  const At at{parent, what};
  const Attributes found = must(fs.stat(at, Credentials::root(), Follow::kNo));
  if (found.type() != FileType::kDirectory) return must(fs.unlink(at, Credentials::root()));
  std::vector<std::string> names;
  Dir listing = must(fs.open_dir(At::inode(found.ino), Credentials::root()));
  for (u64 cookie = 0; must(listing.read(cookie, entry)); cookie = entry.cookie) {
    if (entry.view() != "." && entry.view() != "..") names.emplace_back(entry.view());
  }
  must(listing.close());
  for (const std::string& child : names) remove(found.ino, child);
  must(fs.rmdir(at, Credentials::root()));
}

void run_cases(const std::vector<CaseGroup>& groups, unsigned runs, unsigned warm_up, Meter& meter) {
  std::size_t row = 0;
  for (const CaseGroup& group : groups) {
    Bench bench;
    bench.fs = throw_away_pool(group.pool_bytes);
    for (const Case& item : group.cases) {
      try {
        run_case(bench, item, row++, runs, warm_up, meter);
      } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("{} ({}): {}", item.op, item.variant, error.what()));
      }
    }
    must(bench.fs.close());
  }
}

}  // namespace pmfs::tools
