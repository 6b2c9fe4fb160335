#include "base/lane.h"

#include "base/assert.h"
#include "base/checksum.h"

namespace pmfs {

namespace {

media::LaneHeader& header_at(const Memory& memory, PoolOff area, u32 lane) {
  return reinterpret_cast<media::LaneHeader*>(memory.at(area))[lane];
}

media::Record& record_at(const Memory& memory, PoolOff area, u32 lane, u32 index) {
  auto* records = reinterpret_cast<media::Record*>(memory.at(area) + media::kLaneCount * sizeof(media::LaneHeader));
  return records[lane * media::kRecordsPerLane + index];
}

}  // namespace

Lanes::Lanes(Persist& persist, PoolOff area, LaneKey key, u32 count)
    : persist_(persist), area_(area), key_(key), count_(count), free_(count == 64 ? ~u64{0} : (u64{1} << count) - 1) {
  PMFS_ASSERT(count >= 1 && count <= media::kLaneCount);
}

media::LaneHeader& Lanes::header(u32 lane) const { return header_at(persist_.memory(), area_, lane); }
media::Record& Lanes::record(u32 lane, u32 index) const { return record_at(persist_.memory(), area_, lane, index); }

u32 Lanes::acquire() {
  // A thread stays with its lane: the header's line is then in its cache, and its own bump is the one it flushes.
  static std::atomic<u32> next_thread{0};
  thread_local u32 preferred = next_thread.fetch_add(1, std::memory_order_relaxed);
  for (;;) {
    u64 free = free_.load(std::memory_order_acquire);
    while (free != 0) {
      const u32 wish = preferred % count_;
      const u32 lane = (free >> wish & 1) != 0 ? wish : static_cast<u32>(std::countr_zero(free));
      if (free_.compare_exchange_weak(free, free & ~(u64{1} << lane), std::memory_order_acquire)) {
        preferred = lane;
        return lane;
      }
    }
    free_.wait(0, std::memory_order_acquire);
  }
}

void Lanes::release(u32 lane) {
  const u64 before = free_.fetch_or(u64{1} << lane, std::memory_order_release);
  // All that wait: who is woken may find a second lane free that was released before he looked, and nobody told of it.
  if (before == 0) free_.notify_all();
}

void Lanes::set_durable(u32 lane, u64 sequence) {
  u64 known = state_[lane].durable.load(std::memory_order_relaxed);
  while (known < sequence && !state_[lane].durable.compare_exchange_weak(known, sequence, std::memory_order_release)) {
  }
}

u64 Lanes::flush_header(u32 lane, Order why) {
  media::LaneHeader& head = header(lane);
  const u64 sequence = head.sequence.get();  // read before the flush: only what was read is known to be durable (R3)
  if (durable_sequence(lane) >= sequence) return 0;
  persist_.flush(&head, sizeof(head), why);
  return sequence;
}

void Lanes::retire_all(Order flush_why, Order fence_why) {
  std::array<u64, media::kLaneCount> read{};
  for (u32 lane = 0; lane < count_; ++lane) read[lane] = flush_header(lane, flush_why);
  persist_.fence(fence_why);
  for (u32 lane = 0; lane < count_; ++lane)
    if (read[lane] != 0) set_durable(lane, read[lane]);
}

u64 record_checksum(const media::Record& record, const LaneKey& key, u32 lane, u32 index, u64 sequence) {
  struct {
    u64 words[7];  // payload and meta
    u64 uuid_low, uuid_high, epoch, place, sequence;
  } keyed;
  for (u32 i = 0; i < 6; ++i) keyed.words[i] = record.payload[i].get();
  keyed.words[6] = record.meta.get();
  keyed.uuid_low = key.uuid_low;
  keyed.uuid_high = key.uuid_high;
  keyed.epoch = key.epoch;
  keyed.place = u64{lane} << 32 | index;
  keyed.sequence = sequence;
  return checksum64(&keyed, sizeof(keyed));
}

namespace {

// One word that a set of records can put back.
struct OldWord {
  u64 off;
  u64 value;
};

constexpr u32 kWordsPerSet = media::kRecordsPerLane * media::kWordsPerRange;

struct RecordSet {
  std::array<OldWord, kWordsPerSet> words;
  u32 count = 0;
  u64 new_hash = 0;
  bool complete = false;

  void add(u64 off, u64 value) { words[count++] = {off, value}; }
};

RecordSet read_set(const Memory& memory, PoolOff area, const LaneKey& key, u32 lane, u64 sequence) {
  RecordSet set;
  for (u32 index = 0; index < media::kRecordsPerLane; ++index) {
    const media::Record& record = record_at(memory, area, lane, index);
    if (record.checksum.get() != record_checksum(record, key, lane, index, sequence)) return set;
    const u64 meta = record.meta.get();
    const u64 length = media::record_length(meta);
    switch (media::record_kind(meta)) {
      case media::kRecordRange:
        if (length % 8 != 0 || length > 48) return set;
        for (u64 i = 0; i < length / 8; ++i) set.add(media::record_target(meta) + 8 * i, record.payload[i].get());
        break;
      case media::kRecordPairs:
        if (length > media::kPairsPerRecord) return set;
        for (u64 i = 0; i < length; ++i) set.add(record.payload[2 * i].get(), record.payload[2 * i + 1].get());
        break;
      case media::kRecordLast:
        if (length > media::kPairsInLast || record.payload[4].get() != index + 1) return set;
        for (u64 i = 0; i < length; ++i) set.add(record.payload[2 * i].get(), record.payload[2 * i + 1].get());
        set.new_hash = record.payload[5].get();
        set.complete = true;
        return set;
      default: return set;
    }
  }
  return set;
}

}  // namespace

Result<LaneVerdict> recover_lane(Persist& persist, PoolOff area, const LaneKey& key, u32 lane,
                                 const std::function<bool(u64 off)>& valid) {
  const Memory& memory = persist.memory();
  const media::LaneHeader& head = header_at(memory, area, lane);
  LaneKey used = key;
  if (!persist.rule(Rule::kEpochInRecords)) used.epoch = 0;
  const RecordSet set = read_set(memory, area, used, lane, head.sequence.get());
  if (!set.complete) return LaneVerdict::kEmpty;

  std::array<u64, kWordsPerSet> in_place;
  for (u32 i = 0; i < set.count; ++i) {
    const u64 off = set.words[i].off;
    if (off % 8 != 0 || !valid(off))
      return Error{Errc::kCorrupt, "an undo record names a place outside the file system",
                   to_u64(memory.off_of(&head))};
    in_place[i] = reinterpret_cast<const Le64*>(memory.at(PoolOff{off}))->get();
  }
  const bool committed = checksum64(in_place.data(), set.count * sizeof(u64)) == set.new_hash;
  for (u32 i = 0; i < set.count; ++i) {
    auto& word = *reinterpret_cast<Le64*>(memory.at(PoolOff{set.words[i].off}));
    if (!committed) persist.store(word, set.words[i].value);
    // Committed words too: after a killed process they may be in a CPU cache only, and the epoch ends their records.
    persist.flush(&word, sizeof(word), Order::kUndo);
  }
  return committed ? LaneVerdict::kCommitted : LaneVerdict::kUndone;
}

}  // namespace pmfs
