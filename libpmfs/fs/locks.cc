#include "fs/locks.h"

#include <algorithm>

namespace pmfs {

namespace {

bool same(const LockOwner& a, const LockOwner& b) { return a.kind == b.kind && a.id == b.id; }

bool overlap(const RangeLock& a, const RangeLock& b) { return a.first <= b.last && b.first <= a.last; }

bool conflict(const HeldLock& held, const RangeLock& wanted, const LockOwner& owner) {
  return !same(held.owner, owner) && overlap(held.range, wanted) &&
         (held.range.kind == LockKind::kExclusive || wanted.kind == LockKind::kExclusive);
}

// Puts `range` in the place of what the owner has there; kNone: only takes that away.
void put(std::vector<HeldLock>& locks, RangeLock range, const LockOwner& owner) {
  std::vector<HeldLock> result;
  for (const HeldLock& held : locks) {
    if (!same(held.owner, owner)) {
      result.push_back(held);
      continue;
    }
    const RangeLock& old = held.range;
    const bool adjacent = (old.last != ~u64{0} && old.last + 1 == range.first) ||
                          (range.last != ~u64{0} && range.last + 1 == old.first);
    const bool touches = old.kind == range.kind && (overlap(old, range) || adjacent);
    if (touches) {
      range.first = std::min(range.first, old.first);
      range.last = std::max(range.last, old.last);
    } else if (!overlap(old, range)) {
      result.push_back(held);
    } else {  // what sticks out stays
      if (old.first < range.first) result.push_back({{old.kind, old.first, range.first - 1}, held.owner});
      if (old.last > range.last) result.push_back({{old.kind, range.last + 1, old.last}, held.owner});
    }
  }
  if (range.kind != LockKind::kNone) result.push_back({range, owner});
  locks.swap(result);
}

// While a call waits: lets LockWait::interrupt() wake it.
class Wakeable {
 public:
  Wakeable(std::mutex& on, std::function<void()>& wake, std::function<void()> how) : on_(on), wake_(wake) {
    std::lock_guard lock(on_);
    wake_ = std::move(how);
  }
  Wakeable(const Wakeable&) = delete;
  Wakeable& operator=(const Wakeable&) = delete;
  ~Wakeable() {
    std::lock_guard lock(on_);
    wake_ = nullptr;
  }

 private:
  std::mutex& on_;
  std::function<void()>& wake_;
};

}  // namespace

void LockWait::interrupt() {
  // Held while waking, so that the call that waits, and so the table, is still there.
  std::lock_guard lock(mutex_);
  interrupted_.store(true);
  if (wake_) wake_();
}

// Whether one of those in the way waits for `owner`, directly or by others. REQUIRES: the graph's lock.
bool LockTable::closes_circle(const LockOwner& owner, const std::vector<LockOwner>& in_the_way) const {
  std::vector<LockOwner> reached = in_the_way;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (same(reached[i], owner)) return true;
    for (const Waiting* const one : waiting_) {
      if (!same(one->owner, reached[i])) continue;
      for (const LockOwner& next : one->in_the_way)
        if (std::none_of(reached.begin(), reached.end(), [&](const LockOwner& r) { return same(r, next); }))
          reached.push_back(next);
    }
  }
  return false;
}

// Waits once. REQUIRES: the shard's lock.
Result<void> LockTable::wait_for(Shard& shard, std::unique_lock<std::mutex>& lock, const LockOwner& owner,
                                 std::vector<LockOwner> in_the_way, LockWait& wait) {
  if (wait.interrupted_.exchange(false)) return Error{Errc::kInterrupted, "the wait was interrupted", 0};
  const Waiting me{owner, std::move(in_the_way)};
  const bool in_graph = owner.kind == LockOwner::Kind::kProcess;
  if (in_graph) {
    std::lock_guard graph(graph_);
    if (closes_circle(owner, me.in_the_way)) return Error{Errc::kDeadlock, "waiting would never end", 0};
    waiting_.push_back(&me);
  }
  shard.changed.wait(lock);
  if (in_graph) {
    std::lock_guard graph(graph_);
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &me));
  }
  return {};
}

Result<void> LockTable::set(const LockedFile& file, const RangeLock& range, const LockOwner& owner, bool whole,
                            Wait wait, LockWait* interruptible) {
  LockWait own;
  LockWait& waiting = interruptible != nullptr ? *interruptible : own;
  Shard& home = shard(file);
  std::optional<Wakeable> wakeable;
  if (wait == Wait::kYes)
    wakeable.emplace(waiting.mutex_, waiting.wake_, [&home] {
      // With the shard's lock: who waits has either seen the flag or is in the wait already.
      std::lock_guard lock(home.mutex);
      home.changed.notify_all();
    });
  std::unique_lock lock(home.mutex);
  for (bool first = true;; first = false) {
    FileLocks& locks = home.files[file];
    std::vector<HeldLock>& held = locks.of(whole);
    if (whole && first) {
      const auto mine = std::find_if(held.begin(), held.end(), [&](const HeldLock& h) { return same(h.owner, owner); });
      if (mine != held.end() && mine->range.kind == range.kind) return {};
      if (mine != held.end()) {  // as flock(2): given back first, whatever comes of the new one
        held.erase(mine);
        home.changed.notify_all();
      }
    }
    std::vector<LockOwner> in_the_way;
    if (range.kind != LockKind::kNone)
      for (const HeldLock& h : held)
        if (conflict(h, range, owner)) in_the_way.push_back(h.owner);
    if (in_the_way.empty()) {
      put(held, range, owner);
      if (locks.ranges.empty() && locks.whole.empty()) home.files.erase(file);
      home.changed.notify_all();  // less may be held than before
      return {};
    }
    if (wait == Wait::kNo) return Error{Errc::kWouldBlock, "somebody else has the lock", 0};
    PMFS_TRY(wait_for(home, lock, owner, std::move(in_the_way), waiting));
  }
}

Result<void> LockTable::set_range(const LockedFile& file, const RangeLock& range, const LockOwner& owner, Wait wait,
                                  LockWait* interruptible) {
  if (range.first > range.last) return Error{Errc::kInvalid, "the range ends before it begins", 0};
  return set(file, range, owner, false, wait, interruptible);
}

Result<void> LockTable::set_whole(const LockedFile& file, LockKind kind, const LockOwner& owner, Wait wait,
                                  LockWait* interruptible) {
  return set(file, {kind, 0, ~u64{0}}, owner, true, wait, interruptible);
}

std::optional<HeldLock> LockTable::test_range(const LockedFile& file, const RangeLock& range, const LockOwner& owner) {
  Shard& home = shard(file);
  std::lock_guard lock(home.mutex);
  std::optional<HeldLock> found;
  const auto locks = home.files.find(file);
  if (locks == home.files.end()) return found;
  for (const HeldLock& held : locks->second.ranges)
    if (conflict(held, range, owner) && (!found.has_value() || held.range.first < found->range.first)) found = held;
  return found;
}

void LockTable::release(const LockedFile& file, const LockOwner& owner) {
  Shard& home = shard(file);
  std::lock_guard lock(home.mutex);
  const auto locks = home.files.find(file);
  if (locks == home.files.end()) return;
  put(locks->second.ranges, {LockKind::kNone, 0, ~u64{0}}, owner);
  put(locks->second.whole, {LockKind::kNone, 0, ~u64{0}}, owner);
  if (locks->second.ranges.empty() && locks->second.whole.empty()) home.files.erase(locks);
  home.changed.notify_all();
}

std::size_t LockTable::files() {
  std::size_t count = 0;
  for (Shard& one : shards_) {
    std::lock_guard lock(one.mutex);
    count += one.files.size();
  }
  return count;
}

}  // namespace pmfs
