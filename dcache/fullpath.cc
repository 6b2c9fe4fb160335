#include "dcache/fullpath.h"

#include <algorithm>
#include <new>

namespace pmfs::dcache {

bool FullpathResolver::SamePath::equal(const RcuNode* node, const Key& key) {
  const auto* const entry = reinterpret_cast<const PathEntry*>(node);
  if (entry->hash != key.hash || entry->length != key.text.size()) return false;
  const auto length = static_cast<u32>(key.text.size());
  u32 at = std::min(length, u32{PathEntry::kText});
  if (equal_bytes(entry->text, key.text.data(), at) != at) return false;
  for (Slot slot = entry->more; at < length;) {
    const More* const more = key.arena->as<More>(slot);
    const u32 bytes = std::min(length - at, u32{kMoreBytes});
    if (equal_bytes(more->text, key.text.data() + at, bytes) != bytes) return false;
    at += bytes;
    slot = more->next;
  }
  return true;
}

std::unique_ptr<FullpathResolver> FullpathResolver::make(DentryCache& cache, u64 most) {
  auto paths = RcuTable::make(most);
  if (paths == nullptr) return nullptr;
  return std::unique_ptr<FullpathResolver>(new (std::nothrow) FullpathResolver(cache, std::move(paths)));
}

FullpathResolver::~FullpathResolver() = default;  // entries lie in the arena

// --- Look-ups --------------------------------------------------------------------------------------------------------

Prefix FullpathResolver::whole(PathScan& scan, const Searcher& who, ThreadBlock& counts) {
  const Prefix prefix = find(scan.uncut_hash(), scan.uncut(), who, counts);
  if (prefix.components != 0) counts.count(Count::kWholeHits);
  return prefix;
}

Prefix FullpathResolver::begin(const PathScan& scan, u32 most, const Searcher& who, ThreadBlock& counts) {
  if (most == 0 || scan.asked(most)) return {};
  const Prefix prefix = find(scan.prefix(most - 1), scan.text_to(most - 1), who, counts);
  if (prefix.components != 0 && prefix.components == scan.count()) counts.count(Count::kWholeHits);
  return prefix;
}

Prefix FullpathResolver::find(u64 hash, std::string_view text, const Searcher& who, ThreadBlock& counts) const {
  const Key key{hash, &cache_.arena(), text};
  RcuNode* const node = paths_->find<SamePath>(hash, key);
  if (node == nullptr) return {};
  const auto* const entry = reinterpret_cast<const PathEntry*>(node);
  Prefix prefix{entry->depth, entry->dentry, false};
  if (entry->depth > entry->open_to && !who.may_all) {
    // What was kept does not decide where the directories ask different things.
    if (entry->rules == 0) return {};
    prefix.denied = !may_search(entry->mode, entry->uid, entry->gid, who);
  }
  if (entry->alive.load(std::memory_order_acquire) == 0) return {};  // F3: this is the instant
  counts.count(Count::kSkipped, entry->depth);
  return prefix;
}

void FullpathResolver::arrived(u32 count, u32 skipped, const Pivot*, Dentry& target, ThreadBlock& counts) {
  counts.sample(target.slot, target.serial);
  if (skipped == count) return;
  std::lock_guard lock(cache_.mutex());
  if (target.alive != 0 && target.links.entry == 0) insert(target);
}

void FullpathResolver::insert(Dentry& target) {
  if (!chain_.build(cache_, target)) return;
  // One rule at most besides directories that are open to all: those ask nothing.
  const SearchRules& rules = chain_.rules;
  const SearchRules::Rule* only = nullptr;
  u32 strict = 0;
  for (u32 i = 0; i < rules.count; ++i)
    if ((rules.rules[i].mode & 0111) != 0111) strict += 1, only = &rules.rules[i];
  const std::size_t beyond = chain_.length <= PathEntry::kText ? 0 : chain_.length - PathEntry::kText;
  const u64 slots = 1 + (beyond + kMoreBytes - 1) / kMoreBytes;
  const Slot slot = cache_.take_slot(SlotKind::kEntry);
  if (slot == 0) return;
  if (target.alive == 0 || cache_.arena().free() < slots) {  // making room may have taken the target itself
    cache_.arena().give_back(slot);
    return;
  }
  auto* const entry = new (cache_.arena().at(slot)) PathEntry{};
  PathScan scan({chain_.path, chain_.length}, cache_.keys());
  entry->hash = scan.prefix(scan.next() - 1);
  entry->dentry = &target;
  entry->length = chain_.length;
  entry->depth = chain_.depth;
  entry->alive.store(1, std::memory_order_relaxed);
  entry->open_to = strict == 0 ? chain_.depth : rules.open_to;
  entry->slot = slot;
  if (strict == 1) {
    entry->rules = 1;
    entry->mode = only->mode;
    entry->uid = only->uid;
    entry->gid = only->gid;
  }
  std::memcpy(entry->text, chain_.path, std::min<std::size_t>(chain_.length, PathEntry::kText));
  Slot* link = &entry->more;
  for (std::size_t at = PathEntry::kText; at < chain_.length; at += kMoreBytes) {
    *link = cache_.arena().take(SlotKind::kMore);
    auto* const piece = new (cache_.arena().at(*link)) More{};
    std::memcpy(piece->text, chain_.path + at, std::min<std::size_t>(chain_.length - at, kMoreBytes));
    link = &piece->next;
  }
  target.links.entry = slot;
  const Key key{entry->hash, &cache_.arena(), {chain_.path, chain_.length}};
  paths_->add<SamePath>(entry->hash, key, &entry->node);
  statistics_.entries += 1;
  // Its table grows when what is known is looked up, long after the tables of names have grown.
  if (should_maintain()) cache_.ask_for_maintenance();
}

// --- Changes ---------------------------------------------------------------------------------------------------------

void FullpathResolver::added(Dentry& dentry) {
  Dir& parent = *dentry.parent;
  dentry.links.previous = 0;
  dentry.links.next = parent.first_child;
  if (parent.first_child != 0) cache_.arena().as<Dentry>(parent.first_child)->links.previous = dentry.slot;
  parent.first_child = dentry.slot;
}

void FullpathResolver::leaves(Dentry& dentry) {
  drop_entry(dentry);
  if (dentry.dir != nullptr) drop_below(*dentry.dir);
  const DentryLinks& links = dentry.links;
  if (links.next != 0) cache_.arena().as<Dentry>(links.next)->links.previous = links.previous;
  if (links.previous != 0) {
    cache_.arena().as<Dentry>(links.previous)->links.next = links.next;
  } else {
    dentry.parent->first_child = links.next;
  }
}

void FullpathResolver::changes_below(Dentry* place) {
  Dir* const top = place == nullptr ? cache_.root() : place->dir;
  if (top != nullptr) drop_below(*top);
}

// Depth first, by the links alone: a change must not fail for lack of memory.
void FullpathResolver::drop_below(Dir& top) {
  if (top.first_child == 0) return;
  statistics_.invalidations += 1;
  const Arena& arena = cache_.arena();
  for (Dentry* at = arena.as<Dentry>(top.first_child); at != nullptr;) {
    statistics_.visited += 1;
    drop_entry(*at);
    if (at->dir != nullptr && at->dir->first_child != 0) {
      at = arena.as<Dentry>(at->dir->first_child);
      continue;
    }
    while (at->links.next == 0 && at->parent != &top) at = at->parent->place.load(std::memory_order_relaxed);
    at = at->links.next == 0 ? nullptr : arena.as<Dentry>(at->links.next);
  }
}

void FullpathResolver::drop_entry(Dentry& dentry) {
  if (dentry.links.entry == 0) return;
  auto* const entry = cache_.arena().as<PathEntry>(dentry.links.entry);
  dentry.links.entry = 0;
  entry->alive.store(0, std::memory_order_release);
  paths_->remove(&entry->node);
  statistics_.entries -= 1;
  cache_.arena().info(entry->slot).leaving = 1;
  cache_.free_later(entry->head, run_free_entry);
}

void FullpathResolver::run_free_entry(RcuHead* head, void* context) {
  auto& cache = *static_cast<DentryCache*>(context);
  auto* const entry = reinterpret_cast<PathEntry*>(reinterpret_cast<std::byte*>(head) - offsetof(PathEntry, head));
  std::lock_guard lock(cache.mutex());
  cache.free_now(entry->slot, entry->more);
}

FullpathStatistics FullpathResolver::statistics() const {
  std::lock_guard lock(cache_.mutex());
  return statistics_;
}

}  // namespace pmfs::dcache
