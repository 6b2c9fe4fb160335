#include "htree/index.h"

#include <algorithm>

#include "base/assert.h"
#include "base/checksum.h"

namespace pmfs::htree {

namespace {

constexpr u32 kMaxLevel = 8;

u64 root_block(u64 root) { return root / kBlockBytes; }
u32 root_level(u64 root) { return static_cast<u32>(root & 15); }

media::IndexEntry entry_of(u64 key, u64 target) {
  media::IndexEntry entry;
  entry.key.set(key);
  entry.target.set(target);
  return entry;
}

// The last entry whose key is not above `key`; the first one takes everything below it too.
u32 covering(const media::IndexNode& node, u64 key) {
  const media::IndexEntry* const first = node.entries;
  const media::IndexEntry* const end = first + node.count.get();
  const auto* behind =
      std::upper_bound(first, end, key, [](u64 k, const media::IndexEntry& e) { return k < e.key.get(); });
  return behind == first ? 0 : static_cast<u32>(behind - first - 1);
}

}  // namespace

struct Index::Edit {
  BlockHold& hold;
  IndexChange change;
};

u64 Index::node_checksum(const media::IndexNode& node, u64 seed) {
  const u64 head[2] = {u64{node.magic.get()} | u64{node.level.get()} << 32 | u64{node.count.get()} << 48,
                       node.owner.get()};
  return checksum64(node.entries, node.count.get() * sizeof(media::IndexEntry), checksum64(head, sizeof(head), seed));
}

// What a walk must know to stay inside memory. verify() does the rest, once.
Result<const media::IndexNode*> Index::node(u64 block, u32 level) const {
  if (!space_.contains(block)) return Error{Errc::kCorrupt, "an index node lies outside every region", 0};
  const auto* found = reinterpret_cast<const media::IndexNode*>(space_.persist.memory().at(block_off(block)));
  if (found->magic.get() != media::kIndexNodeMagic || found->level.get() != level || found->count.get() == 0 ||
      found->count.get() > media::kIndexNodeEntries)
    return Error{Errc::kCorrupt, "an index node is damaged", to_u64(block_off(block))};
  return found;
}

Result<void> Index::verify_below(u64 block, u32 level, u64 first, u64 end,
                                 const std::function<Result<void>(u64)>& visit_node,
                                 const std::function<Result<void>(const IndexedLeaf&)>& visit_leaf) const {
  PMFS_ASSIGN(const media::IndexNode* const at, node(block, level));
  const u64 off = to_u64(block_off(block));
  if (at->owner.get() != to_u64(owner_) || at->checksum.get() != node_checksum(*at, space_.seed))
    return Error{Errc::kCorrupt, "an index node is damaged", off};
  PMFS_TRY(visit_node(block));
  for (u32 i = 0; i < at->count.get(); ++i) {
    // The first entry takes the whole range from where the node above lets it begin (X2).
    const u64 key = i == 0 ? first : at->entries[i].key.get();
    const u64 next = i + 1 < at->count.get() ? at->entries[i + 1].key.get() : end;
    // Inside its range and ascending, strictly: so no node is met twice, and a walk ends.
    if (at->entries[i].key.get() < first || at->entries[i].key.get() >= next || next > end)
      return Error{Errc::kCorrupt, "an index node's keys are out of order", off};
    const u64 target = at->entries[i].target.get();
    if (level == 0)
      PMFS_TRY(visit_leaf({key, next, target, false}));
    else
      PMFS_TRY(verify_below(target, level - 1, key, next, visit_node, visit_leaf));
  }
  return {};
}

Result<void> Index::verify(u64 root, const std::function<Result<void>(u64)>& visit_node,
                           const std::function<Result<void>(const IndexedLeaf&)>& visit_leaf) const {
  if (root == 0) return {};
  if (root_level(root) > kMaxLevel || (root & (kBlockBytes - 1)) > 15)
    return Error{Errc::kCorrupt, "an index root is of no known kind", 0};
  return verify_below(root_block(root), root_level(root), 0, kNoKey, visit_node, visit_leaf);
}

Result<IndexedLeaf> Index::find(u64 root, u64 key) const {
  PMFS_ASSERT(root != 0);
  if (root_level(root) > kMaxLevel) return Error{Errc::kCorrupt, "an index is too deep", 0};
  IndexedLeaf leaf{0, kNoKey, 0, false};
  u64 block = root_block(root);
  for (u32 level = root_level(root);; --level) {
    PMFS_ASSIGN(const media::IndexNode* const at, node(block, level));
    const u32 i = covering(*at, key);
    if (i != 0) leaf.key = at->entries[i].key.get();
    leaf.next_is_near = i + 1 < at->count.get();
    if (leaf.next_is_near) leaf.next_key = at->entries[i + 1].key.get();
    block = at->entries[i].target.get();
    if (level == 0) break;
  }
  leaf.logical = block;
  return leaf;
}

// A node that this operation made itself goes back at once; one of the old tree is freed when the commit has run.
void Index::drop_node(Edit& edit, u64 block) {
  if (edit.hold.holds(block)) {
    edit.hold.give_back(block);
    edit.change.added_blocks -= 1;
  } else {
    edit.change.freed.push_back({block, 1});
  }
}

Result<void> Index::write_nodes(Edit& edit, u32 level, const std::vector<media::IndexEntry>& entries,
                                std::vector<media::IndexEntry>& out) const {
  const std::size_t nodes = (entries.size() + media::kIndexNodeEntries - 1) / media::kIndexNodeEntries;
  std::size_t done = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    const std::size_t n = (entries.size() - done + nodes - i - 1) / (nodes - i);
    PMFS_ASSIGN(const BlockRun run, edit.hold.take(1));
    media::IndexNode fresh{};
    fresh.magic.set(media::kIndexNodeMagic);
    fresh.level.set(static_cast<u16>(level));
    fresh.count.set(static_cast<u16>(n));
    fresh.owner.set(to_u64(owner_));
    std::copy_n(entries.begin() + static_cast<std::ptrdiff_t>(done), n, fresh.entries);
    fresh.checksum.set(node_checksum(fresh, space_.seed));
    std::byte* at = space_.persist.memory().at(block_off(run.first));
    const std::size_t bytes = offsetof(media::IndexNode, entries) + n * sizeof(media::IndexEntry);
    space_.persist.write(at, &fresh, bytes);
    space_.persist.flush(at, bytes, Order::kFreshIndex);
    edit.change.added_blocks += 1;
    out.push_back(entry_of(entries[done].key.get(), run.first));
    done += n;
  }
  return {};
}

// Replaces one node, whose range begins at `first`: `out` gets the nodes of the same level that take its place, none if
// nothing is left below it.
Result<void> Index::rewrite(Edit& edit, u64 block, u32 level, u64 first, u64 key,
                            const std::vector<media::IndexEntry>& put, std::vector<media::IndexEntry>& out) const {
  PMFS_ASSIGN(const media::IndexNode* const at, node(block, level));
  const u32 replaced = covering(*at, key);
  const u32 count = at->count.get();
  std::vector<media::IndexEntry> entries;
  for (u32 i = 0; i < count; ++i) {
    const u64 begins = i == 0 ? first : at->entries[i].key.get();
    if (i != replaced) {
      entries.push_back(entry_of(begins, at->entries[i].target.get()));
    } else if (level == 0) {
      if (begins != key) return Error{Errc::kCorrupt, "the index does not know a leaf", 0};
      entries.insert(entries.end(), put.begin(), put.end());
    } else {
      PMFS_TRY(rewrite(edit, at->entries[i].target.get(), level - 1, begins, key, put, entries));
    }
  }
  drop_node(edit, block);
  if (entries.empty()) return {};
  entries[0].key.set(first);  // if the first leaf went, the one behind it takes its range over
  return write_nodes(edit, level, entries, out);
}

// Puts levels on top until one node is the root; a root with one child is a level too many.
Result<u64> Index::finish(Edit& edit, u32 level, std::vector<media::IndexEntry> nodes) const {
  while (nodes.size() > 1) {
    std::vector<media::IndexEntry> above;
    PMFS_TRY(write_nodes(edit, ++level, nodes, above));
    nodes.swap(above);
  }
  if (nodes.empty()) return u64{0};
  u64 top = nodes[0].target.get();
  while (level > 0) {
    PMFS_ASSIGN(const media::IndexNode* const at, node(top, level));
    if (at->count.get() != 1) break;
    const u64 child = at->entries[0].target.get();
    drop_node(edit, top);
    top = child;
    --level;
  }
  return top * kBlockBytes | level;
}

Result<IndexChange> Index::replace(u64 root, u64 key, const std::vector<IndexedLeaf>& leaves, BlockHold& hold) const {
  Edit edit{hold, {}};
  std::vector<media::IndexEntry> put;
  for (const IndexedLeaf& leaf : leaves) put.push_back(entry_of(leaf.key, leaf.logical));
  std::vector<media::IndexEntry> nodes;
  PMFS_TRY(rewrite(edit, root_block(root), root_level(root), 0, key, put, nodes));
  PMFS_ASSIGN(edit.change.root, finish(edit, root_level(root), std::move(nodes)));
  return std::move(edit.change);
}

Result<bool> Index::names_several(u64 root) const {
  if (root == 0) return false;
  if (root_level(root) != 0) return true;  // a root with one child is a level too many: finish() leaves none
  PMFS_ASSIGN(const media::IndexNode* const at, node(root_block(root), 0));
  return at->count.get() > 1;
}

Result<IndexChange> Index::build(const std::vector<IndexedLeaf>& leaves, BlockHold& hold) const {
  PMFS_ASSERT(!leaves.empty());
  Edit edit{hold, {}};
  std::vector<media::IndexEntry> entries;
  for (const IndexedLeaf& leaf : leaves) entries.push_back(entry_of(leaf.key, leaf.logical));
  entries[0].key.set(0);
  std::vector<media::IndexEntry> nodes;
  PMFS_TRY(write_nodes(edit, 0, entries, nodes));
  PMFS_ASSIGN(edit.change.root, finish(edit, 0, std::move(nodes)));
  return std::move(edit.change);
}

}  // namespace pmfs::htree
