// pmfs chmod, chown: modes and owners in an unmounted pool, as the tools of those names.
#include <pwd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "mode_change.h"
#include "owner_text.h"
#include "report.h"
#include "walk.h"

namespace pmfs::tools {

namespace {

struct Options {
  std::string pool;
  std::string change;  ///< MODE, or USER[:GROUP]
  std::vector<std::string> paths;
  bool recursive = false;
  bool no_follow = false;
};

/// What is to become of one object, or nothing if it stays as it is.
using Change = std::function<std::optional<SetAttributes>(const Attributes&)>;

/// @param follow  whether a symbolic link that is given leads to what is changed; on the way none is followed.
int change_attributes(const Options& options, Follow follow, const Change& change) {
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    for_each_path(options.paths, failures, [&](const std::string& path) -> Result<void> {
      PMFS_ASSIGN(const Attributes top, fs.stat(path, Credentials::root(), follow));
      Walk on;
      on.enter = [&](const Met& met) {
        const std::optional<SetAttributes> wanted = change(met.attributes);
        if (!wanted) return options.recursive;
        const Result<Attributes> set =
            fs.set_attributes(At::inode(met.attributes.ino), *wanted, Credentials::root(), Follow::kNo);
        if (!set.ok()) failures.add(met.path, set.error());
        return options.recursive;
      };
      walk(fs, path, top, failures, on);
      return {};
    });
  });
}

int chmod_command(const Options& options) {
  const std::optional<ModeChange> mode = ModeChange::parse(options.change);
  if (!mode) {
    report_text(options.change, "not a mode; octal like 644, or symbolic like u+x,go-w");
    return kExitUsage;
  }
  const u32 umask = creator_credentials().umask;
  return change_attributes(options, Follow::kYes, [&](const Attributes& found) -> std::optional<SetAttributes> {
    if (found.type() == FileType::kSymlink) return std::nullopt;  // it has no mode of its own
    SetAttributes change;
    change.mode = mode->apply(found.mode, found.type() == FileType::kDirectory, umask);
    return change;
  });
}

/// USER, USER:GROUP, :GROUP, or USER: for the group that the user logs in with. Names go before numbers.
/// @return false: said what is unknown.
bool parse_owner(const std::string& text, SetAttributes& change) {
  const std::size_t colon = text.find(':');
  const std::string user = text.substr(0, colon);
  if (!user.empty()) {
    change.uid = user_id(user);
    if (!change.uid) return report_text(user, "no user of that name; give the number"), false;
  }
  if (colon == std::string::npos) return true;
  const std::string group = text.substr(colon + 1);
  if (!group.empty()) {
    change.gid = group_id(group);
    if (!change.gid) return report_text(group, "no group of that name; give the number"), false;
  } else if (!user.empty()) {
    const struct passwd* const login = getpwuid(*change.uid);
    if (login == nullptr) return report_text(text, "this user has no group here; give it behind the colon"), false;
    change.gid = login->pw_gid;
  }
  return true;
}

int chown_command(const Options& options) {
  SetAttributes change;
  if (!parse_owner(options.change, change)) return kExitUsage;
  const Follow follow = options.recursive || options.no_follow ? Follow::kNo : Follow::kYes;
  return change_attributes(options, follow, [&](const Attributes&) { return std::optional(change); });
}

CLI::App* add(CLI::App& app, const char* name, const char* what, Options& options, const char* change,
              const char* change_text) {
  CLI::App* const command = app.add_subcommand(name, what);
  command->add_option("POOL", options.pool, "Pool file, device DAX, or poolset file")->required();
  command->add_option(change, options.change, change_text)->required();
  command->add_option("PATH", options.paths, "Paths in the pool")->required();
  command->add_flag("-R,--recursive", options.recursive, "Also everything below them");
  return command;
}

}  // namespace

void add_chmod(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      add(app, "chmod", "Change modes in a pool", *options, "MODE", "Octal like 644, or symbolic like u+x,g=u,o-rwx");
  command->footer(
      "A symbolic link that is given is followed; those below it are left alone. Write -- before a MODE that begins "
      "with a minus.\n\n"
      "Example:\n  pmfs chmod -R /dev/shm/demo.pool go-w,a+rX /photos");
  command->callback([options, &exit_code] { exit_code = chmod_command(*options); });
}

void add_chown(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = add(app, "chown", "Change owners and groups in a pool", *options, "OWNER",
                                "USER, USER:GROUP, :GROUP or USER: (with the login group); names or numbers");
  command->set_help_flag("--help", "Print this help message and exit");  // -h is chown's own
  command->add_flag("-h,--no-dereference", options->no_follow, "A symbolic link itself; so always with -R");
  command->footer("Example:\n  pmfs chown -R /dev/shm/demo.pool alice:users /photos");
  command->callback([options, &exit_code] { exit_code = chown_command(*options); });
}

}  // namespace pmfs::tools
