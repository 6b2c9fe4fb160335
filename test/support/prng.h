// Random numbers that a seed repeats: splitmix64. Every test that draws anything draws from one of these and prints its
// seed when it fails.
#pragma once

#include "pmfs/types.h"

namespace pmfs::test {

class Prng {
 public:
  explicit Prng(u64 seed) : state_(seed) {}

  u64 next() {
    u64 z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// 0 <= result < n. REQUIRES: n > 0.
  u64 below(u64 n) { return next() % n; }
  /// True once in `n` times.
  bool once_in(u64 n) { return below(n) == 0; }
  bool coin() { return (next() & 1) != 0; }

 private:
  u64 state_;
};

/// A number that depends on all bits of `x`: for hashing words and for deriving seeds.
constexpr u64 mix(u64 x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace pmfs::test
