#include "dcache/statistics.h"

namespace pmfs::dcache {

constinit thread_local ThreadBlocks::LastUsed ThreadBlocks::last_used{0, nullptr};

namespace {

std::atomic<u64> next_id{1};

// A thread's blocks, one for each cache it has used. A block of a cache that is gone is dropped when the next is added.
struct Blocks {
  struct Mine {
    u64 cache;
    std::shared_ptr<ThreadBlock> block;
  };
  std::vector<Mine> mine;
  ~Blocks() {
    for (const Mine& m : mine) m.block->in_use.store(false, std::memory_order_release);
  }
};
thread_local Blocks blocks_here;

}  // namespace

ThreadBlocks::ThreadBlocks() : id_(next_id.fetch_add(1)) {}
ThreadBlocks::~ThreadBlocks() = default;

ThreadBlock& ThreadBlocks::find() {
  for (const auto& [cache, block] : blocks_here.mine)
    if (cache == id_) {
      last_used = {id_, block.get()};
      return *block;
    }
  std::erase_if(blocks_here.mine, [](const auto& m) { return m.block.use_count() == 1; });
  std::shared_ptr<ThreadBlock> block;
  {
    std::lock_guard lock(mutex_);
    for (const auto& left : blocks_)  // of a thread that has ended: its counts go on
      if (!left->in_use.load(std::memory_order_acquire)) {
        left->in_use.store(true, std::memory_order_relaxed);
        block = left;
        break;
      }
    if (block == nullptr) block = blocks_.emplace_back(std::make_shared<ThreadBlock>());
  }
  blocks_here.mine.push_back({id_, block});
  last_used = {id_, block.get()};
  return *block;
}

u64 ThreadBlocks::sum(Count what) const {
  std::lock_guard lock(mutex_);
  u64 total = 0;
  for (const auto& block : blocks_)
    total += block->counts[static_cast<std::size_t>(what)].load(std::memory_order_relaxed);
  return total;
}

}  // namespace pmfs::dcache
