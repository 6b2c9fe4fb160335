#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "test/bench/bench.h"

namespace pmfs::bench {

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string text(const std::optional<double>& value) { return value ? fmt::format("{:.3g}", *value) : "-"; }

nlohmann::ordered_json json(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string Report::id(std::string_view figure, std::string_view case_name, std::string_view metric) const {
  return fmt::format("{}/{}/{}{}{}", figure, case_name, metric, target_.empty() ? "" : "@", target_);
}

Report::Series& Report::series(std::string_view figure, std::string_view case_name, std::string_view metric) {
  const std::string wanted = id(figure, case_name, metric);
  for (Series& one : series_)
    if (one.row.id == wanted) return one;
  Series fresh;
  fresh.row.id = wanted;
  fresh.row.figure = figure;
  fresh.row.case_name = case_name;
  fresh.row.metric = metric;
  return series_.emplace_back(std::move(fresh));
}

void Report::sample(std::string_view figure, std::string_view case_name, std::string_view metric, std::string_view unit,
                    double value) {
  Series& one = series(figure, case_name, metric);
  one.row.unit = unit;
  one.samples.push_back(value);
}

void Report::compare(std::string_view figure, std::string_view case_name, std::string_view metric,
                     std::string_view base_case, std::optional<double> published) {
  Series& one = series(figure, case_name, metric);
  one.row.base_id = id(figure, base_case, metric);
  one.row.published = published;
}

std::vector<Row> Report::rows() const {
  std::vector<Row> out;
  for (const Series& one : series_) {
    if (one.samples.empty()) continue;
    out.push_back(one.row);
    out.back().value = median(one.samples);
  }
  for (Row& row : out) {
    const auto base = std::find_if(out.begin(), out.end(), [&](const Row& other) { return other.id == row.base_id; });
    if (base == out.end()) {
      row.base_id.clear();
    } else if (base->value != 0) {
      row.ratio = row.value / base->value;
    }
  }
  return out;
}

void alternate(const std::vector<Case>& cases) {
  unsigned rounds = 0;
  for (const Case& one : cases) rounds = std::max(rounds, one.rounds);
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& one = cases[round % 2 == 0 ? i : cases.size() - 1 - i];
      if (round < one.rounds) one.round();
    }
  }
}

u64 parse_count(const std::string& text) {
  std::size_t digits = 0;
  u64 value = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < 12)
    value = value * 10 + static_cast<u64>(text[digits++] - '0');
  const std::string unit = text.substr(digits);
  const u64 factor = unit.empty() ? 1 : unit == "k" ? 1000 : unit == "M" ? 1'000'000 : 0;
  if (digits == 0 || factor == 0 || value == 0) throw CLI::ValidationError(text + " is no count, like 500, 10k or 1M");
  return value * factor;
}

std::string wrong_count(const std::string& text, u64 least) {
  try {
    return parse_count(text) < least ? fmt::format("{} is too few: at least {}", text, least) : std::string();
  } catch (const CLI::ValidationError& error) {
    return error.what();
  }
}

void print_text(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> cells{{"id", "value", "unit", "ratio", "published", "compared with"}};
  for (const Row& row : rows)
    cells.push_back({row.id, fmt::format("{:.4g}", row.value), row.unit, text(row.ratio), text(row.published),
                     row.base_id.empty() ? "-" : row.base_id});
  std::vector<std::size_t> width(cells[0].size(), 0);
  for (const auto& line : cells)
    for (std::size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  for (const auto& line : cells) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i) fmt::print("{:<{}}  ", line[i], width[i]);
    fmt::print("{}\n", line.back());
  }
}

void print_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json object;
  object["schema"] = 1;
  object["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json one;
    one["id"] = row.id;
    one["figure"] = row.figure;
    one["case"] = row.case_name;
    one["metric"] = row.metric;
    one["value"] = row.value;
    one["unit"] = row.unit;
    one["base_id"] = row.base_id.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(row.base_id);
    one["ratio"] = json(row.ratio);
    one["published"] = json(row.published);
    object["rows"].push_back(std::move(one));
  }
  fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace pmfs::bench
