#!/bin/bash
# File handles, as an NFS server keeps them: they find their file wherever its name is, over remounts and a killed server,
# and never find another one, though its inode number is used again.
. "$(dirname "$0")/lib.sh"

make_pool 64M
mount_pool
handle() { "$PROBE" handle "$MNT/$1"; }
opened() { "$PROBE" open_handle "$MNT" "$1" 2>/dev/null || true; } # contents, or the errno's name

mkdir -p "$MNT/dir/sub"
for i in $(seq 40); do
  echo "contents $i" >"$MNT/dir/f$i"
  handles[i]=$(handle dir/f$i)
done
dir_handle=$(handle dir/sub)
all_open() { # WHEN
  for i in $(seq 40); do same "$(opened "${handles[i]}")" "contents $i" "handle $i $1"; done
  same "$(opened "$dir_handle")" "a directory" "a directory's handle $1"
}
all_open "at once"
for i in $(seq 40); do mv "$MNT/dir/f$i" "$MNT/dir/sub/moved$i"; done
same "$(handle dir/sub/moved7)" "${handles[7]}" "the handle of a renamed file"
ln "$MNT/dir/sub/moved7" "$MNT/second"
same "$(handle second)" "${handles[7]}" "the handle by another name"
all_open "after renaming"
unmount_pool
check_pool
mount_pool
all_open "after a remount, when the kernel knows nothing"
same "$(handle second)" "${handles[7]}" "the same handle is given after a remount"
kill_server
mount_pool 2>/dev/null
all_open "after the server was killed"

# Removed: gone, but for who has it open; another name keeps it.
rm "$MNT/dir/sub/moved7"
same "$(opened "${handles[7]}")" "contents 7" "with one name left"
declare -A number
for i in $(seq 10 30); do number[$(stat -c %i "$MNT/dir/sub/moved$i")]=$i; done
exec 7<"$MNT/dir/sub/moved10"
for i in $(seq 10 30); do rm "$MNT/dir/sub/moved$i"; done
same "$(cat <&7)" "contents 10" "a removed file that is open"
exec 7<&-
for _ in $(seq 100); do
  [ "$(opened "${handles[10]}")" != ESTALE ] || break
  sleep 0.05
done
for i in $(seq 10 30); do same "$(opened "${handles[i]}")" ESTALE "handle $i of a removed file"; done

# Their inode numbers are used again: by files with other handles, and the old handles do not find these.
fill() { # WHEN: until a removed file's number is used again
  local n at i
  reused=0
  for n in $(seq 3000); do
    echo "$1 another $n" >"$MNT/dir/new$n"
    at=$(stat -c %i "$MNT/dir/new$n")
    i=${number[$at]:-}
    [ -n "$i" ] || continue
    reused=$((reused + 1))
    [ "$(handle "dir/new$n")" != "${handles[i]}" ] || die "a new file with inode number $at has an old file's handle"
    same "$(opened "${handles[i]}")" ESTALE "an old handle of inode number $at, $1"
    same "$(opened "$(handle "dir/new$n")")" "$1 another $n" "a new handle of inode number $at"
    [ $reused -lt 8 ] || break
  done
  [ $reused -gt 0 ] || die "no inode number was used again, $1"
}
fill "while mounted"
rm "$MNT"/dir/new*
unmount_pool
check_pool
mount_pool
for i in $(seq 10 30); do same "$(opened "${handles[i]}")" ESTALE "handle $i of a removed file, after a remount"; done
fill "after a remount"
kill_server
mount_pool 2>/dev/null
for i in $(seq 10 30); do same "$(opened "${handles[i]}")" ESTALE "handle $i of a removed file, after the server was killed"; done
rmdir "$MNT/dir/none" 2>/dev/null || mkdir "$MNT/dir/none"
gone=$(handle dir/none)
rmdir "$MNT/dir/none"
same "$(opened "$gone")" ESTALE "the handle of a removed directory"

# What was never a handle. Only root opens by handle: the call passes by the directories above.
for text in 129:ffffffffffffffff01000000 129:000000000000000000000000 "${handles[1]%??}ff" 7:0102 ; do
  same "$(opened "$text" | grep -c contents || true)" 0 "an invented handle $text"
done
refused "Operation not permitted" as_nobody "$PROBE" open_handle "$MNT" "${handles[1]}"
unmount_pool
check_pool
echo "handles: passed"
