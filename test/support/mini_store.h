// The smallest thing that runs the protocol: an epoch word, a lane area, and a few named words. For tests of lanes and
// commits that need no file system.
//
// Words 'a' and 'b' have a line each; 'c' and 'd' share one; every further letter has a line of its own.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/commit.h"
#include "base/quarantine.h"
#include "test/support/crash_explorer.h"

namespace pmfs::test {

class MiniStore {
 public:
  static constexpr u64 kLaneArea = 4096;
  static constexpr u64 kWords = (kLaneArea + media::kLaneAreaBytes + 4095) / 4096 * 4096;
  static constexpr u64 kSize = kWords + 4096;
  static constexpr Layout kLayout{kLaneArea};

  /// Makes an empty store: all lanes at sequence 1, epoch 1, all words 0.
  static void format(SimMemory& memory);

  /// Recovers and opens.
  explicit MiniStore(Memory memory, u32 lane_count = media::kLaneCount);

  Persist& persist() { return persist_; }
  Lanes& lanes() { return *lanes_; }
  /// What recovery said, if it failed.
  const std::string& problem() const { return problem_; }

  Le64& word(char name);
  u64 get(char name) { return word(name).get(); }

  /// One commit that stores `changes`, as an operation does that holds the locks of just these words.
  void run(const std::map<char, u64>& changes);
  /// The same on a lane of the test's choice.
  void run_on(u32 lane, const std::map<char, u64>& changes);
  /// The change that last touched a word.
  ChangeMark& last(char name) { return last_[name]; }

 private:
  Persist persist_;
  std::unique_ptr<Lanes> lanes_;
  std::map<char, ChangeMark> last_;
  std::string problem_;
};

/// What words may hold.
using Words = std::map<char, u64>;
std::string to_text(const Words& words);

/// Opens stores and looks at some of their words.
class MiniSubject : public Subject {
 public:
  /// @param lane_count  lanes that the programs used at most: the others need no recovery.
  explicit MiniSubject(std::string names = "abcd", u32 lane_count = 4)
      : names_(std::move(names)), lane_count_(lane_count) {}
  std::string open(Memory memory) override;
  std::string look() override;
  u64 fingerprint() const override;
  std::string explain() const override { return to_text(seen_); }
  void drop() override { store_.reset(); }
  const Words& seen() const { return seen_; }

 private:
  std::string names_;
  u32 lane_count_;
  std::optional<MiniStore> store_;
  Words seen_;
};

/// Operations that store words, of one thread or several: what had been decided when the power failed must be there,
/// and of what was in flight any part, each operation whole. An operation is begun by a mark, and decided by its return
/// or by the point "commit.after_fence2" of its thread.
class WordsJudge : public Judge {
 public:
  /// @param operations  by number, as given to marks.
  /// @param exact       whether all of them are commits; false if words are stored without a record.
  WordsJudge(Words start, std::vector<Words> operations, bool exact = true)
      : now_(std::move(start)), operations_(std::move(operations)), exact_(exact) {}
  void happened(const Event& event) override;
  std::string verdict(const Subject& subject) override;
  u64 phase() const override { return phase_; }
  bool is_exact() const override { return exact_; }

 private:
  Words now_;
  std::vector<Words> operations_;
  bool exact_;
  std::map<ThreadId, u32> in_flight_;
  u64 phase_ = 0;
};

}  // namespace pmfs::test
