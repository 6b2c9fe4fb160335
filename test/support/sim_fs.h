// A file system on simulated memory: making one, seeing all of it, judging what a crash left of it, and working it
//   hard.
// The only file here (with sim_fs.cc) that knows how a file system is opened on plain memory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pmfs/pmfs.hpp"
#include "test/support/crash_explorer.h"

namespace pmfs::test {

/// Everything a user can see of one inode under one path.
struct SeenNode {
  std::string path;
  Attributes attributes;
  std::string target;                // of a symbolic link
  std::vector<std::byte> contents;   // of a file
  std::vector<std::string> listing;  // of a directory: "name ino type cookie", in order
  std::vector<std::string> xattrs;   // "name=value"; ACLs are among them
};

/// Everything a user can see of a file system.
struct SeenTree {
  std::vector<SeenNode> nodes;  // in listing order, depth first
  SpaceInfo space;
  u64 fingerprint = 0;

  const SeenNode* at(const std::string& path) const;
};

/// Looks at all of it, without leaving a trace (access times are not kept where `fs` was opened without them).
/// @param top  only what lies at this path and below.
/// @return what went wrong, empty if nothing did.
std::string see(Filesystem& fs, SeenTree& tree, const std::string& top = "/");
std::string to_text(const SeenTree& tree);

/// What check() finds, one line each; empty: nothing.
std::string findings(Filesystem& fs);

/// Opens file systems in images, looks at them, and uses them.
class FsSubject : public Subject {
 public:
  std::string open(Memory memory) override;
  std::string look() override;
  u64 fingerprint() const override { return seen_.fingerprint; }
  std::string explain() const override { return to_text(seen_); }
  std::string use(Prng& prng) override;
  void drop() override { fs_.reset(); }
  const SeenTree& seen() const { return seen_; }
  bool saved_map_used() const { return saved_map_used_; }

 private:
  Memory memory_;
  bool saved_map_used_ = false;
  std::optional<Filesystem> fs_;
  SeenTree seen_;
};

/// What the promise allows beside "before or after" (DESIGN.md "Promise"): for one operation.
struct Allowance {
  InodeNo mixed_ino{};  // data overwritten in place: each word old or new until the call returns
  u64 mixed_off = 0, mixed_len = 0;
  std::vector<InodeNo> times_lazy;     // inodes whose times are stored without a record by this operation
  std::vector<InodeNo> times_settled;  // inodes whose times are durable once it has returned
  bool closes = false;                 // a clean close: once it has returned, the next open takes the saved map
};

/// Knows what a sequence of operations may leave: before or after the one in flight, and what the allowances say.
class TreeJudge : public Judge {
 public:
  /// @param trees       what was seen before the first operation and after each.
  /// @param allowances  one for each operation. Operations are numbered from 0 in marks.
  TreeJudge(std::vector<SeenTree> trees, std::vector<Allowance> allowances);
  void happened(const Event& event) override;
  std::string verdict(const Subject& subject) override;
  u64 phase() const override { return phase_; }
  bool is_exact() const override { return exact_; }

 private:
  std::string difference(const SeenTree& seen, std::size_t expected) const;

  std::vector<SeenTree> trees_;
  std::vector<Allowance> allowances_;
  bool exact_ = true;
  std::size_t done_ = 0;  // operations that have returned
  bool in_flight_ = false;
  u64 phase_ = 0;
  std::map<InodeNo, bool> lazy_;
};

/// A formatted, open file system on a memory of its own. The clock stands still but for a nanosecond a look.
class SimFs {
 public:
  static constexpr u64 kSmall = u64{512} << 10;
  static constexpr PoolOff kLocator{64};

  explicit SimFs(u64 size_bytes = kSmall, const OpenOptions& options = quiet(),
                 const std::set<Rule>& switched_off = {});
  /// Opens what an image holds.
  explicit SimFs(std::span<const std::byte> image, const OpenOptions& options = quiet(),
                 const std::set<Rule>& switched_off = {});
  /// Opens what a killed process left: what was in its caches is there, and still not durable.
  explicit SimFs(PersistencyModel left_behind, const OpenOptions& options = quiet());

  SimMemory& memory() { return memory_; }
  Filesystem& fs() { return fs_; }
  Layout layout() const { return layout_; }
  /// Options under which reading changes nothing.
  static OpenOptions quiet();
  static OpenOptions strict_atime();

  static Result<void> format(Memory memory);
  static Result<Filesystem> open(Memory memory, const OpenOptions& options);
  static Layout layout_of(Memory memory);

 private:
  SimMemory memory_;
  Layout layout_;
  Filesystem fs_;
};

/// The value, or an exception that says what failed: for operations that a test expects to succeed.
template <class T>
T must(Result<T> result, const char* what) {
  if (!result.ok()) throw std::runtime_error(std::string(what) + ": " + result.error().what);
  return std::move(result).value();
}
inline void must(const Result<void>& result, const char* what) {
  if (!result.ok()) throw std::runtime_error(std::string(what) + ": " + result.error().what);
}

/// Contents that differ from word to word, and from seed to seed.
std::vector<std::byte> some_bytes(u64 count, u64 seed);

}  // namespace pmfs::test
