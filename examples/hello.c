/*
 * hello_file.cc in C89: makes a file system in a pool, puts a file into it, and finds it again.
 *
 *   hello [POOL]      POOL: a file to create; without it one in /dev/shm, removed at the end
 *
 * Each call that changes something is durable when it returns: there is nothing to flush and nothing to fsync.
 */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmfs/pmfs.h"

/* Every call gives a number or a negative errno. This example stops at the first; a program of yours decides better. */
static int64_t must(const char *doing, int64_t result) {
  if (result < 0) {
    fprintf(stderr, "%s: %s\n", doing, pmfs_strerror(result));
    exit(1);
  }
  return result;
}

static void show_finding(void *context, const char *code, const char *text) {
  fprintf((FILE *)context, "%s: %s\n", code, text);
}

static void list(pmfs_t *fs, const char *path, const struct pmfs_credentials *who) {
  pmfs_dir_t *dir;
  struct pmfs_dir_entry entry = PMFS_DIR_ENTRY_INIT;
  struct pmfs_attributes about = PMFS_ATTRIBUTES_INIT;

  must("open the directory", pmfs_open_dir(fs, pmfs_path(path), who, &dir));
  while (must("read the directory", pmfs_dir_read(dir, entry.cookie, &entry, &about)) == 1)
    printf("  %-10s mode %o, %lu bytes\n", entry.name, (unsigned)about.mode, (unsigned long)about.size_bytes);
  must("close the directory", pmfs_dir_close(dir));
}

static void run(const char *pool) {
  static const char text[] = "hello, persistent memory\n";
  static const char *const paths[] = {"/home/greeting", "/home/greeting.new"};
  struct pmfs_credentials root = PMFS_CREDENTIALS_INIT;
  struct pmfs_credentials me = PMFS_CREDENTIALS_INIT;
  struct pmfs_format_options format = PMFS_FORMAT_OPTIONS_INIT;
  struct pmfs_check_counts counts = PMFS_CHECK_COUNTS_INIT;
  struct pmfs_attributes found[2];
  int32_t errors[2];
  char back[sizeof text];
  pmfs_t *fs;
  pmfs_file_t *file;

  me.uid = (uint32_t)getuid();
  me.gid = (uint32_t)getgid();
  me.umask = 022;
  format.size_bytes = 64 << 20;
  format.label = "hello";
  must("format", pmfs_format(pool, &format));
  must("open", pmfs_open(pool, NULL, &fs));

  /* The new root directory belongs to root. A directory of our own is made by root and given to us. */
  must("mkdir /home", pmfs_mkdir(fs, pmfs_path("/home"), 0755, &root, NULL));
  must("chown /home", pmfs_chown(fs, pmfs_path("/home"), me.uid, me.gid, &root));

  /* A new version of a file: write it beside the old one, then rename over it. The rename is atomic. */
  must("create", pmfs_open_file(fs, pmfs_path("/home/greeting.new"), O_CREAT | O_EXCL | O_WRONLY, 0644, &me, &file));
  must("write", pmfs_file_write(file, 0, text, sizeof text - 1));
  must("close", pmfs_file_close(file));
  must("rename", pmfs_rename(fs, pmfs_path("/home/greeting.new"), pmfs_path("/home/greeting"), 0, &me));

  /* Leave the file system and come back, as another program would. */
  must("close", pmfs_close(fs));
  must("open again", pmfs_open(pool, NULL, &fs));
  list(fs, "/home", &me);

  /* Many paths in one call. The second is gone. */
  must("resolve", pmfs_resolve(fs, paths, 2, PMFS_ROOT_INODE, 0, &me, errors, found, sizeof found[0]));
  printf("%s: %lu bytes; %s: %s\n", paths[0], (unsigned long)found[0].size_bytes, paths[1], pmfs_strerror(errors[1]));

  must("open greeting", pmfs_open_file(fs, pmfs_path(paths[0]), O_RDONLY, 0, &me, &file));
  memset(back, 0, sizeof back);
  must("read", pmfs_file_read(file, 0, back, sizeof back - 1));
  must("close greeting", pmfs_file_close(file));
  if (strcmp(back, text) != 0 || errors[0] != 0 || errors[1] == 0) {
    fprintf(stderr, "greeting is not what was written\n");
    exit(1);
  }
  printf("%s", back);

  /* Everything is examined: what is reachable, link counts, every block owned once. */
  must("check", pmfs_check(fs, &counts, show_finding, stderr));
  printf("check: %lu findings\n", (unsigned long)counts.findings);
  must("close", pmfs_close(fs));
  if (counts.findings != 0) exit(1);
}

int main(int argc, char **argv) {
  char pool[64];

  if (argc > 1) {
    run(argv[1]);
    return 0;
  }
  sprintf(pool, "/dev/shm/hello_c-%ld.pool", (long)getpid());
  run(pool);
  unlink(pool);
  return 0;
}
