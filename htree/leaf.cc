#include "htree/leaf.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/racy.h"
#include "htree/fingerprint.h"

namespace pmfs::htree {

NameHash NameHasher::operator()(std::string_view name) const {
  const u64 all = checksum64(name.data(), name.size(), seed);
  NameHash result;
  const u64 top = (u64{1} << bits) - 1;
  result.hash = std::clamp((all >> 16) & top, u64{1}, std::max(u64{1}, top - 1));
  result.fingerprint = static_cast<u8>(result.hash);
  return result;
}

Result<void> check_header(const media::Leaf& leaf, InodeNo owner, u64 logical, u64 media_off) {
  if (leaf.magic.get() != media::kLeafMagic) return Error{Errc::kCorrupt, "a directory block is no leaf", media_off};
  if (leaf.owner.get() != to_u64(owner) || leaf.logical.get() != logical)
    return Error{Errc::kCorrupt, "a directory maps another directory's leaf", media_off};
  return {};
}

u64 header_checksum(const media::Leaf& leaf, u64 seed) {
  const u64 covered[3] = {leaf.magic.get() | u64{leaf.reserved0.get()} << 32, leaf.owner.get(), leaf.logical.get()};
  return checksum64(covered, sizeof(covered), seed);
}

Result<Entry> read_entry(const media::Leaf& leaf, u32 slot, u64 media_off) {
  // Each byte is read once: what is checked is what is used, also if somebody writes meanwhile.
  Le16 place;
  racy_copy(&place, &leaf.entry_off[slot], sizeof(place));
  const u32 off = place.get();
  if (off < media::kLeafHeapOff || off % 8 != 0 || off + sizeof(media::LeafEntry) > kBlockBytes)
    return Error{Errc::kCorrupt, "a directory entry lies outside its leaf", media_off};
  const std::byte* const at = reinterpret_cast<const std::byte*>(&leaf) + off;
  media::LeafEntry raw;
  racy_copy(&raw, at, sizeof(raw));
  const u64 target = raw.target.get();
  const u32 name_len = target_name_len(target);
  if (name_len == 0 || off + entry_bytes(name_len) > kBlockBytes)
    return Error{Errc::kCorrupt, "a directory entry's name leaves its leaf", media_off};
  Entry entry;
  entry.slot = slot;
  entry.ino = target_ino(target);
  entry.type = target_type(target);
  entry.key = raw.key.get();
  entry.name = {reinterpret_cast<const char*>(at + sizeof(raw)), name_len};
  return entry;
}

u64 match(const media::Leaf& leaf, u8 fingerprint) {
  return equal_bytes(leaf.fingerprint, fingerprint) & leaf.live.get();
}

Result<std::optional<Entry>> find(const media::Leaf& leaf, const NameHash& hash, std::string_view name, u64 media_off,
                                  u32* compared) {
  for (u64 left = match(leaf, hash.fingerprint); left != 0; left &= left - 1) {
    PMFS_ASSIGN(const Entry entry, read_entry(leaf, static_cast<u32>(std::countr_zero(left)), media_off));
    if (key_hash(entry.key) != hash.hash || entry.name.size() != name.size()) continue;
    if (compared != nullptr) *compared += 1;
    if (racy_equal(name.data(), entry.name.data(), name.size())) return std::optional(entry);
  }
  return std::optional<Entry>();
}

namespace {

struct Span {
  u32 from, to;
};

// Where entries lie that must stay. Damaged ones are taken as long
// as the leaf, so nothing is ever written into a leaf that cannot be read.
u32 spans_in_use(const media::Leaf& leaf, u64 slots, std::array<Span, media::kLeafSlots>& spans) {
  u32 count = 0;
  for (; slots != 0; slots &= slots - 1) {
    const auto slot = static_cast<u32>(std::countr_zero(slots));
    const auto entry = read_entry(leaf, slot, 0);
    if (!entry.ok()) {
      spans[count++] = {media::kLeafHeapOff, static_cast<u32>(kBlockBytes)};
      continue;
    }
    const u32 off = leaf.entry_off[slot].get();
    spans[count++] = {off, off + entry_bytes(entry->name.size())};
  }
  return count;
}

}  // namespace

std::optional<Place> find_room(const media::Leaf& leaf, std::size_t name_len) {
  const u64 in_use = leaf.live.get();
  if (in_use == ~u64{0}) return std::nullopt;
  const auto slot = static_cast<u32>(std::countr_one(in_use));
  const u32 need = entry_bytes(name_len);

  std::array<Span, media::kLeafSlots> spans;
  const u32 count = spans_in_use(leaf, in_use, spans);
  u32 top = media::kLeafHeapOff;
  for (u32 i = 0; i < count; ++i) top = std::max(top, spans[i].to);
  if (top + need <= kBlockBytes) return Place{slot, top};

  std::sort(spans.begin(), spans.begin() + count, [](const Span& a, const Span& b) { return a.from < b.from; });
  u32 gap = media::kLeafHeapOff;
  for (u32 i = 0; i < count; ++i) {
    if (spans[i].from >= gap + need) return Place{slot, gap};
    gap = std::max(gap, spans[i].to);
  }
  return std::nullopt;
}

u32 bytes_in_use(const media::Leaf& leaf, u64 slots) {
  std::array<Span, media::kLeafSlots> spans;
  const u32 count = spans_in_use(leaf, slots, spans);
  u32 bytes = 0;
  for (u32 i = 0; i < count; ++i) bytes += spans[i].to - spans[i].from;
  return bytes;
}

bool fits_compacted(const media::Leaf& leaf, std::size_t name_len, u64 slots) {
  return slots != ~u64{0} && bytes_in_use(leaf, slots) + entry_bytes(name_len) <= kBlockBytes - media::kLeafHeapOff;
}

namespace {

void store_entry(Persist& persist, media::Leaf& leaf, const Place& place, u64 target, u64 key, u8 fingerprint,
                 std::string_view name) {
  PMFS_ASSERT(place.off % 8 == 0 && place.off + entry_bytes(name.size()) <= kBlockBytes);
  std::array<std::byte, sizeof(media::LeafEntry) + 256> bytes{};  // zero: the padding behind the name
  media::LeafEntry fixed;
  fixed.target.set(target);
  fixed.key.set(key);
  std::memcpy(bytes.data(), &fixed, sizeof(fixed));
  std::memcpy(bytes.data() + sizeof(fixed), name.data(), name.size());
  persist.write(reinterpret_cast<std::byte*>(&leaf) + place.off, bytes.data(), entry_bytes(name.size()));
  persist.write(&leaf.fingerprint[place.slot], &fingerprint, 1);
  Le16 off;
  off.set(static_cast<u16>(place.off));
  persist.write(&leaf.entry_off[place.slot], &off, sizeof(off));
}

}  // namespace

void write_entry(Persist& persist, media::Leaf& leaf, const Place& place, u64 target, u64 key, const NameHash& hash,
                 std::string_view name) {
  store_entry(persist, leaf, place, target, key, hash.fingerprint, name);
  persist.flush(reinterpret_cast<std::byte*>(&leaf) + place.off, entry_bytes(name.size()), Order::kFreshEntry);
  persist.flush(&leaf.fingerprint[place.slot], 1, Order::kFreshEntry);
  persist.flush(&leaf.entry_off[place.slot], sizeof(Le16), Order::kFreshEntry);
}

Le64& target_word(media::Leaf& leaf, const Entry& entry) {
  auto* at = reinterpret_cast<std::byte*>(&leaf) + leaf.entry_off[entry.slot].get();
  return reinterpret_cast<media::LeafEntry*>(at)->target;
}

void init(Persist& persist, media::Leaf& leaf, InodeNo owner, u64 logical, u64 seed) {
  // The heap and the offsets behind free slots may hold anything: nobody looks there.
  media::Leaf head{};
  head.magic.set(media::kLeafMagic);
  head.owner.set(to_u64(owner));
  head.logical.set(logical);
  head.checksum.set(header_checksum(head, seed));
  persist.write(&leaf, &head, kLineBytes);
}

void add_fresh(Persist& persist, media::Leaf& leaf, u64 target, u64 key, const NameHash& hash, std::string_view name) {
  const auto place = find_room(leaf, name.size());
  PMFS_ASSERT(place.has_value());
  store_entry(persist, leaf, *place, target, key, hash.fingerprint, name);
  persist.store(leaf.live, leaf.live.get() | u64{1} << place->slot);
}

void copy_entries(Persist& persist, const media::Leaf& from, u64 slots, media::Leaf& to) {
  for (; slots != 0; slots &= slots - 1) {
    const auto slot = static_cast<u32>(std::countr_zero(slots));
    const auto entry = read_entry(from, slot, 0);
    PMFS_ASSERT(entry.ok());
    add_fresh(persist, to, make_target(entry->ino, entry->type, entry->name.size()), entry->key,
              {key_hash(entry->key), from.fingerprint[slot]}, entry->name);
  }
}

void flush_fresh(Persist& persist, const media::Leaf& leaf) {
  u32 top = media::kLeafHeapOff;
  std::array<Span, media::kLeafSlots> spans;
  const u32 count = spans_in_use(leaf, leaf.live.get(), spans);
  for (u32 i = 0; i < count; ++i) top = std::max(top, spans[i].to);
  persist.flush(&leaf, top, Order::kFreshLeaf);
}

}  // namespace pmfs::htree
