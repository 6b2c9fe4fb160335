#!/bin/bash
# Extended attributes through the mount: set, read, listed, removed by the stock tools; kept by tar and over a remount.
. "$(dirname "$0")/lib.sh"

command -v setfattr >/dev/null || skip "no setfattr (package attr)"
command -v setpriv >/dev/null || skip "no setpriv"
make_pool 64M
mount_pool
cd "$MNT" || die "cd"
value() { getfattr --only-values -h -n "$2" -- "$1" 2>"$WORK/value.err"; }
names() { getfattr -h -m - -- "$1" 2>/dev/null | grep -v '^#' | grep . | tr '\n' ' '; }

echo contents >file; mkdir dir; ln -s file link; mkfifo fifo
setfattr -n user.a -v one file
setfattr -n user.b -v two file
setfattr -n trusted.t -v three file
setfattr -n user.of_dir -v four dir
setfattr -h -n trusted.of_link -v five link
same "$(value file user.a)" one "value"
same "$(names file)" "trusted.t user.a user.b " "names, as getfattr sorts them"
same "$(value dir user.of_dir)" four "value of a directory"
same "$(value link trusted.of_link)" five "value of a link"
setfattr -n user.a -v another file
same "$(value file user.a)" another "a value replaced"
setfattr -x user.b file
refused "No such attribute" setfattr -x user.b file
refused "Operation not supported" setfattr -n nothing.a -v x file
refused "Operation not permitted" setfattr -n user.a -v x fifo

# Values of all sizes up to the limit.
large=$(head -c 49152 /dev/urandom | base64 -w0)
same ${#large} 65536 "length of the value"
setfattr -n user.large -v "$large" file 2>/dev/null || python3 - "$large" <<'PY' || die "a value of 65536 bytes"
import os, sys
os.setxattr("file", "user.large", sys.argv[1].encode())
PY
same "$(value file user.large | sha256sum)" "$(printf %s "$large" | sha256sum)" "a value of 65536 bytes"

# Other users.
chmod 644 file; chmod 1777 dir
as_nobody getfattr -n user.a file >"$WORK/nobody.out" 2>&1 || die "nobody may read"
refused "Permission denied" as_nobody setfattr -n user.a -v x file
refused "No such attribute" as_nobody getfattr -n trusted.t file
refused "Operation not permitted" as_nobody setfattr -n trusted.t -v x file
refused "Operation not permitted" as_nobody setfattr -n user.of_dir -v x dir
same "$(as_nobody getfattr -m - file 2>/dev/null | grep -c trusted)" 0 "trusted names that nobody sees"

# Programs.
tar --xattrs --xattrs-include='*' -cf "$WORK/archive.tar" file dir
mkdir from_tar; tar --xattrs --xattrs-include='*' -xf "$WORK/archive.tar" -C from_tar
same "$(value from_tar/file trusted.t)" three "kept by tar"
same "$(value from_tar/file user.large | sha256sum)" "$(printf %s "$large" | sha256sum)" "kept by tar, large"
cp --preserve=xattr file copy
same "$(value copy user.a)" another "kept by cp"

cd /
unmount_pool
check_pool
mount_pool
cd "$MNT" || die "cd"
same "$(value file user.a)" another "after a remount"
same "$(value file user.large | sha256sum)" "$(printf %s "$large" | sha256sum)" "after a remount, large"
setfattr -n user.last -v kept file
rm copy
kill_server
cd /
umount -l "$MNT"
mount_pool
same "$(value "$MNT/file" user.last)" kept "after the server was killed"
unmount_pool
check_pool
echo "xattr: passed"
