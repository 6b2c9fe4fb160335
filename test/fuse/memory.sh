#!/bin/bash
# The server's memory is bounded by what the kernel holds: tens of thousands of names pass through find, the kernel
# forgets them, and then nothing is held for it any more. Counted, not guessed: `pmfs info --mount` says how many inodes
# are in memory and how often the kernel refers to them. PMFS_LONG=1: millions of names.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || skip "no python3"
drop() { # what may be dropped of the kernel's names and inodes
  sync -f "$MNT"
  echo 2 >/proc/sys/vm/drop_caches
}
{ : >>/proc/sys/vm/drop_caches; } 2>/dev/null || skip "the kernel's caches cannot be dropped here"

dirs=100 files=200 rounds=3 size=512M # 20,000
[ -z "${PMFS_LONG:-}" ] || { dirs=2000 files=1000 rounds=3 size=6G; } # two millions
names=$((dirs * (files + 1)))

make_pool $size
mount_pool -o relatime
server=$("$PROBE" server "$MNT")
count() { # GROUP NAME
  "$PMFS" info --mount "$MNT" --json | python3 -c "import json, sys; print(json.load(sys.stdin)['$1']['$2'])"
}
resident() { awk '$1 == "VmRSS:" {print $2}' "/proc/$server/status"; } # KiB

# drop_until MOST: the kernel forgets in its own time. What is left is the root, and what this script itself uses.
drop_until() {
  local pins
  for _ in $(seq 100); do
    drop
    pins=$(count held pins)
    [ "$pins" -gt "$1" ] || return 0
    sleep 0.1
  done
  die "$2: the kernel still refers $pins times to $(count held states) inodes"
}

count held pins >/dev/null || die "the counts of what is held"
same "$(count held pins)" 0 "look-ups before anything was looked up"

# As many names as it takes, made by four processes.
for w in 0 1 2 3; do
  python3 - "$MNT" $w $dirs $files <<'PY' &
import os, sys
root, w, dirs, files = sys.argv[1], *map(int, sys.argv[2:])
for d in range(w, dirs, 4):
    at = f"{root}/dir{d}"
    os.mkdir(at)
    for f in range(files): os.mknod(f"{at}/file{f}")
PY
  makers[w]=$!
done
for w in 0 1 2 3; do wait "${makers[w]}" || die "making names"; done
used=$(($(count space inodes) - $(count space inodes_free)))
[ "$used" -ge "$names" ] || die "$used inodes are in use and not $names"
drop_until 8 "after making $names names"

# A cache of the server's own is bounded by its limit; states that nobody uses are kept, but a bounded number.
states_kept=$((64 * 1024 + 64))
within_bounds() { # WHEN
  local states
  states=$(count held states)
  [ "$states" -le $states_kept ] || die "$1: $states inodes are in memory that nobody uses"
  [ "$(count dcache bytes)" -le "$(count dcache bytes_limit)" ] || die "$1: the path cache is larger than its limit"
  same "$(count held handles)" 1 "$1: open files and listings, of which one is the question's own"
  same "$(count held nameless)" 0 "$1: inodes without names"
}
within_bounds "after making"

first=
for round in $(seq $rounds); do
  before=$(count requests lookup)
  same "$(find "$MNT" -type f -size 0 | wc -l)" $((dirs * files)) "files found"
  # Nobody needs to be asked for what has just been listed: at most a look-up for each name, and a second walk asks for none
  # of what the kernel still has.
  asked=$(($(count requests lookup) - before))
  [ $asked -le $((names + 100)) ] || die "find of $names names took $asked look-ups"
  held=$(count held pins)
  [ "$held" -le $((2 * names + 100)) ] || die "$held references to $names names"
  [ "$held" -gt 0 ] || die "find has left no reference: nothing was counted"
  stat "$MNT/dir1/file1" >/dev/null
  before=$(count requests lookup)
  for _ in 1 2 3; do stat "$MNT/dir1/file1" >/dev/null; done
  same "$(count requests lookup)" "$before" "look-ups of a name that the kernel knows"

  drop_until 8 "round $round"
  within_bounds "round $round"
  stat "$MNT/dir1/file1" >/dev/null
  [ "$(count requests lookup)" -gt "$before" ] || die "the kernel had not forgotten a name"
  now=$(resident)
  first=${first:-$now}
  echo "round $round: $asked look-ups, $held references, then $(count held pins); $now KiB resident"
  # Generous: pools of the allocator differ from round to round. What is looked for grows with every round.
  [ "$now" -le $((first + first / 4 + 16384)) ] || die "round $round: $now KiB resident, $first after the first"
done

# An open file, a working directory keep their inodes and no more.
exec 7<"$MNT/dir2/file2"
(
  cd "$MNT/dir3" || die "cd"
  drop_until 12 "with a file and a directory in use"
  [ "$(count held pins)" -ge 2 ] || die "a file and a directory that are in use are not referred to"
  same "$(cat <&7 | wc -c)" 0 "the open file"
)
exec 7<&-

# A removed file is held by an open descriptor alone, and goes with it.
exec 7<"$MNT/dir2/file3"
rm "$MNT/dir2/file3"
for _ in $(seq 100); do
  [ "$(count held nameless)" != 1 ] || break
  sleep 0.1
done
same "$(count held nameless)" 1 "inodes without names"
exec 7<&-
for _ in $(seq 100); do
  [ "$(count held nameless)" != 0 ] || break
  sleep 0.1
done
same "$(count held nameless)" 0 "inodes without names after the last close"

# Names that are not there cost the server's cache, which is bounded, and no reference.
python3 - "$MNT" $((names / 2)) <<'PY'
import os, sys
for i in range(int(sys.argv[2])):
    try: os.stat(f"{sys.argv[1]}/dir{i % 100}/absent{i}"); assert False
    except FileNotFoundError: pass
PY
drop_until 8 "after names that are absent"
within_bounds "after names that are absent"

# All of it is removed: every inode comes back.
find "$MNT" -mindepth 1 -delete
drop_until 8 "after removing"
for _ in $(seq 100); do
  left=$(($(count space inodes) - $(count space inodes_free)))
  [ $left -gt 1 ] || break
  sleep 0.1
done
[ $left -le 2 ] || die "$left inodes are in use in an empty pool" # the root, and the inode file if it counts
within_bounds "after removing"
unmount_pool
check_pool
echo "memory: $names names, passed"
