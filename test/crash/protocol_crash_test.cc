// The two-fence protocol over lanes and commits alone: the scenarios that decided its rules, each once as it is (no
// crash shows anything wrong) and once with one rule or one flush or fence missing (a crash does: that is why it is
// there). The brute-force models that found them are restated here, with every word persisting on its own.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "test/support/baton.h"
#include "test/support/catch.h"
#include "test/support/mini_store.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

struct Fault {
  std::vector<LeftOut> left_out = {};
  std::set<Rule> off = {};
};

ExploreOptions options_for(const std::string& name, const Fault& fault) {
  ExploreOptions options;
  options.name = name;
  options.bound = 20000;
  options.layout = MiniStore::kLayout;
  options.left_out = fault.left_out;
  options.switched_off = fault.off;
  options.recovery_once_in = 4;
  options.use_once_in = 0;
  return options;
}

u64 total_states = 0;

Report explored(const std::string& name, const Trace& trace, Words start, std::vector<Words> operations,
                const Fault& fault, std::function<void(std::span<const std::byte>)> on_sample = {}, bool exact = true) {
  MiniSubject subject;
  ExploreOptions options = options_for(name, fault);
  if (on_sample) {
    options.sample_once_in = 1;
    options.on_sample = std::move(on_sample);
    options.recovery_once_in = 0;
  }
  WordsJudge judge(start, operations, exact);
  Report report = Explorer(subject, options).explore(trace, judge);
  if (report.clean() && !options.on_sample) {
    WordsJudge again(start, operations, exact);
    report += Explorer(subject, options).explore_kills(trace, again);
  }
  total_states += report.all_states();
  return report;
}

// --- Operations in sequence: lanes and threads of the test's choice --------------------------------------------------

struct Step {
  Words changes;
  u32 lane = 0;
  ThreadId thread = 0;
};

Report run_steps(const std::string& name, const std::vector<Step>& steps, const Fault& fault = {}) {
  SimMemory memory(MiniStore::kSize);
  memory.switch_off(fault.off);
  MiniStore::format(memory);
  memory.begin_trace();  // opening belongs to it: what it leaves undone would be missed by the operations
  MiniStore store(memory.memory());
  std::vector<Words> operations;
  for (u32 i = 0; i < steps.size(); ++i) {
    operations.push_back(steps[i].changes);
    const ActAs thread(steps[i].thread);
    memory.mark(MarkKind::kBegin, i);
    store.run_on(steps[i].lane, steps[i].changes);
    memory.mark(MarkKind::kReturn, i);
  }
  const Trace trace = memory.end_trace();
  CHECK(memory.problem().empty());
  return explored(name, trace, {}, operations, fault);
}

struct Sequence {
  const char* name;
  std::vector<Step> steps;
};
const std::vector<Sequence>& sequences() {
  static const std::vector<Sequence> all = {
      {"one lane, one thread", {{{{'a', 1}, {'b', 1}}}, {{{'a', 2}, {'c', 2}}}, {{{'c', 3}, {'d', 3}}}}},
      {"two lanes, one thread", {{{{'a', 1}, {'b', 1}}}, {{{'a', 2}, {'c', 2}}, 1}, {{{'a', 3}, {'d', 3}}}}},
      {"two lanes, two threads", {{{{'a', 1}, {'b', 1}}}, {{{'a', 2}, {'c', 2}}, 1, 1}, {{{'b', 3}, {'d', 3}}}}},
      {"one lane handed over", {{{{'a', 1}, {'b', 1}}}, {{{'c', 2}, {'d', 2}}, 0, 1}, {{{'a', 3}, {'d', 3}}}}},
      {"a value returns", {{{{'a', 1}, {'b', 1}}}, {{{'a', 0}, {'b', 0}}, 1, 1}, {{{'a', 1}, {'b', 1}}}}},
      {"new values equal old ones", {{{{'a', 0}, {'b', 1}}}, {{{'a', 0}, {'b', 0}}}}},
      {"nothing changes", {{{{'a', 0}, {'b', 0}}}, {{{'a', 1}}}, {{{'a', 1}}}}},
      {"opened by another thread", {{{{'a', 1}, {'b', 1}}, 0, 1}, {{{'a', 2}, {'c', 2}}, 0, 1}}},
      {"four words, two records", {{{{'a', 1}, {'b', 1}, {'c', 1}, {'d', 1}}}, {{{'a', 2}, {'d', 2}}, 1, 1}}},
  };
  return all;
}

TEST_CASE("protocol: every crash shows each operation whole or not at all", "[crash][base]") {
  for (const Sequence& sequence : sequences()) {
    const Report report = run_steps(sequence.name, sequence.steps);
    INFO(describe_failures(report));
    CHECK(report.clean());
    CHECK(report.exhaustive);
    std::puts(describe(report).c_str());
  }
}

// Which flushes and fences of a commit something depends on: each is left out in turn, and some sequence must notice.
TEST_CASE("protocol: no flush or fence of a commit can be left out", "[crash][base][mutation]") {
  for (const Order why :
       {Order::kRecord, Order::kOwnHeader, Order::kLastHeader, Order::kFence1, Order::kApplied, Order::kFence2}) {
    std::string noticed_by;
    for (const Sequence& sequence : sequences())
      if (!run_steps(sequence.name, sequence.steps, {{{why}}}).clean()) noticed_by += text(" [", sequence.name, "]");
    INFO("left out: " << order_name(why));
    CHECK_FALSE(noticed_by.empty());
    std::puts(text("without ", order_name(why), ": noticed by", noticed_by).c_str());
  }
}

TEST_CASE("protocol: without a fresh sequence for each commit a crash shows a mixture", "[crash][base][mutation]") {
  bool noticed = false;
  for (const Sequence& sequence : sequences())
    noticed |= !run_steps(sequence.name, sequence.steps, {{}, {Rule::kFreshSequence}}).clean();
  CHECK(noticed);
}

TEST_CASE("protocol: without the flush of the last change's header a crash undoes what had returned",
          "[crash][base][mutation]") {
  const std::vector<Step> steps = {{{{'a', 1}, {'b', 1}}}, {{{'a', 2}, {'c', 2}}, 1, 1}};
  CHECK(run_steps("with the rule", steps).clean());
  CHECK_FALSE(run_steps("without the rule", steps, {{}, {Rule::kFlushLastHeader}}).clean());
}

// --- Schedules S1 to S4 ----------------------------------------------------------------------------------------------

// S1: two crashes. A record that leaked before the first crash must not be taken for a record of an operation after it.
Report two_crashes(const Fault& fault) {
  SimMemory memory(MiniStore::kSize);
  memory.switch_off(fault.off);
  MiniStore::format(memory);
  MiniStore store(memory.memory());
  memory.settle();
  store.run_on(0, {{'a', 1}});
  memory.begin_trace();
  memory.mark(MarkKind::kBegin, 0);
  store.run_on(0, {{'a', 2}, {'b', 2}, {'c', 2}});
  const Trace first = memory.end_trace();

  Report second;
  SimMemory after(MiniStore::kSize);
  after.switch_off(fault.off);
  u32 crashes = 0;
  const auto go_on = [&](std::span<const std::byte> image) {
    // One in some: each is followed by a whole exploration.
    if (++crashes % 3 != 0 || !second.clean()) return;
    after.load(image);
    MiniStore reopened(after.memory());
    const Words start = {{'a', reopened.get('a')}, {'b', reopened.get('b')}, {'c', reopened.get('c')}, {'d', 0}};
    after.settle();
    after.begin_trace();
    // Another operation changes b, on another lane, and returns; then one on the first lane is in flight.
    after.mark(MarkKind::kBegin, 0);
    reopened.run_on(1, {{'b', 7}});
    after.mark(MarkKind::kReturn, 0);
    after.mark(MarkKind::kBegin, 1);
    reopened.run_on(0, {{'a', 4}, {'c', 4}, {'d', 4}});
    after.mark(MarkKind::kReturn, 1);
    const Report report =
        explored("second crash", after.end_trace(), start, {{{'b', 7}}, {{'a', 4}, {'c', 4}, {'d', 4}}}, fault);
    second += report;
  };
  Report report = explored("first crash", first, {{'a', 1}}, {{{'a', 2}, {'b', 2}, {'c', 2}}}, fault, go_on);
  report += second;
  return report;
}

TEST_CASE("protocol: a record leaked before one crash is no record after it", "[crash][base]") {
  const Report report = two_crashes({});
  INFO(describe_failures(report));
  CHECK(report.clean());
  std::puts(describe(report).c_str());
}

TEST_CASE("protocol: without the epoch in records a leaked one is taken for a later one", "[crash][base][mutation]") {
  CHECK_FALSE(two_crashes({{}, {Rule::kEpochInRecords}}).clean());
}

// S2 and R3: a word stored without a record, after a logged change of the same word.
Report lazy_word(const Fault& fault) {
  SimMemory memory(MiniStore::kSize);
  memory.switch_off(fault.off);
  MiniStore::format(memory);
  MiniStore store(memory.memory());
  memory.settle();
  memory.begin_trace();
  memory.mark(MarkKind::kBegin, 0);
  store.run_on(0, {{'a', 1}, {'b', 1}});
  memory.mark(MarkKind::kReturn, 0);
  memory.mark(MarkKind::kBegin, 1);
  Persist& persist = store.persist();
  if (persist.rule(Rule::kRetireBeforeLazy)) {
    const u64 read = store.lanes().flush_header(store.last('a').lane, Order::kRetireHeader);
    persist.fence(Order::kRetireFence);
    store.lanes().set_durable(store.last('a').lane, read);
  }
  persist.store(store.word('a'), 5);
  persist.flush(&store.word('a'), sizeof(u64), Order::kLazyTimes);
  const Trace trace = memory.end_trace();
  return explored("lazy word", trace, {}, {{{'a', 1}, {'b', 1}}, {{'a', 5}}}, fault, {}, false);
}

TEST_CASE("protocol: a word stored without a record takes nothing with it", "[crash][base]") {
  const Report report = lazy_word({});
  INFO(describe_failures(report));
  CHECK(report.clean());
}

TEST_CASE("protocol: stored before the last change is retired, an unlogged word undoes it", "[crash][base][mutation]") {
  CHECK_FALSE(lazy_word({{}, {Rule::kRetireBeforeLazy}}).clean());
  CHECK_FALSE(lazy_word({{{Order::kRetireHeader}}}).clean());
  CHECK_FALSE(lazy_word({{{Order::kRetireFence}}}).clean());
}

// S3 and R4: an unlink (name a, inode word b) frees a slot; the next create writes fresh contents (b) into it.
Report slot_reused(const Fault& fault) {
  SimMemory memory(MiniStore::kSize);
  memory.switch_off(fault.off);
  MiniStore::format(memory);
  MiniStore store(memory.memory());
  Persist& persist = store.persist();
  persist.store(store.word('a'), 1);
  persist.store(store.word('b'), 1);
  memory.settle();
  bool free = false;
  ReadSections readers;
  Quarantine quarantine(store.lanes(), persist, readers, [&](const Freed&) { free = true; });
  memory.begin_trace();
  memory.mark(MarkKind::kBegin, 0);
  store.run_on(0, {{'a', 0}, {'b', 0}});
  memory.mark(MarkKind::kReturn, 0);
  quarantine.add({store.last('b'), {}, {1}});
  quarantine.collect();
  memory.mark(MarkKind::kBegin, 1);
  if (!free) {
    CHECK(quarantine.drain());
    CHECK(free);
  }
  persist.store(store.word('b'), 9);  // by an operation that is not going to run
  const Trace trace = memory.end_trace();
  return explored("slot reused", trace, {{'a', 1}, {'b', 1}}, {{{'a', 0}, {'b', 0}}, {{'b', 9}}}, fault, {}, false);
}

TEST_CASE("protocol: what a commit freed is not brought back with other contents", "[crash][base]") {
  const Report report = slot_reused({});
  INFO(describe_failures(report));
  CHECK(report.clean());
}

TEST_CASE("protocol: reused before its bump is ordered, a freed slot comes back", "[crash][base][mutation]") {
  CHECK_FALSE(slot_reused({{}, {Rule::kQuarantine}}).clean());
  CHECK_FALSE(slot_reused({{{Order::kDrainHeader}}}).clean());
  CHECK_FALSE(slot_reused({{{Order::kDrainFence}}}).clean());
}

// reuse.py: the freed state word b is set again by a commit of another thread, with contents elsewhere (d).
TEST_CASE("protocol: a freed slot taken by another thread's commit shows old and new contents never mixed",
          "[crash][base]") {
  SimMemory memory(MiniStore::kSize);
  MiniStore::format(memory);
  MiniStore store(memory.memory());
  Persist& persist = store.persist();
  for (const char name : {'a', 'b', 'd'}) persist.store(store.word(name), 1);
  memory.settle();
  memory.begin_trace();
  memory.mark(MarkKind::kBegin, 0);
  store.run_on(0, {{'a', 0}, {'b', 0}});
  memory.mark(MarkKind::kReturn, 0);
  const ActAs other(1);
  persist.store(store.word('d'), 9);
  persist.flush(&store.word('d'), sizeof(u64), Order::kFreshInode);
  memory.mark(MarkKind::kBegin, 1);
  store.run_on(1, {{'c', 5}, {'b', 1}});
  memory.mark(MarkKind::kReturn, 1);
  const Trace trace = memory.end_trace();

  // d is contents: it means nothing unless b says so.
  MiniSubject subject;
  struct SlotJudge : WordsJudge {
    using WordsJudge::WordsJudge;
    std::string verdict(const Subject& seen_by) override {
      const Words& seen = dynamic_cast<const MiniSubject&>(seen_by).seen();
      const bool first = seen.at('a') == 1 && seen.at('b') == 1 && seen.at('c') == 0 && seen.at('d') == 1;
      const bool freed = seen.at('a') == 0 && seen.at('b') == 0 && seen.at('c') == 0;
      const bool taken = seen.at('a') == 0 && seen.at('b') == 1 && seen.at('c') == 5 && seen.at('d') == 9;
      return first || freed || taken ? "" : "found " + to_text(seen);
    }
  } judge({}, {{}, {}});
  const Report report = Explorer(subject, options_for("slot taken", {})).explore(trace, judge);
  INFO(describe_failures(report));
  CHECK(report.clean());
}

// Words shared by objects with different locks are why R2 forbids them: another thread changes c while A, decided, has
// not bumped its lane yet.
TEST_CASE("protocol: a word shared without a common lock lets a crash undo what had returned",
          "[crash][base][mutation]") {
  SimMemory memory(MiniStore::kSize);
  MiniStore::format(memory);
  MiniStore store(memory.memory());
  memory.settle();
  memory.begin_trace();
  Baton::run(memory,
             {[&] {
                memory.mark(MarkKind::kBegin, 0);
                store.run({{'a', 1}, {'c', 1}});
                memory.mark(MarkKind::kReturn, 0);
              },
              [&] {
                memory.mark(MarkKind::kBegin, 1);
                store.run({{'b', 1}, {'c', store.get('c') | 2}});
                memory.mark(MarkKind::kReturn, 1);
              }},
             [](const std::vector<u32>& who, u32 holder, const Event* last) {
               if (who.size() == 1) return who.front();
               if (holder == 1) return u32{1};
               return last != nullptr && std::string_view(last->name) == "commit.after_fence2" ? u32{1} : u32{0};
             });
  const Report report =
      explored("shared word", memory.end_trace(), {}, {{{'a', 1}, {'c', 1}}, {{'b', 1}, {'c', 3}}}, {});
  CHECK_FALSE(report.clean());
}

// R1: an operation writes records and fails. If its sequence is used again, a crash can mix its records with the next
// operation's. (Commit never does this: everything that can fail has failed before it writes the first record.)
Report given_up(bool skip_sequence) {
  SimMemory memory(MiniStore::kSize);
  MiniStore::format(memory);
  MiniStore store(memory.memory(), 1);
  Persist& persist = store.persist();
  memory.settle();
  memory.begin_trace();
  struct GivenUp {};
  memory.on_event([](const Event& event) {
    if (event.kind == Event::Kind::kStore) throw GivenUp{};  // behind the first of two records
  });
  CHECK_THROWS_AS(store.run({{'a', 8}, {'b', 8}, {'c', 8}}), GivenUp);
  memory.on_event({});
  store.lanes().release(0);
  media::LaneHeader& header = store.lanes().header(0);
  if (skip_sequence) persist.store(header.sequence, header.sequence.get() + 1);
  {
    const ActAs other(1);  // another thread changes b for good
    memory.mark(MarkKind::kBegin, 0);
    persist.store(store.word('b'), 7);
    persist.flush(&store.word('b'), sizeof(u64), Order::kApplied);
    persist.fence(Order::kFence2);
    memory.mark(MarkKind::kReturn, 0);
  }
  memory.mark(MarkKind::kBegin, 1);
  store.run({{'a', 4}, {'c', 4}, {'d', 4}});
  memory.mark(MarkKind::kReturn, 1);
  return explored("given up", memory.end_trace(), {}, {{{'b', 7}}, {{'a', 4}, {'c', 4}, {'d', 4}}}, {}, {}, false);
}

TEST_CASE("protocol: records of an operation that failed are never mixed with the next one's", "[crash][base]") {
  const Report report = given_up(true);
  INFO(describe_failures(report));
  CHECK(report.clean());
}

TEST_CASE("protocol: a sequence that serves two sets of records lets a crash mix them", "[crash][base][mutation]") {
  CHECK_FALSE(given_up(false).clean());
}

// S4: two threads, a few operations each, on words under locks, in an interleaving that the seed decides.
Report interleaved(u64 seed, const Fault& fault) {
  Prng prng(seed);
  SimMemory memory(MiniStore::kSize);
  memory.switch_off(fault.off);
  MiniStore::format(memory);
  MiniStore store(memory.memory(), 2);
  memory.settle();

  std::vector<Words> operations;
  u64 next_value = 0;
  for (u32 i = 0; i < 5; ++i) {
    Words changes;
    const u64 count = 1 + prng.below(3);
    while (changes.size() < count) changes[static_cast<char>('a' + prng.below(4))] = ++next_value;
    operations.push_back(changes);
  }
  std::set<char> locked;
  const auto try_lock = [&](const Words& words) {
    for (const auto& [name, value] : words)
      if (locked.contains(name)) return false;
    for (const auto& [name, value] : words) locked.insert(name);
    return true;
  };
  const auto program = [&](u32 first) {
    return [&, first] {
      for (u32 i = first; i < operations.size(); i += 2) {
        while (!try_lock(operations[i])) memory.point("test.waits");
        memory.mark(MarkKind::kBegin, i);
        store.run(operations[i]);
        memory.mark(MarkKind::kReturn, i);
        for (const auto& [name, value] : operations[i]) locked.erase(name);
      }
    };
  };
  memory.begin_trace();
  Baton::run(memory, {program(0), program(1)}, [&](const std::vector<u32>& who, u32 holder, const Event*) {
    // Stretches of one thread's events, some of them long: an error often needs one thread to run far ahead.
    const bool stay = std::find(who.begin(), who.end(), holder) != who.end() && !prng.once_in(3);
    return stay ? holder : who[prng.below(who.size())];
  });
  MiniSubject subject;
  ExploreOptions options = options_for(text("interleaved, seed ", seed), fault);
  options.seed = seed;
  options.bound = 250;
  options.recovery_once_in = 60;
  options.recovery_bound = 32;
  WordsJudge judge({}, operations);
  const Report report = Explorer(subject, options).explore(memory.end_trace(), judge);
  total_states += report.all_states();
  return report;
}

TEST_CASE("protocol: two threads in any interleaving leave what had returned, whole", "[crash][base]") {
  const u64 seeds = std::getenv("PMFS_LONG") != nullptr ? 3000 : 200;
  Report sum;
  sum.name = text("two threads, ", seeds, " interleavings");
  for (u64 seed = 1; seed <= seeds && sum.clean(); ++seed) sum += interleaved(seed, {});
  INFO(describe_failures(sum));
  CHECK(sum.clean());
  std::puts(describe(sum).c_str());
}

TEST_CASE("protocol: interleaved threads show every missing flush, fence and rule", "[crash][base][mutation]") {
  const auto seeds_until_noticed = [](const Fault& fault) {
    for (u64 seed = 1; seed <= 200; ++seed)
      if (!interleaved(seed, fault).clean()) return seed;
    return u64{0};
  };
  for (const Order why :
       {Order::kRecord, Order::kOwnHeader, Order::kLastHeader, Order::kFence1, Order::kApplied, Order::kFence2}) {
    const u64 seed = seeds_until_noticed({{{why}}});
    INFO("left out: " << order_name(why));
    CHECK(seed != 0);
    std::puts(text("interleaved, without ", order_name(why), ": noticed with seed ", seed).c_str());
  }
  for (const Rule rule : {Rule::kFlushLastHeader, Rule::kFreshSequence}) CHECK(seeds_until_noticed({{}, {rule}}) != 0);
}

TEST_CASE("protocol: the recovery's own flushes and fences cannot be left out", "[crash][base][mutation]") {
  for (const Order why : {Order::kUndo, Order::kUndoFence, Order::kEpoch, Order::kEpochFence}) {
    std::string noticed_by;
    for (const Sequence& sequence : sequences())
      if (!run_steps(sequence.name, sequence.steps, {{{why}}}).clean()) noticed_by += text(" [", sequence.name, "]");
    if (!two_crashes({{{why}}}).clean()) noticed_by += " [two crashes]";
    INFO("left out: " << order_name(why));
    CHECK_FALSE(noticed_by.empty());
    std::puts(text("without ", order_name(why), ": noticed by", noticed_by).c_str());
  }
}

TEST_CASE("protocol: enough states were looked at", "[crash][base]") {
  std::puts(text("protocol: ", total_states, " states").c_str());
}

}  // namespace
}  // namespace pmfs::test
