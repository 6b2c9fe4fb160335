#include "dcache/chain.h"

#include <algorithm>

namespace pmfs::dcache {

bool SearchRules::add(u32 depth, u32 mode, u32 uid, u32 gid) {
  if (open_to == depth && (mode & 0111) == 0111) open_to = depth + 1;
  for (u32 i = 0; i < count; ++i)
    if (rules[i].mode == mode && rules[i].uid == uid && rules[i].gid == gid) return true;
  if (count == kMost) return false;
  rules[count++] = {mode, uid, gid, depth};
  return true;
}

void SearchRules::become(const SearchRules& other) {
  const auto put = [](u32& word, u32 value) { __atomic_store_n(&word, value, __ATOMIC_RELEASE); };
  for (u32 i = 0; i < other.count; ++i) {
    put(rules[i].mode, other.rules[i].mode);
    put(rules[i].uid, other.rules[i].uid);
    put(rules[i].gid, other.rules[i].gid);
    put(rules[i].from, other.rules[i].from);
  }
  put(count, other.count);
  put(open_to, other.open_to);
}

char* copy_name(const Arena& arena, const Dentry& dentry, char* to) {
  std::size_t left = dentry.name_length;
  const std::size_t here = std::min(left, kInlineName);
  std::memcpy(to, dentry.name, here);
  to += here;
  left -= here;
  for (Slot slot = dentry.more; left > 0;) {
    const More* const more = arena.as<More>(slot);
    const std::size_t bytes = std::min(left, kMoreBytes);
    std::memcpy(to, more->text, bytes);
    to += bytes;
    left -= bytes;
    slot = more->next;
  }
  return to;
}

bool Chain::build_path(const DentryCache& cache, Dentry& target) {
  depth = 0;
  for (Dentry* at = &target;;) {
    if (depth == kMost) return false;
    dentries[depth++] = at;
    const Dir* const parent = at->parent;
    if (parent == cache.root()) break;
    at = parent->place.load(std::memory_order_relaxed);
    if (at == nullptr) return false;
  }
  std::reverse(dentries, dentries + depth);
  char* to = path;
  for (u32 i = 0; i < depth; ++i) {
    if (to + dentries[i]->name_length + 1 > path + kPathMax) return false;
    if (i != 0) *to++ = '/';
    to = copy_name(cache.arena(), *dentries[i], to);
    ends[i] = static_cast<u32>(to - path);
  }
  length = static_cast<u32>(to - path);
  return true;
}

bool Chain::build(const DentryCache& cache, Dentry& target) {
  if (!build_path(cache, target)) return false;
  rules = {};
  for (u32 i = 0; i < depth; ++i) {
    const Dir& dir = *dentries[i]->parent;
    const u32 mode = dir.mode.load(std::memory_order_relaxed);
    if ((mode & (Dir::kUnknown | Dir::kRemoved | Dir::kHasAcl)) != 0) return false;
    if (!rules.add(i, mode, dir.uid.load(std::memory_order_relaxed), dir.gid.load(std::memory_order_relaxed)))
      return false;
  }
  return true;
}

}  // namespace pmfs::dcache
