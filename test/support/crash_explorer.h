// Crashes a recorded program everywhere, and looks at what is left.
//
// For each image that a power cut may leave (crash_states.h): open it (recovery), look at it, ask the judge. Then, for
// some of the images,
//   in recovery  the recovery itself is recorded and crashed everywhere, and recovered again: the same must come out;
//   in use       the image is worked with, until it is full and empty again.
// And for some moments of the program: the process is killed there, the next one opens the memory with everything that
// was in caches still there and still not durable, and then the power fails.
// Every failure says how to see it again.
#pragma once

#include <memory>

#include "test/support/crash_states.h"

namespace pmfs::test {

/// What can be opened in a memory and looked at: a file system, or a toy.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Opens, and recovers. @return what went wrong, empty if nothing did.
  virtual std::string open(Memory memory) = 0;
  /// Checks what was opened, and looks at all of it.
  virtual std::string look() = 0;
  /// Stands for what look() saw.
  virtual u64 fingerprint() const = 0;
  /// What look() saw, for people.
  virtual std::string explain() const = 0;
  /// Works with what was opened.
  virtual std::string use(Prng&) { return {}; }
  /// Lets go of it, as a process that ends without closing.
  virtual void drop() = 0;
};

/// Knows what may be seen, and when.
class Judge {
 public:
  virtual ~Judge() = default;
  virtual void happened(const Event&) {}
  /// @return why what the subject saw is wrong, empty if it is right.
  virtual std::string verdict(const Subject& subject) = 0;
  /// Differs wherever the verdict on one image may differ.
  virtual u64 phase() const { return 0; }
  /// Whether two crashes of one moment may show different things, although nothing was in flight.
  virtual bool is_exact() const { return true; }
};

struct ExploreOptions {
  std::string name;  // of the operation, for reports
  u64 seed = 1;
  u64 bound = 4096;  // images per place, about
  Layout layout = {};
  bool collapse = true;  // see make_cut()
  std::vector<LeftOut> left_out = {};
  std::set<Rule> switched_off = {};
  u32 recovery_once_in = 40;  // images whose recovery is crashed as well; 0: none
  u64 recovery_bound = 256;
  u32 use_once_in = 400;  // images that are used; 0: none. What no image showed before is always used
  u32 kill_points = 0;    // of explore_kills(): how often the process is killed, about; 0: behind each event
  u64 kill_bound = 64;
  u32 sample_once_in = 0;  // images given to on_sample (before recovery)
  std::function<void(std::span<const std::byte> image)> on_sample = {};
  u32 stop_after_failures = 3;
};

struct Report {
  std::string name;
  u32 live_words = 0, records = 0, headers = 0, fresh_words = 0;  // at the place with most of each
  u32 places = 0;
  u64 states = 0;  // distinct images judged
  u64 recovery_states = 0;
  u64 killed_states = 0;
  u64 followed_states = 0;  // behind a first crash, with operations in between
  u64 used = 0;
  bool exhaustive = true;  // over headers, records and live words, at every place
  std::vector<std::string> failures;

  bool clean() const { return failures.empty(); }
  u64 all_states() const { return states + recovery_states + killed_states + followed_states; }
  Report& operator+=(const Report& other);
};

/// One line: {words, states, exhaustive or sampled}.
std::string describe(const Report& report);
/// The failures, one paragraph each.
std::string describe_failures(const Report& report);

class Explorer {
 public:
  /// @param subject  opened and dropped once for each image.
  Explorer(Subject& subject, ExploreOptions options);
  /// Power cuts.
  Report explore(const Trace& trace, Judge& judge);
  /// Killed processes, and power cuts behind them. (A judge is used up by one exploration.)
  Report explore_kills(const Trace& trace, Judge& judge);

 private:
  struct Site;
  void at_place(const Place& place, const PersistencyModel& model, Judge& judge);
  void one_image(const Site& site, Judge& judge);
  void crash_recovery(const Site& site, u64 expected, Judge& judge);
  void kill_here(const PersistencyModel& model, const std::string& where, Judge& judge);
  void fail(const std::string& where, const std::string& why);
  bool enough() const { return report_.failures.size() >= options_.stop_after_failures; }

  Subject& subject_;
  ExploreOptions options_;
  Prng prng_;
  Report report_;
  std::unique_ptr<ImageMemory> image_;
  std::unique_ptr<SimMemory> recorder_;
  std::size_t log_done_ = 0;  // of the model's durable log, already in the image's base
  u64 base_hash_ = 0;
  std::vector<u64> base_;       // the image's base, for hashing what differs from the start
  std::set<u64> judged_;        // hashes of image and phase
  std::set<u64> fingerprints_;  // seen at all
};

/// Allows what `before` shows until the operation returns, and what `after` shows from its begin on: one operation,
/// marked with kBegin and kReturn.
class BeforeOrAfter : public Judge {
 public:
  BeforeOrAfter(u64 before, u64 after) : before_(before), after_(after) {}
  void happened(const Event& event) override;
  std::string verdict(const Subject& subject) override;
  u64 phase() const override { return u64{begun_} + u64{returned_}; }
  u64 after() const { return after_; }

 private:
  u64 before_, after_;
  bool begun_ = false, returned_ = false;
};

}  // namespace pmfs::test
