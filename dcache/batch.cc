#include "dcache/batch.h"

#include <algorithm>
#include <bit>

namespace pmfs::dcache {

namespace {
constexpr u32 kAhead = 2;               // nodes of a bucket that are asked for: it has one on average
constexpr std::size_t kSection = 1024;  // paths in one read section: grace periods wait no longer than that
}

void BatchWalk::resolve_alone(InodeNo start, BatchItem& item) {
  auto found = PathWalk(source_, cache_, resolver_, counts_, who_).resolve(start, item.path, item.follow);
  if (found.ok()) {
    item.error = Errc{};
    item.found = *found;
  } else {
    item.error = found.error().code;
    item.what = found.error().what;
  }
}

Dir* BatchWalk::remembered(u64 prefix, std::string_view text, bool relative) {
  const Memo& memo = memo_[prefix & memo_mask_];
  if (memo.dir == nullptr || memo.prefix != prefix || memo.relative != relative || memo.text != text) return nullptr;
  counts_->count(Count::kShared, memo.components);
  return memo.dir;
}

// A path whose directory's text is known need not be cut.
bool BatchWalk::prepare_known(const BatchItem& item, Pending& pending) {
  const std::size_t slash = item.path.rfind('/');
  if (slash == 0 || slash == std::string_view::npos || item.path[0] != '/') return false;
  const std::string_view name = item.path.substr(slash + 1);
  if (name.empty() || name.size() > kNameMax || name == "." || name == "..") return false;
  PathScan directory(item.path.substr(0, slash), cache_->keys());
  pending.dir = remembered(directory.uncut_hash(), directory.uncut(), false);
  if (pending.dir == nullptr) return false;
  const char* const begin = item.path.data();
  pending.next =
      component_of(name.data(), static_cast<u32>(name.size()), begin, begin + item.path.size(), cache_->keys());
  return true;
}

void BatchWalk::prepare(BatchItem& item, Pending& pending, std::optional<PathScan>& scanned) {
  pending.item = &item;
  pending.dir = nullptr;
  pending.left = 0;
  pending.trailing_slash = false;
  const bool absolute = item.path[0] == '/';
  if (absolute && who_.beneath) return;
  if (prepare_known(item, pending)) return;
  PathScan& scan = scanned.emplace(item.path, cache_->keys());
  const u32 count = scan.next();
  if (count == 0 || !scan.canonical() || !scan.last()) return;
  Dir* dir = nullptr;
  u32 at = count - 1;
  for (; at > 0 && dir == nullptr; --at) dir = remembered(scan.prefix(at - 1), scan.text_to(at - 1), relative(item));
  if (dir != nullptr) {
    at += 1;
  } else if (dir = absolute ? cache_->root() : start_; dir == nullptr) {
    return;
  }
  pending.dir = dir;
  pending.next = scan[at];
  pending.left = count - 1 - at;
  pending.trailing_slash = scan.trailing_slash();
}

// Goes into the directory that `next` leads to. REQUIRES: something is left behind it.
void BatchWalk::step(Pending& pending, const PathScan& scan) {
  Dentry* dentry = nullptr;
  PathWalk walk(source_, cache_, resolver_, counts_, who_);
  const auto quick = walk.quick_step(*pending.dir, pending.next, dentry);
  pending.dir = quick == PathWalk::Quick::kHit ? dentry->dir : nullptr;
  if (pending.dir == nullptr) return;
  counts_->count(Count::kSteps);
  const u32 passed = scan.count() - pending.left;
  const bool apart = relative(*pending.item);
  const u64 prefix = scan.prefix(passed - 1);
  memo_[prefix & memo_mask_] = {prefix, scan.text_to(passed - 1), pending.dir, passed, apart};
  pending.next = scan[passed];
  pending.left -= 1;
  if (pending.left == 0 && !apart) resolver_->arrived(passed, 0, nullptr, *dentry, *counts_);
}

void BatchWalk::finish(InodeNo start, Pending& pending) {
  BatchItem& item = *pending.item;
  if (pending.dir != nullptr) {
    PathWalk walk(source_, cache_, resolver_, counts_, who_);
    Dentry* dentry = nullptr;
    const auto quick = walk.quick_step(*pending.dir, pending.next, dentry);
    const bool plain = quick == PathWalk::Quick::kHit && !dentry->negative() && !dentry->is_symlink() &&
                       (!pending.trailing_slash || dentry->is_directory());
    if (plain) {
      counts_->count(Count::kSteps);
      counts_->sample(dentry->slot, dentry->serial);
      item.error = Errc{};
      item.found = {InodeNo{dentry->ino}, dentry->generation, u32{dentry->type} << 12};
      return;
    }
  }
  resolve_alone(start, item);
}

void BatchWalk::resolve_group(InodeNo start, std::span<BatchItem> items) {
  Pending pending[kGroup];
  const std::span<Pending> group(pending, items.size());
  bool walking = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    prepare(items[i], group[i], scans_[i]);
    walking = walking || group[i].left != 0;
  }
  const auto ask_for = [&](auto&& wanted) {
    for (Pending& one : group)
      if (wanted(one)) cache_->start_ahead(one.ahead, one.dir, one.next);
    for (u32 nodes = 0; nodes < kAhead; ++nodes)
      for (Pending& one : group)
        if (wanted(one)) one.ahead.step(sizeof(Dentry));
  };
  const auto walks = [](const Pending& one) { return one.dir != nullptr && one.left != 0; };
  while (walking) {
    ask_for(walks);
    walking = false;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (walks(group[i])) step(group[i], *scans_[i]);
      walking = walking || walks(group[i]);
    }
  }
  ask_for([](const Pending& one) { return one.dir != nullptr; });
  for (Pending& one : group) finish(start, one);
}

void BatchWalk::resolve(InodeNo start, std::span<BatchItem> items) {
  if (cache_ == nullptr || items.size() <= kFew) {
    const RcuReadGuard reading;
    for (BatchItem& item : items) resolve_alone(start, item);
    return;
  }
  std::optional<PathScan> scans[kGroup];
  scans_ = scans;
  memo_mask_ = std::min(kMemo, static_cast<u32>(std::bit_ceil(std::min<std::size_t>(items.size(), kMemo)) * 4)) - 1;
  memo_ = std::make_unique_for_overwrite<Memo[]>(memo_mask_ + 1);
  for (std::size_t at = 0; at < items.size(); at += kSection) {
    const RcuReadGuard reading;
    std::fill_n(memo_.get(), memo_mask_ + 1, Memo{});  // directories are known as long as the section lasts
    start_ = start == kRootIno ? cache_->root() : cache_->find_dir(start);
    const std::size_t end = std::min(at + kSection, items.size());
    for (std::size_t first = at, size = 1; first < end; first += size) {
      size = std::min({2 * size, std::size_t{kGroup}, end - first});
      resolve_group(start, items.subspan(first, size));
    }
    counts_->count(Count::kLookups, end - at);
  }
}

}  // namespace pmfs::dcache
