// A path cut into components, and the hashes of names and of prefixes, each worked out when it is asked for.
//
//   P1  Nothing outside the path is read: text is loaded by words that end at its last byte or begin at its first.
//   P2  A name is its length, its first 16 bytes filled up with zeros, and the rest in the path. Names have no zero
//   byte. P3  Equal names have equal hashes, equal canonical prefixes have equal prefix hashes. Keys differ from cache
//   to
//       cache, so that names which fall together cannot be prepared.
// Source of the hash: multiply 64 by 64 bits, fold 128 to 64 (as in wyhash, "folded multiply").
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "pmfs/types.h"

namespace pmfs::dcache {

struct HashKeys {
  u64 low, high;
};

inline u64 fold(u64 a, u64 b) {
  __extension__ using u128 = unsigned __int128;
  const u128 product = static_cast<u128>(a) * b;
  return static_cast<u64>(product) ^ static_cast<u64>(product >> 64);
}

inline u64 load8(const char* at) {
  u64 word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

/// Up to 16 bytes at `text`, filled up with zeros. @param begin, end  of the memory that may be read around them.
inline void load_padded(const char* text, u32 length, const char* begin, const char* end, u64& first, u64& second) {
  second = 0;
  if (length < 8) {
    if (text + length - begin >= 8) [[likely]] {
      first = length == 0 ? 0 : load8(text + length - 8) >> (8 * (8 - length));
    } else if (end - text >= 8) {
      first = load8(text) & ((u64{1} << (8 * length)) - 1);
    } else {
      first = 0;
      for (u32 i = 0; i < length; ++i) first |= u64{static_cast<u8>(text[i])} << (8 * i);
    }
  } else {
    first = load8(text);
    if (length > 8) second = length < 16 ? load8(text + length - 8) >> (8 * (16 - length)) : load8(text + 8);
  }
}

/// How many bytes are equal, of at most `most`. The last step of a long text overlaps the one before it.
inline u32 equal_bytes(const char* a, const char* b, u32 most) {
  u32 at = 0;
  if (most >= 16) {
    for (;;) {
      const auto vector = [at](const char* from) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
      };
      const auto differ = static_cast<u32>(_mm_movemask_epi8(_mm_cmpeq_epi8(vector(a), vector(b)))) ^ 0xffffu;
      if (differ != 0) return at + static_cast<u32>(std::countr_zero(differ));
      if (at + 16 == most) return most;
      at = std::min(at + 16, most - 16);
    }
  }
  for (; at + 8 <= most; at += 8)
    if (const u64 differ = load8(a + at) ^ load8(b + at); differ != 0)
      return at + static_cast<u32>(std::countr_zero(differ)) / 8;
  while (at < most && a[at] == b[at]) ++at;
  return at;
}

/// A name, ready to be looked up. `text` points into the path.
struct Component {
  const char* text;
  u64 first, second;  ///< the name's first 16 bytes, little-endian, filled up with zeros
  u64 hash;
  u32 length;

  std::string_view name() const { return {text, length}; }
  const char* end() const { return text + length; }
};

/// @param begin, end  of the memory that may be read around the name.
inline Component component_of(const char* text, u32 length, const char* begin, const char* end, const HashKeys& keys) {
  Component c;
  c.text = text;
  c.length = length;
  load_padded(text, length, begin, end, c.first, c.second);
  c.hash = fold(c.first ^ keys.low, c.second ^ keys.high ^ length);
  if (length > 16) [[unlikely]] {
    for (u32 at = 16; at + 8 < length; at += 8) c.hash = fold(c.hash ^ load8(text + at), keys.high);
    c.hash = fold(c.hash ^ load8(text + length - 8), keys.low);
  }
  return c;
}

inline Component make_component(std::string_view name, const HashKeys& keys) {
  return component_of(name.data(), static_cast<u32>(name.size()), name.data(), name.data() + name.size(), keys);
}

/// Where the name's entry stands in the table of dentries. @param seed  of the directory.
inline u64 table_hash(const Component& c, u64 seed) { return fold(c.hash ^ seed, 0x9fb21c651e98df25); }

/// The next components of a path.
class PathScan {
 public:
  static constexpr u32 kMost = 32;  ///< components in one piece; longer paths are scanned piece by piece

  /// @param path  its memory outlives the scan.
  PathScan(std::string_view path, const HashKeys& keys)
      : begin_(path.data()), at_(path.data()), end_(path.data() + path.size()), keys_(&keys) {}
  PathScan(const PathScan&) = delete;
  PathScan& operator=(const PathScan&) = delete;

  /// Begins anew with another path.
  void reset(std::string_view path) {
    begin_ = at_ = path.data();
    end_ = path.data() + path.size();
    trailing_slash_ = false;
    canonical_ = true;
    known_states_ = 0;
  }

  /// Cuts the next piece. @return how many components; 0 at the end.
  u32 next();

  u32 count() const { return count_; }
  std::string_view name(u32 i) const { return {parts_[i].text, parts_[i].length}; }
  u32 length(u32 i) const { return parts_[i].length; }
  const char* end_of(u32 i) const { return parts_[i].text + parts_[i].length; }
  /// REQUIRES: no longer than a name may be.
  Component operator[](u32 i) const { return component_of(parts_[i].text, parts_[i].length, begin_, end_, *keys_); }
  /// Whether it is "." or "..".
  bool dots(u32 i) const {
    const Part& p = parts_[i];
    return p.text[0] == '.' && (p.length == 1 || (p.length == 2 && p.text[1] == '.'));
  }
  /// Whether this piece is the last one.
  bool last() const { return at_ == end_; }
  /// Whether a slash follows the last component of the path. Asked when last().
  bool trailing_slash() const { return trailing_slash_; }
  /// Whether the path so far is canonical: no ".", "..", "//", nothing longer than a name may be.
  bool canonical() const { return canonical_; }
  const char* end() const { return end_; }

  // Before anything is cut, of a path that begins with a slash and has more than that:
  /// All of it behind the slash. What is canonical, and no trailing slash, has this for text_to(its last component).
  std::string_view uncut() const { return {begin_ + 1, static_cast<std::size_t>(end_ - begin_ - 1)}; }
  /// The hash of uncut(). What was computed for it serves prefix().
  u64 uncut_hash() {
    asked_uncut_ = true;
    return hash_to(begin_ + 1, static_cast<u32>(end_ - begin_ - 1));
  }
  /// Whether that was asked for, so that all of the path is known not to be known.
  /// Whether the first `most` components are all of the path, and were asked for before it was cut: then they are not
  /// known.
  bool asked(u32 most) const { return asked_uncut_ && most == count_ && last() && !trailing_slash_; }

  // Of a canonical first piece:
  /// The text up to the end of component `i`, without a leading slash.
  std::string_view text_to(u32 i) const {
    return {parts_[0].text, static_cast<std::size_t>(end_of(i) - parts_[0].text)};
  }
  /// The hash of text_to(i).
  u64 prefix(u32 i) const { return hash_to(parts_[0].text, static_cast<u32>(end_of(i) - parts_[0].text)); }

 private:
  struct Part {
    const char* text;
    u32 length;
  };
  static constexpr u32 kStates = 16;  // blocks of text whose hashes are kept from one prefix() to the next
  static constexpr u32 kBlock = 16;

  u64 hash_to(const char* text, u32 length) const;
  u32 slashes16(const char* at) const;
  u64 slashes(const char* at) const;

  const char* begin_;
  const char* at_;  // behind this piece
  const char* end_;
  const HashKeys* keys_;
  u32 count_ = 0;
  bool trailing_slash_ = false;
  bool canonical_ = true;
  bool asked_uncut_ = false;
  mutable u32 known_states_ = 0;
  // Written as far as they are used: clearing them would cost more than the scan.
  mutable u64 states_[kStates];
  Part parts_[kMost];
};

// Bit i: byte i from `at` on is a slash, of 16. Bytes behind the end count as slashes.
inline u32 PathScan::slashes16(const char* at) const {
  const auto mask_of = [](__m128i bytes) {
    return static_cast<u32>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('/'))));
  };
  const auto left = static_cast<u32>(end_ - at);
  if (left >= 16) return mask_of(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  u32 mask;
  if (end_ - begin_ >= 16) {
    mask = mask_of(_mm_loadu_si128(reinterpret_cast<const __m128i*>(end_ - 16))) >> (16 - left);
  } else {
    mask = 0;
    for (u32 i = 0; i < left; ++i) mask |= (at[i] == '/' ? 1u : 0u) << i;
  }
  return mask | (0xffffu << left & 0xffffu);
}

// The same of 64.
inline u64 PathScan::slashes(const char* at) const {
  const auto left = end_ - at;
  u64 mask = slashes16(at);
  if (left > 16) mask |= u64{slashes16(at + 16)} << 16;
  if (left > 32) mask |= u64{slashes16(at + 32)} << 32;
  if (left > 48) mask |= u64{slashes16(at + 48)} << 48;
  return left < 64 ? mask | u64{1} << left : mask;
}

inline u32 PathScan::next() {
  u32 count = 0;
  bool canonical = canonical_;
  const char* at = at_;
  while (at != end_ && *at == '/') ++at;
  if (at - at_ > 1 || (at_ != begin_ && at == at_)) canonical = false;
  // `block` is where the mask in hand begins; names end where it has a bit.
  const char* block = at;
  u64 mask = at == end_ ? 0 : slashes(block);
  while (at != end_ && count != kMost) {
    if (mask == 0) [[unlikely]] {
      block += 64;
      mask = slashes(block);
      continue;
    }
    const char* const stop = block + std::countr_zero(mask);
    mask &= mask - 1;
    const auto length = static_cast<u32>(stop - at);
    parts_[count] = {at, length};
    count += length != 0 ? 1 : 0;
    if (length - 3 > kNameMax - 3) [[unlikely]]  // 0, 1, 2, or too long
      canonical = canonical && length != 0 && length <= kNameMax && !(*at == '.' && (length == 1 || at[1] == '.'));
    if (stop == end_) {
      at = end_;
      break;
    }
    at = stop + 1;
    if (at == end_) trailing_slash_ = true;
  }
  if (count == kMost)
    while (at != end_ && *at == '/') ++at, canonical = false, trailing_slash_ = at == end_;
  at_ = at;
  count_ = count;
  canonical_ = canonical;
  return count;
}

// `text` is the same in each call for one path.
inline u64 PathScan::hash_to(const char* text, u32 length) const {
  const u32 blocks = length / kBlock;
  u32 block = std::min({blocks, known_states_, kStates});
  u64 state = block == 0 ? keys_->low : states_[block - 1];
  for (; block < blocks; ++block) {
    const char* const at = text + block * kBlock;
    state = fold(load8(at) ^ state, load8(at + 8) ^ keys_->high);
    if (block < kStates) {
      states_[block] = state;
      known_states_ = block + 1;
    }
  }
  u64 first, second;
  load_padded(text + blocks * kBlock, length % kBlock, begin_, end_, first, second);
  return fold(first ^ state, second ^ keys_->high ^ length);
}

}  // namespace pmfs::dcache
