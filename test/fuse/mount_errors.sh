#!/bin/bash
# What goes wrong is said, with the right exit code, and leaves nothing behind; what is left behind is cleared.
. "$(dirname "$0")/lib.sh"

# code EXPECTED COMMAND...: as refused(), with the exit code.
code() {
  local expected=$1 words=$2 status=0
  shift 2
  "$@" >"$WORK/code.out" 2>&1 || status=$?
  same "$status" "$expected" "exit code of '$*' ($(cat "$WORK/code.out"))"
  grep -qE "$words" "$WORK/code.out" || die "'$*' does not say '$words' but: $(cat "$WORK/code.out")"
}
not_mounted() { ! grep -q " $MNT " /proc/self/mountinfo || die "something is mounted"; ! servers >/dev/null || die "a server is left"; }

make_pool 64M

# Mounts that cannot be.
code 32 "$WORK/none" "$PMFS" mount "$WORK/none" "$MNT"
echo "this is no pool" >"$WORK/text"
code 32 "$WORK/text" "$PMFS" mount "$WORK/text" "$MNT"
: >"$WORK/nothing"
code 32 "$WORK/nothing" "$PMFS" mount "$WORK/nothing" "$MNT"
code 32 "No such file" "$PMFS" mount "$POOL" "$WORK/no-directory"
code 32 "Not a directory" "$PMFS" mount "$POOL" "$WORK/text"
code 1 "unknown mount option 'bogus'" "$PMFS" mount "$POOL" "$MNT" -o ro,bogus
code 1 "unknown mount option 'fsname=x'" "$PMFS" mount "$POOL" "$MNT" -o fsname=x
code 1 "entry_timeout=soon" "$PMFS" mount "$POOL" "$MNT" -o entry_timeout=soon
code 1 "strictatime" "$PMFS" mount "$POOL" "$MNT" -o strictatime
code 1 "resolver=x.*walk" "$PMFS" mount "$POOL" "$MNT" -o resolver=x
code 1 "remount.*unmount" "$PMFS" mount "$POOL" "$MNT" -o remount,ro
code 1 "uid=root.*number" "$PMFS" mount "$POOL" "$MNT" -o uid=root
code 1 "gid=4294967295.*number" "$PMFS" mount "$POOL" "$MNT" -o gid=4294967295
code 1 "durability=some" "$PMFS" mount "$POOL" "$MNT" -o durability=some
not_mounted

# A pool can be mounted once.
mount_pool
mkdir "$WORK/other"
code 32 "$POOL" "$PMFS" mount "$POOL" "$WORK/other"
same "$(servers | wc -l)" 1 "servers"
echo kept >"$MNT/file"

# Busy, and then not.
(cd "$MNT" && code 32 "busy" "$PMFS" umount "$MNT")
same "$(cat "$MNT/file")" kept "a refused umount changes nothing"
unmount_pool
not_mounted
code 32 "nothing is mounted" "$PMFS" umount "$MNT"
code 32 "No such file" "$PMFS" umount "$WORK/no-directory"
code 32 "not a pmfs mount" "$PMFS" umount /proc
(
  mount_pool
  cd "$MNT" || die "cd"
  server=$("$PROBE" server .)
  "$PMFS" umount -l "$MNT" || die "umount -l of a busy mount"
  ! grep -q " $MNT " /proc/self/mountinfo || die "still in the table of mounts"
  same "$(cat file)" kept "who is in there stays"
  cd /
  wait_for_end "$server"
)

# umount returns when the pool is closed: it can be mounted again at once, many times.
for i in $(seq 20); do
  mount_pool
  same "$(cat "$MNT/file")" kept "mount $i"
  unmount_pool
done
check_pool

# A directory that is not empty, paths that are relative or strange.
mkdir -p "$WORK/full/sub"
"$PMFS" mount "$POOL" "$WORK/full" >/dev/null || die "over a directory that is not empty"
same "$(ls "$WORK/full")" file "what is mounted hides what was there"
"$PMFS" umount "$WORK/full/" || die "umount with a slash at the end"
same "$(ls "$WORK/full")" sub "and shows it again"
strange="$WORK/mount, \\here"
mkdir "$strange"
cp --sparse=always "$POOL" "$WORK/pool, a \\ strange"
(cd "$WORK" && "$PMFS" mount "pool, a \\ strange" "mount, \\here" >/dev/null) || die "strange names"
same "$(cat "$strange/file")" kept "strange names"
same "$(findmnt -n -o SOURCE "$strange" 2>/dev/null || echo "$WORK/pool, a \\ strange")" "$WORK/pool, a \\ strange" "the source"
ln -s "mount, \\here" "$WORK/link"
(cd "$WORK" && "$PMFS" umount link) || die "umount through a symbolic link"
! grep -q "$WORK/" /proc/self/mountinfo || die "something is mounted"

# Options.
mount_pool -o defaults,nofail,_netdev,x-systemd.automount,noauto,user,noatime -o rw,noexec
grep " $MNT " /proc/self/mountinfo | grep -q "noexec.*noatime\|noatime.*noexec" || die "noexec,noatime"
printf '#!/bin/sh\n' >"$MNT/script"; chmod 755 "$MNT/script"
refused "Permission denied" "$MNT/script"
unmount_pool
mount_pool -o ro
same "$(cat "$MNT/file")" kept "read-only"
refused "Read-only" touch "$MNT/new"
refused "Read-only" sh -c "echo x >>'$MNT/file'"
unmount_pool
mount_pool -o suid,dev,entry_timeout=0,attr_timeout=0,negative_timeout=0
grep " $MNT " /proc/self/mountinfo | grep -qv "nosuid\|nodev" || die "suid,dev"
mknod "$MNT/null" c 1 3
echo x >"$MNT/null" || die "a device on a dev mount"
ls "$MNT/absent" 2>/dev/null || touch "$MNT/absent"
[ -e "$MNT/absent" ] || die "absent names are not kept"
unmount_pool

# Owners that are shown instead of the true ones: judged by, and not to be changed.
mount_pool
touch "$MNT/theirs"
chown 5:6 "$MNT/theirs"
chmod 600 "$MNT/theirs"
unmount_pool
mount_pool -o uid=1234,gid=1235
same "$(stat -c %u:%g "$MNT/theirs" "$MNT")" "1234:1235
1234:1235" "the owner shown"
same "$("$PMFS" stat --batch --json <<<"$MNT/theirs" | tr -d ' \n' | grep -o '"uid":[0-9]*')" '"uid":1234' "the owner shown to a batch"
setpriv --reuid 1234 --regid 1235 --clear-groups cat "$MNT/theirs" || die "the owner that is shown may read"
refused "Operation not permitted" chown 7 "$MNT/theirs"
chown 1234:1235 "$MNT/theirs" || die "chown to the owner that is shown"
touch "$MNT/new"
unmount_pool
mount_pool
same "$(stat -c %u:%g "$MNT/theirs" "$MNT/new")" "5:6
0:0" "the true owners"
unmount_pool

# As mount(8) and mount.fuse3 call it, for fstab.
ln -s "$PMFS" "$WORK/mount.pmfs"
"$WORK/mount.pmfs" "$POOL" "$MNT" -n -o rw,noauto,user=somebody >/dev/null || die "as a helper of mount(8)"
same "$(cat "$MNT/file")" kept "as a helper of mount(8)"
umount "$MNT" || die "umount(8)"
wait_for_servers() { # the ordinary umount does not wait
  for _ in $(seq 100); do
    servers >/dev/null || return 0
    sleep 0.05
  done
}
wait_for_servers
ln -s "$PMFS" "$WORK/mount.fuse.pmfs"
"$WORK/mount.fuse.pmfs" "$POOL" "$MNT" -f || die "mount.fuse.pmfs -f"
not_mounted
code 1 "unknown mount option 'odd'" "$WORK/mount.fuse.pmfs" "$POOL" "$MNT" -o odd
"$WORK/mount.fuse.pmfs" "$POOL" "$MNT" -sv -o rw,odd -t fuse.pmfs >/dev/null || die "sloppy: as mount -s calls it"
same "$(cat "$MNT/file")" kept "mount.fuse.pmfs"
umount "$MNT" || die "umount(8)"
wait_for_servers

# As fsck(8) calls it: what is mounted is not looked at.
ln -s "$PMFS" "$WORK/fsck.pmfs"
for flags in -a -n "-y -f" -C0 ""; do
  # shellcheck disable=SC2086  # several words
  "$WORK/fsck.pmfs" $flags "$POOL" >/dev/null || die "fsck.pmfs $flags"
done
code 16 "z" "$WORK/fsck.pmfs" -z "$POOL"
code 16 "POOL" "$WORK/fsck.pmfs" -a
mount_pool
code 8 "$POOL" "$WORK/fsck.pmfs" -a "$POOL"
unmount_pool
if command -v mount.fuse3 >/dev/null; then
  mount.fuse3 "$WORK/mount.pmfs#$POOL" "$MNT" -o ro,nosuid,nodev >/dev/null || die "as mount.fuse3 calls it"
  same "$(cat "$MNT/file")" kept "as mount.fuse3 calls it"
  unmount_pool
fi

# A killed server leaves a dead mount; the next mount clears it, and umount takes it away.
mount_pool
kill_server
refused "not connected|Software caused" ls "$MNT"
mount_pool
same "$(cat "$MNT/file")" kept "mounted over a dead mount"
same "$(grep -c " $MNT " /proc/self/mountinfo)" 1 "mounts there"
kill_server
unmount_pool
not_mounted

# Signals end it cleanly, also when somebody is in there, and in the foreground with exit code 0.
for signal in TERM INT HUP; do
  mount_pool
  server=$("$PROBE" server "$MNT")
  (cd "$MNT" && kill -$signal "$server" && wait_for_end "$server")
  not_mounted
done
"$PMFS" mount "$POOL" "$MNT" --foreground --counts >"$WORK/foreground.out" 2>&1 &
server=$!
for _ in $(seq 100); do
  grep -q "is mounted on" "$WORK/foreground.out" && break
  sleep 0.05
done
same "$(cat "$MNT/file")" kept "in the foreground"
kill -TERM $server
wait $server || die "exit code $? in the foreground"
grep -q "LOOKUP" "$WORK/foreground.out" || die "--counts"
not_mounted
check_pool

# Nobody who started it is held up: a pipe is closed when mount returns.
timeout 20 sh -c "'$PMFS' mount '$POOL' '$MNT' | cat >/dev/null" || die "mount keeps a pipe open"
unmount_pool
echo "mount_errors: passed"
