// The images that a power cut may leave, built from a trace.
//
// Where to cut. Let S(t) be the set of images possible at moment t. Between two fences no word becomes durable (only a
// fence does that, M2), and each store only adds a value to those its word may have. So S only grows between two
// fences, and the images just before a fence include those of every earlier moment since the last one; a fence only
// takes images away. What is allowed changes only where an operation begins (it may show from then on) or returns (it
// must). So it suffices to look just before each fence, just before each begin, and just after each return: every image
// of another moment is among those of the next such place, and is judged there no more mildly.
//
// Which images. A cut has one choice for each of these, and an image takes one option of every choice:
//   lane header    one of the values it may have;
//   record         (64 bytes, in a lane) old, new, or torn: recovery believes a record only if its checksum is right,
//   so
//                  all torn ones are alike; two are tried;
//   live word      one of the values it may have: words named by a record, and every word of which nothing else is
//   known; fresh          everything flushed as contents that nothing points to yet: old, new, the lines of one tag
//   only, all
//                  lines but one tag's, seeded mixtures of words. Nothing reads them until a live word says so, and
//                  then all of them must be durable: they are no choice any more. collapse_crash_test.cc tests this
//                  word by word;
//   data           overwritten in place: as fresh.
// If the product of all options is above the bound, live parts (headers, records, live words) are still taken in all
// combinations if those are within it, with fresh and data old, new and mixed by turns; otherwise a sample is taken:
// none, all, singles, complements, pairs, and seeded random picks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "test/support/prng.h"
#include "test/support/sim_persist.h"

namespace pmfs::test {

/// Where lanes lie, so that headers and records can be told from other words. 0: nowhere.
struct Layout {
  u64 lane_area = 0;
};

enum class Part : u8 { kHeader, kRecord, kLive, kFresh, kData };

/// One thing that may be found in several states.
struct Choice {
  Part part{};
  u64 off = 0;                                  // of its first word, for reports
  std::vector<std::vector<WordValue>> options;  // [0] durable (empty: nothing changes), [1] latest, then others
};

struct Cut {
  std::vector<Choice> choices;
  u32 open_words = 0;
  u32 live_words = 0;
  u32 records = 0;
  u32 headers = 0;
  u32 fresh_words = 0;
};

/// One image: an option for every choice.
using Picks = std::vector<u8>;

/// @param collapse  false: every open word is a choice of its own, whatever is known of it (to test the collapse).
Cut make_cut(const PersistencyModel& model, const Layout& layout, Prng& prng, bool collapse = true);

struct Enumerated {
  u64 states = 0;
  bool exhaustive = true;  // over headers, records and live words
};

/// Calls `fn` for each image of the cut, at most about `bound` of them (see above).
Enumerated for_each_picks(const Cut& cut, u64 bound, Prng& prng, const std::function<void(const Picks&)>& fn);

/// The words of an image that differ from the durable ones.
std::vector<WordValue> words_of(const Cut& cut, const Picks& picks);

/// For reports: what was picked, in one line.
std::string describe(const Cut& cut, const Picks& picks);

/// A place to look at while walking a trace.
struct Place {
  const Event* event = nullptr;  // a fence or begin that comes next, or a return that has just come; null: the end
  std::size_t event_index = 0;
  u32 number = 0;  // of the place in its trace
};
std::string describe(const Place& place);

/// Lets the trace happen in a model, without what is left out, and stops at each place where a cut is worth a look.
/// model.durable_log() holds what became durable since the start.
void walk(const Trace& trace, Omissions omissions,
          const std::function<void(const Place&, const PersistencyModel&)>& at_place,
          const std::function<void(const Event&)>& at_event = {});

/// Memory that is one image after another: a base that moves on slowly, and on it the words of one image and whatever
/// is written then, which is rolled back. An image costs what it touches, not its size.
class ImageMemory : public SimHook {
 public:
  explicit ImageMemory(std::span<const u64> base);
  ~ImageMemory() override;
  ImageMemory(const ImageMemory&) = delete;
  ImageMemory& operator=(const ImageMemory&) = delete;

  Memory memory() { return {buffer_.data(), buffer_.size(), Durability::kPersistent}; }
  std::span<const std::byte> contents() const { return buffer_.span(); }

  /// Moves the base. REQUIRES: rolled back.
  void advance(std::span<const WordValue> words);
  void apply(std::span<const WordValue> words);
  void roll_back();
  /// Whether all that differs from the base was announced (so that rolling back is complete). For tests of the tests.
  bool undone_completely() const;
  void switch_off(std::set<Rule> rules) { off_ = std::move(rules); }

  void stored(const void* at, std::size_t bytes) override;
  bool flushing(const void*, std::size_t, Order) override { return true; }
  bool fencing(Order) override { return true; }
  bool rule(Rule which) override { return !off_.contains(which); }

 private:
  void touch(u64 off, u64 bytes);

  AlignedBuffer buffer_;
  AlignedBuffer base_;
  std::vector<u64> dirty_;  // a bit for each line
  std::vector<u32> dirty_lines_;
  std::set<Rule> off_;
};

}  // namespace pmfs::test
