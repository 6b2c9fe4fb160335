#!/bin/bash
# O_TRUNC is not lost though the kernel no longer sends OPEN: a shorter file over a longer one has no old tail, neither in
# the page cache nor in the pool.
. "$(dirname "$0")/lib.sh"

make_pool 128M
mount_pool
cd "$MNT" || die "cd"

head -c 300000 /dev/zero | tr '\0' L >file
cat file >/dev/null # the kernel learns that OPEN is not answered, if it does not know yet
for round in 1 2 3; do
  head -c 300000 /dev/zero | tr '\0' L >file
  cat file >/dev/null
  printf 'short %s' $round >file
  same "$(cat file)" "short $round" "over a longer file, cached"
  same "$(stat -c %s file)" 7 "the size"
  "$PROBE" drop file
  same "$(cat file)" "short $round" "over a longer file, read from the pool"
done
head -c 10000 /dev/zero | tr '\0' L >grown
printf 'x' >grown
truncate -s 10000 grown
"$PROBE" drop grown
same "$(tr -d '\0' <grown)" x "cut and grown again: nothing old comes back"
: >file
same "$(stat -c %s:%b file)" 0:0 "O_TRUNC alone"
same "$("$PROBE" counts . | awk '$1 == "OPEN" {print $2}')" 1 "OPEN requests"

cd /
unmount_pool
check_pool
mount_pool
same "$(stat -c %s "$MNT/file")" 0 "after a remount"
same "$(tr -d '\0' <"$MNT/grown")" x "after a remount"
unmount_pool
echo "o_trunc: passed"
