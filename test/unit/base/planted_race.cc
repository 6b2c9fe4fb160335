// A race on purpose, for ThreadSanitizer builds: what RCU protects is written while readers look at it. The annotations
// of base/rcu.h must not hide it; the test passes when ThreadSanitizer reports it (test/CMakeLists.txt).
#include <thread>

#include "base/rcu.h"

using namespace pmfs;

namespace {
struct Item {
  RcuNode node;
  u64 value = 0;
};
struct Any {
  static bool equal(const RcuNode*, const u64&) { return true; }
};
}  // namespace

int main() {
  auto table = RcuTable::make(64);
  Item item;
  {
    const RcuReadGuard reading;
    if (table->add<Any>(1, u64{1}, &item.node) != nullptr) return 1;
  }
  u64 sum = 0;
  std::thread reader([&] {
    for (int i = 0; i < 100000; ++i) {
      const RcuReadGuard reading;
      if (RcuNode* const found = table->find<Any>(1, u64{1}); found != nullptr)
        sum += reinterpret_cast<Item*>(found)->value;
    }
  });
  for (int i = 0; i < 100000; ++i) {
    const RcuReadGuard reading;
    item.value = static_cast<u64>(i);  // in place: neither a copy that is published nor behind a grace period
  }
  reader.join();
  return sum == 0 ? 2 : 0;
}
