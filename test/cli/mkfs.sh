#!/usr/bin/env bash
# Making a pool: sizes, label, what it prints, what it refuses.
. "$(dirname "$0")/lib.sh"
: "${work:?}"

size_of() { "$PMFS" info "$1" --json | grep -o '"size_bytes":[0-9]*' | cut -d: -f2; }

expect 0 "$PMFS" mkfs "$work/a" --size 16M --label 'a label'
shown 'size .*16\.0 MiB'
shown 'label .*a label'
shown 'uuid +[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
shown '^durability +.'
shown '^next .*pmfs '
[ "$(size_of "$work/a")" = 16777216 ] || fail "16M is not 16777216 bytes"
[ "$(stat -c %a "$work/a")" = 600 ] || fail "others may read the pool"
durability=$(grep '^durability' "$work/out" | tr -s ' ')
expect 0 "$PMFS" info "$work/a"
shown 'label +a label'
[[ "$durability" == "$(grep '^durability' "$work/out" | tr -s ' ')" ]] || fail "info and mkfs differ about the medium"
expect 0 "$PMFS" ls -a "$work/a"
[ "$(tr '\n' ' ' <"$work/out")" = '. .. ' ] || fail "a new file system is not empty"

# Existing things stay, unless forced.
expect 1 "$PMFS" mkfs "$work/a" --size 16M
said "^pmfs: $work/a: "
expect 0 "$PMFS" mkfs "$work/a" --size 20M --force
[ "$(size_of "$work/a")" = 20971520 ] || fail "--force did not make a pool of 20M"
echo precious >"$work/text"
expect 1 "$PMFS" mkfs "$work/text" --size 16M
[ "$(cat "$work/text")" = precious ] || fail "mkfs destroyed a file"

# Sizes.
for size in 16384K 16384k 16777216 16MiB; do
  rm -f "$work/b"
  expect 0 "$PMFS" mkfs "$work/b" --size "$size"
  [ "$(size_of "$work/b")" = 16777216 ] || fail "$size is not 16777216 bytes"
done
rm -f "$work/b"
for size in 16X M 1.5.5G -1 '' 99999999999T '16 M' 16MB; do
  expect 2 "$PMFS" mkfs "$work/b" "--size=$size"
  [ ! -e "$work/b" ] || fail "size '$size' made a pool"
done
expect 2 "$PMFS" mkfs "$work/b"
said '--size'
expect 1 "$PMFS" mkfs "$work/b" --size 1M
said "^pmfs: $work/b: "
[ ! -e "$work/b" ] || fail "a pool that is too small was left"
expect 1 "$PMFS" mkfs "$work/b" --size 16M --label "$(printf '%032d' 0)"
[ ! -e "$work/b" ] || fail "a label of 32 bytes made a pool"
expect 1 "$PMFS" mkfs "$work/no/such/folder/b" --size 16M
said "^pmfs: $work/no/such/folder/b: "
finish
