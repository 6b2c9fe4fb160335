#!/bin/bash
# A user who is not root mounts a pool of its own, through fusermount3. In a mount namespace of its own with a /dev/fuse
# that everybody may open, since some machines keep theirs for root.
if [ -z "${PMFS_IN_NAMESPACE:-}" ] && [ "$(id -u)" = 0 ] && [ -c /dev/fuse ]; then
  PMFS_IN_NAMESPACE=1 exec unshare --mount --propagation private bash "$0"
fi
. "$(dirname "$0")/lib.sh"
for program in setpriv fusermount3 unshare; do
  command -v $program >/dev/null || skip "no $program"
done

mkdir "$WORK/dev"
mount -t tmpfs -o dev,exec,mode=755 none "$WORK/dev"
mknod -m 666 "$WORK/dev/fuse" c 10 229
mount --bind "$WORK/dev/fuse" /dev/fuse
install -m 755 "$PMFS" "$PROBE" "$WORK/dev/"
PMFS=$WORK/dev/${PMFS##*/}
PROBE=$WORK/dev/${PROBE##*/}

# A pool that the user makes, so that its root directory is the user's.
chown 65534:65534 "$MNT" "$WORK"
as_nobody "$PMFS" mkfs "$POOL" --size 64M >/dev/null || die "mkfs"

as_nobody "$PMFS" mount "$POOL" "$MNT" >"$WORK/mount.out" || die "mount"
grep -q " $MNT rw,nosuid,nodev.* fuse.pmfs $POOL .*user_id=65534.*default_permissions" /proc/self/mountinfo ||
  die "the table of mounts"
as_nobody sh -c "echo mine >'$MNT/file'" || die "write"
same "$(as_nobody cat "$MNT/file")" mine "read"
refused "Permission denied" cat "$MNT/file" # not even root, without allow_other
refused "busy" as_nobody sh -c "cd '$MNT' && '$PMFS' umount '$MNT'"
for _ in 1 2 3; do
  as_nobody "$PMFS" umount "$MNT" || die "umount"
  as_nobody "$PMFS" mount "$POOL" "$MNT" >/dev/null || die "mount again at once"
done
server=$(as_nobody "$PROBE" server "$MNT")
kill -9 "$server"
wait_for_end "$server"
refused "not connected|connection abort" as_nobody ls "$MNT"
as_nobody "$PMFS" mount "$POOL" "$MNT" >/dev/null 2>&1 || die "mount over a dead mount"
same "$(as_nobody cat "$MNT/file")" mine "after the server was killed"
as_nobody "$PMFS" umount "$MNT" || die "umount"
refused "only root" as_nobody "$PMFS" mount "$POOL" "$MNT" -o suid
refused "only root" as_nobody "$PMFS" mount "$POOL" "$MNT" -o dev
check_pool
echo "user_mount: passed"
