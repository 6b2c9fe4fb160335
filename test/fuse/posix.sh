#!/bin/bash
# The POSIX matrix through the mount and on tmpfs: the same answers.
. "$(dirname "$0")/lib.sh"

make_pool 256M
mount_pool
mkdir "$MNT/top" "$WORK/top"
"$MATRIX" "$WORK/top" "$MNT/top" || die "the mount answers otherwise than tmpfs"
