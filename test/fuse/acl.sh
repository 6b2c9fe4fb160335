#!/bin/bash
# ACLs through the mount: set and read by the stock tools, obeyed for other users with everything warm, in step with the
# mode, inherited; and a batch of paths answers as the kernel does.
. "$(dirname "$0")/lib.sh"

command -v setfacl >/dev/null || skip "no setfacl (package acl)"
command -v setpriv >/dev/null || skip "no setpriv"
make_pool 64M
mount_pool
cd "$MNT" || die "cd"
chmod 755 .
as() { local id=$1; shift; setpriv --reuid="$id" --regid="$id" --clear-groups "$@"; }
as_in() { local id=$1 groups=$2; shift 2; setpriv --reuid="$id" --regid="$id" --groups="$groups" "$@"; }
denied() { refused "Permission denied|Operation not permitted" "$@"; }
granted() { "$@" >"$WORK/granted.out" 2>&1 || die "denied '$*': $(cat "$WORK/granted.out")"; }
acl() { getfacl -cnpE -- "$1" | grep . | tr '\n' ' '; }

mkdir -p secret/deep; echo s >secret/deep/file; chmod 700 secret; chmod 644 secret/deep/file
echo f >file; chmod 640 file
find . >/dev/null; cat secret/deep/file file >/dev/null # all of it is warm
denied as 2001 cat secret/deep/file
denied as 2001 cat file

# Granted to one, denied to one.
setfacl -m u:2001:x secret
granted as 2001 cat secret/deep/file
denied as 2002 cat secret/deep/file
setfacl -m u:2001:r,g:3000:rw file
same "$(acl file)" "user::rw- user:2001:r-- group::r-- group:3000:rw- mask::rw- other::--- " "the list"
same "$(stat -c %a file)" 660 "the mode shows the mask"
granted as 2001 cat file
denied as 2001 sh -c 'echo x >>file'
granted as_in 2002 3000 sh -c 'echo x >>file'
denied as 2002 cat file
chmod 755 secret
granted as 2002 cat secret/deep/file
setfacl -m u:2001:-,g::rx,m::rx secret # with an empty mask Linux looks at the mode alone
denied as 2001 cat secret/deep/file
granted as 2002 cat secret/deep/file
setfacl -x u:2001 secret
granted as 2001 cat secret/deep/file

# chmod is the mask.
chmod 600 file
denied as 2001 cat file
same "$(acl file)" "user::rw- user:2001:r-- group::r-- group:3000:rw- mask::--- other::--- " "the list after chmod"
chmod 640 file
granted as 2001 cat file
denied as_in 2002 3000 sh -c 'echo x >>file'
setfacl -b file
same "$(acl file)" "user::rw- group::r-- other::--- " "without its list"
denied as 2001 cat file

# Only the owner; and S_ISGID goes when he is not in the group.
denied as 2001 setfacl -m u:2001:rw file
mkdir own; chown 2001:3000 own; chmod 2775 own
granted as 2001 setfacl -m u:2002:rwx own
same "$(stat -c %a own)" 775 "S_ISGID, not in the group"
chmod 2775 own
granted as_in 2001 3000 setfacl -m u:2002:rx own
same "$(stat -c %a own)" 2775 "S_ISGID, in the group"

# Inherited, whatever the umask.
mkdir shared; chmod 777 shared
setfacl -d -m u::rwx,u:2001:rwx,g::rx,m::rwx,o::- shared
as 2002 sh -c 'umask 077; echo n >shared/new; mkdir shared/sub; mkfifo shared/fifo; ln -s new shared/link'
same "$(acl shared/new)" "user::rw- user:2001:rwx group::r-x mask::rw- other::--- " "the list of a new file"
same "$(stat -c %a shared/new)" 660 "the mode of a new file"
granted as 2001 sh -c 'echo x >>shared/new'
denied as 2003 cat shared/new
granted as 2001 touch shared/sub/file
same "$(getfacl -cndp shared/sub | grep -c .)" 5 "the default list of a new directory"
setfacl -k shared
as 2002 sh -c 'umask 077; echo n >shared/after'
same "$(stat -c %a shared/after)" 600 "the mode without a default list"

# A batch of paths, by the server's own look-up, says what the kernel says.
chmod 755 secret
for list in u:2001:- u:2001:x g:3000:- u:2001:x,m::-; do
  setfacl -b secret; setfacl -m "$list" secret
  for who in "2001 2001" "2002 2002" "2002 3000"; do
    read -r id groups <<<"$who"
    kernel=no; as_in "$id" "$groups" stat secret/deep/file >/dev/null 2>&1 && kernel=yes
    batch=no; as_in "$id" "$groups" "$PMFS" resolve --json <<<"$MNT/secret/deep/file" >"$WORK/batch.out" 2>&1 && batch=yes
    grep -q '"batched": *true' "$WORK/batch.out" || die "the server did not answer: $(cat "$WORK/batch.out")"
    same "$batch" "$kernel" "batch and kernel, $list for $who: $(cat "$WORK/batch.out")"
  done
done

# Kept.
setfacl -m u:2001:rw file; setfacl -d -m u:2001:rx shared
before=$(getfacl -nR . 2>/dev/null)
tar --acls -cf "$WORK/archive.tar" file shared
cd /
unmount_pool
check_pool
mount_pool
cd "$MNT" || die "cd"
same "$(getfacl -nR . 2>/dev/null)" "$before" "after a remount"
mkdir t; tar --acls -xf "$WORK/archive.tar" -C t
same "$(acl t/file)" "$(acl file)" "kept by tar"
cp -a file copy
same "$(acl copy)" "$(acl file)" "kept by cp -a"
cd /
kill_server
umount -l "$MNT"
mount_pool
cd "$MNT" || die "cd"
same "$(acl copy)" "$(acl file)" "after the server was killed"
cd /
unmount_pool
check_pool
echo "acl: passed"
