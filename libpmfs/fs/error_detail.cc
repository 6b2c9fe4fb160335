#include "fs/error_detail.h"

#include <cstring>

#include "pmfs/result.h"

namespace pmfs {
namespace {

constexpr std::size_t kDetailBytes = 1024;

struct Detail {
  char text[kDetailBytes] = {};
  std::size_t used = 0;

  void add(std::string_view words) {
    for (const char c : words) {
      if (used == kDetailBytes - 1) {
        std::memcpy(text + kDetailBytes - 4, "...", 3);
        break;
      }
      const auto byte = static_cast<unsigned char>(c);
      text[used++] = (byte < 0x20 || byte == 0x7f) ? '?' : c;
    }
    text[used] = '\0';
  }
};

thread_local Detail detail;

}  // namespace

void clear_error_detail() {
  detail.used = 0;
  detail.text[0] = '\0';
}

void set_error_detail(std::string_view pool, std::string_view words, std::string_view more, std::string_view rest) {
  clear_error_detail();
  if (!pool.empty()) {
    detail.add(pool);
    detail.add(": ");
  }
  detail.add(words);
  detail.add(more);
  detail.add(rest);
}

void set_error_detail(std::string_view pool, std::string_view words) { set_error_detail(pool, words, {}, {}); }

const char* error_detail() { return detail.text; }

}  // namespace pmfs
