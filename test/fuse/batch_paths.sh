#!/bin/bash
# Batches of paths through a mount: every answer is the kernel's own, for every kind of path and caller; and files created
# in a batch are seen by everybody at once.
. "$(dirname "$0")/lib.sh"
: "${COMPARE:?the path of the batch_compare program}"
for program in setpriv unshare python3; do
  command -v $program >/dev/null || skip "no $program"
done

make_pool 128M
mount_pool

# --- A tree with everything that a path can meet --------------------------------------------------------------------------

deep=$MNT/d1/d2/d3/d4/d5/d6/d7/d8/d9
mkdir -p "$deep" "$MNT"/{open,private,group,others,mine,sticky,over/inside}
echo deep >"$deep/file"
for dir in open private group others mine sticky; do
  echo "$dir" >"$MNT/$dir/file"
  mkdir "$MNT/$dir/sub"
  echo x >"$MNT/$dir/sub/file"
done
chmod 700 "$MNT/private"
chown 0:2000 "$MNT/group" "$MNT/others"
chmod 750 "$MNT/group"
chmod 705 "$MNT/others" # its group is denied, others are not
chown 3000 "$MNT/mine"
chmod 077 "$MNT/mine" # its owner is denied, others are not
chmod 1777 "$MNT/sticky"
ln -s d1/d2 "$MNT/relative"
ln -s "$MNT/open" "$MNT/absolute"
ln -s loop "$MNT/loop"
ln -s ../open/file "$MNT/d1/up"
ln -s ../../outside "$MNT/d1/leaves"
ln -s nothing "$MNT/dangling"
ln -s file "$MNT/open/link"
ln -s private/file "$MNT/to_private"
ln -s ../open/file "$MNT/sticky/link"
chown -h 3000 "$MNT/sticky/link"
mkfifo "$MNT/fifo"
mknod "$MNT/device" c 1 3
long=$(printf 'n%.0s' $(seq 255))
too_long=${long}n
{
  for dir in open private group others mine sticky absolute relative loop dangling to_private; do
    for rest in '' / /. /.. /file /file/ /file/. /sub /sub/ /sub/file /sub/../file /./sub//file /missing /missing/file /link; do
      echo "$MNT/$dir$rest"
    done
  done
  at=$MNT
  for i in 1 2 3 4 5 6 7 8 9; do
    at=$at/d$i
    printf '%s\n' "$at" "$at/file" "$at/no" "$at/.." "$at/../.." "$at/d$((i + 1))/../d$((i + 1))"
  done
  printf '%s\n' "$MNT" "$MNT/" "$MNT/." "$MNT/.." "$MNT/../mnt/open/file" "$MNT//open///file" "$MNT/d1/up" "$MNT/d1/leaves" \
    "$MNT/fifo" "$MNT/device" "$MNT/device/x" "$MNT/missing/$too_long" "$MNT/$too_long" "$MNT/$long" "$MNT/open/$too_long/.." \
    / /proc/self /nothing "$WORK" "" open/file . .. ./open "../mnt/open/file" d1/../open relative/.. "$MNT/over/inside" \
    "$MNT/over" "$MNT/over/inside/file" "$MNT/over/inside/.." "$MNT/over/inside/../inside"
  printf '%s%s\n' "$MNT" "$(printf '/open/..%.0s' $(seq 440))/open/file"
} >"$WORK/paths"
cat "$MNT"/*/file >/dev/null 2>&1 || true

# compare WHO AT_LEAST COMMAND...: the answers are the same, and at least so many are the server's.
compare() {
  local who=$1 least=$2 batched
  shift 2
  "$@" <"$WORK/paths" >"$WORK/compare.out" || die "$who: $(head -20 "$WORK/compare.out")"
  batched=$(sed -nE 's/.* ([0-9]+) batched, .*/\1/p' "$WORK/compare.out")
  [ "$batched" -ge "$least" ] || die "$who: $(tail -1 "$WORK/compare.out")"
  echo "$who: $(tail -1 "$WORK/compare.out")"
}
as() { setpriv --reuid="$1" --regid="$2" "${@:3}"; }

for _ in 1 2; do # names unknown to the kernel, then known
  echo 2 >/proc/sys/vm/drop_caches 2>/dev/null || true
  compare "root" 300 "$COMPARE" --cd "$MNT"
  compare "root without capabilities" 300 setpriv --bounding-set=-dac_override,-dac_read_search \
    --inh-caps=-dac_override,-dac_read_search "$COMPARE" --cd "$MNT"
  compare "a user" 300 as 65534 65534 --clear-groups "$COMPARE" --cd "$MNT"
  compare "the owner" 300 as 3000 3000 --clear-groups "$COMPARE" --cd "$MNT"
  compare "in the group" 300 as 65534 2000 --clear-groups "$COMPARE" --cd "$MNT"
  compare "in the group, supplementary" 300 as 65534 65534 --groups=5,2000,6 "$COMPARE" --cd "$MNT"
  compare "from a private directory" 0 as 65534 65534 --clear-groups "$COMPARE"
done

# --- Mounts on it, other roots, other name spaces --------------------------------------------------------------------------

mount -t tmpfs none "$MNT/over/inside"
echo covered >"$MNT/over/inside/file"
compare "something mounted on it" 300 "$COMPARE" --cd "$MNT"
umount "$MNT/over/inside"
compare "unmounted again" 300 "$COMPARE" --cd "$MNT"
# shellcheck disable=SC2016
compare "mounted on it elsewhere" 0 unshare --mount --propagation private \
  sh -c 'mount -t tmpfs none "$1/over/inside" && exec "$2" --cd "$1"' sh "$MNT" "$COMPARE"
grep -q ' 0 batched' "$WORK/compare.out" || die "answered a caller who sees other mounts"
mkdir "$MNT/proc"
mount --bind /proc "$MNT/proc"
sed "s|$MNT||" "$WORK/paths" >"$WORK/inside" && cp "$WORK/inside" "$WORK/paths"
compare "in another root" 300 "$COMPARE" --chroot "$MNT"
compare "a user in another root" 300 as 65534 65534 --clear-groups --bounding-set=+sys_chroot --inh-caps=+sys_chroot \
  --ambient-caps=+sys_chroot "$COMPARE" --chroot "$MNT"
umount "$MNT/proc"

# --- Creating ----------------------------------------------------------------------------------------------------------------

mkdir "$MNT/new"
chmod 777 "$MNT/new"
names=$(seq -f "$MNT/new/%g" 1000)
for name in $(head -20 <<<"$names"); do [ ! -e "$name" ] || die "$name is there"; done # now the kernel knows they are not
before=$(stat -c %y "$MNT/new")
(umask 027 && "$PMFS" create --batch <<<"$names" >"$WORK/create.out") || die "create: $(head -5 "$WORK/create.out")"
same "$(cut -d' ' -f4 "$WORK/create.out")" "$names" "order of the answers"
for name in $(head -20 <<<"$names"); do [ -f "$name" ] || die "$name is not seen"; done
[ "$(stat -c %y "$MNT/new")" != "$before" ] || die "the directory's time is an old one"
same "$(find "$MNT/new" -type f -perm 640 | wc -l)" 1000 "files with the mode that the umask leaves"
(umask 022 && as_nobody "$PMFS" create --batch --mode 0600 <<<"$MNT/new/of_nobody" >/dev/null) || die "create as nobody"
same "$(stat -c '%u:%g %a' "$MNT/new/of_nobody")" "65534:65534 600" "owner and mode"
refused "File exists" "$PMFS" create --batch <<<"$MNT/new/1"
refused "Permission denied" as_nobody "$PMFS" create --batch <<<"$MNT/private/x"
refused "Permission denied" as_nobody "$PMFS" create --batch <<<"$MNT/open/x"
refused "No such file" "$PMFS" create --batch <<<"$MNT/no/x"
refused "Is a directory|No such file" "$PMFS" create --batch <<<"$MNT/new/slash/"
(cd "$MNT/new" && "$PMFS" create --batch <<<here >/dev/null) || die "create in the working directory"
[ -f "$MNT/new/here" ] || die "not created in the working directory"
"$PMFS" create --batch <<<"$WORK/ordinary" >/dev/null || die "create on an ordinary file system"
[ -f "$WORK/ordinary" ] || die "not created on an ordinary file system"
printf '%s\0' "$MNT/new/a
b" | "$PMFS" create --batch -0 >/dev/null || die "create -0"

# --- The command's output ------------------------------------------------------------------------------------------------------

printf '%s\n' "$MNT/new/1" "$MNT/none" "$MNT/new/of_nobody" | "$PMFS" resolve --json >"$WORK/json" && die "exit code 0"
python3 - "$WORK/json" "$MNT" <<'PYTHON' || die "resolve --json: $(cat "$WORK/json")"
import json, os, sys
rows = json.load(open(sys.argv[1]))
assert rows["schema"] == 1, rows
rows = rows["rows"]
assert [row["errno"] for row in rows] == [0, 2, 0], rows
assert [row["path"] for row in rows] == [sys.argv[2] + name for name in ("/new/1", "/none", "/new/of_nobody")]
assert rows[0]["ino"] == os.stat(rows[0]["path"]).st_ino and rows[0]["generation"] != 0 and rows[0]["batched"]
assert rows[2]["mode"] == "0600" and "ino" not in rows[1], rows
PYTHON

unmount_pool
check_pool
echo "batch_paths: passed"
