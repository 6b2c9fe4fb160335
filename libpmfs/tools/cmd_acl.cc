// pmfs getfacl, setfacl: access control lists of objects in an unmounted pool, in the manner of the tools of those
// names.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "acl_text.h"
#include "commands.h"
#include "host_fd.h"
#include "mode_text.h"
#include "open_pool.h"
#include "report.h"
#include "walk.h"

namespace pmfs::tools {

namespace {

using Action = AclStep::Action;

struct GetOptions {
  std::string pool;
  std::vector<std::string> paths;
  bool numeric = false;
};

struct SetOptions {
  std::string pool;
  std::vector<std::string> paths;
  std::vector<std::string> modify, modify_file, remove;
  bool remove_all = false, remove_default = false;
  bool into_defaults = false, recursive = false, keep_mask = false;
  std::vector<AclStep> steps;
};

Result<AclPair> lists_of(Filesystem& fs, const Attributes& attributes) {
  AclPair lists;
  PMFS_ASSIGN(lists.access, fs.get_acl(At::inode(attributes.ino), AclKind::kAccess, Credentials::root()));
  PMFS_ASSIGN(lists.defaults, fs.get_acl(At::inode(attributes.ino), AclKind::kDefault, Credentials::root()));
  return lists;
}

Result<void> show(Filesystem& fs, const std::string& path, const GetOptions& options) {
  PMFS_ASSIGN(const Attributes a, fs.stat(path, Credentials::root()));
  PMFS_ASSIGN(const AclPair lists, lists_of(fs, a));
  fmt::print("# file: {}\n# owner: {}\n# group: {}\n", printable(path),
             options.numeric ? std::to_string(a.uid) : user_name(a.uid),
             options.numeric ? std::to_string(a.gid) : group_name(a.gid));
  if ((a.mode & 07000u) != 0) {
    fmt::print("# flags: {}{}{}\n", (a.mode & 04000u) != 0 ? 's' : '-', (a.mode & 02000u) != 0 ? 's' : '-',
               (a.mode & 01000u) != 0 ? 't' : '-');
  }
  fmt::print("{}{}\n", acl_text(lists.access, "", options.numeric),
             acl_text(lists.defaults, "default:", options.numeric));
  return {};
}

int getfacl(const GetOptions& options) {
  return look_at_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    for_each_path(options.paths, failures, [&](const std::string& path) { return show(fs, path, options); });
  });
}

/// Takes the steps on one object.
/// @param below  it was met below what was given: a default list for it is left out, if it is no directory.
void change(Filesystem& fs, const SetOptions& options, const Met& met, Failures& failures) {
  const bool directory = met.attributes.type() == FileType::kDirectory;
  const Result<AclPair> before = lists_of(fs, met.attributes);
  if (!before.ok()) return failures.add(met.path, before.error());
  AclPair after = *before;
  apply_acl_steps(options.steps, directory, !options.keep_mask, after);
  if (!directory && !after.defaults.empty()) {
    if (!options.recursive) return failures.add(met.path, "only directories can have default ACLs");
    after.defaults.clear();
  }
  const At at = At::inode(met.attributes.ino);
  for (const auto& [kind, list, old] : {std::tuple(AclKind::kAccess, &after.access, &before->access),
                                        std::tuple(AclKind::kDefault, &after.defaults, &before->defaults)}) {
    if (*list == *old) continue;
    const Result<void> set = fs.set_acl(at, kind, *list, Credentials::root());
    if (!set.ok() && set.error().code == Errc::kInvalid) {
      return failures.add(met.path,
                          "what would be left is no valid list: user, group and other, and a mask if others are "
                          "named, belong to each");
    }
    if (!set.ok()) return failures.add(met.path, set.error());
  }
}

int setfacl(const SetOptions& options) {
  return change_pool(options.pool, [&](Filesystem& fs, Failures& failures) {
    for_each_path(options.paths, failures, [&](const std::string& path) -> Result<void> {
      PMFS_ASSIGN(const Attributes top, fs.stat(path, Credentials::root()));
      PMFS_ASSIGN(const Attributes named, fs.stat(path, Credentials::root(), Follow::kNo));
      const bool descend = options.recursive && named.type() != FileType::kSymlink;  // as setfacl(1)
      Walk on;
      on.enter = [&](const Met& met) {
        if (met.attributes.type() != FileType::kSymlink) change(fs, options, met, failures);  // it has no list
        return descend;
      };
      walk(fs, path, top, failures, on);
      return {};
    });
  });
}

/// What is in a file of the host, or on stdin ("-"). @return nothing: it was said why.
std::optional<std::string> text_of(const std::string& host_name) {
  const HostFd file(host_name == "-" ? dup(STDIN_FILENO) : open(host_name.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<std::byte, 4096> part;
  std::size_t count = 0;
  int failed = file.is_open() ? 0 : errno;
  while (failed == 0) {
    failed = read_full(file.get(), part, count);
    text.append(reinterpret_cast<const char*>(part.data()), count);
    if (count < part.size()) break;
  }
  if (failed == 0) return text;
  report_errno(host_name, "cannot read it", failed);
  return std::nullopt;
}

/// Adds the steps of one option. @return the exit code.
int add_entries(SetOptions& options, const std::string& text, Action action) {
  std::string wrong;
  if (parse_acl_entries(text, action, options.into_defaults, options.steps, wrong)) return kExitOk;
  report_text(wrong,
              action == Action::kUnset
                  ? "not an entry to remove; like u:alice, g:staff, m or, with d: in front, a default one"
                  : "not an entry; like u:alice:rw, g:staff:r-x, m::rx, o::r or, with d: in front, a default one");
  return kExitUsage;
}

}  // namespace

void add_getfacl(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<GetOptions>();
  CLI::App* const command = app.add_subcommand("getfacl", "Show the access control lists of objects of a pool");
  add_pool_and_paths(*command, options->pool, options->paths, "Paths in the pool");
  command->add_flag("-n,--numeric", options->numeric, "User and group ids as numbers");
  command->footer(
      "What it prints, `pmfs setfacl -M -` takes.\n\n"
      "Example:\n  pmfs getfacl /dev/shm/demo.pool /photos");
  command->callback([options, &exit_code] { exit_code = getfacl(*options); });
}

void add_setfacl(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<SetOptions>();
  CLI::App* const command = app.add_subcommand("setfacl", "Change access control lists in a pool");
  add_pool_and_paths(*command, options->pool, options->paths, "Paths in the pool");
  const auto one_each = [&](const char* name, std::vector<std::string>& values, const char* what) {
    return command->add_option(name, values, what)->allow_extra_args(false);
  };
  const CLI::Option* const modify =
      one_each("-m,--modify", options->modify, "Set these entries: u:alice:rwX,g::r,d:o:-");
  const CLI::Option* const file =
      one_each("-M,--modify-file", options->modify_file, "Set those in a file, as getfacl prints them (- is stdin)");
  const CLI::Option* const remove = one_each("-x,--remove", options->remove, "Remove these entries: u:alice,d:g:staff");
  const CLI::Option* const all =
      command->add_flag("-b,--remove-all", options->remove_all, "Remove all that the mode does not stand for");
  const CLI::Option* const defaults =
      command->add_flag("-k,--remove-default", options->remove_default, "Remove the default list");
  command->add_flag("-d,--default", options->into_defaults, "Entries given are for the default list");
  command->add_flag("-R,--recursive", options->recursive, "Also everything below; links there are left alone");
  command->add_flag("-n,--no-mask", options->keep_mask, "Do not make the mask the union of what it limits");
  command->footer(
      "What is done is done in the order given. Users and groups are the host's, or numbers.\n\n"
      "Example:\n  pmfs setfacl /dev/shm/demo.pool -R -m u:alice:rwX,d:u:alice:rwX /photos\n"
      "  pmfs getfacl /dev/shm/demo.pool /photos | pmfs setfacl /dev/shm/demo.pool -M - /copies");
  command->callback([=, &exit_code] {
    std::size_t modified = 0, files = 0, removed = 0;
    exit_code = kExitOk;
    for (const CLI::Option* const given : command->parse_order()) {
      if (exit_code != kExitOk) return;
      if (given == modify) exit_code = add_entries(*options, options->modify[modified++], Action::kSet);
      if (given == remove) exit_code = add_entries(*options, options->remove[removed++], Action::kUnset);
      if (given == all) options->steps.push_back({Action::kStrip, AclKind::kAccess});
      if (given == all || given == defaults) options->steps.push_back({Action::kClear, AclKind::kDefault});
      if (given == file) {
        const std::optional<std::string> text = text_of(options->modify_file[files++]);
        exit_code = text ? add_entries(*options, *text, Action::kSet) : kExitFailure;
      }
    }
    if (exit_code != kExitOk) return;
    if (options->steps.empty()) throw CLI::RequiredError("-m, -M, -x, -b or -k");
    exit_code = setfacl(*options);
  });
}

}  // namespace pmfs::tools
