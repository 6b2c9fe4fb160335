#include "dcache/path_walk.h"

#include <algorithm>
#include <utility>

namespace pmfs::dcache {

namespace {

constexpr HashKeys kNoKeys{0x2d358dccaa6c78a5, 0x8bb84b93962eacc9};
const Error kMissing{Errc::kNotFound, "no such file or directory", 0};
const Error kDenied{Errc::kAccess, "permission denied", 0};
const Error kLeaves{Errc::kCrossDevice, "the path leaves the directory that it must stay in", 0};
const Error kNoDirectory{Errc::kNotDirectory, "a component of the path is not a directory", 0};
const Error kGoneDirectory{Errc::kNotFound, "a directory of the path is gone", 0};

// A directory that the file system no longer has was there when the walk came to it.
Error step_error(const Error& error) { return error.code == Errc::kStale ? kGoneDirectory : error; }

}  // namespace

const HashKeys& PathWalk::keys_of(const DentryCache* cache) { return cache != nullptr ? cache->keys() : kNoKeys; }

PathWalk::Place PathWalk::root() const {
  if (cache_ != nullptr) return {cache_->root(), kRootIno, cache_->root()->generation};
  return {nullptr, kRootIno, 0};
}

Result<PathWalk::Place> PathWalk::place_of(InodeNo ino, bool start) {
  if (ino == kRootIno) return root();
  if (cache_ == nullptr) return Place{nullptr, ino, 0};
  if (Dir* const dir = cache_->find_dir(ino); dir != nullptr) return Place{dir, ino, dir->generation};
  Place place{nullptr, ino, 0};
  auto answer = source_.parent(ino, 0, who_, [&](const Answer& a) {
    place.dir = cache_->remember(a, nullptr);
    place.generation = a.generation;
  });
  // Whether a start can be searched, or is there at all, is asked by the first step.
  if (!answer.ok() && !start) return step_error(answer.error());
  return place;
}

// --- Steps in the cache ----------------------------------------------------------------------------------------------

// "." and "..".
PathWalk::Quick PathWalk::quick_up(const Dir& dir, bool to_parent, Dir*& out) {
  for (int tries = 0; tries < kTries; ++tries) {
    const u32 sequence = dir.sequence.load(std::memory_order_acquire);
    if ((sequence & 1) != 0) continue;
    const u32 mode = dir.mode.load(std::memory_order_acquire);
    if ((mode & (Dir::kUnknown | Dir::kRemoved | Dir::kHasAcl)) != 0) return Quick::kAsk;
    const bool allowed =
        may_search(mode, dir.uid.load(std::memory_order_acquire), dir.gid.load(std::memory_order_acquire), who_);
    Dentry* const place = dir.place.load(std::memory_order_acquire);
    out = !to_parent || &dir == cache_->root() ? const_cast<Dir*>(&dir) : place == nullptr ? nullptr : place->parent;
    if (dir.sequence.load(std::memory_order_acquire) != sequence) {
      counts_->count(Count::kRetries);
      continue;
    }
    if (!allowed) return Quick::kDenied;
    return out != nullptr ? Quick::kHit : Quick::kAsk;
  }
  return Quick::kAsk;
}

// --- Steps past the cache --------------------------------------------------------------------------------------------

Result<void> PathWalk::check_search(const Answer& answer) const {
  const Permission& p = answer.permission;
  if (who_.may_all || (p.has_acl ? answer.acl_permits : may_search(p.mode, p.uid, p.gid, who_))) return {};
  return kDenied;
}

Result<PathWalk::Reached> PathWalk::ask(const Component& c) {
  if (counts_ != nullptr) counts_->count(Count::kMisses);
  Reached reached;
  auto answer = source_.lookup(place_.ino, place_.generation, c.name(), who_, [&](const Answer& a) {
    if (cache_ == nullptr) return;
    Dir* const dir = cache_->remember(a, &c);
    if (dir != nullptr) reached.dentry = cache_->find(dir, c);
  });
  if (!answer.ok()) return step_error(answer.error());
  PMFS_TRY(check_search(*answer));
  if (!answer->target.has_value()) return kMissing;
  reached.target = *answer->target;
  if (reached.dentry != nullptr) reached.dir = reached.dentry->dir;
  return reached;
}

Result<PathWalk::Reached> PathWalk::step_dots(bool to_parent) {
  if (to_parent && who_.beneath && place_.ino == start_) return kLeaves;
  if (place_.dir != nullptr) {
    Dir* dir = nullptr;
    const Quick quick = quick_up(*place_.dir, to_parent, dir);
    if (quick == Quick::kDenied) return kDenied;
    if (quick == Quick::kHit) return Reached{nullptr, dir, {InodeNo{dir->ino}, dir->generation, kTypeDirectory}};
  }
  Dir* here = nullptr;
  auto answer = source_.parent(place_.ino, place_.generation, who_, [&](const Answer& a) {
    if (cache_ != nullptr) here = cache_->remember(a, nullptr);
  });
  if (!answer.ok()) return step_error(answer.error());
  PMFS_TRY(check_search(*answer));
  if (!to_parent) return Reached{nullptr, here, {answer->ino, answer->generation, kTypeDirectory}};
  if (answer->removed) return Error{Errc::kNotFound, "a removed directory has no parent", 0};
  PMFS_ASSIGN(const Place up, place_of(answer->target->ino, false));
  return Reached{nullptr, up.dir, {up.ino, up.generation, kTypeDirectory}};
}

Result<PathWalk::Reached> PathWalk::step(const PathScan& scan, u32 at) {
  if (scan.length(at) > kNameMax) return Error{Errc::kNameTooLong, "a name is longer than 255 bytes", 0};
  if (scan.dots(at)) return step_dots(scan.length(at) == 2);
  const Component c = scan[at];
  if (place_.dir != nullptr) {
    Dentry* dentry = nullptr;
    const Quick quick = quick_step(*place_.dir, c, dentry);
    if (quick == Quick::kDenied) return kDenied;
    if (quick == Quick::kHit) {
      counts_->count(Count::kSteps);
      if (dentry->negative()) return kMissing;
      return Reached{dentry, dentry->dir, dentry->target()};
    }
  }
  return ask(c);
}

// --- The walk --------------------------------------------------------------------------------------------------------

// A link that the walk must not follow if it has to stay beneath its start. One in a directory where anybody may put
// one and nobody else may remove it, too: whether Linux follows it is a setting of the machine (fs.protected_symlinks).
Result<void> PathWalk::check_beneath(std::string_view target) const {
  constexpr u32 kSticky = 01000, kOthersWrite = 0002;
  if (target.starts_with('/')) return kLeaves;
  PMFS_ASSIGN(const Answer answer, source_.parent(place_.ino, place_.generation, who_, [](const Answer&) {}));
  const u32 both = kSticky | kOthersWrite;
  if ((answer.permission.mode & both) == both) return kLeaves;
  return {};
}

// Puts a link's target in front of what is left of the path.
Result<void> PathWalk::follow(const Reached& link, const char* rest, const char* rest_end) {
  if (who_.no_links) return Error{Errc::kLoop, "a symbolic link, and none may be followed", 0};
  if (++links_ > kMaxLinks) return Error{Errc::kLoop, "too many symbolic links", 0};
  PMFS_ASSIGN(std::string target, source_.link_target(link.target.ino, link.target.generation));
  if (who_.beneath) PMFS_TRY(check_beneath(target));
  target.append(rest, rest_end);
  text_ = std::move(target);  // only now: `rest` may lie in the old text
  if (!text_.empty() && text_[0] == '/') place_ = root();
  return {};
}

Result<Found> PathWalk::run(InodeNo start, std::string_view path, bool follow_last, FoundParent* parent,
                            const std::function<void(const Passed&)>* passed) {
  start_ = start;
  if (path[0] == '/') {
    if (who_.beneath) return kLeaves;
    place_ = root();
  } else {
    PMFS_ASSIGN(place_, place_of(start, true));
  }
  PathScan scan(path, keys_of(cache_));
  const Pivot* untrue = nullptr;
  if (resolver_ != nullptr && path[0] == '/' && path.size() > 1 && parent == nullptr && passed == nullptr) {
    // A link is followed below, where what it leads to is walked.
    const Prefix all = resolver_->whole(scan, who_, *counts_);
    if (all.denied) return kDenied;
    if (all.components != 0 && !(all.dentry->is_symlink() && follow_last)) return known(all);
    untrue = all.untrue;
  }
  u32 count = scan.next();
  const bool whole = scan.canonical() && cache_ != nullptr && place_.dir == cache_->root();
  const bool known_to_end = whole && scan.last();  // all of the path is in this piece
  u32 at = 0, skipped = 0;
  int gone = 0;
  Dentry* dentry = nullptr;

  if (whole && passed == nullptr && count > 0) {
    const Prefix prefix = resolver_->begin(scan, parent != nullptr && scan.last() ? count - 1 : count, who_, *counts_);
    if (prefix.denied) return kDenied;
    at = skipped = prefix.components;
    dentry = prefix.dentry;
    if (dentry != nullptr) place_ = {dentry->parent, InodeNo{dentry->parent->ino}, dentry->parent->generation};
  }
  for (;;) {
    if (count == 0) {  // only slashes
      if (passed != nullptr) (*passed)({"/", {place_.ino, place_.generation, kTypeDirectory}});
      if (parent != nullptr) *parent = {place_.ino, place_.generation, "", true};
      return Found{place_.ino, place_.generation, kTypeDirectory};
    }
    // The cache's own fast lane: names in directories that it knows.
    if (dentry == nullptr || (dentry->dir != nullptr && at < count)) {
      if (dentry != nullptr) {
        place_ = {dentry->dir, InodeNo{dentry->ino}, dentry->generation};
        dentry = nullptr;
      }
      const u32 stop = parent != nullptr && scan.last() ? count - 1 : count;
      const u32 first = at;
      for (Dir* dir = place_.dir; dir != nullptr && at < stop;) {
        Dentry* next = nullptr;
        Quick quick = Quick::kAsk;
        if (scan.canonical() || (scan.length(at) <= kNameMax && !scan.dots(at)))
          quick = quick_step(*dir, scan[at], next);
        if (quick != Quick::kHit) [[unlikely]] {
          if (quick == Quick::kDenied) return kDenied;
          dentry = nullptr;
          break;
        }
        if (passed != nullptr && !next->negative())
          (*passed)({scan.name(at), {InodeNo{next->ino}, next->generation, u32{next->type} << 12}});
        dentry = next;
        ++at;
        if (at == stop || next->dir == nullptr) break;
        dir = next->dir;
        place_ = {dir, InodeNo{next->ino}, next->generation};
      }
      if (counts_ != nullptr && at != first) counts_->count(Count::kSteps, at - first);
    }

    Reached reached;
    if (dentry != nullptr) {
      if (dentry->negative()) {
        counts_->count(Count::kNegatives);
        if (known_to_end && links_ == 0 && at == count) resolver_->arrived(count, skipped, untrue, *dentry, *counts_);
        return kMissing;
      }
      reached = {dentry, dentry->dir, dentry->target()};
    }
    if (parent != nullptr && scan.last() && at + 1 == count &&
        (dentry == nullptr || reached.target.type == kTypeDirectory)) {
      if (dentry != nullptr) place_ = {reached.dir, reached.target.ino, reached.target.generation};
      *parent = {place_.ino, place_.generation, std::string(scan.name(at)), scan.trailing_slash()};
      return Found{};
    }
    if (dentry == nullptr) {
      PMFS_ASSIGN(reached, step(scan, at));
      dentry = reached.dentry;
      if (passed != nullptr)
        (*passed)({scan.name(at), {reached.target.ino, reached.target.generation, reached.target.type}});
      ++at;
    }

    // `at` components are passed; the last of them led to `reached`.
    const bool last = at == count && scan.last();
    if (reached.target.type == kTypeSymlink && (!last || follow_last || scan.trailing_slash())) {
      const char* const rest = scan.end_of(at - 1);
      auto followed = follow(reached, rest, scan.end());
      if (!followed.ok()) {
        if (followed.error().code != Errc::kStale) return followed.error();
        // The link was removed since: look again what its name leads to.
        if (++gone == kGone || links_ > kMaxLinks) return kMissing;
        links_ -= 1;
        at -= 1;
        skipped = std::min(skipped, at);
        dentry = nullptr;
        continue;
      }
      scan.reset(text_);
      count = scan.next();
      at = skipped = 0;
      dentry = nullptr;
      continue;
    }
    if (last) {
      if (scan.trailing_slash() && reached.target.type != kTypeDirectory)
        return Error{Errc::kNotDirectory, "a slash follows a name that is no directory", 0};
      if (counts_ != nullptr) {
        counts_->count(Count::kLookups);
        if (known_to_end && links_ == 0 && dentry != nullptr)
          resolver_->arrived(count, skipped, untrue, *dentry, *counts_);
      }
      return Found{reached.target.ino, reached.target.generation, reached.target.type};
    }
    if (reached.target.type != kTypeDirectory) return kNoDirectory;
    place_ = {reached.dir, reached.target.ino, reached.target.generation};
    dentry = nullptr;
    if (at == count) {
      count = scan.next();
      at = skipped = 0;
    }
  }
}

// All of the path was known.
Result<Found> PathWalk::known(const Prefix& all) {
  const Dentry& dentry = *all.dentry;
  if (dentry.negative()) {
    counts_->count(Count::kNegatives);
  } else {
    counts_->count(Count::kLookups);
  }
  resolver_->arrived(all.components, all.components, nullptr, *all.dentry, *counts_);
  if (dentry.negative()) return kMissing;
  return Found{InodeNo{dentry.ino}, dentry.generation, u32{dentry.type} << 12};
}

Result<Found> PathWalk::resolve(InodeNo start, std::string_view path, bool follow_last) {
  return run(start, path, follow_last, nullptr, nullptr);
}

Result<Found> PathWalk::resolve_each(InodeNo start, std::string_view path, bool follow_last,
                                     const std::function<void(const Passed&)>& passed) {
  return run(start, path, follow_last, nullptr, &passed);
}

Result<FoundParent> PathWalk::resolve_parent(InodeNo start, std::string_view path) {
  FoundParent parent;
  PMFS_TRY(run(start, path, true, &parent, nullptr));
  return parent;
}

}  // namespace pmfs::dcache
