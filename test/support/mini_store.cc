#include "test/support/mini_store.h"

#include "base/assert.h"
#include "test/support/text.h"

namespace pmfs::test {

namespace {

constexpr u64 kEpoch = 64;
constexpr u64 kUuidLow = 0x1122334455667788;
constexpr u64 kUuidHigh = 0x99aabbccddeeff00;

Le64& epoch_of(const Memory& memory) { return *reinterpret_cast<Le64*>(memory.at(PoolOff{kEpoch})); }

}  // namespace

void MiniStore::format(SimMemory& memory) {
  Persist persist(memory.memory());
  persist.store(epoch_of(memory.memory()), 1);
  auto* headers = reinterpret_cast<media::LaneHeader*>(memory.memory().at(PoolOff{kLaneArea}));
  for (u32 lane = 0; lane < media::kLaneCount; ++lane) persist.store(headers[lane].sequence, 1);
  memory.settle();
}

MiniStore::MiniStore(Memory memory, u32 lane_count) : persist_(memory) {
  Le64& epoch = epoch_of(memory);
  const LaneKey key{kUuidLow, kUuidHigh, epoch.get()};
  for (u32 lane = 0; lane < lane_count; ++lane) {
    const Result<LaneVerdict> verdict = recover_lane(persist_, PoolOff{kLaneArea}, key, lane,
                                                     [](u64 off) { return off >= kWords && off + 8 <= kSize; });
    if (!verdict) problem_ = verdict.error().what;
  }
  persist_.fence(Order::kUndoFence);
  persist_.store(epoch, key.epoch + 1);
  persist_.flush(&epoch, sizeof(epoch), Order::kEpoch);
  persist_.fence(Order::kEpochFence);
  lanes_ =
      std::make_unique<Lanes>(persist_, PoolOff{kLaneArea}, LaneKey{kUuidLow, kUuidHigh, key.epoch + 1}, lane_count);
}

Le64& MiniStore::word(char name) {
  const u64 line = static_cast<u64>(name == 'd' ? 'c' - 'a' : name - 'a');
  return *reinterpret_cast<Le64*>(persist_.memory().at(PoolOff{kWords + line * 64 + (name == 'd' ? 8 : 0)}));
}

void MiniStore::run(const std::map<char, u64>& changes) {
  Commit commit(*lanes_, persist_);
  for (const auto& [name, value] : changes) {
    commit.touch(last(name));
    commit.set(word(name), value);
  }
  PMFS_ASSERT(commit.run().ok());
}

void MiniStore::run_on(u32 lane, const std::map<char, u64>& changes) {
  std::vector<u32> others;
  for (u32 i = 0; i < lanes_->count(); ++i) others.push_back(lanes_->acquire());
  lanes_->release(lane);
  run(changes);
  for (const u32 other : others)
    if (other != lane) lanes_->release(other);
}

std::string to_text(const Words& words) {
  std::string out;
  for (const auto& [name, value] : words) out += text(out.empty() ? "" : " ", name, "=", value);
  return out;
}

std::string MiniSubject::open(Memory memory) {
  store_.emplace(memory, lane_count_);
  return store_->problem();
}

std::string MiniSubject::look() {
  seen_.clear();
  for (const char name : names_) seen_[name] = store_->get(name);
  return {};
}

u64 MiniSubject::fingerprint() const {
  u64 hash = 0;
  for (const auto& [name, value] : seen_) hash = mix(hash + mix(value) + static_cast<u64>(name));
  return hash;
}

void WordsJudge::happened(const Event& event) {
  const auto decide = [&] {
    const auto mine = in_flight_.find(event.thread);
    if (mine == in_flight_.end()) return;
    for (const auto& [name, value] : operations_[mine->second]) now_[name] = value;
    in_flight_.erase(mine);
    ++phase_;
  };
  if (event.kind == Event::Kind::kMark && event.mark_kind == MarkKind::kBegin) {
    in_flight_[event.thread] = event.mark;
    ++phase_;
  }
  if (event.kind == Event::Kind::kMark && event.mark_kind == MarkKind::kReturn) decide();
  if (event.kind == Event::Kind::kPoint && std::string_view(event.name) == "commit.after_fence2") decide();
}

std::string WordsJudge::verdict(const Subject& subject) {
  const Words& seen = dynamic_cast<const MiniSubject&>(subject).seen();
  std::string allowed;
  for (u32 some = 0; some < u32{1} << in_flight_.size(); ++some) {
    Words words = now_;
    u32 i = 0;
    for (const auto& [thread, operation] : in_flight_)
      if ((some >> i++ & 1) != 0)
        for (const auto& [name, value] : operations_[operation]) words[name] = value;
    bool same = true;
    for (const auto& [name, value] : seen) same &= words[name] == value;
    if (same) return {};
    allowed += "\n    or " + to_text(words);
  }
  return "found " + to_text(seen) + ", allowed" + allowed;
}

}  // namespace pmfs::test
