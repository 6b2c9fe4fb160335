// The public face of the path cache: batches, components, statistics.
#include "fs/api_call.h"
#include "fs/attributes.h"
#include "fs/resolve.h"

namespace pmfs {

namespace {

// @error kStale: what was found is gone.
Result<void> read_inode(Volume& volume, const InodeRef& inode, u64 generation, Attributes& attributes) {
  std::shared_lock lock(inode->lock);
  PMFS_TRY(check_same(volume, inode, generation));
  attributes = attributes_of(inode);
  return {};
}

// @error kStale: what was found is gone.
Result<void> read_found(Volume& volume, const dcache::Found& found, Attributes& attributes) {
  if (peek_attributes(volume, found.ino, found.generation, attributes)) return {};
  PMFS_ASSIGN(const InodeRef inode, volume.inodes.get(found.ino));
  return read_inode(volume, inode, found.generation, attributes);
}

Attributes bare_attributes(const dcache::Found& found) {
  Attributes a;
  a.ino = found.ino;
  a.generation = found.generation;
  a.mode = found.type;
  return a;
}

// One path of a batch that has been found: its attributes, or, if it is gone since, what the path leads to now.
void fill(Volume& volume, const At& at, const Credentials& who, const BatchOptions& options, const dcache::Found& found,
          Resolved& result) {
  if (!options.attributes) {
    result.attributes = bare_attributes(found);
    return;
  }
  Result<void> read = read_found(volume, found, result.attributes);
  if (!read.ok() && read.error().code == Errc::kStale) {
    read = with_found(volume, at, who, options.follow,
                      [&](const InodeRef& inode) { return read_inode(volume, inode, 0, result.attributes); });
  }
  if (!read.ok()) result.error = read.error().code;
}

At where(const BatchOptions& options, std::string_view path) {
  At at(options.start, path);
  at.beneath = options.beneath;
  at.no_links = options.no_links;
  return at;
}

}  // namespace

Result<void> Filesystem::resolve(std::span<const std::string_view> paths, std::span<Resolved> results,
                                 const Credentials& who, const BatchOptions& options) {
  return guarded([&]() -> Result<void> {
    PMFS_ASSIGN(Volume* const open, usable_volume(impl_));
    Volume& volume = *open;
    if (paths.size() > results.size()) return Error{Errc::kInvalid, "there are more paths than results", 0};
    constexpr std::size_t kPiece = 1024;
    std::vector<dcache::BatchItem> items(std::min(paths.size(), kPiece));
    const dcache::Searcher searching = searcher(who, options.beneath, options.no_links);
    for (std::size_t first = 0; first < paths.size(); first += kPiece) {
      const std::size_t count = std::min(kPiece, paths.size() - first);
      std::size_t good = 0;
      for (std::size_t i = 0; i < count; ++i) {
        Resolved& result = results[first + i];
        result = {};
        if (const auto checked = check_path(volume, where(options, paths[first + i])); !checked.ok()) {
          result.error = checked.error().code;
        } else {
          items[good] = {};
          items[good].path = paths[first + i];
          items[good].follow = options.follow == Follow::kYes;
          items[good].number = first + i;
          good += 1;
        }
      }
      volume.paths.resolve_batch(options.start, {items.data(), good}, searching);
      // Inodes whose lines are on their way, and those of which it is being asked where they lie.
      constexpr std::size_t kLines = 8, kPlaces = 16;
      const auto ahead = [&](std::size_t i) { return i < good && options.attributes && items[i].error == Errc{}; };
      for (std::size_t i = 0; i < std::min(kPlaces, good); ++i)
        if (ahead(i)) volume.inodes.prefetch_place(items[i].found.ino);
      for (std::size_t i = 0; i < good; ++i) {
        if (ahead(i + kPlaces)) volume.inodes.prefetch_place(items[i + kPlaces].found.ino);
        if (ahead(i + kLines)) volume.inodes.prefetch(items[i + kLines].found.ino);
        Resolved& result = results[items[i].number];
        if (items[i].error != Errc{}) {
          result.error = items[i].error;
        } else {
          fill(volume, where(options, items[i].path), who, options, items[i].found, result);
        }
      }
    }
    return {};
  });
}

Result<ResolvedComponents> Filesystem::resolve_components(At at, const Credentials& who, Follow follow) {
  return guarded([&]() -> Result<ResolvedComponents> {
    PMFS_ASSIGN(Volume* const open, usable_volume(impl_));
    Volume& volume = *open;
    ResolvedComponents components;
    if (const auto checked = check_path(volume, at); !checked.ok()) {
      components.error = checked.error().code;
      return components;
    }
    for (int tries = 0;; ++tries) {
      components = {};
      std::vector<dcache::Found> found;
      const auto searching = searcher(who, at.beneath, at.no_links);
      const auto last = volume.paths.resolve_each(at.dir, at.path, searching, follow == Follow::kYes,
                                                  [&](const dcache::Passed& passed) {
                                                    components.passed.push_back({std::string(passed.name), {}});
                                                    found.push_back(passed.found);
                                                  });
      if (!last.ok()) components.error = last.error().code;
      bool gone = false;
      for (std::size_t i = 0; i < found.size() && !gone; ++i) {
        const auto read = read_found(volume, found[i], components.passed[i].attributes);
        if (!read.ok() && read.error().code != Errc::kStale) return read.error();
        gone = !read.ok();
      }
      if (!gone) return components;
      if (tries == kFoundTries) {  // removed again and again: nobody can say more than that it is not there
        components = {};
        components.error = Errc::kNotFound;
        return components;
      }
    }
  });
}

LookupStatistics Filesystem::lookup_statistics() const {
  LookupStatistics out;
  const auto volume = usable_volume(impl_);
  if (!volume.ok()) return out;
  const dcache::CacheStatistics s = (*volume)->paths.statistics();
  out.lookups = s.lookups;
  out.hits = s.steps;
  out.misses = s.misses;
  out.negative = s.negatives;
  out.skipped = s.skipped;
  out.pivot_hits = s.pivot_hits;
  out.whole_hits = s.whole_hits;
  out.shared = s.shared;
  out.retries = s.retries;
  out.bytes = s.sizes.bytes;
  out.bytes_limit = s.sizes.limit;
  out.entries = s.sizes.positive;
  out.negative_entries = s.sizes.negative;
  out.directories = s.sizes.directories;
  out.evictions = s.sizes.evictions;
  out.deferred = s.sizes.deferred;
  out.not_remembered = s.sizes.not_remembered;
  out.pivots = s.stage.pivots;
  out.candidates = s.stage.candidates;
  out.periods = s.stage.periods;
  out.swaps = s.stage.swaps;
  out.skipped_swaps = s.stage.skipped_swaps;
  out.invalidations = s.stage.invalidations;
  out.invalidated_pivots = s.stage.invalidated;
  out.revived_pivots = s.stage.revived;
  out.pivot_period_ms = s.stage.period_ms;
  out.pivot_threshold = s.stage.threshold;
  out.path_entries = s.fullpath.entries;
  out.path_visits = s.fullpath.visited;
  return out;
}

std::vector<PivotInfo> Filesystem::pivots() const {
  std::vector<PivotInfo> out;
  const auto volume = usable_volume(impl_);
  if (!volume.ok()) return out;
  for (const dcache::PivotFacts& pivot : (*volume)->paths.pivots())
    out.push_back({pivot.path, pivot.heat, pivot.overlap});
  return out;
}

void Filesystem::set_pivot_period(u32 period_ms) {
  if (const auto volume = usable_volume(impl_); volume.ok()) (*volume)->paths.set_period_ms(period_ms);
}

}  // namespace pmfs
