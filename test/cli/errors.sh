#!/usr/bin/env bash
# Every way in which a pool cannot be opened or made: one line on standard error that names the pool, nothing on standard
# output, the right exit code, and the pool as it was.
. "$(dirname "$0")/lib.sh"
: "${work:?}"
: "${MAKE_POOL:?set MAKE_POOL to the helper program}"
export PMEMOBJ_CONF=sds.at_create=0

good=$work/good
expect 0 "$PMFS" mkfs "$good" --size 16M

# refused POOL PATTERN: every command that opens it fails alike.
refused() {
  local pool=$1 pattern=$2 command
  for command in info dump ls 'stat POOL /' 'cat POOL /x' 'put POOL /x' "import POOL $work/empty /" "export POOL / $work/exported"; do
    # shellcheck disable=SC2086
    case $command in
      *POOL*) expect 1 "$PMFS" ${command//POOL/$pool} </dev/null ;;
      *) expect 1 "$PMFS" $command "$pool" </dev/null ;;
    esac
    said "^pmfs: $pool: "
    said "$pattern"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$command $pool: the message is not one line: $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "$command $pool: something on standard output: $(head -c 200 "$work/out")"
  done
  expect 1 "$PMFS" info "$pool" --json
  [ ! -s "$work/out" ] || fail "info --json of $pool prints something"
  expect "${3:-8}" "$PMFS" check "$pool"
  said "^pmfs: $pool: "
  said "$pattern"
  expect "${3:-8}" "$PMFS" check "$pool" --recover
}
mkdir "$work/empty"

refused "$work/missing" '[Nn]o (such )?(pool|file)|does not exist|missing'

echo 'this is a text' >"$work/text"
refused "$work/text" 'not a (libpmemobj |pmfs )?pool|no (libpmemobj )?pool'
[ "$(cat "$work/text")" = 'this is a text' ] || fail "a file that is no pool was changed"
: >"$work/nothing"
refused "$work/nothing" 'not a (libpmemobj |pmfs )?pool|no (libpmemobj )?pool'
head -c 20M /dev/zero >"$work/zeroes"
refused "$work/zeroes" 'not a (libpmemobj |pmfs )?pool|no (libpmemobj )?pool'
refused "$work/empty" 'directory|not a (libpmemobj |pmfs )?pool|no (libpmemobj )?pool'

"$MAKE_POOL" layout other "$work/other" || fail "make_pool other"
refused "$work/other" 'layout|other program|another'
"$MAKE_POOL" layout pmfs "$work/unfinished" || fail "make_pool pmfs"
refused "$work/unfinished" 'mkfs'

# Open elsewhere: named, and opened as soon as it is free again.
"$MAKE_POOL" hold "$good" >"$work/held" 2>&1 &
holder=$!
for _ in $(seq 100); do grep -q held "$work/held" && break; sleep 0.1; done
refused "$good" 'open|use'
expect 1 "$PMFS" mkfs "$good" --size 16M --force
said "^pmfs: $good: "
kill "$holder"
wait "$holder" 2>/dev/null
holder=
expect 0 "$PMFS" info "$good"
expect 0 "$PMFS" check "$good"

cp "$good" "$work/short"
truncate -s 9M "$work/short"
refused "$work/short" 'shorter|truncated|cut'

# A superblock that cannot be: found by its magic at the start of a block.
cp "$good" "$work/damaged"
superblock=
for at in $(grep -abo pmfs001 "$work/damaged" | cut -d: -f1); do [ $((at % 4096)) -ne 0 ] || superblock=$at; done
if [ -n "$superblock" ]; then
  printf '\377\377\377\377' | dd of="$work/damaged" bs=1 seek=$((superblock + 96)) conv=notrunc status=none
  refused "$work/damaged" 'damaged|corrupt|cannot be' 4
  expect 4 "$PMFS" check "$work/damaged" --json
  shown '"clean":false'
else
  fail "no superblock found in a pool"
fi

# Poolsets that this version cannot take.
mkdir "$work/parts"
printf 'PMEMPOOLSET\nOPTION SINGLEHDR\n64M %s\n' "$work/parts" >"$work/directory.set"
expect 1 "$PMFS" mkfs "$work/directory.set"
said "^pmfs: $work/directory.set: .*director"
refused "$work/directory.set" 'director'
printf 'PMEMPOOLSET\n16M %s\nREPLICA\n16M %s\n' "$work/part-a" "$work/part-b" >"$work/replica.set"
expect 1 "$PMFS" mkfs "$work/replica.set"
said "^pmfs: $work/replica.set: .*[Rr][Ee][Pp][Ll][Ii][Cc][Aa]"
refused "$work/replica.set" '[Rr][Ee][Pp][Ll][Ii][Cc][Aa]'
[ ! -e "$work/part-a" ] || fail "a refused poolset left a part"

# One that it can.
printf 'PMEMPOOLSET\n16M %s\n24M %s\n' "$work/part-1" "$work/part-2" >"$work/two.set"
expect 0 "$PMFS" mkfs "$work/two.set"
echo hello | expect 0 "$PMFS" put "$work/two.set" /file
expect 0 "$PMFS" cat "$work/two.set" /file
shown '^hello$'
expect 0 "$PMFS" check "$work/two.set"

# Not ours to open. Root may open everything, so somebody else tries.
chmod 600 "$good"
chmod 755 "$work"
as_nobody=
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  as_nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'
  $as_nobody "$PMFS" --version >/dev/null 2>&1 || as_nobody=
fi
if [ -n "$as_nobody" ]; then
  # shellcheck disable=SC2046,SC2086
  for command in info check; do
    expect "$([ $command = check ] && echo 8 || echo 1)" $as_nobody "$PMFS" "$command" "$good"
    said "^pmfs: $good: .*[Pp]ermission"
  done
elif [ "$(id -u)" != 0 ]; then
  chmod 000 "$good"
  refused "$good" '[Pp]ermission'
  chmod 600 "$good"
else
  echo "not tried: a pool without permission (nobody else can run $PMFS)"
fi

expect 0 "$PMFS" check "$good"
finish
