// One operation made durable: the two-fence protocol, and the only place that runs it.
//
//   step 1  Everything that can fail has failed. New contents are written to places nothing points to, and flushed
//           (flush(), copy()). run() writes the undo records of the live words, flushes them, this lane's header, and
//           the header of the lane that last changed each locked inode. Fence 1.
//   step 2  run() stores the new values in place and flushes them. Fence 2: durable and decided.
//   step 3  run() bumps the lane's sequence. No flush (lane.h L3), no fence.
//
//   C1  A Commit that is not run has stored nothing but fresh contents: dropping it undoes the operation (R1).
//   C2  Every word given to set() belongs to an inode (or the inode file) whose lock the caller holds from before the
//       old value is read until run() has returned, and whose ChangeMark was given to touch() (R2).
//   C3  A word set twice has its last value; all words together fit 16 records.
//   C4  From before the first word is stored until fence 2 is behind, the versions of all words say "changing" (R6).
// Thread rules: one Commit per thread and operation; the lane is taken inside run(), after all locks, and given back
// there, so a thread never waits for anything while it holds one.
#pragma once

#include <array>

#include "base/lane.h"
#include "base/version.h"

namespace pmfs {

/// The versions of an object whose words readers without locks may look at.
struct Watched {
  const Le64* first = nullptr;  ///< its first word
  u32 words = 0;
  Version* any = nullptr;    ///< of all its words
  Version* shape = nullptr;  ///< of those in the mask `shape_words` alone, bit i: first[i]
  u64 shape_words = 0;
};

class Commit {
 public:
  /// @param versions  of the blocks that words outside all touched objects lie in; null: nobody reads without locks.
  explicit Commit(Lanes& lanes, Persist& persist, VersionTable* versions = nullptr)
      : lanes_(lanes), persist_(persist), versions_(versions) {}
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

  /// Names the change mark of something locked whose words are about to change. run() sets it.
  void touch(ChangeMark& last, const Watched& watched = {});
  /// Says what a live word is to be. A word set before gets the newer value.
  void set(Le64& word, u64 value);
  /// What `word` will be when this commit has run.
  u64 value(const Le64& word) const;

  /// Runs the protocol. Durability: on success, everything given to this commit.
  /// @error kIo: a write-back failed; what is in place is undecided, and Persist::failed() is set for ever.
  Result<ChangeMark> run();

  Persist& persist() { return persist_; }

 private:
  static constexpr u32 kMaxWords = media::kPairsPerRecord * (media::kRecordsPerLane - 1) + media::kPairsInLast;
  static constexpr u32 kMaxTouched = 8;

  struct Word {
    Le64* at;
    u64 value;
  };
  u32 write_records(u32 lane, u64 sequence);
  void apply();
  void hide();
  void show();

  Lanes& lanes_;
  Persist& persist_;
  VersionTable* versions_;
  std::array<Word, kMaxWords> words_;
  u32 word_count_ = 0;
  std::array<ChangeMark*, kMaxTouched> touched_;
  u32 touched_count_ = 0;
  std::array<Watched, kMaxTouched> watched_;  // of touched_, by place
  std::array<Version*, kMaxWords + kMaxTouched> hidden_;
  u32 hidden_count_ = 0;
};

}  // namespace pmfs
