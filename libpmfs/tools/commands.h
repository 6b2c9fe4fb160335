// One function per command: it adds the subcommand with its options to `app`; the subcommand's callback does the work
// and stores the process's exit code in `exit_code`, which must outlive the parse.
#pragma once

namespace CLI {
class App;
}

namespace pmfs::tools {

void add_mkfs(CLI::App& app, int& exit_code);
void add_mount(CLI::App& app, int& exit_code);
void add_umount(CLI::App& app, int& exit_code);
void add_import(CLI::App& app, int& exit_code);
void add_export(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_info(CLI::App& app, int& exit_code);
void add_df(CLI::App& app, int& exit_code);
void add_grow(CLI::App& app, int& exit_code);
void add_ls(CLI::App& app, int& exit_code);
void add_resolve(CLI::App& app, int& exit_code);
void add_create(CLI::App& app, int& exit_code);
void add_stat(CLI::App& app, int& exit_code);
void add_cat(CLI::App& app, int& exit_code);
void add_put(CLI::App& app, int& exit_code);
void add_get(CLI::App& app, int& exit_code);
void add_getfattr(CLI::App& app, int& exit_code);
void add_setfattr(CLI::App& app, int& exit_code);
void add_getfacl(CLI::App& app, int& exit_code);
void add_setfacl(CLI::App& app, int& exit_code);
void add_mkdir(CLI::App& app, int& exit_code);
void add_rmdir(CLI::App& app, int& exit_code);
void add_mv(CLI::App& app, int& exit_code);
void add_cp(CLI::App& app, int& exit_code);
void add_rm(CLI::App& app, int& exit_code);
void add_ln(CLI::App& app, int& exit_code);
void add_tree(CLI::App& app, int& exit_code);
void add_find(CLI::App& app, int& exit_code);
void add_du(CLI::App& app, int& exit_code);
void add_chmod(CLI::App& app, int& exit_code);
void add_chown(CLI::App& app, int& exit_code);
void add_truncate(CLI::App& app, int& exit_code);
void add_touch(CLI::App& app, int& exit_code);
void add_dump(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_trace(CLI::App& app, int& exit_code);
void add_count(CLI::App& app, int& exit_code);

}  // namespace pmfs::tools
