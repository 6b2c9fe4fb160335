#include "dcache/batch.h"

#include <algorithm>
#include <bit>

namespace pmfs::dcache {

namespace {
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

// A path whose directory's text is known need not be cut.
bool BatchWalk::prepare_known(const BatchItem& item, Pending& pending) {
  const std::size_t slash = item.path.rfind('/');
  if (slash == 0 || slash == std::string_view::npos || item.path[0] != '/') return false;
  const std::string_view name = item.path.substr(slash + 1);
  if (name.empty() || name.size() > kNameMax || name == "." || name == "..") return false;
  PathScan directory(item.path.substr(0, slash), cache_->keys());
  const u64 prefix = directory.uncut_hash();
  const Memo& memo = memo_[prefix & memo_mask_];
  if (memo.dir == nullptr || memo.prefix != prefix || memo.text != directory.uncut()) return false;
  counts_->count(Count::kShared, memo.components);
  pending.dir = memo.dir;
  pending.trailing_slash = false;
  const char* const begin = item.path.data();
  pending.last =
      component_of(name.data(), static_cast<u32>(name.size()), begin, begin + item.path.size(), cache_->keys());
  cache_->prefetch(pending.dir, pending.last);
  return true;
}

void BatchWalk::prepare(InodeNo start, BatchItem& item, Pending& pending) {
  pending.item = &item;
  pending.dir = nullptr;
  if (prepare_known(item, pending)) return;
  if (item.path[0] != '/' && start != kRootIno) return;
  PathScan scan(item.path, cache_->keys());
  const u32 count = scan.next();
  if (count == 0 || !scan.canonical() || !scan.last()) return;
  pending.last = scan[count - 1];
  pending.trailing_slash = scan.trailing_slash();
  if (count == 1) {
    pending.dir = cache_->root();
  } else {
    const u64 prefix = scan.prefix(count - 2);
    const std::string_view text = scan.text_to(count - 2);
    Memo& memo = memo_[prefix & memo_mask_];
    if (memo.dir != nullptr && memo.prefix == prefix && memo.text == text) {
      pending.dir = memo.dir;
      counts_->count(Count::kShared, count - 1);
    } else {
      PathWalk walk(source_, cache_, resolver_, counts_, who_);
      // With a slash, so that a link at its end is followed and nothing but a directory will do.
      const std::string_view with_slash(item.path.data(),
                                        static_cast<std::size_t>(scan.end_of(count - 2) + 1 - item.path.data()));
      const auto found = walk.resolve(start, with_slash, true);
      if (!found.ok()) return;  // walked alone, it gets its own error
      Dir* const dir = cache_->find_dir(found->ino);
      if (dir == nullptr || dir->generation != found->generation) return;
      memo = {prefix, text, dir, count - 1};
      pending.dir = dir;
    }
  }
  cache_->prefetch(pending.dir, pending.last);
}

void BatchWalk::finish(InodeNo start, Pending& pending) {
  BatchItem& item = *pending.item;
  if (pending.dir != nullptr) {
    PathWalk walk(source_, cache_, resolver_, counts_, who_);
    Dentry* dentry = nullptr;
    const auto quick = walk.quick_step(*pending.dir, pending.last, dentry);
    const bool plain = quick == PathWalk::Quick::kHit && !dentry->negative() && !dentry->is_symlink() &&
                       (!pending.trailing_slash || dentry->is_directory());
    if (plain) {
      counts_->sample(dentry->slot, dentry->serial);
      item.error = Errc{};
      item.found = {InodeNo{dentry->ino}, dentry->generation, u32{dentry->type} << 12};
      return;
    }
  }
  resolve_alone(start, item);
}

void BatchWalk::resolve(InodeNo start, std::span<BatchItem> items) {
  if (cache_ == nullptr || items.size() <= kFew) {
    const RcuReadGuard reading;
    for (BatchItem& item : items) resolve_alone(start, item);
    return;
  }
  memo_mask_ = std::min(kMemo, static_cast<u32>(std::bit_ceil(std::min<std::size_t>(items.size(), kMemo)) * 2)) - 1;
  memo_ = std::make_unique_for_overwrite<Memo[]>(memo_mask_ + 1);
  for (std::size_t at = 0; at < items.size(); at += kSection) {
    const RcuReadGuard reading;
    std::fill_n(memo_.get(), memo_mask_ + 1, Memo{});  // directories are known as long as the section lasts
    const std::size_t end = std::min(at + kSection, items.size());
    for (std::size_t first = at; first < end; first += kGroup) {
      Pending pending[kGroup];
      const std::size_t count = std::min<std::size_t>(kGroup, end - first);
      for (std::size_t i = 0; i < count; ++i) prepare(start, items[first + i], pending[i]);
      for (std::size_t i = 0; i < count; ++i) finish(start, pending[i]);
    }
    counts_->count(Count::kLookups, end - at);
  }
}

}  // namespace pmfs::dcache
