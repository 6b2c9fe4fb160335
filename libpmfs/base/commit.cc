#include "base/commit.h"

#include <algorithm>

#include "base/assert.h"
#include "base/checksum.h"

namespace pmfs {

void Commit::touch(ChangeMark& last, const Watched& watched) {
  for (u32 i = 0; i < touched_count_; ++i)
    if (touched_[i] == &last) return;
  PMFS_ASSERT(touched_count_ < kMaxTouched);
  watched_[touched_count_] = watched;
  touched_[touched_count_++] = &last;
}

void Commit::set(Le64& word, u64 value) {
  for (u32 i = 0; i < word_count_; ++i) {
    if (words_[i].at != &word) continue;
    words_[i].value = value;
    return;
  }
  PMFS_ASSERT(word_count_ < kMaxWords);
  words_[word_count_++] = {&word, value};
}

u64 Commit::value(const Le64& word) const {
  for (u32 i = 0; i < word_count_; ++i)
    if (words_[i].at == &word) return words_[i].value;
  return word.get();
}

// Writes the set of records for words_ (sorted by address) and flushes it. Runs of four and more neighbours become
// ranges of up to six words, everything else pairs; the last record takes up to two of the pairs.
u32 Commit::write_records(u32 lane, u64 sequence) {
  const Memory& memory = persist_.memory();
  LaneKey key = lanes_.key();
  if (!persist_.rule(Rule::kEpochInRecords)) key.epoch = 0;

  std::array<u64, kMaxWords> new_words;  // in record order: what recovery hashes to see whether all was applied
  u32 hashed = 0;
  u32 index = 0;
  const auto emit = [&](media::Record& record) {
    PMFS_ASSERT(index < media::kRecordsPerLane);
    record.checksum.set(record_checksum(record, key, lane, index, sequence));
    persist_.write(&lanes_.record(lane, index), &record, sizeof(record));
    ++index;
  };

  std::array<Word, kMaxWords> singles;
  u32 single_count = 0;
  for (u32 i = 0; i < word_count_;) {
    u32 j = i + 1;
    while (j < word_count_ && j - i < media::kWordsPerRange && words_[j].at == words_[j - 1].at + 1) ++j;
    if (j - i < 4) {
      for (; i < j; ++i) singles[single_count++] = words_[i];
      continue;
    }
    media::Record range{};
    const u64 target = to_u64(memory.off_of(words_[i].at));
    range.meta.set(media::record_meta(target, (j - i) * 8, media::kRecordRange));
    for (u32 k = 0; i < j; ++i, ++k) {
      range.payload[k].set(words_[i].at->get());
      new_words[hashed++] = words_[i].value;
    }
    emit(range);
  }

  const auto put_pairs = [&](media::Record& record, u32 first, u32 n) {
    for (u32 k = 0; k < n; ++k) {
      record.payload[2 * k].set(to_u64(memory.off_of(singles[first + k].at)));
      record.payload[2 * k + 1].set(singles[first + k].at->get());
      new_words[hashed++] = singles[first + k].value;
    }
  };
  u32 done = 0;
  while (single_count - done > media::kPairsInLast) {
    const u32 n = std::min(media::kPairsPerRecord, single_count - done);
    media::Record pairs{};
    pairs.meta.set(media::record_meta(0, n, media::kRecordPairs));
    put_pairs(pairs, done, n);
    emit(pairs);
    done += n;
  }
  media::Record last{};
  const u32 n = single_count - done;
  last.meta.set(media::record_meta(0, n, media::kRecordLast));
  put_pairs(last, done, n);
  last.payload[4].set(index + 1);
  last.payload[5].set(checksum64(new_words.data(), hashed * sizeof(u64)));
  emit(last);

  persist_.flush(&lanes_.record(lane, 0), index * sizeof(media::Record), Order::kRecord);
  return index;
}

// Tells readers without locks that what they may be looking at is changing: they use nothing of it until show().
void Commit::hide() {
  if (!persist_.rule(Rule::kHideUntilDurable)) return;
  const auto add = [&](Version* version) {
    for (u32 i = 0; i < hidden_count_; ++i)
      if (hidden_[i] == version) return;
    hidden_[hidden_count_++] = version;
    version->begin_change();
  };
  for (u32 i = 0; i < word_count_; ++i) {
    const Le64* const word = words_[i].at;
    bool known = false;
    for (u32 k = 0; k < touched_count_ && !known; ++k) {
      const Watched& object = watched_[k];
      if (object.first == nullptr || word < object.first || word >= object.first + object.words) continue;
      known = true;
      add(object.any);
      if ((object.shape_words >> (word - object.first) & 1) != 0) add(object.shape);
    }
    if (!known && versions_ != nullptr) add(&versions_->of(to_u64(persist_.memory().off_of(word)) / kBlockBytes));
  }
}

void Commit::show() {
  for (u32 i = 0; i < hidden_count_; ++i) hidden_[i]->end_change();
  hidden_count_ = 0;
}

void Commit::apply() {
  for (u32 i = 0; i < word_count_; ++i) {
    persist_.store(*words_[i].at, words_[i].value);
    persist_.point("commit.applying");
  }
  // Each line once: words_ is sorted, so a line's words stand together.
  std::uintptr_t flushed = 0;
  for (u32 i = 0; i < word_count_; ++i) {
    const auto line = reinterpret_cast<std::uintptr_t>(words_[i].at) / kLineBytes;
    if (line == flushed) continue;
    flushed = line;
    persist_.flush(words_[i].at, sizeof(u64), Order::kApplied);
  }
}

Result<ChangeMark> Commit::run() {
  PMFS_ASSERT(word_count_ > 0);
  if (persist_.failed()) return Error{Errc::kIo, "an earlier write to the medium failed", 0};
  std::sort(words_.begin(), words_.begin() + word_count_, [](const Word& a, const Word& b) { return a.at < b.at; });

  const u32 lane = lanes_.acquire();
  media::LaneHeader& header = lanes_.header(lane);
  const u64 sequence = header.sequence.get();
  write_records(lane, sequence);

  // Own header: its last bump may not be durable, and then the records of this sequence would not be found.
  const u64 own_read = lanes_.flush_header(lane, Order::kOwnHeader);
  // The lane that last changed each locked inode: with its bump not durable, recovery could still find that change
  // complete, see other words in place (ours), and undo it together with ours (R2).
  std::array<u64, kMaxTouched> read{};
  for (u32 i = 0; i < touched_count_; ++i) {
    const ChangeMark& mark = *touched_[i];
    if (mark.none() || mark.lane == lane || lanes_.retired(mark)) continue;
    if (persist_.rule(Rule::kFlushLastHeader)) read[i] = lanes_.flush_header(mark.lane, Order::kLastHeader);
  }
  persist_.point("commit.before_fence1");
  // ORDER fence 1: records, headers and all fresh contents are durable before any live word changes.
  persist_.fence(Order::kFence1);
  if (own_read != 0) lanes_.set_durable(lane, own_read);
  for (u32 i = 0; i < touched_count_; ++i)
    if (read[i] != 0) lanes_.set_durable(touched_[i]->lane, read[i]);
  if (persist_.failed()) {
    // Nothing was applied. The sequence stays used (R1): no commit will run again on this pool.
    lanes_.release(lane);
    return Error{Errc::kIo, "writing to the medium failed", 0};
  }

  hide();
  apply();
  // ORDER fence 2: the operation is durable and decided; it may return, and others may see it.
  persist_.fence(Order::kFence2);
  show();
  persist_.point("commit.after_fence2");
  if (persist_.failed()) {
    lanes_.release(lane);
    return Error{Errc::kIo, "writing to the medium failed", 0};
  }

  // The bump. No flush: lane.h L3. If it is lost, recovery finds a complete set whose words are in place, and drops it.
  if (persist_.rule(Rule::kFreshSequence)) persist_.store(header.sequence, sequence + 1);
  const ChangeMark mark{lane, sequence};
  for (u32 i = 0; i < touched_count_; ++i) *touched_[i] = mark;
  lanes_.release(lane);
  return mark;
}

}  // namespace pmfs
