#!/bin/bash
# Several mounts at once: two pools, a mount inside a mount, a pool that is mounted already; nothing crosses between them.
. "$(dirname "$0")/lib.sh"

make_pool 64M
"$PMFS" mkfs "$WORK/pool2" --size 64M >/dev/null || die "mkfs of a second pool"
check_second() { "$PMFS" check "$WORK/pool2" >"$WORK/check.out" 2>&1 || die "second pool: $(tail -20 "$WORK/check.out")"; }
other=$WORK/other
mkdir "$other"
mount_pool
"$PMFS" mount "$WORK/pool2" "$other" >/dev/null || die "mount of the second pool"
same "$(servers | wc -l)" 2 "servers"
[ "$(stat -c %d "$MNT")" != "$(stat -c %d "$other")" ] || die "two mounts have one device number"

# Each holds what was written to it, though the names are the same in both.
for i in $(seq 300); do
  echo "first $i" >"$MNT/file$i"
  echo "second $i" >"$other/file$i"
done
"$PROBE" drop "$MNT/file7"; "$PROBE" drop "$other/file7"
for i in $(seq 300); do
  same "$(cat "$MNT/file$i")" "first $i" "in the first"
  same "$(cat "$other/file$i")" "second $i" "in the second"
done

# Two programs work in the two at once.
churn() { # DIR WORD
  local i
  for i in $(seq 40); do
    mkdir "$1/churn$i" && seq 50 | sed "s/^/$2 /" >"$1/churn$i/a" && mv "$1/churn$i/a" "$1/churn$i/b" || return 1
    [ $((i % 3)) != 0 ] || rm -r "$1/churn$i" || return 1
  done
}
churn "$MNT" one & first=$!
churn "$other" two & second=$!
wait $first || die "work in the first"
wait $second || die "work in the second"
same "$(cat "$MNT"/churn*/b | sort -u | grep -c '^one ')" 50 "lines in the first"
same "$(cat "$other"/churn*/b | sort -u | grep -c '^two ')" 50 "lines in the second"
same "$(cat "$MNT"/churn*/b | grep -c '^two ' || true)" 0 "lines of the second in the first"

# Neither a name nor a link goes from one to the other; mv and cp copy.
same "$("$PROBE" rename 0 "$MNT/file1" "$other/moved" 2>/dev/null || true)" EXDEV "rename to another mount"
same "$("$PROBE" rename exchange "$MNT/file1" "$other/file1" 2>/dev/null || true)" EXDEV "exchange with another mount"
refused "cross-device link" ln "$MNT/file1" "$other/linked"
mv "$MNT/file1" "$other/moved" || die "mv copies"
same "$(cat "$other/moved")" "first 1" "moved by copying"
[ ! -e "$MNT/file1" ] || die "mv leaves the old file"
"$PROBE" copy_range "$MNT/file2" "$other/copied" 2>"$WORK/copy.out" ||
  grep -q "cross-device\|Invalid cross" "$WORK/copy.out" || die "copy_file_range between mounts: $(cat "$WORK/copy.out")"
cp "$MNT/file2" "$other/copied"
same "$(cat "$other/copied")" "first 2" "copied"
# A handle belongs to its mount: in the other it is another file, or none, and never the first one's.
same "$("$PROBE" open_handle "$MNT" "$("$PROBE" handle "$MNT/file2")")" "first 2" "a handle in its own mount"
[ "$("$PROBE" open_handle "$other" "$("$PROBE" handle "$MNT/file2")" 2>/dev/null)" != "first 2" ] || die "a handle in the wrong mount"

# One is unmounted, or dies, and the other does not notice.
"$PMFS" umount "$other" || die "umount of the second"
same "$(cat "$MNT/file3")" "first 3" "after the other was unmounted"
check_second
"$PMFS" mount "$WORK/pool2" "$other" >/dev/null || die "mount the second again"
kill_server
same "$(cat "$other/file3")" "second 3" "after the other's server was killed"
echo alive >"$other/alive" || die "write after the other's server was killed"
"$PMFS" umount "$MNT" || die "umount of the dead one"
check_pool
mount_pool
same "$(cat "$MNT/file3")" "first 3" "recovered"

# A pool that is mounted is refused, by its own name and by another, and what is mounted goes on.
"$PMFS" umount "$other" || die "umount"
ln -s pool "$WORK/by_link"
ln "$POOL" "$WORK/by_hard_link"
for name in "$POOL" "$WORK/by_link" "$WORK/by_hard_link"; do
  for command in "mount" "mount -o ro"; do
    # shellcheck disable=SC2086
    refused "the pool is open elsewhere" "$PMFS" $command "$name" "$other"
  done
done
refused "open elsewhere" "$PMFS" check "$POOL" --recover
refused "exists|open elsewhere" "$PMFS" mkfs "$POOL" --size 64M
same "$(cat "$MNT/file4")" "first 4" "the mounted pool after all that was refused"
same "$(servers | wc -l)" 1 "servers"

# A mount inside a mount.
mkdir "$MNT/inside"
echo hidden >"$MNT/inside/hidden"
"$PMFS" mount "$WORK/pool2" "$MNT/inside" >/dev/null || die "mount inside a mount"
[ ! -e "$MNT/inside/hidden" ] || die "what is mounted hides what was there"
same "$(cat "$MNT/inside/file5")" "second 5" "through both mounts"
mkdir "$MNT/inside/deep"
echo deep >"$MNT/inside/deep/file"
same "$(cd "$MNT/inside/deep" && cat ../../file5)" "first 5" ".. goes out of the inner mount"
same "$("$PROBE" rename 0 "$MNT/file5" "$MNT/inside/x" 2>/dev/null || true)" EXDEV "rename into the inner mount"
same "$("$PROBE" rename 0 "$MNT/inside" "$MNT/outside" 2>/dev/null || true)" EBUSY "the mount point is not moved"
refused "busy" rmdir "$MNT/inside"
same "$(find "$MNT" -xdev -path '*/inside/*' | wc -l)" 0 "find -xdev stays outside"
same "$(find "$MNT" -path '*/inside/deep/file' | wc -l)" 1 "find goes in"
refused "busy" "$PMFS" umount "$MNT"
same "$(cat "$MNT/inside/deep/file")" deep "after the outer umount was refused"
"$PMFS" umount "$MNT/inside" || die "umount of the inner mount"
same "$(cat "$MNT/inside/hidden")" hidden "what was hidden is there again"
check_second

# A pool that lies in a mount, mounted itself: its server is a client of the other one.
"$PMFS" mkfs "$MNT/nested" --size 16M >"$WORK/nested.out" 2>&1 || die "mkfs in a mount: $(cat "$WORK/nested.out")"
"$PMFS" mount "$MNT/nested" "$other" >"$WORK/nested.out" 2>&1 || die "a pool in a mount: $(cat "$WORK/nested.out")"
seq 1000 >"$other/lines"
mkdir "$other/dir"
sync "$other/lines"
same "$(wc -l <"$other/lines")" 1000 "in a pool in a mount"
"$PMFS" umount "$other" || die "umount of a pool in a mount"
"$PMFS" check "$MNT/nested" >/dev/null || die "check of a pool in a mount"
unmount_pool
check_pool
mount_pool
"$PMFS" mount "$MNT/nested" "$other" >/dev/null || die "a pool in a mount, after a remount"
same "$(seq 1000 | cmp - "$other/lines" && echo same)" same "in a pool in a mount, after remounts"
"$PMFS" umount "$other" || die "umount"
unmount_pool
check_pool
echo "several: passed"
