#include "fs/extent_map.h"

#include <algorithm>

#include "base/assert.h"
#include "base/checksum.h"

namespace pmfs {

namespace {

constexpr u64 kBlockMask = (u64{1} << 40) - 1;
constexpr u64 kUnwritten = u64{1} << 63;
constexpr u64 kDirectMax = (u64{1} << 20) - 1;
constexpr u32 kMaxLevel = 8;

u64 tag(u64 root) { return root & media::kMapTagMask; }
u32 root_level(u64 root) { return static_cast<u32>(root >> 4 & 15); }
u64 root_block(u64 root) { return root / kBlockBytes; }
u64 tree_root(u64 block, u32 level) { return block * kBlockBytes | u64{level} << 4 | media::kMapTree; }

u64 direct_root(const Extent& e) { return media::kMapDirect | u64{e.unwritten} << 2 | e.count << 3 | e.block << 23; }

bool fits_direct(const Extent& e) { return e.logical == 0 && e.count <= kDirectMax; }

media::MapEntry encode(const Extent& e) {
  media::MapEntry entry;
  entry.place.set(e.logical << 24 | e.count);
  entry.target.set(e.block | (e.unwritten ? kUnwritten : 0));
  return entry;
}

u64 entry_logical(const media::MapEntry& entry) { return entry.place.get() >> 24; }

// Adds an extent behind the others, as one with the last if they are neighbours everywhere.
void append_extent(std::vector<Extent>& list, const Extent& e) {
  if (e.count == 0) return;
  if (!list.empty()) {
    Extent& last = list.back();
    if (last.end() == e.logical && last.block + last.count == e.block && last.unwritten == e.unwritten &&
        last.count + e.count <= kMaxExtentBlocks) {
      last.count += e.count;
      return;
    }
  }
  list.push_back(e);
}

Extent part(const Extent& e, u64 from, u64 to) {
  from = std::max(from, e.logical);
  to = std::min(to, e.end());
  if (from >= to) return {};
  return {from, to - from, e.block + (from - e.logical), e.unwritten};
}

// The extents of `list` outside [from, to), with `put` in their place; what was inside goes to `freed`.
std::vector<Extent> splice(const std::vector<Extent>& list, u64 from, u64 to, const std::vector<Extent>& put,
                           std::vector<BlockRun>& freed) {
  std::vector<Extent> result;
  for (const Extent& e : list) append_extent(result, part(e, 0, from));
  for (const Extent& e : put) append_extent(result, e);
  for (const Extent& e : list) append_extent(result, part(e, to, kMapEnd));
  for (const Extent& e : list) {
    const Extent gone = part(e, from, to);
    if (gone.count != 0) freed.push_back({gone.block, gone.count});
  }
  return result;
}

}  // namespace

u64 MapChange::freed_blocks() const {
  u64 sum = 0;
  for (const BlockRun& run : freed) sum += run.count;
  return sum;
}

u64 ExtentMap::node_checksum(const media::MapNode& node, u64 seed) {
  const u64 head = checksum64(&node, 8, seed);
  return checksum64(node.entries, node.count.get() * sizeof(media::MapEntry), head);
}

Result<const media::MapNode*> ExtentMap::node(u64 block, u32 level, Sums sums) const {
  if (!regions_.contains_blocks({block, 1})) return Error{Errc::kCorrupt, "a map node lies outside every region", 0};
  const u64 off = to_u64(block_off(block));
  const auto* found = reinterpret_cast<const media::MapNode*>(persist_.memory().at(PoolOff{off}));
  if (found->magic.get() != media::kMapNodeMagic || found->level.get() != level || found->count.get() == 0 ||
      found->count.get() > media::kMapNodeEntries ||
      (sums == Sums::kCompare && found->checksum.get() != node_checksum(*found, seed_)))
    return Error{Errc::kCorrupt, "a map node is damaged", off};
  return found;
}

Result<Extent> ExtentMap::decode(const media::MapEntry& entry, u64 node_off) const {
  Extent e;
  e.logical = entry_logical(entry);
  e.count = entry.place.get() & kMaxExtentBlocks;
  e.block = entry.target.get() & kBlockMask;
  e.unwritten = (entry.target.get() & kUnwritten) != 0;
  if (e.count == 0 || e.end() > kMapEnd || !regions_.contains_blocks({e.block, e.count}))
    return Error{Errc::kCorrupt, "an extent leaves every region", node_off};
  return e;
}

Result<Extent> ExtentMap::decode_direct(u64 root) const {
  Extent e{0, root >> 3 & kDirectMax, root >> 23 & kBlockMask, (root & 4) != 0};
  if (e.count == 0 || !regions_.contains_blocks({e.block, e.count}))
    return Error{Errc::kCorrupt, "an extent leaves every region", 0};
  return e;
}

bool ExtentMap::one_block(u64 root) { return tag(root) == media::kMapDirect && (root >> 3 & kDirectMax) == 1; }

Result<u64> ExtentMap::end(u64 root) const {
  if (root == 0) return u64{0};
  if (tag(root) == media::kMapDirect) {
    PMFS_ASSIGN(const Extent e, decode_direct(root));
    return e.end();
  }
  if (tag(root) != media::kMapTree || root_level(root) > kMaxLevel)
    return Error{Errc::kCorrupt, "a map root is of no known kind", 0};
  u64 block = root_block(root);
  for (u32 level = root_level(root);; --level) {
    PMFS_ASSIGN(const media::MapNode* const at, node(block, level));
    const media::MapEntry& last = at->entries[at->count.get() - 1];
    if (level == 0) {
      PMFS_ASSIGN(const Extent e, decode(last, to_u64(block_off(block))));
      return e.end();
    }
    block = last.target.get() & kBlockMask;
  }
}

Result<Extent> ExtentMap::find(u64 root, u64 logical, Sums sums) const {
  PMFS_ASSERT(logical < kMapEnd);
  u64 next = kMapEnd;  // where the next extent starts, if `logical` is in a hole
  if (tag(root) == media::kMapDirect) {
    PMFS_ASSIGN(const Extent e, decode_direct(root));
    if (logical < e.count) return part(e, logical, e.count);
  } else if (tag(root) == media::kMapTree) {
    if (root_level(root) > kMaxLevel) return Error{Errc::kCorrupt, "a map is too deep", 0};
    u64 block = root_block(root);
    for (u32 level = root_level(root);; --level) {
      PMFS_ASSIGN(const media::MapNode* const at, node(block, level, sums));
      const media::MapEntry* const first = at->entries;
      const media::MapEntry* const end = first + at->count.get();
      const media::MapEntry* behind =
          std::upper_bound(first, end, logical, [](u64 l, const media::MapEntry& e) { return l < entry_logical(e); });
      if (behind != end) next = std::min(next, entry_logical(*behind));
      if (behind == first) break;
      if (level > 0) {
        block = behind[-1].target.get() & kBlockMask;
        continue;
      }
      PMFS_ASSIGN(const Extent e, decode(behind[-1], to_u64(block_off(block))));
      if (logical < e.end()) return part(e, logical, e.end());
      break;
    }
  } else if (root != 0) {
    return Error{Errc::kCorrupt, "a map root is of no known kind", 0};
  }
  return Extent{logical, std::max(next, logical + 1) - logical, 0, false};
}

// The extents of a leaf, checked: ascending, and inside the leaf's range.
Result<std::vector<Extent>> ExtentMap::extents(const Below& at) const {
  PMFS_ASSIGN(const media::MapNode* const leaf, node(at.block, at.level));
  const u64 off = to_u64(block_off(at.block));
  std::vector<Extent> list;
  list.reserve(leaf->count.get());
  u64 next = at.first;
  for (u32 i = 0; i < leaf->count.get(); ++i) {
    PMFS_ASSIGN(const Extent e, decode(leaf->entries[i], off));
    if (e.logical < next || e.end() > at.end) return Error{Errc::kCorrupt, "a map's extents are out of order", off};
    next = e.end();
    list.push_back(e);
  }
  return list;
}

// The children of a node, checked in the same way.
Result<std::vector<ExtentMap::Below>> ExtentMap::children(const Below& at) const {
  PMFS_ASSIGN(const media::MapNode* const parent, node(at.block, at.level));
  const u64 off = to_u64(block_off(at.block));
  const u32 count = parent->count.get();
  std::vector<Below> list;
  list.reserve(count);
  for (u32 i = 0; i < count; ++i) {
    const u64 first = entry_logical(parent->entries[i]);
    const u64 end = i + 1 < count ? entry_logical(parent->entries[i + 1]) : at.end;
    if (first < at.first || first >= end || end > at.end)
      return Error{Errc::kCorrupt, "a map's nodes are out of order", off};
    list.push_back({parent->entries[i].target.get() & kBlockMask, at.level - 1, first, end});
  }
  return list;
}

Result<void> ExtentMap::each_below(const Below& at, u64 from, u64 to,
                                   const std::function<Result<void>(const Extent&)>& visit) const {
  if (at.level > 0) {
    PMFS_ASSIGN(const std::vector<Below> below, children(at));
    for (const Below& child : below)
      if (child.first < to && child.end > from) PMFS_TRY(each_below(child, from, to, visit));
    return {};
  }
  PMFS_ASSIGN(const std::vector<Extent> list, extents(at));
  for (const Extent& e : list) {
    const Extent clipped = part(e, from, to);
    if (clipped.count != 0) PMFS_TRY(visit(clipped));
  }
  return {};
}

Result<void> ExtentMap::each(u64 root, u64 from, u64 to,
                             const std::function<Result<void>(const Extent&)>& visit) const {
  if (root == 0) return {};
  if (tag(root) == media::kMapDirect) {
    PMFS_ASSIGN(const Extent e, decode_direct(root));
    const Extent clipped = part(e, from, to);
    return clipped.count == 0 ? Result<void>() : visit(clipped);
  }
  if (tag(root) != media::kMapTree || root_level(root) > kMaxLevel)
    return Error{Errc::kCorrupt, "a map root is of no known kind", 0};
  return each_below({root_block(root), root_level(root), 0, kMapEnd}, from, to, visit);
}

Result<void> ExtentMap::each_node_below(const Below& at, const std::function<Result<void>(u64, u32)>& visit) const {
  PMFS_TRY(node(at.block, at.level));
  PMFS_TRY(visit(at.block, at.level));
  if (at.level == 0) return {};
  PMFS_ASSIGN(const std::vector<Below> below, children(at));
  for (const Below& child : below) PMFS_TRY(each_node_below(child, visit));
  return {};
}

Result<void> ExtentMap::each_node(u64 root, const std::function<Result<void>(u64, u32)>& visit) const {
  if (tag(root) != media::kMapTree) return {};
  if (root_level(root) > kMaxLevel) return Error{Errc::kCorrupt, "a map is too deep", 0};
  return each_node_below({root_block(root), root_level(root), 0, kMapEnd}, visit);
}

std::vector<BlockRun> ExtentMap::all_blocks(u64 root) const {
  std::vector<BlockRun> runs;
  (void)each(root, 0, kMapEnd, [&](const Extent& e) -> Result<void> {
    runs.push_back({e.block, e.count});
    return {};
  });
  (void)each_node(root, [&](u64 block, u32) -> Result<void> {
    runs.push_back({block, 1});
    return {};
  });
  return runs;
}

// --- Changing
// ----------------------------------------------------------------------------------------------------------

struct ExtentMap::Edit {
  BlockHold& hold;
  MapChange change;
  bool append = false;  // the new extents lie behind all others: fill nodes to the top
};

// A node that this operation made itself goes back at once; one of the old tree is freed when the commit has run.
void ExtentMap::drop_node(Edit& edit, u64 block) {
  if (edit.hold.holds(block)) {
    edit.change.added_blocks -= 1;
    edit.hold.give_back(block);
  } else {
    edit.change.freed.push_back({block, 1});
  }
}

Result<void> ExtentMap::write_nodes(Edit& edit, u32 level, const std::vector<media::MapEntry>& entries, bool append,
                                    std::vector<media::MapEntry>& out) const {
  const std::size_t nodes = (entries.size() + media::kMapNodeEntries - 1) / media::kMapNodeEntries;
  std::size_t done = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    const std::size_t left = entries.size() - done;
    const std::size_t n =
        append ? std::min<std::size_t>(left, media::kMapNodeEntries) : (left + nodes - i - 1) / (nodes - i);
    PMFS_ASSIGN(const BlockRun run, edit.hold.take(1));
    media::MapNode fresh{};
    fresh.magic.set(media::kMapNodeMagic);
    fresh.level.set(static_cast<u16>(level));
    fresh.count.set(static_cast<u16>(n));
    std::copy_n(entries.begin() + static_cast<std::ptrdiff_t>(done), n, fresh.entries);
    fresh.checksum.set(node_checksum(fresh, seed_));
    std::byte* at = persist_.memory().at(block_off(run.first));
    const std::size_t bytes = offsetof(media::MapNode, entries) + n * sizeof(media::MapEntry);
    persist_.write(at, &fresh, bytes);
    persist_.flush(at, bytes, Order::kFreshNode);
    edit.change.added_blocks += 1;
    media::MapEntry child;
    child.place.set(entry_logical(entries[done]) << 24);
    child.target.set(run.first);
    out.push_back(child);
    done += n;
  }
  return {};
}

// Replaces one node: `out` gets the nodes of the same level that take its place, none if nothing is left below it.
Result<void> ExtentMap::rewrite(Edit& edit, const Below& at, u64 from, u64 to, const std::vector<Extent>& put,
                                std::vector<media::MapEntry>& out) const {
  std::vector<media::MapEntry> entries;
  if (at.level == 0) {
    PMFS_ASSIGN(const std::vector<Extent> list, extents(at));
    for (const Extent& e : splice(list, from, to, put, edit.change.freed)) entries.push_back(encode(e));
  } else {
    PMFS_ASSIGN(const std::vector<Below> below, children(at));
    std::size_t first = 0;  // the child that `from` falls into
    while (first + 1 < below.size() && below[first + 1].first <= from) ++first;
    std::size_t last = first;  // the last child that starts before `to`
    while (last + 1 < below.size() && below[last + 1].first < to) ++last;
    for (std::size_t i = 0; i < below.size(); ++i) {
      const Below& child = below[i];
      if (i < first || i > last) {
        media::MapEntry same;
        same.place.set(child.first << 24);
        same.target.set(child.block);
        entries.push_back(same);
      } else if (i == first || i == last) {
        static const std::vector<Extent> nothing;
        PMFS_TRY(rewrite(edit, child, from, to, i == first ? put : nothing, entries));
      } else {  // wholly inside the range
        PMFS_TRY(each_below(child, 0, kMapEnd, [&](const Extent& e) -> Result<void> {
          edit.change.freed.push_back({e.block, e.count});
          return {};
        }));
        PMFS_TRY(each_node_below(child, [&](u64 gone, u32) -> Result<void> {
          drop_node(edit, gone);
          return {};
        }));
      }
    }
  }
  drop_node(edit, at.block);  // `entries` is a copy; the block may be taken again at once
  return write_nodes(edit, at.level, entries, edit.append, out);
}

Result<MapChange> ExtentMap::replace(u64 root, u64 from, u64 to, const std::vector<Extent>& put,
                                     BlockHold& hold) const {
  PMFS_ASSERT(from < to && to <= kMapEnd);
  Edit edit{hold, {}, false};
  for (const Extent& e : put) edit.change.added_blocks += e.count;

  std::vector<media::MapEntry> nodes;
  u32 level = 0;
  if (tag(root) == media::kMapTree) {
    level = root_level(root);
    if (level > kMaxLevel) return Error{Errc::kCorrupt, "a map is too deep", 0};
    PMFS_ASSIGN(const Extent behind, find(root, std::min(to, kMapEnd - 1)));
    edit.append = !put.empty() && behind.hole() && behind.end() == kMapEnd;
    PMFS_TRY(rewrite(edit, {root_block(root), level, 0, kMapEnd}, from, to, put, nodes));
  } else {
    std::vector<Extent> list;
    if (tag(root) == media::kMapDirect) {
      PMFS_ASSIGN(const Extent e, decode_direct(root));
      list.push_back(e);
    } else if (root != 0) {
      return Error{Errc::kCorrupt, "a map root is of no known kind", 0};
    }
    list = splice(list, from, to, put, edit.change.freed);
    if (list.empty()) return std::move(edit.change);
    if (list.size() == 1 && fits_direct(list[0])) {
      edit.change.root = direct_root(list[0]);
      return std::move(edit.change);
    }
    std::vector<media::MapEntry> entries;
    for (const Extent& e : list) entries.push_back(encode(e));
    PMFS_TRY(write_nodes(edit, 0, entries, true, nodes));
  }

  while (nodes.size() > 1) {
    std::vector<media::MapEntry> above;
    PMFS_TRY(write_nodes(edit, ++level, nodes, edit.append, above));
    nodes.swap(above);
  }
  if (nodes.empty()) return std::move(edit.change);
  // A root with one child, or with one extent that fits the word, is a level too many.
  u64 top = nodes[0].target.get();
  for (;;) {
    PMFS_ASSIGN(const media::MapNode* const at, node(top, level));
    if (at->count.get() != 1) break;
    const media::MapEntry only = at->entries[0];
    if (level == 0) {
      PMFS_ASSIGN(const Extent e, decode(only, to_u64(block_off(top))));
      if (!fits_direct(e)) break;
      drop_node(edit, top);
      edit.change.root = direct_root(e);
      return std::move(edit.change);
    }
    drop_node(edit, top);
    top = only.target.get() & kBlockMask;
    level -= 1;
  }
  edit.change.root = tree_root(top, level);
  return std::move(edit.change);
}

}  // namespace pmfs
