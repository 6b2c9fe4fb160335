#include "fuse_bridge/notifier.h"

#include <utility>

namespace pmfs::bridge {

Notifier::~Notifier() {
  {
    const std::lock_guard guard(lock_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Notifier::do_later(std::function<void()> job) {
  {
    const std::lock_guard guard(lock_);
    jobs_.push_back(std::move(job));
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  }
  changed_.notify_one();
}

void Notifier::work() {
  std::unique_lock lock(lock_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace pmfs::bridge
