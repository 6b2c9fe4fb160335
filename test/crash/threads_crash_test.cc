// Two threads inside the file system at once, in directories of their own, in interleavings that a seed decides;
// crashed everywhere. Each directory must be as before or after the operation in flight there, whatever the other one
// is.
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "test/support/baton.h"
#include "test/support/catch.h"
#include "test/support/fs_scenario.h"
#include "test/support/text.h"

namespace pmfs::test {
namespace {

constexpr u32 kThreads = 2;
std::string top_of(u32 thread) { return text("/d", thread); }

// The part of what was seen that lies at `top` and below, as text.
std::string part_of(const SeenTree& tree, const std::string& top) {
  SeenTree part;
  for (const SeenNode& node : tree.nodes)
    if (node.path == top || node.path.starts_with(top + "/")) part.nodes.push_back(node);
  return to_text(part);
}

class PartsJudge : public Judge {
 public:
  /// @param parts  for each thread, its directory before its first operation and after each.
  explicit PartsJudge(std::vector<std::vector<std::string>> parts)
      : parts_(std::move(parts)), done_(parts_.size()), in_flight_(parts_.size()) {}
  void happened(const Event& event) override {
    if (event.kind == Event::Kind::kPoint) {
      // Decided, though not returned yet.
      if (std::string_view(event.name) == "commit.after_fence2" && in_flight_[event.thread]) decide(event.thread);
      return;
    }
    if (event.kind != Event::Kind::kMark) return;
    ++phase_;
    if (event.mark_kind == MarkKind::kBegin) in_flight_[event.thread] = true;
    if (event.mark_kind == MarkKind::kReturn && in_flight_[event.thread]) decide(event.thread);
  }
  std::string verdict(const Subject& subject) override {
    const SeenTree& seen = dynamic_cast<const FsSubject&>(subject).seen();
    for (u32 t = 0; t < parts_.size(); ++t) {
      const std::string part = part_of(seen, top_of(t));
      if (part == parts_[t][done_[t]] || (in_flight_[t] && part == parts_[t][done_[t] + 1])) continue;
      return text("thread ", t, "'s directory is wrong. found:\n", part, "  before:\n", parts_[t][done_[t]],
                  in_flight_[t] ? "  after:\n" + parts_[t][done_[t] + 1] : "");
    }
    return {};
  }
  u64 phase() const override { return phase_; }

 private:
  void decide(u32 thread) {
    in_flight_[thread] = false;
    ++done_[thread];
    ++phase_;
  }
  std::vector<std::vector<std::string>> parts_;
  std::vector<std::size_t> done_;
  std::vector<bool> in_flight_;
  u64 phase_ = 0;
};

// One operation in `dir`, on what is there.
void one_operation(User& user, const std::string& dir, u64 choice) {
  switch (choice % 8) {
    case 0: user.create(dir + "/new"); return;
    case 1: user.mkdir(dir + "/sub"); return;
    case 2: user.write(dir + "/f", 3000, some_bytes(3000, choice)); return;  // extends
    case 3: user.unlink(dir + "/g"); return;
    case 4: user.rename(dir + "/h", dir + "/f"); return;
    case 5: user.truncate(dir + "/f", 100); return;
    case 6: user.chmod(dir + "/f", 0600); return;
    default: user.link(dir + "/f", dir + "/link"); return;
  }
}

Report interleaved(u64 seed, const ScenarioOptions& options) {
  Prng prng(seed);
  SimFs world(SimFs::kSmall, SimFs::quiet(), options.switched_off);
  User user(world.fs(), world.memory().memory());
  std::vector<std::vector<std::string>> parts(kThreads);
  std::vector<std::vector<u64>> choices(kThreads);
  const auto look = [&](u32 thread) {
    SeenTree tree;
    const std::string wrong = see(world.fs(), tree, top_of(thread));
    parts[thread].push_back(wrong.empty() ? to_text([&] {
      SeenTree part;
      part.nodes = tree.nodes;
      return part;
    }())
                                          : wrong);
  };
  for (u32 t = 0; t < kThreads; ++t) {
    user.mkdir(top_of(t));
    for (const char* name : {"/f", "/g", "/h"}) user.create(top_of(t) + name);
    user.write(top_of(t) + "/f", 0, some_bytes(3000, t));
    look(t);
    const u64 first = prng.below(8);  // different operations, so that each finds what it needs
    choices[t] = {first, (first + 1 + prng.below(3)) % 8};
    if (choices[t] == std::vector<u64>{5, 2} || choices[t] == std::vector<u64>{4, 2}) choices[t].pop_back();
  }
  const auto program = [&](u32 thread) {
    return [&, thread] {
      User mine(world.fs(), world.memory().memory());
      for (u32 i = 0; i < choices[thread].size(); ++i) {
        world.memory().mark(MarkKind::kBegin, i);
        one_operation(mine, top_of(thread), choices[thread][i]);
        look(thread);
        world.memory().mark(MarkKind::kReturn, i);
      }
    };
  };
  world.memory().begin_trace();
  Baton::run(world.memory(), {program(0), program(1)}, [&](const std::vector<u32>& who, u32 holder, const Event*) {
    const bool stay = std::find(who.begin(), who.end(), holder) != who.end() && !prng.once_in(4);
    return stay ? holder : who[prng.below(who.size())];
  });
  const Trace trace = world.memory().end_trace();
  CHECK(world.memory().problem().empty());

  ExploreOptions explore;
  explore.name = text("interleaved, seed ", seed);
  explore.seed = seed;
  explore.bound = options.bound;
  explore.layout = world.layout();
  explore.left_out = options.left_out;
  explore.switched_off = options.switched_off;
  explore.recovery_once_in = options.recovery_once_in;
  explore.recovery_bound = 32;
  explore.use_once_in = options.use_once_in;
  FsSubject subject;
  PartsJudge judge(parts);
  return Explorer(subject, explore).explore(trace, judge);
}

TEST_CASE("threads: two in their own directories, in any interleaving, do not disturb each other's crash",
          "[crash][fs]") {
  const u64 seeds = long_form() ? 1500 : 60;
  ScenarioOptions options = usual_options();
  options.bound = 150;
  options.recovery_once_in = 100;
  options.use_once_in = 1000;
  Report sum;
  for (u64 seed = 1; seed <= seeds && sum.clean(); ++seed) sum += interleaved(seed, options);
  sum.name = text(seeds, " interleavings");
  std::puts(describe(sum).c_str());
  INFO(describe_failures(sum));
  CHECK(sum.clean());
}

}  // namespace
}  // namespace pmfs::test
