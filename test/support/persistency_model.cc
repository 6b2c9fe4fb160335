#include "test/support/persistency_model.h"

#include <cstring>

#include "base/assert.h"

namespace pmfs::test {

namespace {

constexpr u64 kLine = 64;

// Calls `fn(word, open word)` for each open word of the lines touching [off, off+bytes).
template <class Open, class Fn>
void for_each_open(Open& open, u64 off, u64 bytes, Fn fn) {
  if (bytes == 0) return;
  const u64 first = off / kLine * kLine / 8;
  const u64 end = ((off + bytes - 1) / kLine + 1) * kLine / 8;
  if (open.size() < end - first) {
    for (auto& [word, state] : open)
      if (word >= first && word < end) fn(word, state);
    return;
  }
  for (u64 word = first; word < end; ++word) {
    const auto found = open.find(static_cast<u32>(word));
    if (found != open.end()) fn(found->first, found->second);
  }
}

}  // namespace

PersistencyModel::PersistencyModel(std::span<const std::byte> contents) : contents_(contents.size() / 8) {
  PMFS_ASSERT(contents.size() % kLine == 0);
  std::memcpy(contents_.data(), contents.data(), contents.size());
}

void PersistencyModel::store(WordValue to) {
  u64& now = contents_[to.word];
  if (now == to.value) return;  // nothing that a power cut could show
  auto [at, is_new] = open_.try_emplace(to.word);
  OpenWord& state = at->second;
  if (is_new) state.versions.push_back({0, now});
  state.versions.push_back({next_stamp_++, to.value});
  state.flushed_as.reset();
  now = to.value;
}

void PersistencyModel::flush(ThreadId thread, u64 off, u64 bytes, Order why) {
  std::vector<Capture>& captured = captured_[thread];
  for_each_open(open_, off, bytes, [&](u32 word, OpenWord& state) {
    captured.push_back({word, state.versions.back().stamp});
    state.flushed_as = why;
  });
}

void PersistencyModel::note_flush(u64 off, u64 bytes, Order why) {
  for_each_open(open_, off, bytes, [&](u32, OpenWord& state) { state.flushed_as = why; });
}

void PersistencyModel::fence(ThreadId thread) {
  const auto mine = captured_.find(thread);
  if (mine == captured_.end()) return;
  for (const Capture& capture : mine->second) {
    const auto found = open_.find(capture.word);
    if (found == open_.end()) continue;
    auto& versions = found->second.versions;
    // The captured version and all later ones remain possible. A word that another thread made durable meanwhile, and
    // that was stored again, has only later stamps: then this capture says nothing.
    std::size_t keep = 0;
    while (keep + 1 < versions.size() && versions[keep + 1].stamp <= capture.stamp) ++keep;
    if (keep == 0) continue;
    versions.erase(versions.begin(), versions.begin() + static_cast<std::ptrdiff_t>(keep));
    versions.front().stamp = 0;
    durable_log_.push_back({capture.word, versions.front().value});
    if (versions.size() == 1) open_.erase(found);
  }
  mine->second.clear();
}

void PersistencyModel::settle() {
  open_.clear();
  captured_.clear();
  durable_log_.clear();
}

std::vector<u64> PersistencyModel::durable_contents() const {
  std::vector<u64> durable = contents_;
  for (const auto& [word, state] : open_) durable[word] = state.versions.front().value;
  return durable;
}

}  // namespace pmfs::test
