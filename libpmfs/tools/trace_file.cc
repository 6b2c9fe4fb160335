#include "trace_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <unordered_set>

#include "report.h"

namespace pmfs::tools {

namespace {

constexpr std::size_t kMostDigits = 12;

/// Takes the count off the end of `line`, if there is one. @return nothing: too long.
std::optional<u64> take_count(std::string_view& line) {
  const std::size_t tab = line.rfind('\t');
  if (tab == std::string_view::npos || tab + 1 == line.size()) return 1;
  const std::string_view digits = line.substr(tab + 1);
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return 1;  // a name with a tab in it
  if (digits.size() > kMostDigits) return std::nullopt;
  line = line.substr(0, tab);
  return std::strtoull(std::string(digits).c_str(), nullptr, 10);
}

/// What the paths of a trace pass.
class Passed {
 public:
  explicit Passed(Trace& trace) : trace_(trace) {}

  void add(const TraceLine& line) {
    const std::string_view path = line.path;
    std::string upto;
    u64 components = 0;
    bool leads_on = false;  // whether `upto`, the path as far as it has been read, is a directory
    for (std::size_t at = 0; at < path.size();) {
      if (path[at] == '/') {
        leads_on = true;
        ++at;
        continue;
      }
      const std::size_t end = std::min(path.find('/', at), path.size());
      const std::string_view name = path.substr(at, end - at);
      at = end;
      if (name == ".") {
        leads_on = true;
        continue;
      }
      if (components != 0) is_dir(upto);
      ((upto += '/') += name);
      components += 1;
      leads_on = false;
    }
    if (components == 0) return;
    if (leads_on) {
      is_dir(upto);
    } else {
      ends_.push_back(upto);
    }
    trace_.components += components * line.count;
  }

  /// When all have been added.
  void finish() {
    std::unordered_set<std::string> seen;
    for (std::string& end : ends_)
      if (!dirs_.contains(end) && seen.insert(end).second) trace_.leaves.push_back(std::move(end));
  }

 private:
  void is_dir(const std::string& path) {
    if (dirs_.insert(path).second) trace_.dirs.push_back(path);
  }

  Trace& trace_;
  std::unordered_set<std::string> dirs_;
  std::vector<std::string> ends_;
};

}  // namespace

std::optional<Trace> read_trace(const std::string& file, char delimiter) {
  const auto close = [](std::FILE* open) {
    if (open != stdin) std::fclose(open);
  };
  const std::unique_ptr<std::FILE, decltype(close)> in(file == "-" ? stdin : std::fopen(file.c_str(), "re"), close);
  if (in == nullptr) {
    report_errno(file, "cannot open it for reading", errno);
    return std::nullopt;
  }
  Trace trace;
  Passed passed(trace);
  char* line = nullptr;
  std::size_t capacity = 0;
  bool good = true;
  for (ssize_t length = 0; good && (length = ::getdelim(&line, &capacity, delimiter, in.get())) >= 0;) {
    std::string_view text(line, static_cast<std::size_t>(length));
    if (!text.empty() && text.back() == delimiter) text.remove_suffix(1);
    const std::optional<u64> count = take_count(text);
    if (!count) {
      report_text(file, "a count has more than 12 digits: " + printable(text));
      good = false;
    } else if (!text.empty() && *count != 0) {
      trace.lines.push_back({std::string(text), *count});
      trace.requests += *count;
      passed.add(trace.lines.back());
    }
  }
  std::free(line);
  if (std::ferror(in.get()) != 0) {
    report_errno(file, "cannot read it", errno);
    good = false;
  }
  if (!good) return std::nullopt;
  passed.finish();
  return trace;
}

}  // namespace pmfs::tools
