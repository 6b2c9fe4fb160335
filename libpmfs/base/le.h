// Little-endian integers as they lie on the medium. No conversions by accident: get() and, where it is not yet live,
// set().
#pragma once

#include <bit>

#include "pmfs/types.h"

namespace pmfs {

static_assert(std::endian::native == std::endian::little, "a big-endian port has to swap bytes here, and only here");

/// A value on the medium. Loads and stores are single and untorn, as another thread may look at the same word; and
/// whoever finds a word finds what was written before it was stored (acquire, release): a node behind a root, an entry
/// behind a live bit. On x86-64 that is an ordinary load or store. set() is for bytes nothing points to yet and for
/// copies in DRAM; live words go through Persist::store().
template <class T>
class Le {
 public:
  T get() const { return __atomic_load_n(&raw_, __ATOMIC_ACQUIRE); }
  void set(T value) { __atomic_store_n(&raw_, value, __ATOMIC_RELEASE); }

 private:
  T raw_;
};

using Le16 = Le<u16>;
using Le32 = Le<u32>;
using Le64 = Le<u64>;

}  // namespace pmfs
