// notifier: a thread that tells the kernel what it must forget.
//
//   T1  The kernel takes the parent directory's lock to forget a name, and whoever holds that lock may be waiting for a
//       handler. So a handler never notifies; it hands its answer over, and this thread notifies and then answers.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace pmfs::bridge {

class Notifier {
 public:
  Notifier() = default;
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  ~Notifier();  ///< does what is left, and ends

  /// Has `job` done by the thread, which is started when it is first needed.
  void do_later(std::function<void()> job);

 private:
  void work();

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;  // guarded by lock_
  bool ending_ = false;                     // guarded by lock_
  std::thread thread_;                      // guarded by lock_ until ending_
};

}  // namespace pmfs::bridge
