// The `pmfs` program: one subcommand per file, all over the library's public headers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <exception>
#include <string_view>
#include <vector>

#include "commands.h"
#include "report.h"

namespace {

using namespace pmfs::tools;

/// The code for a command line that makes no sense; `check` has its own.
int usage_code(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.empty() && word[0] == '-') continue;
    return word == "check" ? kCheckUsage : kExitUsage;
  }
  return kExitUsage;
}

/// find(1) writes its tests with one minus, which CLI11 takes for several options of one letter.
void use_long_options(std::vector<char*>& words, std::deque<std::string>& memory) {
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") return;
    const bool takes_value = word == "-name" || word == "-type" || word == "-maxdepth";
    if (takes_value || word == "-print0") words[i] = memory.emplace_back("-" + std::string(word)).data();
    if (takes_value) ++i;
  }
}

/// mount(8) runs "mount.TYPE POOL DIR [-nvfs] [-o OPTIONS] [-t TYPE]": the words of `pmfs mount`.
void as_mount(std::vector<char*>& words) {
  static char mount_command[] = "mount";
  words.insert(words.begin() + 1, mount_command);
}

/// fsck(8) runs "fsck.TYPE [-anpyfrC...] POOL": recovers as a mount would, unless -n says that nothing may change.
void as_fsck(std::vector<char*>& words) {
  static char check_command[] = "check";
  static char recover_option[] = "--recover";
  bool recover = true;
  const auto is_letters = [](std::string_view word) {
    return word.size() > 1 && word[0] == '-' && word.find_first_not_of("-anpyfrvtTVC0123456789") == word.npos;
  };
  std::erase_if(words, [&](const char* word) {
    if (!is_letters(word)) return false;
    if (std::string_view(word).find('n') != std::string_view::npos) recover = false;
    return true;
  });
  words.insert(words.begin() + 1, check_command);
  if (recover) words.push_back(recover_option);
}

/// What is to be done, as the words after `pmfs`: called by another name, the program is a helper of another program.
/// @param memory  of words that are not the caller's.
std::vector<char*> command_line(int argc, char** argv, std::deque<std::string>& memory) {
  std::vector<char*> words(argv, argv + argc);
  std::string_view program = argc > 0 ? argv[0] : "";
  program.remove_prefix(program.rfind('/') + 1);
  if (program.starts_with("mount.")) as_mount(words);
  if (program.starts_with("fsck.")) as_fsck(words);
  if (words.size() > 1 && std::string_view(words[1]) == "find") use_long_options(words, memory);
  words.push_back(nullptr);
  return words;
}

int run(int argc, char** argv) {
  int exit_code = kExitOk;
  CLI::App app{"pmfs: a POSIX file system in a persistent memory pool", "pmfs"};
  app.set_version_flag("--version", "pmfs " PMFS_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(26);
  app.footer(
      "The pool comes first, then the path inside it. Sizes: K, M, G, T are powers of 1024.\n"
      "Example:\n"
      "  pmfs mkfs /dev/shm/demo.pool --size 1G\n"
      "  pmfs import /dev/shm/demo.pool ~/photos /photos\n"
      "  pmfs ls -l /dev/shm/demo.pool /photos\n"
      "  pmfs COMMAND --help    shows an example of each command");

  add_mkfs(app, exit_code);
  add_mount(app, exit_code);
  add_umount(app, exit_code);
  add_import(app, exit_code);
  add_export(app, exit_code);
  add_check(app, exit_code);
  add_info(app, exit_code);
  add_df(app, exit_code);
  add_grow(app, exit_code);
  add_ls(app, exit_code);
  add_stat(app, exit_code);
  add_resolve(app, exit_code);
  add_create(app, exit_code);
  add_cat(app, exit_code);
  add_put(app, exit_code);
  add_get(app, exit_code);
  add_getfattr(app, exit_code);
  add_setfattr(app, exit_code);
  add_getfacl(app, exit_code);
  add_setfacl(app, exit_code);
  for (const auto add : {add_mkdir, add_rmdir, add_mv, add_cp, add_rm, add_ln, add_tree, add_find, add_du, add_chmod,
                         add_chown, add_truncate, add_touch}) {
    add(app, exit_code);
  }
  add_dump(app, exit_code);
  add_count(app, exit_code);
  add_trace(app, exit_code);
  add_bench(app, exit_code);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and the version are "errors" of CLI11 with code 0.
    return app.exit(error) == 0 ? kExitOk : usage_code(argc, argv);
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::deque<std::string> memory;
    std::vector<char*> words = command_line(argc, argv, memory);
    return finish_stdout(run(static_cast<int>(words.size()) - 1, words.data()));
  } catch (const std::exception& error) {
    report_text("internal error", error.what());
    return kExitFailure;
  }
}
