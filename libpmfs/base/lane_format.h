// Lanes on the medium: FORMAT.md "Lanes". 64 headers fill one page; behind it 16 records of 64 bytes for each lane.
#pragma once

#include "base/le.h"
#include "base/on_media.h"

namespace pmfs::media {

inline constexpr u32 kLaneCount = 64;
inline constexpr u32 kRecordsPerLane = 16;
inline constexpr u32 kPairsPerRecord = 3;
inline constexpr u32 kPairsInLast = 2;
inline constexpr u32 kWordsPerRange = 6;  // 48 bytes of undo data

struct alignas(64) LaneHeader {
  Le64 sequence;    // [ 0] of the lane's current set of records; starts at 1
  u8 reserved[56];  // [ 8] zero
};
PMFS_ON_MEDIA(LaneHeader, 64);

inline constexpr u8 kRecordRange = 1;  // `length` bytes of old contents from `target` on
inline constexpr u8 kRecordPairs = 2;  // `length` pairs of {offset, old value}
inline constexpr u8 kRecordLast = 3;   // the same with 0..2 pairs, then the number of records and the hash of new words

struct alignas(64) Record {
  Le64 payload[6];  // [ 0] 48 bytes of undo data
  Le64 meta;        // [48] target: 48 bits, length: 8 bits, kind: 8 bits
  Le64 checksum;    // [56] XXH3-64 of [0,56) and the key {uuid, epoch, lane, index, sequence}
};
PMFS_ON_MEDIA(Record, 64);

constexpr u64 record_meta(u64 target, u64 length, u8 kind) { return target | length << 48 | u64{kind} << 56; }
constexpr u64 record_target(u64 meta) { return meta & ((u64{1} << 48) - 1); }
constexpr u64 record_length(u64 meta) { return meta >> 48 & 0xff; }
constexpr u8 record_kind(u64 meta) { return static_cast<u8>(meta >> 56); }

inline constexpr u64 kLaneAreaBytes = kLaneCount * (sizeof(LaneHeader) + kRecordsPerLane * sizeof(Record));

}  // namespace pmfs::media
