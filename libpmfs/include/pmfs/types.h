// Numbers with a meaning: fixed-width aliases, inode numbers, pool offsets. No arithmetic by accident.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmfs {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

/// An inode's number: its slot index in the inode file plus one. 0 names nothing.
enum class InodeNo : u64 {};
inline constexpr InodeNo kNoInode{0};
inline constexpr InodeNo kRootIno{1};

/// A byte offset from the start of the pool. 0 is "nowhere": the pool header lies there.
enum class PoolOff : u64 {};

constexpr u64 to_u64(InodeNo ino) { return static_cast<u64>(ino); }
constexpr u64 to_u64(PoolOff off) { return static_cast<u64>(off); }

/// The unit of allocation, of a directory leaf and of a map node, in bytes.
inline constexpr u64 kBlockBytes = 4096;

/// Longest name of one entry, in bytes (any byte but '/' and NUL).
inline constexpr std::size_t kNameMax = 255;

/// Longest path given to one call, in bytes, terminating NUL not counted (PATH_MAX - 1).
inline constexpr std::size_t kPathMax = 4095;

}  // namespace pmfs
