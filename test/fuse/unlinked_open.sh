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
unmount_pool
check_pool
echo "unlinked_open: passed"
