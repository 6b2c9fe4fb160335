#!/usr/bin/env bash
# ls and stat print what coreutils' do, byte for byte: coreutils are asked about a mount of the pool, then the pool itself.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tree.sh"
. "$(dirname "$0")/../../scripts/lib.sh"
: "${work:?}"
missing=$(fuse_missing)
[ -z "$missing" ] || skip "$missing"
export LC_ALL=C
pool=$work/pool
mnt=$work/mnt
tree=$work/tree
make_odd_tree "$tree"
touch -d '2001-02-03 04:05:06.789' "$tree/.hidden"
mkdir "$tree/.hidden-too"
touch -d '2040-01-01' "$tree/a/file-1"
touch "$tree/a/file-2"
truncate -s 1023 "$tree/a/file-3"; truncate -s 10189 "$tree/a/file-9"; truncate -s 1048575 "$tree/a/file-11"
expect 0 "$PMFS" mkfs "$pool" --size 64M
expect 0 "$PMFS" import "$pool" "$tree" /t
mkdir "$mnt"
expect 0 "$PMFS" mount "$pool" "$mnt" -o noatime
trap 'umount "$mnt" 2>/dev/null; cleanup' EXIT

# One case a line: the command and its options, then the paths, which begin with a slash.
cases=$work/cases
{
  for options in '' -1 -a -A -l -la -lA -li -i -lh -lS -lSr -lt -ltr -lr -r -t -S -U -lU -d -ld -lR -R -aR -laR -n -lu -lc -lut -lct -u -c -lai -lRh; do
    echo "ls $options /t"
    echo "ls $options /t/a"
    echo "ls $options /t/b /t/a/file-1 /t/dangling /t/b/link /t/closed"
  done
  echo "ls -l --full-time /t/a /t/b"
  echo "ls -l /"
  echo "ls /t/missing /t/a"
  echo "ls /t/closed"
  for object in /t /t/a /t/a/file-1 /t/b/link /t/dangling /t/b/fifo /t/b/null /t/b/empty /t/b/holes /t/sticky /t/team; do
    echo "stat $object"
    echo "stat -L $object"
    for format in %a,%A,%b,%B,%f,%F,%g,%G,%h,%i,%n,%o,%s,%t,%T,%r,%Hr,%Lr,%u,%U %x,%y,%z,%X,%Y,%Z \
      '%10a|%-10A|%010s|%#a|%#f|%04a|%-5h|%8U|%%|%q|%' '%.X|%.3Y|%.0Z|%.12X|%20.3X' %N; do
      echo "stat -c $format $object"
    done
  done
  echo "stat /t/missing /t/a"
} >"$cases"

# run CASE ROOT COMMAND...: the words of the case behind the command, with ROOT before each path.
run() {
  local line=$1 root=$2 words word arguments=()
  shift 2
  read -ra words <<<"$line"
  for word in "${words[@]:1}"; do
    case $word in
      /*) arguments+=("$root$word") ;;
      *) arguments+=("$word") ;;
    esac
  done
  "$@" "${arguments[@]}"
}
n=0
while IFS= read -r line; do
  n=$((n + 1))
  code=0
  run "$line" "$mnt" "${line%% *}" >"$work/want.$n" 2>/dev/null || code=$?
  echo "$code" >"$work/code.$n"
  sed -i "s|$mnt||g" "$work/want.$n"
done <"$cases"
expect 0 "$PMFS" umount "$mnt"
n=0
while IFS= read -r line; do
  n=$((n + 1))
  code=0
  run "$line" '' "$PMFS" "${line%% *}" "$pool" >"$work/got.$n" 2>/dev/null || code=$?
  [ $((code != 0)) = $(($(cat "$work/code.$n") != 0)) ] || fail "$line: exit code $code"
  sed -i 's/^Device: [^\t]*/Device: ?/' "$work/want.$n"
  sed -i '/^ Birth: /d' "$work/want.$n" "$work/got.$n" # a mount tells none
  cmp -s "$work/want.$n" "$work/got.$n" || {
    fail "$line differs (< coreutils, > pmfs)"
    diff -a "$work/want.$n" "$work/got.$n" | head -6 | cat -v >&2
  }
done <"$cases"
[ "$n" -gt 150 ] || fail "only $n cases"
echo "$n commands compared"
finish
