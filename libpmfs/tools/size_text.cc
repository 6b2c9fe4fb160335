#include "size_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace pmfs::tools {

std::optional<u64> parse_size(std::string_view text) {
  u64 count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc{}) return std::nullopt;
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.size() == 3 && unit.substr(1) == "iB") unit = unit.substr(0, 1);
  if (unit.size() > 1) return std::nullopt;

  unsigned shift = 0;
  if (!unit.empty()) {
    switch (unit[0]) {
      case 'k':
      case 'K': shift = 10; break;
      case 'm':
      case 'M': shift = 20; break;
      case 'g':
      case 'G': shift = 30; break;
      case 't':
      case 'T': shift = 40; break;
      default: return std::nullopt;
    }
  }
  if (count > ((u64{1} << 63) - 1) >> shift) return std::nullopt;
  return count << shift;
}

std::string size_text(u64 bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (amount >= 1024 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string short_size_text(u64 bytes) {
  if (bytes < 1024) return std::to_string(bytes);
  constexpr std::string_view kUnits = "KMGTPE";
  std::size_t unit = 0;
  u64 scale = 1024;
  while (unit + 1 < kUnits.size() && bytes / scale >= 1024) {
    scale *= 1024;
    ++unit;
  }
  const auto rounded_up = [&](u64 part) { return bytes / part + (bytes % part != 0 ? 1 : 0); };
  const u64 tenths = bytes / scale * 10 + (bytes % scale * 10 + scale - 1) / scale;
  if (tenths < 100) return fmt::format("{}.{}{}", tenths / 10, tenths % 10, kUnits[unit]);
  if (rounded_up(scale) == 1024 && unit + 1 < kUnits.size()) return fmt::format("1.0{}", kUnits[unit + 1]);
  return fmt::format("{}{}", rounded_up(scale), kUnits[unit]);
}

}  // namespace pmfs::tools
