#!/bin/bash
# A pool may be mounted with and without directory indexes in any order: every name is there each time.
. "$(dirname "$0")/lib.sh"

make_pool 64M
# names FROM TO: makes them; then all names so far must be found, listed once, and nothing else.
names() {
  for i in $(seq "$1" "$2"); do : >"$MNT/dir/name-$i"; done
  for i in $(seq 1 "$2"); do [ -f "$MNT/dir/name-$i" ] || die "name-$i is not found"; done
  [ ! -e "$MNT/dir/none" ] || die "a name that is not there"
  same "$(ls "$MNT/dir" | sort -u | wc -l)" "$2" "names listed"
  same "$(ls "$MNT/dir" | wc -l)" "$2" "names listed once"
}

mount_pool
mkdir "$MNT/dir"
names 1 300
unmount_pool
check_pool
mount_pool -o nodir_index
names 301 600
unmount_pool
check_pool
mount_pool -o dir_index
names 601 601
rm "$MNT"/dir/name-[1-4]*
same "$(ls "$MNT/dir" | wc -l)" "$((601 - 444))" "names that stay"
unmount_pool
check_pool
