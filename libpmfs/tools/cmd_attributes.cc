// pmfs getfattr, setfattr: extended attributes of an object in an unmounted pool, in the manner of the tools of those
// names.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "commands.h"
#include "json_out.h"
#include "open_pool.h"
#include "report.h"
#include "xattr_copy.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string path;
  std::string name;
  std::string value;
  std::string remove;
  bool only_values = false;
  bool json = false;
};

/// A value as getfattr shows it: text in quotes, anything else as hexadecimal digits.
std::string value_text(std::string_view value) {
  const bool plain = std::all_of(value.begin(), value.end(), [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
  std::string text;
  if (!plain) {
    text = "0x";
    for (const char c : value) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return text;
  }
  text = '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

using Values = std::vector<std::pair<std::string, std::string>>;

Result<Values> values_of(Filesystem& fs, const Options& options) {
  PMFS_ASSIGN(const Attributes found, fs.stat(options.path, Credentials::root(), Follow::kNo));
  std::vector<std::string> names{options.name};
  if (options.name.empty()) {
    PMFS_ASSIGN(names, xattr_names(fs, found.ino));
  }
  Values values;
  for (const std::string& name : names) {
    PMFS_ASSIGN(std::string value, xattr_value(fs, found.ino, name));
    values.emplace_back(name, std::move(value));
  }
  return values;
}

int getfattr(const Options& options) {
  std::optional<Filesystem> fs = open_for_reading(options.pool);
  if (!fs) return kExitFailure;
  const Result<Values> values = values_of(*fs, options);
  if (!values.ok()) {
    report(options.pool + ": " + options.path, values.error());
  } else if (options.json) {
    Json object = json_object("getfattr");
    add_bytes(object, "pool", options.pool);
    add_bytes(object, "path", options.path);
    Json list = Json::array();
    for (const auto& [name, value] : *values) {
      Json one;
      add_bytes(one, "name", name);
      add_bytes(one, "value", value);
      list.push_back(std::move(one));
    }
    object["rows"] = std::move(list);
    print_json(object);
  } else if (options.only_values) {
    for (const auto& [name, value] : *values) std::fwrite(value.data(), 1, value.size(), stdout);
  } else {
    fmt::print("# file: {}\n", printable(options.path));
    for (const auto& [name, value] : *values) fmt::print("{}={}\n", printable(name), value_text(value));
    fmt::print("\n");
  }
  return close_pool(*fs, options.pool, values.ok() ? kExitOk : kExitFailure);
}

/// The inverse of value_text(): hexadecimal behind 0x, otherwise the text itself. @return nothing: half a byte, or
/// none.
std::optional<std::string> parse_value(const std::string& text) {
  if (!text.starts_with("0x")) return text;
  std::string bytes;
  for (std::size_t at = 2; at < text.size(); at += 2) {
    const std::string digits = text.substr(at, 2);
    if (digits.size() != 2 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return {};
    bytes += static_cast<char>(std::stoul(digits, nullptr, 16));
  }
  return bytes;
}

int setfattr(const Options& options) {
  const std::optional<std::string> value = parse_value(options.value);
  if (!value) {
    report_text("--value " + options.value, "not a whole number of bytes in hexadecimal digits");
    return kExitUsage;
  }
  std::optional<Filesystem> fs = open_for_writing(options.pool);
  if (!fs) return kExitFailure;
  const Result<void> done =
      options.remove.empty()
          ? fs->set_xattr(options.path, options.name, std::as_bytes(std::span(value->data(), value->size())), 0,
                          Credentials::root(), Follow::kNo)
          : fs->remove_xattr(options.path, options.remove, Credentials::root(), Follow::kNo);
  if (!done.ok()) report(options.pool + ": " + options.path, done.error());
  return close_pool(*fs, options.pool, done.ok() ? kExitOk : kExitFailure);
}

CLI::App* add(CLI::App& app, const char* name, const char* what, Options& options) {
  CLI::App* const command = app.add_subcommand(name, what);
  command->add_option("POOL", options.pool, "Pool file or poolset file")->required();
  command->add_option("PATH", options.path, "Path in the pool")->required();
  return command;
}

}  // namespace

void add_getfattr(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = add(app, "getfattr", "Show extended attributes of an object of a pool", *options);
  command->add_option("-n,--name", options->name, "This one only, as user.comment");
  CLI::Option* const values = command->add_flag("--only-values", options->only_values, "Values alone, as they are");
  command->add_flag("--json", options->json, "Print one JSON object (fields: JSON.md)")->excludes(values);
  command->footer(
      "A symbolic link is not followed. Text is shown in quotes, other bytes as 0x and hexadecimal digits.\n\n"
      "Example:\n  pmfs getfattr /dev/shm/demo.pool /photos/cat.jpg");
  command->callback([options, &exit_code] { exit_code = getfattr(*options); });
}

void add_setfattr(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = add(app, "setfattr", "Set or remove an extended attribute of an object", *options);
  CLI::Option* const name = command->add_option("-n,--name", options->name, "Set this one");
  command->add_option("-v,--value", options->value, "To this: text, or 0x and hexadecimal digits")->needs(name);
  CLI::Option* const remove = command->add_option("-x,--remove", options->remove, "Remove this one")->excludes(name);
  command->footer(
      "A symbolic link is not followed.\n\n"
      "Example:\n  pmfs setfattr /dev/shm/demo.pool /photos/cat.jpg -n user.comment -v 'the cat'");
  command->callback([options, name, remove, &exit_code] {
    if (name->empty() && remove->empty()) throw CLI::RequiredError("--name or --remove");
    exit_code = setfattr(*options);
  });
}

}  // namespace pmfs::tools
