#include <fmt/format.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <map>

#include "test/bench/bench.h"

namespace pmfs::bench {

namespace {

// Text for a double-quoted string of gnuplot, with its own markup switched off.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '`') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

std::string terminal(const std::string& file) {
  const std::string kind = file.substr(std::min(file.rfind('.'), file.size() - 1) + 1);
  if (kind == "svg") return "svg noenhanced";
  if (kind == "png") return "pngcairo noenhanced";
  if (kind == "pdf") return "pdfcairo noenhanced";
  throw std::runtime_error("a plot is an svg, png or pdf file: " + file);
}

}  // namespace

void plot(const std::vector<Row>& rows, const std::string& file) {
  if (rows.empty()) throw std::runtime_error("there is nothing to draw");
  std::vector<std::pair<std::string, std::vector<const Row*>>> panels;
  std::map<std::string, std::size_t> known;
  for (const Row& row : rows) {
    const std::string title = fmt::format("{}: {} ({})", row.figure, row.metric, row.unit);
    const auto [at, fresh] = known.emplace(title, panels.size());
    if (fresh) panels.push_back({title, {}});
    panels[at->second].second.push_back(&row);
  }
  const auto across = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(panels.size()))));
  const std::size_t down = (panels.size() + across - 1) / across;

  std::string script = fmt::format(
      "set terminal {} size {},{}\nset output {}\nset style fill solid 0.6\nset boxwidth 0.8\nset grid ytics\n"
      "set xtics rotate by -45\nunset key\nset multiplot layout {},{}\n",
      terminal(file), 420 * across, 320 * down, quoted(file), down, across);
  if (file.ends_with(".pdf"))
    script.replace(script.find(" size"), script.find('\n') - script.find(" size"),
                   fmt::format(" size {}cm,{}cm", 12 * across, 9 * down));
  for (const auto& [title, of_panel] : panels) {
    script += fmt::format("set title {}\n$data << END_OF_DATA\n", quoted(title));
    double top = 0;
    for (const Row* row : of_panel) {
      const std::size_t at = row->id.rfind('@');
      const std::string target = at == std::string::npos ? "" : row->id.substr(at);
      script += fmt::format("{} {}\n", quoted(row->case_name + target), row->value);
      top = std::max(top, row->value);
    }
    script += fmt::format("END_OF_DATA\nset yrange [{}:{}]\nplot $data using 0:2:xticlabels(1) with boxes\n",
                          top > 0 ? "0" : "*", top > 0 ? "*" : "1");
  }
  script += "unset multiplot\n";

  // A gnuplot that is not there, or ends early, is an exit code, not a signal.
  struct Pipe {
    void (*before)(int) = std::signal(SIGPIPE, SIG_IGN);
    ~Pipe() { std::signal(SIGPIPE, before); }
  } pipe;
  std::FILE* const gnuplot = popen("gnuplot", "w");
  if (gnuplot == nullptr) throw std::runtime_error("gnuplot cannot be started");
  std::fwrite(script.data(), 1, script.size(), gnuplot);
  const int status = pclose(gnuplot);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) throw std::runtime_error("--plot needs gnuplot: install it");
  if (status != 0) throw std::runtime_error("gnuplot failed; what it says is above");
}

}  // namespace pmfs::bench
