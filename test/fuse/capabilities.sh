#!/bin/bash
# Root without its capabilities is a user like any other; file capabilities and set-id bits act, are lost on write and are
# kept, as Linux has it. Other users are in other_user.sh, ACLs in acl.sh.
. "$(dirname "$0")/lib.sh"

for program in setpriv setcap getcap /usr/bin/python3; do
  command -v $program >/dev/null || skip "no $program"
done
make_pool 64M
mount_pool
cd "$MNT" || die "cd"
# Root, but nothing that passes over a file's mode; with all else.
weak() { setpriv --bounding-set=-dac_override,-dac_read_search,-fowner --inh-caps=-dac_override,-dac_read_search,-fowner "$@"; }
denied() { refused "Permission denied|Operation not permitted" "$@"; }
granted() { "$@" >"$WORK/granted.out" 2>&1 || die "denied '$*': $(cat "$WORK/granted.out")"; }
caps() { sed -n 's/^CapEff:[[:space:]]*//p' "/proc/$1/status"; }
same "$(weak sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status | cut -c15-16)" \
  "$(printf %02x $((0x$(caps self) & 0xf1)))" "the capabilities were dropped"

# Everything is warm for root with capabilities.
mkdir theirs; echo t >theirs/file; chown -R 2001:2001 theirs; chmod 700 theirs; chmod 600 theirs/file
mkdir open; echo o >open/file; chown -R 2001:2001 open; chmod 755 open; chmod 644 open/file
mkdir -m 1777 sticky; chown 2001 sticky; echo s >sticky/file; chown 2001 sticky/file
echo m >mine; chmod 000 mine
find . -exec stat {} + >/dev/null; cat theirs/file open/file sticky/file mine >/dev/null

# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
denied weak cat theirs/file
denied weak ls theirs
denied weak stat theirs/file
denied weak cat mine
denied weak sh -c 'echo x >>open/file'
denied weak touch open/new
denied weak rm -f open/file
denied weak mv open/file open/moved
denied weak ln open/file open/hard
denied weak truncate -s 0 open/file
granted weak cat open/file
granted weak ls open
# CAP_FOWNER.
denied weak chmod 777 open/file
denied weak touch -d 2001-01-01 open/file
denied weak rm -f sticky/file
denied weak mv sticky/file sticky/moved
denied weak setfattr -n user.x -v x open/file
# What it may still do: to its own files as their owner, and with CAP_CHOWN, which it has kept.
granted weak chmod 600 mine
granted weak cat mine
granted weak chown 2002 mine
denied weak cat mine
granted cat theirs/file # with capabilities nothing changed
granted chmod 644 open/file
if command -v setfacl >/dev/null; then
  setfacl -m u:0:x theirs; setfacl -m u:0:r theirs/file
  granted weak cat theirs/file
  denied weak sh -c 'echo x >>theirs/file'
  denied weak ls theirs
  setfacl -b theirs theirs/file
  denied weak cat theirs/file
else
  echo "no setfacl here: ACLs for root without capabilities were left out"
fi
# One capability alone: reading and searching, not writing.
reader() { setpriv --bounding-set=-dac_override,-fowner --inh-caps=-dac_override,-fowner "$@"; }
granted reader cat theirs/file
granted reader ls theirs
denied reader sh -c 'echo x >>theirs/file'

# A user is root for one file by its capability, and only where set-id programs may act at all.
program=/bin/sed # a small program that shows its own ids and capabilities
cp "$program" show; chmod 755 show
show() { as_nobody "$MNT/show" -n "s/^$1:[[:space:]]*//p" /proc/self/status; }
setcap cap_net_raw+ep show
same "$(getcap show)" "show cap_net_raw=ep" "getcap"
same "$(show CapEff)" 0000000000000000 "on a nosuid mount a file capability does not act"
chmod 4755 show
setcap cap_net_raw+ep show
same "$(show Uid | cut -f2)" 65534 "on a nosuid mount a set-user-id bit does not act"
cd /
unmount_pool
check_pool
mount_pool -o suid
cd "$MNT" || die "cd"
same "$(stat -c %a show) $(getcap show)" "4755 show cap_net_raw=ep" "both kept over a remount"
same "$(show Uid | cut -f2)" 0 "a set-user-id program of root"
chmod 755 show
same "$(show Uid | cut -f2)" 65534 "without the bit, at once"
same "$(show CapEff)" 0000000000002000 "the file's capability acts"
chmod 2755 show; chgrp 3000 show; chmod 2755 show
same "$(show Gid | cut -f2)" 3000 "a set-group-id program"
# chown by root takes the bits and the capability away, as on every Linux file system.
setcap cap_net_raw+ep show; chmod 6755 show; stat show >/dev/null
chown 2001:3000 show
same "$(stat -c %a show) $(getcap show)" "755 " "after chown"
same "$(show CapEff)" 0000000000000000 "and the next exec knows it"

# Writing takes them from a user's file; also from root's, when it is root without CAP_FSETID.
fresh() { # MODE: a file of nobody with set-id bits and a capability, everything about it warm
  rm -f victim; cp "$program" victim; chown 65534:65534 victim; setcap cap_net_raw+ep victim; chmod "$1" victim
  stat victim >/dev/null; getcap victim >/dev/null
}
is() { same "$(stat -c %a victim) $(getcap victim)" "$1" "$2"; }
has="victim cap_net_raw=ep"
fresh 6777; is "6777 $has" "before"
fresh 6777; granted as_nobody sh -c 'echo x >>victim'; is "777 " "a user appended"
fresh 6777; granted as_nobody sh -c 'echo x >victim'; is "777 " "a user wrote with O_TRUNC"
fresh 6777; granted as_nobody truncate -s 10 victim; is "777 " "a user truncated"
fresh 6777; granted as_nobody dd if=/dev/zero of=victim bs=4096 count=1 oflag=direct conv=notrunc; is "777 " "a user wrote directly"
fresh 6777; granted as_nobody /usr/bin/python3 -c '
import mmap, os
fd = os.open("victim", os.O_RDWR)
os.pwrite(fd, b"x", 0)
with mmap.mmap(fd, 4096) as m: m[1] = 120; m.flush()'; is "777 " "a user wrote and mapped"
fresh 6777; granted as_nobody fallocate -l 10000000 victim; is "777 " "a user reserved space"
fresh 6777; granted as_nobody fallocate -p -o 0 -l 4096 victim; is "777 " "a user punched a hole"
fresh 6777; granted as_nobody /usr/bin/python3 -c '
import os
source, victim = os.open("show", os.O_RDONLY), os.open("victim", os.O_WRONLY)
assert os.copy_file_range(source, victim, 4096) == 4096'; is "777 " "a user copied into it"
fresh 6777; granted as_nobody cat victim; is "6777 $has" "a user only read"
fresh 6777; granted as_nobody touch victim; is "6777 $has" "a user set its times"
fresh 6777; granted as_nobody chmod 6755 victim; is "6755 $has" "its owner set its mode"
fresh 6777; granted ln victim linked; is "6777 $has" "linked"; rm linked
fresh 6777; granted mv victim renamed; mv renamed victim; is "6777 $has" "renamed"
fresh 6777; echo x >>victim; is "6777 " "root wrote: CAP_FSETID keeps the bits, and nothing keeps the capability"
fresh 6777; truncate -s 10 victim; is "6777 " "root truncated"
# Without x for the group the bit means nothing to exec, and the kernel's FUSE, which removes these bits itself, leaves it
# even where other file systems take it (a writer outside the group, since Linux 6.2).
fresh 2767; granted as_nobody sh -c 'echo x >>victim'; is "2767 " "S_ISGID without x for the group"
fresh 6777; granted setpriv --bounding-set=-fsetid --inh-caps=-fsetid sh -c 'echo x >>victim'; is "777 " "root without CAP_FSETID wrote"
# Written through a descriptor that was opened before, and seen without another open.
fresh 6777
exec 7>>victim
setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'echo x >&7'
exec 7>&-
is "777 " "a user wrote through root's descriptor"
fresh 6777; granted as_nobody sh -c 'echo x >>victim'
cd /
unmount_pool
check_pool
mount_pool
cd "$MNT" || die "cd"
is "777 " "lost after a remount too"

# Only root with CAP_SETFCAP gives a capability; its removal is seen at once.
rm -f victim; cp "$program" victim; chown 65534:65534 victim
refused "Operation not permitted|unable to set" as_nobody setcap cap_net_raw+ep "$MNT/victim"
refused "Operation not permitted|unable to set" setpriv --bounding-set=-setfcap --inh-caps=-setfcap setcap cap_net_raw+ep victim
setcap cap_net_raw+ep victim; getcap victim >/dev/null; setcap -r victim
same "$(getcap victim)" "" "removed"
cd /
unmount_pool
check_pool
echo "capabilities: passed"
