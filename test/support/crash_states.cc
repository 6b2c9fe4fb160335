#include "test/support/crash_states.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/assert.h"
#include "base/lane_format.h"
#include "test/support/text.h"

namespace pmfs::test {

namespace {

constexpr u64 kLine = 64;
constexpr u64 kWordsPerLine = kLine / 8;
constexpr u64 kHeadersBytes = media::kLaneCount * sizeof(media::LaneHeader);

// Tags of contents that nothing points to until a live word says so.
bool is_fresh(Order why) {
  switch (why) {
    case Order::kFreshInode:
    case Order::kFreshEntry:
    case Order::kFreshLeaf:
    case Order::kFreshNode:
    case Order::kFreshIndex:
    case Order::kFreshData:
    case Order::kFreshArea:
    case Order::kFreshTarget:
    case Order::kFreshSlots:
    case Order::kSavedMap:
    case Order::kFormat: return true;
    default: return false;
  }
}

// Values a word may have, without repetitions: the durable one first, the latest second.
std::vector<u64> values_of(const OpenWord& state) {
  std::vector<u64> values{state.versions.front().value};
  const auto add = [&](u64 value) {
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  };
  add(state.versions.back().value);
  for (const OpenWord::Version& version : state.versions) add(version.value);
  return values;
}

using OpenWords = std::vector<std::pair<u32, const OpenWord*>>;

Choice word_choice(Part part, u32 word, const OpenWord& state) {
  Choice choice{part, u64{word} * 8, {{}}};
  const std::vector<u64> values = values_of(state);
  for (std::size_t i = 1; i < values.size(); ++i) choice.options.push_back({{word, values[i]}});
  return choice;
}

// A record: as it was, as it is, as it was after each earlier whole writing of it, and torn.
Choice record_choice(const OpenWords& words, Prng& prng) {
  Choice choice{Part::kRecord, u64{words.front().first} * 8, {{}, {}}};
  for (const auto& [word, state] : words) choice.options[1].push_back({word, state->versions.back().value});
  // A record is written at once, its checksum (the last word of the line) last, and the checksum always changes: so the
  // checksum's versions tell when the record was whole.
  const auto& [last_word, checksum] = words.back();
  if (last_word % kWordsPerLine == kWordsPerLine - 1) {
    for (std::size_t i = 0; i + 1 < checksum->versions.size(); ++i) {
      const u64 whole_at = checksum->versions[i].stamp;
      if (whole_at == 0) continue;
      std::vector<WordValue> then;
      for (const auto& [word, state] : words) {
        u64 value = state->versions.front().value;
        for (const OpenWord::Version& version : state->versions)
          if (version.stamp <= whole_at) value = version.value;
        then.push_back({word, value});
      }
      choice.options.push_back(std::move(then));
    }
  }
  // Torn: some words new, and the rest old.
  if (words.size() > 1) {
    std::vector<WordValue> torn;
    const std::size_t missing = prng.below(words.size());
    for (std::size_t i = 0; i < words.size(); ++i)
      if (i != missing && (prng.coin() || i == (missing + 1) % words.size()))
        torn.push_back({words[i].first, words[i].second->versions.back().value});
    choice.options.push_back(std::move(torn));
    std::vector<WordValue> all_but_one = choice.options[1];
    all_but_one.erase(all_but_one.begin() + static_cast<std::ptrdiff_t>(prng.below(words.size())));
    choice.options.push_back(std::move(all_but_one));
  }
  return choice;
}

// Contents as a whole: old, new, by tag, mixed.
Choice contents_choice(Part part, const OpenWords& words, Prng& prng) {
  constexpr u32 kMixtures = 2;
  Choice choice{part, u64{words.front().first} * 8, {{}, {}}};
  std::map<Order, u32> tags;
  for (const auto& [word, state] : words) {
    choice.options[1].push_back({word, state->versions.back().value});
    if (state->flushed_as) ++tags[*state->flushed_as];
  }
  if (tags.size() > 1) {
    for (const auto& [tag, count] : tags) {
      std::vector<WordValue> only, others;
      for (const auto& [word, state] : words)
        (state->flushed_as == tag ? only : others).push_back({word, state->versions.back().value});
      choice.options.push_back(std::move(only));
      choice.options.push_back(std::move(others));
    }
  }
  if (words.size() > 1) {
    for (u32 i = 0; i < kMixtures; ++i) {
      std::vector<WordValue> mixed;
      for (const auto& [word, state] : words) {
        const std::vector<u64> values = values_of(*state);
        const u64 pick = prng.below(values.size());
        if (pick != 0) mixed.push_back({word, values[pick]});
      }
      choice.options.push_back(std::move(mixed));
    }
  }
  return choice;
}

}  // namespace

Cut make_cut(const PersistencyModel& model, const Layout& layout, Prng& prng, bool collapse) {
  OpenWords all;
  all.reserve(model.open().size());
  for (const auto& [word, state] : model.open()) all.emplace_back(word, &state);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });

  Cut cut;
  cut.open_words = static_cast<u32>(all.size());
  OpenWords record, fresh, data;
  const auto end_record = [&] {
    if (record.empty()) return;
    cut.choices.push_back(record_choice(record, prng));
    ++cut.records;
    record.clear();
  };
  for (const auto& [word, state] : all) {
    const u64 off = u64{word} * 8;
    if (!collapse) {
      cut.choices.push_back(word_choice(Part::kLive, word, *state));
      ++cut.live_words;
      continue;
    }
    if (layout.lane_area != 0 && off >= layout.lane_area && off < layout.lane_area + media::kLaneAreaBytes) {
      if (off < layout.lane_area + kHeadersBytes) {
        cut.choices.push_back(word_choice(Part::kHeader, word, *state));
        ++cut.headers;
        continue;
      }
      if (!record.empty() && record.front().first / kWordsPerLine != word / kWordsPerLine) end_record();
      record.emplace_back(word, state);
      continue;
    }
    if (state->flushed_as && is_fresh(*state->flushed_as)) {
      fresh.emplace_back(word, state);
    } else if (state->flushed_as && *state->flushed_as == Order::kOverwriteData) {
      data.emplace_back(word, state);
    } else {
      cut.choices.push_back(word_choice(Part::kLive, word, *state));
      ++cut.live_words;
    }
  }
  end_record();
  cut.fresh_words = static_cast<u32>(fresh.size() + data.size());
  if (!fresh.empty()) cut.choices.push_back(contents_choice(Part::kFresh, fresh, prng));
  if (!data.empty()) cut.choices.push_back(contents_choice(Part::kData, data, prng));
  // A word that had its old value again in between has one value only.
  std::erase_if(cut.choices, [](const Choice& choice) { return choice.options.size() < 2; });
  return cut;
}

std::vector<WordValue> words_of(const Cut& cut, const Picks& picks) {
  std::vector<WordValue> words;
  for (std::size_t i = 0; i < picks.size(); ++i) {
    const std::vector<WordValue>& option = cut.choices[i].options[picks[i]];
    words.insert(words.end(), option.begin(), option.end());
  }
  return words;
}

// --- Enumeration -----------------------------------------------------------------------------------------------------

namespace {

constexpr u64 kTooMany = ~u64{0};

u64 product(const Cut& cut, const std::function<bool(const Choice&)>& counted, u64 stop_above) {
  u64 n = 1;
  for (const Choice& choice : cut.choices) {
    if (!counted(choice)) continue;
    n *= choice.options.size();
    if (n > stop_above) return kTooMany;
  }
  return n;
}

bool is_contents(const Choice& choice) { return choice.part == Part::kFresh || choice.part == Part::kData; }

u8 any_option(const Choice& choice, Prng& prng) { return static_cast<u8>(prng.below(choice.options.size())); }

// All combinations of the choices that `moves` names; the others are left alone.
template <class Moves, class Fn>
void odometer(const Cut& cut, Picks& picks, Moves moves, Fn fn) {
  for (;;) {
    fn();
    std::size_t i = 0;
    for (; i < picks.size(); ++i) {
      if (!moves(cut.choices[i])) continue;
      if (++picks[i] < cut.choices[i].options.size()) break;
      picks[i] = 0;
    }
    if (i == picks.size()) return;
  }
}

void sample(const Cut& cut, u64 bound, Prng& prng, const std::function<void(const Picks&)>& fn) {
  const std::size_t n = cut.choices.size();
  u64 given = 0;
  const auto give = [&](const Picks& picks) {
    fn(picks);
    ++given;
  };
  const Picks none(n, 0), all(n, 1);
  give(none);
  give(all);
  for (std::size_t i = 0; i < n && given < bound; ++i) {
    for (u8 option = 1; option < cut.choices[i].options.size(); ++option) {
      Picks single = none;
      single[i] = option;
      give(single);
    }
    for (u8 option = 0; option < cut.choices[i].options.size(); ++option) {
      if (option == 1) continue;
      Picks complement = all;
      complement[i] = option;
      give(complement);
    }
  }
  for (std::size_t i = 0; i < n && given < bound / 2; ++i)
    for (std::size_t j = i + 1; j < n && given < bound / 2; ++j) {
      Picks pair = none;
      pair[i] = pair[j] = 1;
      give(pair);
      pair = all;
      pair[i] = pair[j] = 0;
      give(pair);
    }
  while (given < bound) {
    Picks picks(n);
    // Mostly old and mostly new images too: an error often needs nearly all of one kind.
    const u64 style = prng.below(3);
    for (std::size_t i = 0; i < n; ++i) {
      const bool plain = style != 2 && !prng.once_in(4);
      picks[i] = plain ? static_cast<u8>(style) : any_option(cut.choices[i], prng);
    }
    give(picks);
  }
}

}  // namespace

Enumerated for_each_picks(const Cut& cut, u64 bound, Prng& prng, const std::function<void(const Picks&)>& fn) {
  Enumerated done;
  const auto give = [&](const Picks& picks) {
    ++done.states;
    fn(picks);
  };
  const auto everything = [](const Choice&) { return true; };
  const auto live = [](const Choice& choice) { return !is_contents(choice); };
  Picks picks(cut.choices.size(), 0);
  if (product(cut, everything, bound) != kTooMany) {
    odometer(cut, picks, everything, [&] { give(picks); });
    return done;
  }
  if (product(cut, live, bound) != kTooMany) {
    odometer(cut, picks, live, [&] {
      Picks variant = picks;
      for (const u8 whole : {u8{0}, u8{1}, u8{2}}) {
        for (std::size_t i = 0; i < variant.size(); ++i)
          if (is_contents(cut.choices[i])) variant[i] = whole < 2 ? whole : any_option(cut.choices[i], prng);
        give(variant);
      }
    });
    return done;
  }
  done.exhaustive = false;
  sample(cut, bound, prng, give);
  return done;
}

// --- Reports ---------------------------------------------------------------------------------------------------------

namespace {
const char* part_name(Part part) {
  switch (part) {
    case Part::kHeader: return "header";
    case Part::kRecord: return "record";
    case Part::kLive: return "word";
    case Part::kFresh: return "fresh";
    case Part::kData: return "data";
  }
  return "?";
}
}  // namespace

std::string describe(const Cut& cut, const Picks& picks) {
  std::string out;
  for (std::size_t i = 0; i < picks.size(); ++i) {
    const Choice& choice = cut.choices[i];
    out += text(i == 0 ? "" : " ", part_name(choice.part), "@", hex(choice.off), "=");
    switch (picks[i]) {
      case 0: out += "old"; break;
      case 1: out += "new"; break;
      default: out += text("#", unsigned{picks[i]});
    }
  }
  return out;
}

std::string describe(const Place& place) {
  std::string where = text("place ", place.number, ", event ", place.event_index, ": ");
  if (place.event == nullptr) return where + "at the end";
  if (place.event->kind == Event::Kind::kFence) return where + "before the fence " + order_name(place.event->why);
  return where +
         text(place.event->mark_kind == MarkKind::kBegin ? "before " : "after ", "operation ", place.event->mark);
}

void walk(const Trace& trace, Omissions omissions,
          const std::function<void(const Place&, const PersistencyModel&)>& at_place,
          const std::function<void(const Event&)>& at_event) {
  PersistencyModel model = trace.start;
  u32 number = 0;
  const auto look = [&](const Event* event, std::size_t index) { at_place({event, index, number++}, model); };
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    const bool left_out = omissions.leaves_out(event);
    const bool begins = event.kind == Event::Kind::kMark && event.mark_kind == MarkKind::kBegin;
    if (begins || (event.kind == Event::Kind::kFence && !left_out)) look(&event, i);
    if (!left_out)
      trace.apply(event, model);
    else if (event.kind == Event::Kind::kFlush)
      model.note_flush(event.off, event.bytes, event.why);
    if (at_event) at_event(event);
    if (event.kind == Event::Kind::kMark && event.mark_kind == MarkKind::kReturn) look(&event, i);
  }
  look(nullptr, trace.events.size());
}

// --- ImageMemory -----------------------------------------------------------------------------------------------------

ImageMemory::ImageMemory(std::span<const u64> base)
    : buffer_(base.size_bytes()), base_(base.size_bytes()), dirty_(base.size_bytes() / kLine / 64 + 1) {
  std::memcpy(buffer_.data(), base.data(), base.size_bytes());
  std::memcpy(base_.data(), base.data(), base.size_bytes());
  sim_add(this, buffer_.data(), buffer_.size());
}
ImageMemory::~ImageMemory() { sim_remove(this); }

void ImageMemory::advance(std::span<const WordValue> words) {
  PMFS_ASSERT(dirty_lines_.empty());
  for (const WordValue& to : words) {
    std::memcpy(buffer_.data() + u64{to.word} * 8, &to.value, 8);
    std::memcpy(base_.data() + u64{to.word} * 8, &to.value, 8);
  }
}

void ImageMemory::touch(u64 off, u64 bytes) {
  for (u64 line = off / kLine; line <= (off + bytes - 1) / kLine; ++line) {
    u64& bits = dirty_[line / 64];
    const u64 bit = u64{1} << line % 64;
    if ((bits & bit) != 0) continue;
    bits |= bit;
    dirty_lines_.push_back(static_cast<u32>(line));
  }
}

void ImageMemory::apply(std::span<const WordValue> words) {
  for (const WordValue& to : words) {
    touch(u64{to.word} * 8, 8);
    std::memcpy(buffer_.data() + u64{to.word} * 8, &to.value, 8);
  }
}

void ImageMemory::roll_back() {
  for (const u32 line : dirty_lines_) {
    std::memcpy(buffer_.data() + line * kLine, base_.data() + line * kLine, kLine);
    dirty_[line / 64] &= ~(u64{1} << line % 64);
  }
  dirty_lines_.clear();
}

bool ImageMemory::undone_completely() const {
  for (u64 line = 0; line < buffer_.size() / kLine; ++line) {
    if ((dirty_[line / 64] >> line % 64 & 1) != 0) continue;
    if (std::memcmp(buffer_.data() + line * kLine, base_.data() + line * kLine, kLine) != 0) return false;
  }
  return true;
}

void ImageMemory::stored(const void* at, std::size_t bytes) {
  if (bytes == 0) return;
  const u64 off = static_cast<u64>(static_cast<const std::byte*>(at) - buffer_.data());
  PMFS_ASSERT(off <= buffer_.size() && bytes <= buffer_.size() - off);
  touch(off, bytes);
}

}  // namespace pmfs::test
