#!/bin/bash
# A full pool says ENOSPC, keeps what it has, lets everything be removed, and is then as empty as before.
. "$(dirname "$0")/lib.sh"

make_pool 64M
mount_pool
cd "$MNT" || die "cd"
echo kept >kept
mkdir dir
before=$(stat -f -c %f .)
for i in $(seq 0 99); do echo x >dir/$i; done

# One large file, then small ones in what is left.
refused "No space left" dd if=/dev/zero of=large bs=1M
size=$(stat -c %s large)
[ "$size" -gt $((40 << 20)) ] || die "only $size bytes fit into a pool of 64 MiB"
refused "No space left" bash -c 'i=100; while :; do echo x >dir/$i || exit 1; i=$((i + 1)); done'
refused "No space left" dd if=/dev/zero of=kept bs=1M count=1 seek=1 conv=notrunc
same "$(head -1 kept)" kept "a file in a full pool"
same "$(stat -f -c %a .)" 0 "blocks available"
cmp -n "$size" large /dev/zero || die "the large file"

# Everything that frees works on a full pool.
truncate -s 100 kept
mv dir/0 dir/moved
ln dir/1 dir/linked
rm dir/1
chmod 600 dir/linked
truncate -s $((1 << 20)) large
echo fits >fits || die "after truncation"
rm -r dir large fits
free_again "$before" 32 "removing"
same "$(head -c 4 kept)" kept "a file that stayed"
dd if=/dev/zero of=again bs=1M count=$((size >> 21)) status=none || die "the space can be used again"
cd /
unmount_pool
check_pool

# The same, the server killed while the pool is full.
mount_pool
dd if=/dev/zero of="$MNT/large" bs=1M 2>/dev/null || true
kill_server
check_pool
mount_pool 2>/dev/null
rm "$MNT/large" "$MNT/again"
same "$(head -c 4 "$MNT/kept")" kept "after the crash"
unmount_pool
check_pool
echo "full_pool: passed"
