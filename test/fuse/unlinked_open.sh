#!/bin/bash
# A file without names lives as long as somebody has it open, and not longer: not after a close, not after a crash.
. "$(dirname "$0")/lib.sh"

make_pool 128M
mount_pool
"$PROBE" unlinked "$MNT/file" || die "an unlinked file through its descriptors"
same "$(ls -A "$MNT")" "" "nothing is left"

# Its space comes back with the last close...
free() { stat -f -c %f "$MNT"; }
before=$(free)
"$PROBE" hold "$MNT/held" "$WORK/ready" &
holder=$!
while [ ! -e "$WORK/ready" ]; do sleep 0.05; done
[ $((before - $(free))) -ge 4096 ] || die "16 MiB are in use while the file is open"
kill $holder
wait $holder 2>/dev/null || true
free_again "$before" 16 "closing a file without names"

# ... and with the next mount, if the server is killed meanwhile.
rm "$WORK/ready"
"$PROBE" hold "$MNT/held" "$WORK/ready" &
holder=$!
while [ ! -e "$WORK/ready" ]; do sleep 0.05; done
kill_server
check_pool
check_pool --recover
kill $holder
wait $holder 2>/dev/null || true
mount_pool # over what is left of the dead mount
same "$(ls -A "$MNT")" "" "nothing is left after the crash"
[ $((before - $(free))) -le 16 ] || die "the space after the crash: $before blocks free before, $(free) after"
"$PROBE" unlinked "$MNT/file" || die "an unlinked file through its descriptors, after the crash"

# The same behind a lazy unmount: who holds the file still writes and reads it, nobody else finds the mount, and when the
# server is killed then, the file is gone, its space is free, and a new file gets nothing of it.
inodes_free() { stat -f -c %d "$MNT"; }
before=$(free)
before_inodes=$(inodes_free)
exec 7<>"$MNT/lazy"
head -c 8388608 /dev/zero | tr '\0' L >&7
rm "$MNT/lazy"
server=$("$PROBE" server "$MNT")
umount -l "$MNT"
! grep -q " $MNT " /proc/self/mountinfo || die "a lazy unmount leaves the mount in its place"
is_alive "$server" || die "the server ends while a file is open"
echo more >&7
same "$(stat -L -c '%s %h' /proc/self/fd/7)" "8388613 0" "the file behind a lazy unmount"
same "$(tail -c 6 /proc/self/fd/7)" "Lmore" "what it holds"
refused "open elsewhere" "$PMFS" mount "$POOL" "$MNT" # the pool is still in use
kill -9 "$server"
wait_for_end "$server"
refused "not connected|I/O error|aborted" sh -c 'echo x >&7'
check_pool
check_pool --recover
check_pool
mount_pool
same "$(ls -A "$MNT")" "" "nothing is left behind a lazy unmount and a crash"
[ $((before - $(free))) -le 16 ] || die "space is lost: $before blocks free before, $(free) after"
same "$(inodes_free)" "$before_inodes" "inodes free"
# Its blocks are used again by a file of this size: none shows what they held, and the dead descriptor shows nothing new.
truncate -s 8388608 "$MNT/hole"
fallocate -l 8388608 "$MNT/reserved"
same "$(cat "$MNT/hole" "$MNT/reserved" | tr -d '\0' | wc -c)" 0 "bytes of a dead file in new ones"
refused "not connected|Software caused|aborted|Input/output" sh -c 'head -c 1 >/dev/null <&7; stat -L /proc/self/fd/7'
exec 7<&-
rm "$MNT/hole" "$MNT/reserved"

# Unmounted lazily and closed in order: the server ends by itself, and the file goes with it.
exec 7<>"$MNT/lazy"
head -c 8388608 /dev/zero >&7
rm "$MNT/lazy"
server=$("$PROBE" server "$MNT")
umount -l "$MNT"
exec 7<&-
wait_for_end "$server"
check_pool
mount_pool
[ $((before - $(free))) -le 16 ] || die "space is lost: $before blocks free before, $(free) after"
same "$(inodes_free)" "$before_inodes" "inodes free after a lazy unmount"
unmount_pool
check_pool
echo "unlinked_open: passed"
