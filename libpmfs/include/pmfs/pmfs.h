/*
 * pmfs from C: the file system of pmfs.hpp for C89 and later, and for whatever calls C (Python's ctypes, for instance).
 *
 * Each function does what the C++ function of the same name does, and promises the same: what has returned survives
 * power loss, and a crash shows each metadata call entirely or not at all. Exceptions: data overwritten in place may be
 * mixed per 8-byte word until the call returns; its times, and access times, may be older until fsync or the inode's
 * next logged change.
 *
 * Results. An int is 0, or a negative errno; an int64_t is a number from 0 on, or a negative errno. pmfs_strerror()
 * has words for it. Nothing is printed, and no C++ exception leaves a function.
 *
 * Errors common to all and not repeated at each: -EINVAL (an argument is NULL that must not be, a flag is unknown, or
 * struct_bytes of a struct is not that of any version), -EOWNERDEAD (called in a forked child, which owns nothing),
 * -EUCLEAN (the pool says something impossible), -EIO (the medium failed; changes are refused with -EROFS from then
 * on), -EROFS (changes of a pool that is open for reading only), -ENOMEM, -EBADF (the file system is closed). A call
 * that takes a path also has -ENOENT, -ENOTDIR, -EACCES (search), -ELOOP, -ENAMETOOLONG, -ESTALE, -EXDEV (see
 * PMFS_AT_BENEATH).
 *
 * Structs begin with struct_bytes, which the caller sets to sizeof of what was compiled into his program; the *_INIT
 * macros do, and make the rest 0. Later versions add fields at the end: a shorter struct of an older program stands for
 * zeros behind it, and gets no more than it has room for; of a longer one the part that this library does not know must
 * be zero (-E2BIG), or becomes zero where the library fills it.
 *
 * Threads: every function may be called from any thread at any time, unless it says otherwise. A handle must not be
 * closed while another call uses it. After a handle is closed it must not be used; the library cannot tell.
 *
 * Flags, modes and whence values are those of Linux: <fcntl.h>, <unistd.h>, <sys/stat.h>; <linux/fs.h> (SEEK_DATA,
 * RENAME_EXCHANGE, ...), <linux/falloc.h>, <linux/xattr.h> have those that C89 programs do not get from the former.
 * Times are nanoseconds since the Unix epoch, UTC.
 */
#ifndef PMFS_PMFS_H
#define PMFS_PMFS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* what this header declares is what libpmfs.so exports */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- Handles ---------------------------------------------------------------------------------------------------- */

typedef struct pmfs_filesystem pmfs_t;     /* an open file system */
typedef struct pmfs_file_handle pmfs_file_t; /* an open file; keeps its inode, also without names */
typedef struct pmfs_dir_handle pmfs_dir_t;   /* an open directory; one thread at a time */
typedef struct pmfs_lease_handle pmfs_lease_t; /* a part of a file, as memory */
typedef struct pmfs_lock_wait_handle pmfs_lock_wait_t; /* a wait that another thread may end */

struct pmemobjpool; /* libpmemobj's PMEMobjpool */

/* --- Errors ----------------------------------------------------------------------------------------------------- */

/*
 * Words for the result of a call.
 * @param result  what a call returned: a negative errno; a positive errno means the same, 0 is "no error".
 * @return        if this thread's last failed call returned that: its own words, which after pmfs_format(),
 *                pmfs_open(), pmfs_format_in(), pmfs_attach() and pmfs_grow() name the pool and repeat libpmemobj's.
 *                Otherwise what the errno says in general. Never NULL; valid until this thread's next call.
 */
const char *pmfs_strerror(int64_t result);

/* --- Who ---------------------------------------------------------------------------------------------------------- */

enum {
  PMFS_PRIVILEGE_BY_UID = 0, /* uid 0 is bound by no permission bits, others are */
  PMFS_PRIVILEGE_NONE = 1,   /* bound by all */
  PMFS_PRIVILEGE_SEARCH = 2, /* as CAP_DAC_READ_SEARCH */
  PMFS_PRIVILEGE_ALL = 3     /* as CAP_DAC_OVERRIDE */
};

/* Who is asking. There is no default: who passes NULL gets -EINVAL. */
struct pmfs_credentials {
  uint32_t struct_bytes;
  uint32_t uid;
  uint32_t gid;
  uint32_t umask; /* permission bits taken from the mode of what is created */
  uint32_t privilege;         /* PMFS_PRIVILEGE_* */
  uint32_t checked_elsewhere; /* not 0: permissions have been checked by the caller */
  uint64_t group_count;
  const uint32_t *groups; /* supplementary groups; NULL if there are none */
};
/* As an initialiser: uid 0 and gid 0. */
#define PMFS_CREDENTIALS_INIT {sizeof(struct pmfs_credentials), 0, 0, 0, 0, 0, 0, NULL}

/* --- Where -------------------------------------------------------------------------------------------------------- */

#define PMFS_ROOT_INODE 1

enum {
  PMFS_AT_NO_FOLLOW = 1,   /* a symbolic link as the last component is not followed */
  PMFS_AT_FOLLOW = 2,      /* it is, by pmfs_link() too, which else links the symbolic link itself */
  PMFS_AT_NO_SYMLINKS = 4, /* -ELOOP at any symbolic link that would be followed */
  PMFS_AT_BENEATH = 8,     /* -EXDEV where the way leaves the directory in which it starts */
  PMFS_AT_INODE = 16       /* the inode `dir` itself; there is no path */
};

/* Where a call acts. Made by one of the four functions below, passed by value. The path's memory is the caller's. */
typedef struct pmfs_location {
  uint64_t dir;        /* inode number of the directory in which a relative path starts; it is not looked up */
  uint64_t generation; /* with PMFS_AT_INODE: the inode must have this one, else -ESTALE; 0: any */
  const char *path;    /* NULL is -EINVAL, but for PMFS_AT_INODE */
  uint32_t flags;      /* PMFS_AT_* */
  uint32_t unused;     /* 0 */
} pmfs_location_t;

/* A path from the root directory. */
pmfs_location_t pmfs_path(const char *path);
/* A path from a directory, as openat(); `flags` are PMFS_AT_*. The root is PMFS_ROOT_INODE. */
pmfs_location_t pmfs_path_at(uint64_t dir, const char *path, uint32_t flags);
/* The inode itself, as AT_EMPTY_PATH. It must be pinned, held open, or known to be linked; -ESTALE otherwise. */
pmfs_location_t pmfs_inode(uint64_t inode);
/*
 * The inode that had this number and generation when its attributes were looked at, in this opening of the pool or an
 * earlier one: a file handle, as open_by_handle_at(). -ESTALE if it is gone, whatever has its number now. No path is
 * walked, so no search permission is checked.
 */
pmfs_location_t pmfs_handle(uint64_t inode, uint64_t generation);

/* --- Pools -------------------------------------------------------------------------------------------------------- */

struct pmfs_format_options {
  uint32_t struct_bytes;
  uint32_t force;         /* not 0: overwrite what is there */
  uint64_t size_bytes;    /* of the file to create; 0 for a device or a poolset, which have a size */
  const char *label;      /* up to 31 bytes; NULL: none */
  uint32_t mode;          /* permission bits of the pool file; 0: 0600 */
  uint32_t root_uid;      /* owner and group of the root directory */
  uint32_t root_gid;
  uint32_t unused;        /* 0 */
  uint64_t reserve_bytes; /* of the pool's heap, left to an application's own objects; see pmfs_attach() */
};
#define PMFS_FORMAT_OPTIONS_INIT {sizeof(struct pmfs_format_options), 0, 0, NULL, 0, 0, 0, 0, 0}

enum {
  PMFS_OPEN_READ_ONLY = 1,    /* private pages: recovery included, nothing reaches the medium */
  PMFS_OPEN_RELAXED = 2,      /* an ordinary file: durable at fsync, sync and close only */
  PMFS_OPEN_NO_DIR_INDEX = 4, /* scan directories */
  PMFS_OPEN_NO_CACHE = 8      /* no cache of directory entries */
};
enum { PMFS_ATIME_RELATIVE = 0, PMFS_ATIME_NONE = 1, PMFS_ATIME_STRICT = 2 };
enum {
  PMFS_RESOLVER_DEFAULT = 0,
  PMFS_RESOLVER_WALK = 1,    /* component by component */
  PMFS_RESOLVER_STAGE = 2,   /* from popular places */
  PMFS_RESOLVER_FULLPATH = 3 /* by a hash of the whole path */
};

struct pmfs_open_options {
  uint32_t struct_bytes;
  uint32_t flags;           /* PMFS_OPEN_* */
  uint32_t atime;           /* PMFS_ATIME_* */
  uint32_t resolver;        /* PMFS_RESOLVER_*: how paths are found */
  uint32_t busy_wait_ms;    /* how long to try again while the pool is open elsewhere */
  uint32_t rebuild_threads; /* that learn what is in use; 0: one for each CPU */
  uint64_t cache_bytes;     /* bound on the cache of directory entries; 0: as the library thinks best */
};
#define PMFS_OPEN_OPTIONS_INIT {sizeof(struct pmfs_open_options), 0, 0, 0, 0, 0, 0}

/*
 * Makes a pool and an empty file system in it.
 * @param path     a file to create, a device DAX, or a poolset file.
 * @param options  NULL is only useful for a device or a poolset, as there is no size.
 * @error  -EEXIST (something is there; see force), -EINVAL (too small), -ENOTSUP (a poolset with replicas or of
 *         directories), -EBUSY, -EACCES, -EIO (libpmemobj refuses).
 * Durability: on return; a crash before leaves a pool that pmfs_open() refuses.
 */
int pmfs_format(const char *path, const struct pmfs_format_options *options);

/*
 * Opens a pool: recovers what a crash left unfinished and takes the lock against other processes.
 * @param options  NULL: all as it is by default.
 * @param fs       gets the handle; NULL if the call fails.
 * @error  -ENOENT, -EINVAL (no pmfs pool, or a damaged one), -ENOTSUP (made by a newer version, or cannot be opened for
 *         reading only), -EBUSY (open elsewhere), -EACCES, -EUCLEAN, -EIO. pmfs_strerror() names the pool and says what
 *         to do.
 * Durability: recovery's effects are durable on return, unless the pool is opened for reading only.
 */
int pmfs_open(const char *path, const struct pmfs_open_options *options, pmfs_t **fs);

/*
 * Makes an empty file system in a pool of any layout that the application has opened, beside its own objects.
 * @param path         what `pool` was opened by.
 * @param size_bytes   how much of the heap it takes; it cannot grow.
 * @param options      label, root_uid and root_gid count; may be NULL.
 * @param locator_off  gets the place of the file system in the pool, which the application stores durably.
 * @error  -EINVAL (`path` is not that pool's, or too small), -ENOSPC.
 * Concurrency: as libpmemobj's own allocations. Durability: on return.
 */
int pmfs_format_in(const char *path, struct pmemobjpool *pool, uint64_t size_bytes,
                   const struct pmfs_format_options *options, uint64_t *locator_off);

/*
 * Opens the file system in a pool that the application has opened, and will close after the file system.
 * @param locator_off  from pmfs_format_in(); 0: the pool was made by pmfs_format() with reserve_bytes.
 * @error  -ENOTSUP (for reading only), -EINVAL, -EUCLEAN.
 * Concurrency: one handle for each locator. Durability: as pmfs_open().
 */
int pmfs_attach(const char *path, struct pmemobjpool *pool, uint64_t locator_off,
                const struct pmfs_open_options *options, pmfs_t **fs);

/*
 * Makes a pool larger that nobody has open.
 * @param size_bytes    of the file, or of all parts together.
 * @param blocks_added  if not NULL: gets the number of blocks that the file system has more now.
 * @error  -EINVAL (smaller than it is), -ENOTSUP (a device), -ENOSPC (nothing has changed); else as pmfs_open().
 * Durability: on return; a crash leaves the old file system or the larger one.
 */
int pmfs_grow(const char *path, uint64_t size_bytes, const struct pmfs_open_options *options, uint64_t *blocks_added);

/*
 * Makes lazy times durable, saves the allocator's map, closes the pool.
 * @error  -EBUSY: files, directories or pins are still held; nothing was closed, and the handle stays usable. After any
 *         other result, errors included, it is gone.
 * Concurrency: REQUIRES that no other call on this file system is running. In a forked child the handle is freed, and
 *              the pool left alone.
 */
int pmfs_close(pmfs_t *fs);

/* Makes all lazy times durable. Durability: on return, for everything that returned before. */
int pmfs_sync(pmfs_t *fs);

/* Space, as statfs() shows it; blocks are block_bytes long. */
struct pmfs_space {
  uint32_t struct_bytes;
  uint32_t block_bytes;
  uint64_t blocks;
  uint64_t blocks_free;
  uint64_t blocks_available; /* for ordinary writes */
  uint64_t inodes;           /* in use and free */
  uint64_t inodes_free;
};
#define PMFS_SPACE_INIT {sizeof(struct pmfs_space), 0, 0, 0, 0, 0, 0}
/* How much room there is. Durability: stores nothing. Source: statvfs(3). */
int pmfs_statfs(pmfs_t *fs, struct pmfs_space *space);

/* Facts about an open pool. */
struct pmfs_info {
  uint32_t struct_bytes;
  uint32_t format_version;
  char label[32];
  char uuid[40];     /* 8-4-4-4-12 hexadecimal digits */
  uint64_t pool_bytes;
  uint64_t epoch;    /* 1 more than the opens for writing so far */
  uint64_t files;    /* inodes in use */
  uint32_t read_only;
  uint32_t recovered;     /* this open undid at least one unfinished operation */
  const char *durability; /* a sentence: what a returned call survives; static */
};
#define PMFS_INFO_INIT {sizeof(struct pmfs_info), 0, {0}, {0}, 0, 0, 0, 0, 0, NULL}
/* What pool this is. Durability: stores nothing. */
int pmfs_get_info(pmfs_t *fs, struct pmfs_info *info);

/* What pmfs_check() counted. */
struct pmfs_check_counts {
  uint32_t struct_bytes;
  uint32_t unused;
  uint64_t findings; /* 0: the file system is consistent */
  uint64_t inodes;
  uint64_t directories;
  uint64_t entries;
  uint64_t blocks_used;
  uint64_t blocks_free;
  uint64_t lanes_undone; /* unfinished operations that opening undid */
};
#define PMFS_CHECK_COUNTS_INIT {sizeof(struct pmfs_check_counts), 0, 0, 0, 0, 0, 0, 0, 0}

/*
 * Examines everything but file data. Changes nothing.
 * @param counts   gets the numbers; may be NULL.
 * @param finding  called for each thing that is wrong, with a short stable code and a sentence, both valid during the
 *                 call only; it must not call into the library. May be NULL.
 * @param context  the first argument of `finding`.
 * @return         0 if it could be examined, whatever was found.
 * Concurrency: REQUIRES that no other call on this file system is running.
 */
int pmfs_check(pmfs_t *fs, struct pmfs_check_counts *counts,
               void (*finding)(void *context, const char *code, const char *text), void *context);

/* What a file system holds, and how scattered it and its free space are. */
struct pmfs_survey {
  uint32_t struct_bytes;
  uint32_t unused;
  uint64_t regular_files;
  uint64_t directories;
  uint64_t symlinks;
  uint64_t special_files;
  uint64_t extents;          /* of regular files: pieces that lie in one row in the pool */
  uint64_t most_extents;     /* of one file */
  uint64_t fragmented_files; /* in more than one extent */
  uint64_t unwritten_blocks; /* allocated, read as zero */
  uint64_t map_nodes;
  uint64_t index_nodes;
  uint64_t with_xattrs; /* inodes that have extended attributes */
  uint64_t with_acls;
  uint64_t attribute_blocks; /* of attributes and ACLs that do not fit into the inode */
  uint64_t indexes_stale;    /* directories of several leaves without an index */
  uint64_t indexes_damaged;  /* that are scanned, and get a new one with the next entry */
  uint64_t free_runs;        /* free blocks in a row */
  uint64_t longest_free_run; /* blocks */
  uint64_t directories_by_depth[8]; /* by the levels of their index; [0]: those that need none; [7]: 7 and more */
  uint64_t free_blocks_by_run[48];  /* [k]: free blocks that lie in runs of 2^k to 2^(k+1) - 1 blocks */
};
#define PMFS_SURVEY_INIT \
  {sizeof(struct pmfs_survey), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, {0}}
/*
 * Looks at all inodes, maps and indexes, and at the allocator. Changes nothing. @error  -EUCLEAN: a map is damaged.
 * Concurrency: as pmfs_check().
 */
int pmfs_get_survey(pmfs_t *fs, struct pmfs_survey *survey);

/*
 * Writes the file system's structures as stable, readable text.
 * @param line  called for each line, without its end; `text` has `bytes` bytes, no zero behind them, and is valid
 *              during the call only. It must not call into the library.
 * Concurrency: as pmfs_check().
 */
int pmfs_dump(pmfs_t *fs, void (*line)(void *context, const char *text, size_t bytes), void *context);

/* --- Looking ------------------------------------------------------------------------------------------------------ */

/* What stat() shows. `inode` and `generation` name an inode for ever; see pmfs_handle(). */
struct pmfs_attributes {
  uint32_t struct_bytes;
  uint32_t mode; /* S_IFMT and permission bits */
  uint64_t inode;
  uint64_t generation;
  uint32_t links;
  uint32_t uid;
  uint32_t gid;
  uint32_t unused; /* 0 */
  uint64_t size_bytes;
  uint64_t blocks_512; /* units of 512 bytes, as st_blocks */
  uint64_t rdev;       /* as makedev() gives it */
  int64_t atime_ns;
  int64_t mtime_ns;
  int64_t ctime_ns;
  int64_t birth_ns;
};
#define PMFS_ATTRIBUTES_INIT {sizeof(struct pmfs_attributes), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/*
 * The attributes of what `at` names.
 * Durability: stores nothing. Cost: no flush, no fence. Source: POSIX.1-2017 fstatat().
 */
int pmfs_stat(pmfs_t *fs, pmfs_location_t at, const struct pmfs_credentials *who, struct pmfs_attributes *attributes);

/*
 * The same, and keeps the inode's slot and blocks from being reused, whatever happens to its names, until it is given
 * back by pmfs_unpin(). Counted.
 */
int pmfs_pin(pmfs_t *fs, pmfs_location_t at, const struct pmfs_credentials *who, struct pmfs_attributes *attributes);
/* Gives `count` pins back. @error -EINVAL: more than are held; then none is. */
int pmfs_unpin(pmfs_t *fs, uint64_t inode, uint64_t count);

/* Whether `who` may do `mode` (R_OK | W_OK | X_OK). @error -EACCES. Source: POSIX.1-2017 faccessat(). */
int pmfs_access(pmfs_t *fs, pmfs_location_t at, int mode, const struct pmfs_credentials *who);

/*
 * A symbolic link's target; `at` is not followed at its last component.
 * @param target, bytes  buffer for it. Nothing is put behind it, no NUL either.
 * @return               the target's length in bytes, also if the buffer is shorter and got a part; at most 4095.
 * @error  -EINVAL: not a symbolic link. Source: POSIX.1-2017 readlinkat().
 */
int64_t pmfs_readlink(pmfs_t *fs, pmfs_location_t at, const struct pmfs_credentials *who, char *target, size_t bytes);

enum {
  PMFS_RESOLVE_NAMES_ONLY = 256 /* of what is found only inode, generation, and the type in mode; the rest is 0 */
};

/*
 * Resolves many paths, in any order, as pmfs_stat() would each of them, but cheaper.
 * @param paths, count      none of them NULL.
 * @param dir               inode number of the directory in which relative paths start, for instance PMFS_ROOT_INODE.
 * @param flags             PMFS_AT_NO_FOLLOW, PMFS_AT_NO_SYMLINKS, PMFS_AT_BENEATH, PMFS_RESOLVE_NAMES_ONLY.
 * @param errors            `count` results: 0, or the negative errno of that path.
 * @param attributes        `count` structs, filled where the error is 0 and zero elsewhere; their struct_bytes need not
 *                          be set.
 * @param attributes_bytes  sizeof(struct pmfs_attributes) as the caller knows it.
 * Concurrency: each result was true at some instant within the call, not all of them at the same one.
 * Durability:  stores nothing. Cost: no flush, no fence.
 */
int pmfs_resolve(pmfs_t *fs, const char *const *paths, size_t count, uint64_t dir, uint32_t flags,
                 const struct pmfs_credentials *who, int32_t *errors, struct pmfs_attributes *attributes,
                 size_t attributes_bytes);

/* What looking up has cost and saved since the pool was opened, by all threads. */
struct pmfs_lookup_statistics {
  uint32_t struct_bytes;
  uint32_t unused;
  uint64_t lookups;    /* paths resolved, those of batches included */
  uint64_t hits;       /* components found in the cache */
  uint64_t misses;     /* components for which a directory was read */
  uint64_t negative;   /* look-ups answered by a name known to be absent */
  uint64_t skipped;    /* components that a pivot or a known path made unnecessary */
  uint64_t pivot_hits; /* look-ups that began at a pivot */
  uint64_t whole_hits; /* look-ups that needed no step at all */
  uint64_t shared;     /* components that a batch had walked before */
  uint64_t retries;    /* steps repeated because the directory changed meanwhile */
  uint64_t bytes;      /* memory of the cache now */
  uint64_t bytes_limit;
  uint64_t entries; /* in the cache now, as the next two */
  uint64_t negative_entries;
  uint64_t directories;
  uint64_t evictions;
  uint64_t pivots; /* that serve now */
  uint64_t candidates;
  uint64_t periods;
  uint64_t swaps; /* how often other pivots came to serve */
  uint64_t skipped_swaps;
  uint64_t invalidations; /* changes that concerned a pivot */
  uint64_t invalidated_pivots;
  uint64_t revived_pivots; /* that became true again by the next look-up of their path */
  uint32_t pivot_period_ms;
  uint32_t pivot_threshold;
};
#define PMFS_LOOKUP_STATISTICS_INIT \
  {sizeof(struct pmfs_lookup_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* Durability: stores nothing. Concurrency: numbers of one moment need not fit to each other. */
int pmfs_get_lookup_statistics(pmfs_t *fs, struct pmfs_lookup_statistics *counts);
/*
 * The popular places from which look-ups begin now.
 * @param pivot  called for each, in the order of their paths, with the look-ups of it that were counted; `path` is
 *               valid during the call only.
 */
int pmfs_pivots(pmfs_t *fs, void (*pivot)(void *context, const char *path, uint32_t heat), void *context);
/* How often pivots are chosen anew, from now on. @param period_ms  1 to 60000; more counts as that. */
int pmfs_set_pivot_period(pmfs_t *fs, uint32_t period_ms);

/* What there is at most, by the names of pathconf(). @error -EINVAL: another name, or no limit. */
int64_t pmfs_limit(int name);

/* --- Changing the tree: each is one commit, durable on return ----------------------------------------------------- */

/*
 * Each of those that make something has a last parameter which, if not NULL, gets the attributes of what was made.
 */

/*
 * Creates a file, device, FIFO or socket; `mode` carries S_IFMT (0 means a regular file).
 * @error  -EEXIST, -ENOSPC, -EPERM (a directory; a device by a user). Source: POSIX.1-2017 mknodat().
 */
int pmfs_mknod(pmfs_t *fs, pmfs_location_t at, uint32_t mode, uint64_t rdev, const struct pmfs_credentials *who,
               struct pmfs_attributes *made);
/* @error -EEXIST, -ENOSPC, -EMLINK. Source: POSIX.1-2017 mkdirat(). */
int pmfs_mkdir(pmfs_t *fs, pmfs_location_t at, uint32_t mode, const struct pmfs_credentials *who,
               struct pmfs_attributes *made);
/* @param target  1 to 4095 bytes, stored as given. @error -EEXIST, -ENOSPC. Source: POSIX.1-2017 symlinkat(). */
int pmfs_symlink(pmfs_t *fs, const char *target, pmfs_location_t at, const struct pmfs_credentials *who,
                 struct pmfs_attributes *made);
/*
 * Another name `to` for the file `from`, which is followed at its last component only with PMFS_AT_FOLLOW. Also gives a
 * file opened with O_TMPFILE its name: from = pmfs_inode(pmfs_file_inode(file)).
 * @error  -EEXIST, -EPERM (a directory), -EMLINK, -ENOSPC. Source: POSIX.1-2017 linkat().
 */
int pmfs_link(pmfs_t *fs, pmfs_location_t from, pmfs_location_t to, const struct pmfs_credentials *who,
              struct pmfs_attributes *made);
/* @error -EISDIR, -EPERM (sticky directory). Source: POSIX.1-2017 unlinkat(). */
int pmfs_unlink(pmfs_t *fs, pmfs_location_t at, const struct pmfs_credentials *who);
/* @error -ENOTEMPTY, -ENOTDIR, -EBUSY (the root), -EINVAL ("." at the end). Source: POSIX.1-2017 rmdir(). */
int pmfs_rmdir(pmfs_t *fs, pmfs_location_t at, const struct pmfs_credentials *who);
/*
 * @param flags  0, RENAME_EXCHANGE, or RENAME_NOREPLACE and RENAME_WHITEOUT in any combination.
 * @error  -EEXIST (NOREPLACE), -ENOTEMPTY, -EISDIR, -ENOTDIR, -EINVAL (into itself), -EBUSY (the root).
 * Source: POSIX.1-2017 renameat(), Linux renameat2().
 */
int pmfs_rename(pmfs_t *fs, pmfs_location_t from, pmfs_location_t to, uint32_t flags,
                const struct pmfs_credentials *who);

enum {
  PMFS_SET_MODE = 1,
  PMFS_SET_UID = 2,
  PMFS_SET_GID = 4,
  PMFS_SET_SIZE = 8,
  PMFS_SET_ATIME = 16,
  PMFS_SET_MTIME = 32,
  PMFS_SET_ATIME_NOW = 64, /* the current time; needs only write permission, not ownership */
  PMFS_SET_MTIME_NOW = 128
};

/* What to change: the fields that `set` names. */
struct pmfs_changes {
  uint32_t struct_bytes;
  uint32_t set;  /* PMFS_SET_* */
  uint32_t mode; /* permission bits; S_IFMT is ignored */
  uint32_t uid;
  uint32_t gid;
  uint32_t unused; /* 0 */
  uint64_t size_bytes;
  int64_t atime_ns;
  int64_t mtime_ns;
};
#define PMFS_CHANGES_INIT {sizeof(struct pmfs_changes), 0, 0, 0, 0, 0, 0, 0, 0}

/*
 * Any of chmod, chown, utimens and truncate in one call and one commit.
 * @param after  if not NULL: gets the attributes behind the change.
 * @error  -EPERM (owner, ids), -EACCES (write), -EISDIR (size of one), -EFBIG, -ENOSPC.
 * Durability: on return.
 */
int pmfs_set_attributes(pmfs_t *fs, pmfs_location_t at, const struct pmfs_changes *change,
                        const struct pmfs_credentials *who, struct pmfs_attributes *after);

/* The same for one thing each. Source: POSIX.1-2017 fchmodat(). */
int pmfs_chmod(pmfs_t *fs, pmfs_location_t at, uint32_t mode, const struct pmfs_credentials *who);
#define PMFS_KEEP_ID 0xffffffffu /* for pmfs_chown(): it stays as it is */
/* Source: POSIX.1-2017 fchownat(). */
int pmfs_chown(pmfs_t *fs, pmfs_location_t at, uint32_t uid, uint32_t gid, const struct pmfs_credentials *who);
#define PMFS_TIME_NOW INT64_MAX  /* for pmfs_utimens(): the current time */
#define PMFS_TIME_OMIT INT64_MIN /* it stays as it is */
/* Source: POSIX.1-2017 utimensat(). */
int pmfs_utimens(pmfs_t *fs, pmfs_location_t at, int64_t atime_ns, int64_t mtime_ns,
                 const struct pmfs_credentials *who);
/* Source: POSIX.1-2017 truncate(). */
int pmfs_truncate(pmfs_t *fs, pmfs_location_t at, uint64_t size_bytes, const struct pmfs_credentials *who);

/* --- Extended attributes and ACLs --------------------------------------------------------------------------------- */

/*
 * Names begin with "user.", "trusted." or "security."; "system.posix_acl_access" and "system.posix_acl_default" are the
 * ACLs in Linux's form. Of an open file: at = pmfs_inode(pmfs_file_inode(file)).
 * Errors of all: -ENOTSUP (another name space), -ERANGE (a name of no or too many bytes), -EINVAL (nothing behind the
 * name space), -EACCES, -EPERM. Source: xattr(7).
 */

/*
 * @param value, bytes  buffer for the value. 0 bytes: only its length is returned, and value may be NULL.
 * @return              its length in bytes.
 * @error  -ENODATA, -ERANGE (the buffer is too small). Durability: stores nothing.
 */
int64_t pmfs_get_xattr(pmfs_t *fs, pmfs_location_t at, const char *name, void *value, size_t bytes,
                       const struct pmfs_credentials *who);
/* The names, each with a NUL behind it; parameters as of pmfs_get_xattr(). */
int64_t pmfs_list_xattrs(pmfs_t *fs, pmfs_location_t at, char *names, size_t bytes, const struct pmfs_credentials *who);
/*
 * @param value, bytes  at most 65536.
 * @param flags         XATTR_CREATE, XATTR_REPLACE or 0.
 * @error  -EEXIST (CREATE), -ENODATA (REPLACE), -E2BIG, -ENOSPC. Durability: on return, one commit.
 */
int pmfs_set_xattr(pmfs_t *fs, pmfs_location_t at, const char *name, const void *value, size_t bytes, int flags,
                   const struct pmfs_credentials *who);
/* @error -ENODATA. Durability: on return. */
int pmfs_remove_xattr(pmfs_t *fs, pmfs_location_t at, const char *name, const struct pmfs_credentials *who);

/* --- Files -------------------------------------------------------------------------------------------------------- */

/*
 * Opens, and with O_CREAT creates.
 * @param flags  O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NOFOLLOW, O_DIRECTORY,
 *               O_NOATIME, O_TMPFILE (`at` is a directory). Access is checked here, once.
 * @param mode   permission bits of a file created here, less who->umask.
 * @param file   gets the handle; NULL if the call fails.
 * @error  -EEXIST, -EISDIR, -ENOSPC, -ENOTSUP (a device or FIFO), -ENXIO (a socket).
 * Durability: creation and truncation are durable on return. Source: POSIX.1-2017 openat(), Linux open(2).
 */
int pmfs_open_file(pmfs_t *fs, pmfs_location_t at, int flags, uint32_t mode, const struct pmfs_credentials *who,
                   pmfs_file_t **file);

/*
 * Closes; the handle is gone whatever is returned. A file without names is freed with its last handle. No fence.
 */
int pmfs_file_close(pmfs_file_t *file);

/* Its inode number; 0 if `file` is NULL. */
uint64_t pmfs_file_inode(const pmfs_file_t *file);

/*
 * Reads up to `bytes` bytes from byte `off`.
 * @return  bytes read; fewer than asked only at the end of the file. Holes read as zero.
 * @error   -EBADF: not opened for reading. -EISDIR.
 * Concurrency: beside other reads; waits for writers of the same inode.
 * Durability:  stores nothing; the access time is kept in DRAM. Source: POSIX.1-2017 pread().
 */
int64_t pmfs_file_read(const pmfs_file_t *file, uint64_t off, void *buffer, size_t bytes);

/*
 * Writes at byte `off`, or at the end if opened with O_APPEND.
 * @return  bytes written: all, or fewer when the pool is full after a part of it.
 * @error   -EBADF: not opened for writing. -ENOSPC: nothing was written. -EFBIG.
 * Concurrency: waits for readers and writers of the same inode.
 * Durability:  on return. What extends the file or fills holes is one commit; what overwrites is atomic per 8-byte
 *              word, and its times may be older until fsync. Source: POSIX.1-2017 pwrite().
 */
int64_t pmfs_file_write(pmfs_file_t *file, uint64_t off, const void *buffer, size_t bytes);

/* As pmfs_file_write(), at the end. @error -EBADF: not opened with O_APPEND. */
int64_t pmfs_file_append(pmfs_file_t *file, const void *buffer, size_t bytes);

/* Makes lazily stored times durable; everything else already is. Durability: on return. */
int pmfs_file_sync(pmfs_file_t *file);

/* As pmfs_stat() of this inode. */
int pmfs_file_stat(const pmfs_file_t *file, struct pmfs_attributes *attributes);

/* Sets the size; growing reads as zero. @error -EINVAL: not opened for writing. -EFBIG. Durability: on return. */
int pmfs_file_truncate(pmfs_file_t *file, uint64_t size_bytes);

/*
 * Gives bytes [off, off + bytes) blocks, takes them away, zeroes them, removes them, or puts as many in between.
 * @param mode  0, FALLOC_FL_ZERO_RANGE, either with FALLOC_FL_KEEP_SIZE; FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
 *              FALLOC_FL_COLLAPSE_RANGE; FALLOC_FL_INSERT_RANGE (whole blocks of 4096 bytes).
 * @error  -EBADF (not opened for writing), -EINVAL, -ENOTSUP (another mode), -EFBIG, -ENOSPC (nothing has changed).
 * Durability: one commit, on return. Source: Linux fallocate(2).
 */
int pmfs_file_allocate(pmfs_file_t *file, int mode, uint64_t off, uint64_t bytes);

/*
 * The first place from `off` on that has data (SEEK_DATA) or none (SEEK_HOLE).
 * @error  -ENXIO: `off` is not below the size, or no data follows. -EINVAL: another whence. Source: Linux lseek(2).
 */
int64_t pmfs_file_seek(const pmfs_file_t *file, uint64_t off, int whence);

/*
 * Copies up to `bytes` bytes, at most 64 MiB, to another open file of the same file system, or the same one.
 * @return  bytes copied; 0: the source has none at `off`.
 * @error   -EBADF, -EXDEV (another file system), -EINVAL (ranges of one file that overlap), -ENOSPC, -EFBIG.
 * Durability: as pmfs_file_write(). Source: Linux copy_file_range(2).
 */
int64_t pmfs_file_copy(const pmfs_file_t *from, uint64_t off, pmfs_file_t *to, uint64_t to_off, uint64_t bytes);

enum { PMFS_UNLOCK = 0, PMFS_LOCK_SHARED = 1, PMFS_LOCK_EXCLUSIVE = 2 };

/*
 * Locks the whole file, as flock(2): the lock is this open file's and goes with it.
 * @param kind  PMFS_LOCK_*, PMFS_UNLOCK.
 * @param wait  0: -EAGAIN if somebody else has it; else until it can be had.
 * Durability: locks are in DRAM, for one process.
 */
int pmfs_file_lock(pmfs_file_t *file, int kind, int wait);
/*
 * Locks bytes `first` to `last`, both included, as fcntl() with F_OFD_SETLK; UINT64_MAX: however far the file reaches.
 * @error  -EBADF: shared and not opened for reading, exclusive and not for writing. -EAGAIN, -EINVAL.
 */
int pmfs_file_lock_range(pmfs_file_t *file, int kind, uint64_t first, uint64_t last, int wait);
/*
 * Waits that another thread may end. pmfs_lock_wait_interrupt(): the call that waits with it, or the next one that
 * would, returns -EINTR. One call at a time uses a wait; pmfs_lock_wait_free() when none does. -ENOMEM.
 */
int pmfs_lock_wait_new(pmfs_lock_wait_t **wait);
void pmfs_lock_wait_interrupt(pmfs_lock_wait_t *wait);
void pmfs_lock_wait_free(pmfs_lock_wait_t *wait); /* NULL: nothing */
/* As pmfs_file_lock() and pmfs_file_lock_range(), until the lock can be had or the wait is interrupted (-EINTR). */
int pmfs_file_lock_wait(pmfs_file_t *file, int kind, pmfs_lock_wait_t *wait);
int pmfs_file_lock_range_wait(pmfs_file_t *file, int kind, uint64_t first, uint64_t last, pmfs_lock_wait_t *wait);
/*
 * Whether a lock could be had now, as F_OFD_GETLK.
 * @param kind               PMFS_LOCK_*; gets the kind of a lock of somebody else that stands in the way,
 *                           PMFS_UNLOCK if none does.
 * @param first, last  gets the bytes of that lock; left alone if there is none.
 */
int pmfs_file_test_lock(const pmfs_file_t *file, int *kind, uint64_t *first, uint64_t *last);

/* --- Files as memory ---------------------------------------------------------------------------------------------- */

enum {
  PMFS_DIRECT_WRITE = 1,     /* for storing into, too */
  PMFS_DIRECT_FILL_HOLES = 2 /* a hole gets zeros first; else it is -ENXIO */
};

/* Bytes of a file where they lie in the pool. */
struct pmfs_piece {
  void *memory; /* to be read only, unless the lease was taken with PMFS_DIRECT_WRITE */
  uint64_t bytes;
};

/*
 * Bytes `off` to `off + bytes` of a file, clipped to its size, as memory: valid until pmfs_lease_close(), whatever
 * happens to the file; what is cut off or removed meanwhile stays here, and is out of the file. Reads and writes of the
 * file go on, and are seen here word by word.
 * @param flags  PMFS_DIRECT_*.
 * @param lease  gets the handle; NULL if the call fails.
 * @error   -EBADF: not opened for this. -ENXIO: a hole. -ENOSPC, -EROFS, -EINVAL (no regular file).
 * Durability: what is stored is durable after pmfs_lease_persist(); before, perhaps, each aligned word by itself.
 */
int pmfs_file_direct(pmfs_file_t *file, uint64_t off, uint64_t bytes, uint32_t flags, pmfs_lease_t **lease);
/*
 * @param pieces  gets the first `room` of the pieces that the lease lies in, in order; may be NULL if `room` is 0.
 * @return        how many there are.
 */
int64_t pmfs_lease_pieces(const pmfs_lease_t *lease, struct pmfs_piece *pieces, uint64_t room);
/*
 * Makes what was stored in bytes `from` to `from + bytes` of the lease durable, and gives the file the present time.
 * @error  -EBADF: taken for reading. Durability: on return, one fence.
 */
int pmfs_lease_persist(const pmfs_lease_t *lease, uint64_t from, uint64_t bytes);
/* Gives it back, whatever is returned; blocks that left the file meanwhile become free. */
int pmfs_lease_close(pmfs_lease_t *lease);

/* --- Directories -------------------------------------------------------------------------------------------------- */

/* One entry of a directory. */
struct pmfs_dir_entry {
  uint32_t struct_bytes;
  uint32_t type; /* S_IFMT bits */
  uint64_t inode;
  uint64_t cookie; /* 63 bits; reading with it goes on behind this entry, also after the pool is opened again */
  uint32_t name_bytes;
  char name[260]; /* ends with NUL; up to 255 bytes */
};
#define PMFS_DIR_ENTRY_INIT {sizeof(struct pmfs_dir_entry), 0, 0, 0, 0, {0}}

/*
 * @param at   PMFS_AT_NO_FOLLOW is -EINVAL here.
 * @param dir  gets the handle; NULL if the call fails.
 * @error  -ENOTDIR, -EACCES. Source: POSIX.1-2017 opendir().
 */
int pmfs_open_dir(pmfs_t *fs, pmfs_location_t at, const struct pmfs_credentials *who, pmfs_dir_t **dir);

/*
 * Gives the first entry behind `cookie`; 0 starts at ".".
 * @param attributes  if not NULL: gets those of what the entry leads to, both true at one instant.
 * @return            1: there is one; 0: the end. An entry that is there from the first read to the last is returned
 *                    exactly once.
 * Concurrency: beside anything, but for other calls on `dir`. Source: POSIX.1-2017 readdir(), seekdir().
 */
int pmfs_dir_read(pmfs_dir_t *dir, uint64_t cookie, struct pmfs_dir_entry *entry, struct pmfs_attributes *attributes);

/* Forgets what was seen: the next read at cookie 0 lists the directory as it is then. */
int pmfs_dir_rewind(pmfs_dir_t *dir);

/* Its inode number; 0 if `dir` is NULL. */
uint64_t pmfs_dir_inode(const pmfs_dir_t *dir);

/* Closes; the handle is gone whatever is returned. */
int pmfs_dir_close(pmfs_dir_t *dir);

#ifdef __cplusplus
}
#endif

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
