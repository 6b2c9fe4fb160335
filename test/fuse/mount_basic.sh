#!/bin/bash
# Every ordinary operation on a mount, seen again after a remount.
. "$(dirname "$0")/lib.sh"

make_pool
mount_pool
grep -q "$POOL is mounted on $MNT" "$WORK/mount.out" || die "mount says: $(cat "$WORK/mount.out")"
grep -q " $MNT rw,nosuid,nodev.* fuse.pmfs $POOL .*default_permissions" /proc/self/mountinfo || die "the table of mounts"
cd "$MNT" || die "cd"

# Files.
echo one >file
same "$(cat file)" one "written and read"
echo two >>file
same "$(tr '\n' ' ' <file)" "one two " "appended"
truncate -s 5 file
same "$(tr '\n' ' ' <file)" "one t" "cut"
dd if=/dev/urandom of="$WORK/random" bs=1M count=20 status=none
cp "$WORK/random" big
"$PROBE" drop big
cmp "$WORK/random" big || die "20 MiB"
dd if="$WORK/random" of=big bs=4096 seek=100 skip=100 count=50 conv=notrunc status=none
dd if=big bs=65536 iflag=direct status=none | cmp - "$WORK/random" || die "O_DIRECT"
"$PROBE" mmap mapped
"$PROBE" sparse sparse
: >empty
same "$(stat -c %s empty)" 0 "an empty file"

# Names.
mkdir -p dir/sub/deep
mv file dir/sub/file
same "$(head -1 dir/sub/file)" one "moved to another directory"
echo a >a; echo b >b
same "$("$PROBE" rename noreplace a b 2>/dev/null || true)" EEXIST "RENAME_NOREPLACE over a file"
"$PROBE" rename noreplace a c
"$PROBE" rename exchange b c
same "$(cat b)$(cat c)" ab "exchanged"
same "$("$PROBE" rename exchange b none 2>/dev/null || true)" ENOENT "exchange with nothing"
same "$("$PROBE" rename 0x100 b c 2>/dev/null || true)" EINVAL "unknown flags"
same "$("$PROBE" rename 0 dir dir/sub/dir 2>/dev/null || true)" EINVAL "a directory into itself"
mv b c
same "$(cat c)" a "renamed over a file"
refused "not empty" rmdir dir
refused "Is a directory|Not a directory|cannot overwrite" mv -T c dir
mkdir empty_dir; mv -T dir/sub empty_dir
same "$(ls empty_dir)" "$(printf 'deep\nfile')" "a directory over an empty one"
ln c hard
same "$(stat -c %h c)" 2 "links"
same "$(stat -c %i c)" "$(stat -c %i hard)" "a hard link's inode number"
rm c
same "$(cat hard)$(stat -c %h hard)" a1 "the other name"
refused "Operation not permitted|hard link not allowed" ln -T dir hard_dir
refused "File exists" ln hard big
long=$(printf 'n%.0s' $(seq 255))
touch "$long"
refused "too long" touch "${long}n"
touch -- $'strange \n\t\\ name' "-dash" "ünï"
same "$(find . -maxdepth 1 -name '*strange*' | wc -l)" 2 "strange names" # one name, two lines
rm $'strange \n\t\\ name'

# Symbolic links.
ln -s hard link
same "$(cat link)" a "through a link"
target=$(printf 't/%.0s' $(seq 1500))
ln -s "$target" long_link
same "$(readlink long_link)" "$target" "a long target"
ln -s nowhere dangling
refused "No such file" cat dangling
ln -s loop loop
refused "Too many levels" cat loop

# Special files: made, shown, and not usable as devices on a nodev mount.
mkfifo fifo
mknod null c 1 3
mknod block b 259 70000
same "$(stat -c '%F %t:%T' null)" "character special file 1:3" "a device"
same "$(stat -c '%F %t:%T' block)" "block special file 103:11170" "a device with large numbers"
(echo through >fifo) &
same "$(cat fifo)" through "a FIFO"
wait
refused "Permission denied" cat null

# Attributes.
chmod 4751 hard
same "$(stat -c %a hard)" 4751 "mode"
chown 12345:54321 hard
same "$(stat -c %u:%g hard)" 12345:54321 "owner"
touch -d '2001-02-03 04:05:06.123456789 UTC' hard
same "$(stat -c %.9Y hard)" 981173106.123456789 "a time with nanoseconds"
touch -h -d '1960-01-01 UTC' dangling
same "$(stat -c %Y dangling)" -315619200 "a link's own time, before the epoch"
(umask 027; mkdir masked; touch masked/file; mknod masked/pipe p)
same "$(stat -c %a masked masked/file masked/pipe | tr '\n' ' ')" "750 640 640 " "umask"
mkdir setgid; chown 0:777 setgid; chmod 2775 setgid; mkdir setgid/sub; touch setgid/file
same "$(stat -c %g:%a setgid/sub) $(stat -c %g setgid/file)" "777:2755 777" "a set-group-id directory hands on its group"
sync -f hard; sync hard; sync dir # fsync of a file and of a directory

# Space.
[ "$(stat -f -c %S .)" = 4096 ] || die "block size"
[ "$(stat -f -c %b .)" -gt 50000 ] || die "blocks of a 256 MiB pool"
df . | grep -q "^$POOL " || die "df"
before=$(stat -f -c %f .)
cp big copy
[ $((before - $(stat -f -c %f .))) -ge 5120 ] || die "20 MiB take space"
rm copy
free_again "$before" 16 "removing gives it back"

# Blocks: reserved, punched, zeroed; holes found; copies made here.
fallocate -l 1M reserved
# reserves MIB WHAT: that many, and no more than what the map of a file in several pieces takes.
reserves() {
  local extra=$(($(stat -c %b reserved) - $1 * 2048))
  [ "$extra" -ge 0 ] && [ "$extra" -le 16 ] || die "$2: $extra units of 512 bytes more than $1 MiB"
  same "$(stat -c %s reserved)" 1048576 "$2"
}
reserves 1 "fallocate"
fallocate -n -l 2M reserved
reserves 2 "fallocate, the size stays"
cp big punched
cp big expected
fallocate -p -o 5000 -l 100000 punched
dd if=/dev/zero of=expected bs=100000 count=1 seek=5000 oflag=seek_bytes conv=notrunc status=none
cmp punched expected || die "punched"
[ "$(stat -c %b punched)" -lt "$(stat -c %b expected)" ] || die "punching gives blocks back"
fallocate -z -o 200001 -l 30000 punched
dd if=/dev/zero of=expected bs=30000 count=1 seek=200001 oflag=seek_bytes conv=notrunc status=none
cmp punched expected || die "zeroed"
refused "unsupported|not supported" fallocate -c -l 4096 punched
refused "unsupported|not supported" fallocate -i -l 4096 punched
"$PROBE" holes punched
"$PROBE" copy_range big copied
cmp big copied || die "copied"
"$PROBE" drop copied
cmp big copied || die "copied, read again"
same "$("$PROBE" rename 4 copied moved; stat -c '%F %t:%T %a' copied)" "character special file 0:0 0" "a whiteout"
cmp big moved || die "renamed, with a whiteout"
rm -f reserved punched expected copied moved

# Directories: every name once, "." and ".." too, whatever the buffer.
mkdir many
seq 5000 | (cd many && xargs touch)
{ echo .; echo ..; seq 5000; } | sort >"$WORK/expected"
for bytes in 300 4096 32768 1048576; do
  "$PROBE" list many $bytes | sort | cmp - "$WORK/expected" || die "5000 names in $bytes bytes at a time"
done
same "$(ls -la many | wc -l)" 5003 "ls -la"
same "$(ls -la many | awk '$9 == "." || $9 == ".."' | wc -l)" 2 ". and .."
same "$(ls -ldi many/. | cut -d' ' -f1) $(ls -ldi many/.. | cut -d' ' -f1)" \
  "$(stat -c %i many) $(stat -c %i .)" "inode numbers of . and .."
find many -name '*7' -delete
same "$(ls many | wc -l)" 4500 "removed while listing"
rm -r many

# File handles, as an NFS server would use them: the second time after a remount, when the kernel knows no inode.
file_handle=$("$PROBE" handle hard)
dir_handle=$("$PROBE" handle empty_dir/deep)
gone_handle=$(touch gone && "$PROBE" handle gone && rm gone)
same "$("$PROBE" open_handle . "$file_handle")" a "a file by its handle"

# The kernel asked for OPEN once; the rest went without.
same "$("$PROBE" counts . | awk '$1 == "OPEN" {print $2}')" 1 "OPEN requests"

# What was kept survives a remount, bit by bit.
describe() { find . -printf '%P %y %m %n %U %G %s %T@ %l\n' | sort; find . -type f -exec cksum {} + | sort; }
describe >"$WORK/described"
cd /
unmount_pool
check_pool
mount_pool
cd "$MNT" || die "cd"
describe | diff "$WORK/described" - || die "after a remount"
same "$("$PROBE" open_handle . "$file_handle")" a "a file by its handle, after a remount"
same "$("$PROBE" open_handle . "$dir_handle")" "a directory" "a directory by its handle, after a remount"
same "$("$PROBE" open_handle . "$gone_handle" 2>/dev/null || true)" ESTALE "a removed file by its handle"
same "$("$PROBE" open_handle . "129:ffffffffffffff0001000000" 2>/dev/null || true)" ESTALE "an invented handle"
find . -mindepth 1 -delete
same "$(ls -A)" "" "everything removed"
same "$(stat -c %h .)" 2 "the root's links"
cd /
unmount_pool
check_pool
echo "mount_basic: passed"
