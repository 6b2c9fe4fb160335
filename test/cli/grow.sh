#!/usr/bin/env bash
# Growing pools: what was in them stays, what is new can be used, and what cannot grow says so.
. "$(dirname "$0")/lib.sh"
: "${work:?}"

field() { "$PMFS" "$1" "$2" --json | grep -o "\"$3\":[0-9]*" | cut -d: -f2; }

# fill POOL NAME BYTES
fill() { head -c "$3" /dev/urandom >"$work/$2" && expect 0 "$PMFS" put "$1" "/$2" "$work/$2"; }
same() { expect 0 "$PMFS" cat "$1" "/$2"; cmp -s "$work/out" "$work/$2" || fail "$1: /$2 has changed"; }

# A file.
pool=$work/pool
expect 0 "$PMFS" mkfs "$pool" --size 16M
fill "$pool" before 3000000
before=$(field df "$pool" blocks)
expect 0 "$PMFS" grow "$pool" --size 24M
shown '24\.0 MiB'
[ "$(stat -c %s "$pool")" = 25165824 ] || fail "the file does not have 24 MiB"
[ "$(field df "$pool" blocks)" = $((before + 2048)) ] || fail "8 MiB more are not 2048 blocks more"
[ "$(field info "$pool" size_bytes)" = 25165824 ] || fail "info does not show 24 MiB"
expect 0 "$PMFS" grow "$pool" --size 40M
[ "$(field df "$pool" blocks)" = $((before + 6144)) ] || fail "16 MiB more are not 4096 blocks more"
[ "$("$PMFS" info "$pool" | grep -c '^region ')" = 2 ] || fail "growing twice does not make one region longer"
fill "$pool" after 20000000 # more than there was
same "$pool" before
same "$pool" after
expect 0 "$PMFS" check "$pool"
expect 0 "$PMFS" grow "$pool" --size 40M
shown 'nothing to do'
expect 0 "$PMFS" df -h "$pool"
shown 'MiB.*%'

# A file that was made longer, by an interrupted grow or otherwise: still the same pool, and the next grow takes it all.
truncate -s 44M "$pool"
expect 0 "$PMFS" check "$pool"
[ "$(field df "$pool" blocks)" = $((before + 6144)) ] || fail "a longer file alone makes a larger file system"
expect 0 "$PMFS" grow "$pool" --size 44M
[ "$(field df "$pool" blocks)" = $((before + 7168)) ] || fail "the tail that was there was not taken"
same "$pool" after

expect 1 "$PMFS" grow "$pool" --size 20M
said "^pmfs: $pool: .*smaller"
expect 2 "$PMFS" grow "$pool"
expect 2 "$PMFS" grow "$pool" --size much
expect 1 "$PMFS" grow "$work/missing" --size 64M
said "^pmfs: $work/missing: "
expect 1 "$PMFS" grow "$work/before" --size 64M
said 'not a (libpmemobj |pmfs )?pool|no (libpmemobj )?pool'
[ "$(stat -c %s "$work/before")" = 3000000 ] || fail "what is no pool was made longer"
expect 1 "$PMFS" grow "$pool" --size 8000T
said "^pmfs: $pool: "
[ "$(stat -c %s "$pool")" = $((44 << 20)) ] || fail "a growth that failed left the file longer"
same "$pool" before
expect 0 "$PMFS" check "$pool"

# A poolset: its last part, and its text.
set=$work/set
printf 'PMEMPOOLSET\n# parts\n16M %s\n 16M\t%s\n# 1 behind\n' "$work/part1" "$work/part2" >"$set"
chmod 640 "$set"
expect 0 "$PMFS" mkfs "$set"
fill "$set" two 9000000
before=$(field df "$set" blocks)
expect 0 "$PMFS" grow "$set" --size 40M
[ "$(field df "$set" blocks)" = $((before + 2048)) ] || fail "a poolset: 8 MiB more are not 2048 blocks more"
[ "$(stat -c %s "$work/part1") $(stat -c %s "$work/part2")" = '16777216 25165824' ] || fail "not the last part has grown"
printf 'PMEMPOOLSET\n# parts\n16M %s\n 25165824\t%s\n# 1 behind\n' "$work/part1" "$work/part2" | cmp -s - "$set" ||
  fail "the poolset's text: $(cat "$set")"
[ "$(stat -c %a "$set")" = 640 ] || fail "the poolset's permissions have changed"
fill "$set" three 6000000
same "$set" two
same "$set" three
expect 0 "$PMFS" check "$set"

# Interrupted after the part was made longer: refused, until grow is called again.
truncate -s 32M "$work/part2"
expect 1 "$PMFS" df "$set"
expect 0 "$PMFS" grow "$set" --size 48M
[ "$(field df "$set" blocks)" = $((before + 4096)) ] || fail "a poolset: an interrupted growth was not completed"
same "$set" three
expect 0 "$PMFS" check "$set"
finish
