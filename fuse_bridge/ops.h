// ops: the answers to the kernel's requests. Each handler translates one request into one call of the library and the
// library's answer into a reply; it decides nothing. Permissions are the kernel's to check (default_permissions).
//
// It owns the open directory streams, the only state between requests, and the counts of requests.
//   B1  A nodeid is an inode number, and the root's is 1. Numbers from file handles are hostile input: the library
//       answers kStale to what is not there.
//   B2  The kernel's look-up count of a nodeid is a number of pins in the library: one taken by each call whose answer
//       names an inode (LOOKUP, CREATE, MKNOD, MKDIR, SYMLINK, LINK, each READDIRPLUS entry but "." and ".."), given
//       back at once when the answer did not reach the kernel, else by FORGET, and all of them at DESTROY. So a file
//       without names lives as long as somebody has it open, though no OPEN is ever sent. The root is never pinned.
//   B3  No open-file state: OPEN is answered with ENOSYS once, and from then on the kernel does not ask. Therefore
//       ATOMIC_O_TRUNC must be declined, or O_TRUNC would be lost; truncation arrives as SETATTR.
//   B4  Names and attributes, absent names included, stay valid in the kernel for ever: every change comes through
//       it, and it corrects or drops by itself what a request changes beside the inode in the reply (test/fuse,
//       attr_coherence). A second door to a mounted pool will have to send invalidations, and not from a handler.
// Threads: handlers run in any number of threads. Nothing here throws through libfuse, which is C.
// Not here: locks. Without a handler the kernel gets ENOSYS once, remembers, and has local ones. To keep locks we
// would have to be told of each close: an OPEN, FLUSH and RELEASE for every file that anybody opens (B3), and one
// kernel's own locks are as good for the one mount that a pool can have.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "fuse_bridge/control.h"
#include "fuse_bridge/covered.h"
#include "fuse_bridge/fuse_api.h"
#include "fuse_bridge/mount.h"
#include "fuse_bridge/notifier.h"
#include "pmfs/pmfs.hpp"

namespace pmfs::bridge {

/// An open directory. The kernel reads one stream from one thread at a time; the lock makes that our own promise.
/// It is not held across a reply: the kernel may answer that with RELEASEDIR, and the stream is gone.
struct DirStream {
  explicit DirStream(Dir opened) : dir(std::move(opened)) {}
  std::mutex lock;
  Dir dir;  ///< guarded by lock
};

/// What the handlers of one mount share.
class Bridge {
 public:
  struct Hooks {
    std::function<void()> served_init;    ///< called once, in the INIT handler
    std::function<void()> first_request;  ///< called once, before the first request after INIT is handled
  };

  /// `fs` must outlive the bridge.
  Bridge(Filesystem& fs, const MountOptions& options, Hooks hooks)
      : fs_(fs),
        timeouts_(options.timeouts),
        owner_(options.owner),
        wants_uring_(options.io_uring),
        hooks_(std::move(hooks)),
        covered_(fs, options.dir) {}

  Filesystem& fs() { return fs_; }
  const Timeouts& timeouts() const { return timeouts_; }
  const ShownOwner& owner() const { return owner_; }
  const Hooks& hooks() const { return hooks_; }
  Covered& covered() { return covered_; }

  /// Notifications go to this session, from here until end_notifications(). Before the first request.
  void begin_notifications(fuse_session* session) {
    session_ = session;
    notifier_.emplace();
  }
  /// Does those that are left. When no handler runs any more.
  void end_notifications() { notifier_.reset(); }
  fuse_session* session() { return session_; }
  Notifier& notifier() { return *notifier_; }

  /// Counts a request. @return whether it is the first one.
  bool count(Request request) {
    counts_[static_cast<std::size_t>(request)].fetch_add(1, std::memory_order_relaxed);
    return !any_request_.load(std::memory_order_relaxed) && !any_request_.exchange(true);
  }
  CountsReply counts() const;

  /// Whether requests are to come through io_uring, and whether they do.
  bool wants_uring() const { return wants_uring_; }
  bool uses_uring() const { return uses_uring_.load(std::memory_order_relaxed); }
  void say_uses_uring() { uses_uring_.store(true, std::memory_order_relaxed); }

  /// Keeps a stream; its address becomes the kernel's handle. @return it, or nullptr without memory.
  DirStream* keep(Dir dir);
  /// Closes a stream. @return false for an address that keep() did not give.
  bool release(DirStream* stream);

  /// Gives back everything that is held for the kernel: streams and pins. The pool can be closed afterwards.
  void release_all();

 private:
  Filesystem& fs_;
  const Timeouts timeouts_;
  const ShownOwner owner_;
  const bool wants_uring_;
  const Hooks hooks_;
  Covered covered_;
  fuse_session* session_ = nullptr;
  std::optional<Notifier> notifier_;
  std::array<std::atomic<u64>, kRequestKinds> counts_{};
  std::atomic<bool> any_request_{false};
  std::atomic<bool> uses_uring_{false};
  std::mutex streams_lock_;
  std::unordered_map<DirStream*, std::unique_ptr<DirStream>> streams_;  ///< guarded by streams_lock_
};

/// The table of handlers. A session made with it has a Bridge* as its user data.
const fuse_lowlevel_ops& handlers();

}  // namespace pmfs::bridge
