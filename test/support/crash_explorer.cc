#include "test/support/crash_explorer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"
#include "test/support/text.h"

namespace pmfs::test {

namespace {

u64 hash_of(WordValue w) { return mix(w.value ^ mix(u64{w.word} + 0x9e3779b97f4a7c15)); }

/// "place:pick,pick,..." in the environment looks at one image of one operation, for finding out about a failure.
struct Replay {
  bool asked = false;
  u32 place = 0;
  Picks picks;
};
Replay replay_asked() {
  Replay replay;
  const char* at = std::getenv("PMFS_REPLAY");
  if (at == nullptr) return replay;
  replay.asked = true;
  char* next = nullptr;
  replay.place = static_cast<u32>(std::strtoul(at, &next, 10));
  while (*next != 0) replay.picks.push_back(static_cast<u8>(std::strtoul(next + 1, &next, 10)));
  return replay;
}

std::string replay_text(u32 place, const Picks& picks) {
  std::string out = text("PMFS_REPLAY=", place, ":");
  for (std::size_t i = 0; i < picks.size(); ++i) out += text(i == 0 ? "" : ",", unsigned{picks[i]});
  return out;
}

}  // namespace

Report& Report::operator+=(const Report& o) {
  live_words = std::max(live_words, o.live_words), records = std::max(records, o.records);
  headers = std::max(headers, o.headers), fresh_words = std::max(fresh_words, o.fresh_words);
  places += o.places, states += o.states, recovery_states += o.recovery_states, killed_states += o.killed_states;
  followed_states += o.followed_states, used += o.used, exhaustive = exhaustive && o.exhaustive;
  failures.insert(failures.end(), o.failures.begin(), o.failures.end());
  return *this;
}

std::string describe(const Report& r) {
  return text(r.name, ": words {live ", r.live_words, ", records ", r.records, ", headers ", r.headers, ", fresh ",
              r.fresh_words, "}, places ", r.places, ", states ", r.states, " (",
              r.exhaustive ? "exhaustive" : "sampled", "), in recovery ", r.recovery_states, ", killed ",
              r.killed_states, ", after another crash ", r.followed_states, ", used ", r.used,
              r.clean() ? "" : text(", FAILURES ", r.failures.size()));
}

std::string describe_failures(const Report& report) {
  std::string out;
  for (const std::string& failure : report.failures) out += failure + "\n";
  return out;
}

// --- Explorer --------------------------------------------------------------------------------------------------------

// One image at one place.
struct Explorer::Site {
  const Cut& cut;
  const Picks& picks;
  const Place& place;
  std::vector<WordValue> words;

  std::string where() const { return describe(place) + "\n  " + describe(cut, picks); }
};

Explorer::Explorer(Subject& subject, ExploreOptions options)
    : subject_(subject), options_(std::move(options)), prng_(options_.seed) {
  report_.name = options_.name;
}

void Explorer::fail(const std::string& where, const std::string& why) {
  if (enough()) return;
  report_.failures.push_back(text(options_.name, " (seed ", options_.seed, "): ", why, "\n  ", where));
}

Report Explorer::explore(const Trace& trace, Judge& judge) {
  report_ = Report{};
  report_.name = options_.name;
  base_ = trace.start.durable_contents();
  image_ = std::make_unique<ImageMemory>(base_);
  image_->switch_off(options_.switched_off);
  log_done_ = 0;
  base_hash_ = 0;
  judged_.clear();
  walk(
      trace, Omissions(options_.left_out),
      [&](const Place& place, const PersistencyModel& model) { at_place(place, model, judge); },
      [&](const Event& event) { judge.happened(event); });
  return report_;
}

void Explorer::at_place(const Place& place, const PersistencyModel& model, Judge& judge) {
  if (enough()) return;
  // The image's base follows what has become durable.
  const auto& log = model.durable_log();
  const std::span<const WordValue> moved(log.begin() + static_cast<std::ptrdiff_t>(log_done_), log.end());
  image_->advance(moved);
  for (const WordValue& to : moved) {
    base_hash_ ^= hash_of({to.word, base_[to.word]}) ^ hash_of(to);
    base_[to.word] = to.value;
  }
  log_done_ = log.size();

  static const Replay replay = replay_asked();
  Prng cut_prng(mix(options_.seed) + place.number);  // of its own, so that one place can be repeated alone
  const Cut cut = make_cut(model, options_.layout, cut_prng, options_.collapse);
  ++report_.places;
  report_.live_words = std::max(report_.live_words, cut.live_words);
  report_.records = std::max(report_.records, cut.records);
  report_.headers = std::max(report_.headers, cut.headers);
  report_.fresh_words = std::max(report_.fresh_words, cut.fresh_words);

  const auto visit = [&](const Picks& picks) {
    if (enough()) return;
    Site site{cut, picks, place, words_of(cut, picks)};
    u64 hash = base_hash_;
    for (const WordValue& to : site.words) hash ^= hash_of({to.word, base_[to.word]}) ^ hash_of(to);
    if (!judged_.insert(mix(hash + judge.phase() * 0x9e3779b97f4a7c15)).second) return;
    one_image(site, judge);
  };
  if (replay.asked) {
    if (replay.place == place.number && replay.picks.size() == cut.choices.size()) visit(replay.picks);
    return;
  }
  report_.exhaustive &= for_each_picks(cut, options_.bound, cut_prng, visit).exhaustive;
}

void Explorer::one_image(const Site& site, Judge& judge) {
  ++report_.states;
  const auto failed = [&](const std::string& why) {
    fail(site.where() + "\n  again: " + replay_text(site.place.number, site.picks), why);
  };
  image_->apply(site.words);
  if (options_.sample_once_in != 0 && options_.on_sample && prng_.once_in(options_.sample_once_in))
    options_.on_sample(image_->contents());

  bool is_new = false;
  u64 fingerprint = 0;
  std::string problem = subject_.open(image_->memory());
  if (!problem.empty()) {
    failed("recovery: " + problem);
  } else if (problem = subject_.look(); !problem.empty()) {
    failed("check: " + problem);
  } else if (problem = judge.verdict(subject_); !problem.empty()) {
    failed(problem);
  } else {
    fingerprint = subject_.fingerprint();
    is_new = fingerprints_.insert(fingerprint).second;
    if (options_.use_once_in != 0 && (is_new || prng_.once_in(options_.use_once_in))) {
      ++report_.used;
      if (problem = subject_.use(prng_); !problem.empty()) failed("in use: " + problem);
    }
  }
  subject_.drop();
  // Whatever stored without saying so would be left behind here and confuse every image that follows.
  if ((is_new || report_.states % 64 == 0) && !image_->undone_completely())
    failed("recovery, check or use stored unannounced");
  image_->roll_back();

  if (problem.empty() && options_.recovery_once_in != 0 && (is_new || prng_.once_in(options_.recovery_once_in)))
    crash_recovery(site, fingerprint, judge);
}

void Explorer::crash_recovery(const Site& site, u64 expected, Judge& judge) {
  if (!recorder_) recorder_ = std::make_unique<SimMemory>(image_->memory().size_bytes);
  recorder_->switch_off(options_.switched_off);
  image_->apply(site.words);
  recorder_->load(image_->contents());
  image_->roll_back();
  recorder_->begin_trace();
  const std::string problem = subject_.open(recorder_->memory());
  const Trace trace = recorder_->end_trace();
  subject_.drop();
  if (!problem.empty() || !recorder_->problem().empty()) {
    fail(site.where(), "recovery, recorded: " + problem + recorder_->problem());
    return;
  }

  walk(trace, Omissions(options_.left_out), [&](const Place& place, const PersistencyModel& model) {
    const Cut cut = make_cut(model, options_.layout, prng_);
    for_each_picks(cut, options_.recovery_bound, prng_, [&](const Picks& picks) {
      if (enough()) return;
      ++report_.recovery_states;
      image_->apply(site.words);
      image_->apply(model.durable_log());
      image_->apply(words_of(cut, picks));
      std::string wrong = subject_.open(image_->memory());
      if (wrong.empty()) wrong = subject_.look();
      if (wrong.empty()) wrong = judge.verdict(subject_);
      if (wrong.empty() && subject_.fingerprint() != expected)
        wrong = "the second recovery shows something else than the first:\n" + subject_.explain();
      subject_.drop();
      image_->roll_back();
      if (!wrong.empty())
        fail(site.where() + "\n  then in recovery: " + describe(place) + "\n  " + describe(cut, picks), wrong);
    });
  });
}

// --- Killed, then cut off --------------------------------------------------------------------------------------------

Report Explorer::explore_kills(const Trace& trace, Judge& judge) {
  report_ = Report{};
  report_.name = options_.name;
  PersistencyModel model = trace.start;
  image_ = std::make_unique<ImageMemory>(model.durable_contents());
  image_->switch_off(options_.switched_off);
  if (!recorder_) recorder_ = std::make_unique<SimMemory>(image_->memory().size_bytes);
  recorder_->switch_off(options_.switched_off);

  const auto count = trace.events.size();
  const u64 once_in = options_.kill_points == 0 ? 1 : std::max<u64>(1, count / options_.kill_points);
  Omissions omissions(options_.left_out);
  for (std::size_t i = 0; i < count && !enough(); ++i) {
    const Event& event = trace.events[i];
    if (omissions.leaves_out(event)) {
      if (event.kind == Event::Kind::kFlush) model.note_flush(event.off, event.bytes, event.why);
    } else {
      trace.apply(event, model);
    }
    judge.happened(event);
    image_->advance(model.durable_log());
    model.clear_durable_log();
    if (prng_.once_in(once_in)) kill_here(model, text("killed behind event ", i), judge);
  }
  return report_;
}

void Explorer::kill_here(const PersistencyModel& model, const std::string& where, Judge& judge) {
  ++report_.places;
  PersistencyModel left = model;
  left.forget_threads();
  recorder_->load(std::move(left));
  recorder_->begin_trace();
  std::string problem = subject_.open(recorder_->memory());
  recorder_->mark(MarkKind::kReturn, 0);
  const Trace trace = recorder_->end_trace();
  if (problem.empty()) problem = recorder_->problem();
  if (problem.empty()) problem = subject_.look();
  if (problem.empty()) problem = judge.verdict(subject_);
  const u64 shown = problem.empty() ? subject_.fingerprint() : 0;
  subject_.drop();
  ++report_.killed_states;
  if (!problem.empty()) return fail(where, problem);

  bool opened = false;
  walk(
      trace, Omissions(options_.left_out),
      [&](const Place& place, const PersistencyModel& now) {
        const Cut cut = make_cut(now, options_.layout, prng_);
        for_each_picks(cut, options_.kill_bound, prng_, [&](const Picks& picks) {
          if (enough()) return;
          ++report_.killed_states;
          image_->apply(now.durable_log());
          image_->apply(words_of(cut, picks));
          std::string wrong = subject_.open(image_->memory());
          if (wrong.empty()) wrong = subject_.look();
          if (wrong.empty()) wrong = judge.verdict(subject_);
          if (wrong.empty() && opened && judge.is_exact() && subject_.fingerprint() != shown)
            wrong = "what the process after the killed one showed did not survive:\n" + subject_.explain();
          subject_.drop();
          image_->roll_back();
          if (!wrong.empty())
            fail(where + "\n  then the power failed: " + describe(place) + "\n  " + describe(cut, picks), wrong);
        });
      },
      [&](const Event& event) { opened |= event.kind == Event::Kind::kMark; });
}

// --- BeforeOrAfter ---------------------------------------------------------------------------------------------------

void BeforeOrAfter::happened(const Event& event) {
  if (event.kind != Event::Kind::kMark) return;
  begun_ |= event.mark_kind == MarkKind::kBegin;
  returned_ |= event.mark_kind == MarkKind::kReturn;
}

std::string BeforeOrAfter::verdict(const Subject& subject) {
  const u64 seen = subject.fingerprint();
  if (seen == after_ && (begun_ || before_ == after_)) return {};
  if (seen == before_ && !returned_) return {};
  if (seen == before_) return "the call had returned, and what it did is gone";
  return "neither before nor after:\n" + subject.explain();
}

}  // namespace pmfs::test
