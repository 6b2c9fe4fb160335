#include "test/support/baton.h"

#include <chrono>
#include <condition_variable>
#include <thread>

#include "base/assert.h"

namespace pmfs::test {

void Baton::run(SimMemory& memory, std::vector<std::function<void()>> programs, const Chooser& choose) {
  constexpr u32 kNobody = ~u32{0};
  std::mutex mutex;
  std::condition_variable changed;
  u32 holder = kNobody;
  std::vector<u32> alive;
  for (u32 i = 0; i < programs.size(); ++i) alive.push_back(i);

  const auto wait_for_turn = [&](u32 me) {
    std::unique_lock lock(mutex);
    const bool came = changed.wait_for(lock, std::chrono::seconds(20), [&] { return holder == me; });
    PMFS_ASSERT(came);
  };
  const auto hand_over = [&](u32 to) {
    {
      std::lock_guard lock(mutex);
      holder = to;
    }
    changed.notify_all();
  };

  memory.on_event([&](const Event& event) {
    const u32 me = event.thread;
    const u32 next = choose(alive, me, &event);  // only the holder is here, so `alive` stands still
    if (next == me) return;
    hand_over(next);
    wait_for_turn(me);
  });
  std::vector<std::thread> threads;
  for (u32 i = 0; i < programs.size(); ++i)
    threads.emplace_back([&, i] {
      const ActAs thread(static_cast<ThreadId>(i));
      wait_for_turn(i);
      programs[i]();
      std::erase(alive, i);
      hand_over(alive.empty() ? kNobody : choose(alive, i, nullptr));
    });
  hand_over(choose(alive, kNobody, nullptr));
  for (std::thread& thread : threads) thread.join();
  memory.on_event({});
}

}  // namespace pmfs::test
