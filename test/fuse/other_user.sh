#!/bin/bash
# Permissions hold for other users, with names and attributes that the kernel has cached for root.
. "$(dirname "$0")/lib.sh"

command -v setpriv >/dev/null || skip "no setpriv"
make_pool 64M
mount_pool
cd "$MNT" || die "cd"
denied() { refused "Permission denied|Operation not permitted" as_nobody "$@"; }
granted() { as_nobody "$@" >"$WORK/granted.out" 2>&1 || die "nobody is denied '$*': $(cat "$WORK/granted.out")"; }

mkdir secret open; chmod 700 secret
echo s >secret/file; echo o >open/file; echo p >open/private; chmod 600 open/private
chmod 644 secret/file
ls -lR . >/dev/null; cat secret/file open/private >/dev/null # everything is warm

denied cat secret/file
denied ls secret
denied stat secret/file
denied cat open/private
granted cat open/file
denied sh -c 'echo x >>open/file'
denied touch open/new
denied rm -f open/file
denied mv open/file open/moved
denied mkdir open/dir
denied chmod 777 open/file
denied chown 65534 open/file
denied touch -d 2001-01-01 open/file
denied truncate -s 0 open/file
denied ln -s x open/link
denied touch .

# What changes counts at once.
chmod 755 secret
granted cat secret/file
chmod 700 secret
denied cat secret/file
chown 65534 open/private
granted cat open/private
chown 0 open/private
denied cat open/private
chgrp 65534 open/private; chmod 640 open/private
granted cat open/private
denied sh -c 'echo x >>open/private'

# Its own files.
mkdir -m 1777 sticky
echo r >sticky/of_root; chmod 666 sticky/of_root
granted sh -c 'umask 027; echo n >sticky/of_nobody; mkdir sticky/dir; mkfifo sticky/fifo; ln -s x sticky/link'
same "$(stat -c '%u:%g %a' sticky/of_nobody sticky/dir sticky/fifo | tr '\n' ' ')" "65534:65534 640 65534:65534 750 65534:65534 640 " \
  "owner and mode of what nobody made"
same "$(stat -c %u:%g sticky/link)" 65534:65534 "owner of a link"
granted sh -c 'echo x >>sticky/of_root'
granted touch sticky/of_root # now, with write permission only
denied rm -f sticky/of_root
denied mv sticky/of_root sticky/mine
granted mv sticky/of_nobody sticky/mine
granted chmod 600 sticky/mine
granted touch -d 2001-01-01 sticky/mine
denied chown 0 sticky/mine
denied mknod sticky/null c 1 3
granted rm sticky/mine

# Who writes to a set-id file that is not root's takes the bits away, and everybody sees it at once.
set_id() { rm -f sticky/setid; echo x >sticky/setid; chown 65534:65534 sticky/setid; chmod 6777 sticky/setid; stat sticky/setid >/dev/null; }
set_id; granted sh -c 'echo y >>sticky/setid'; same "$(stat -c %a sticky/setid)" 777 "after nobody wrote"
set_id; granted sh -c 'echo y >sticky/setid'; same "$(stat -c %a sticky/setid)" 777 "after nobody wrote with O_TRUNC"
set_id; granted truncate -s 100 sticky/setid; same "$(stat -c %a sticky/setid)" 777 "after nobody truncated"
set_id; echo y >>sticky/setid; same "$(stat -c %a sticky/setid)" 6777 "after root wrote"
set_id; granted chown 65534:65534 sticky/setid; same "$(stat -c %a sticky/setid)" 777 "after chown"
set_id; granted sh -c 'echo y >>sticky/setid'
cd /
unmount_pool
check_pool
mount_pool
same "$(stat -c %a "$MNT/sticky/setid")" 777 "after a remount"
unmount_pool
echo "other_user: passed"
