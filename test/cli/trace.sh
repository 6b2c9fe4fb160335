#!/usr/bin/env bash
# pmfs trace: what it replays, and what its counters say. No time is looked at.
. "$(dirname "$0")/lib.sh"
: "${work:?}"

# 5 + 1 + 2 + 1 requests; 4 + 4 + 2 + 1 components in their paths.
printf '/a/b/c/one\t5\n\n/a/b/c/two\n/a/b/\t2\na\n/not/asked\t0\n' >"$work/paths"
expect 0 "$PMFS" trace "$work/paths"
shown '^9 requests, 29 components, 5 distinct dentries$'
for resolver in walk stage/list stage/hashed fullpath; do shown "^$resolver +[0-9.]+ .* 0\$"; done

# Each name is read from its directory once, whatever the resolver; every component is found, read or skipped.
expect 0 "$PMFS" trace "$work/paths" --json
shown '"requests":9,"components":29,"dentries":5,"rows":'
for resolver in walk stage/list stage/hashed fullpath; do
  shown "\"resolver\":\"$resolver\",\"time_ns\":[0-9]+,\"request_ns\":[0-9.e+]+,\"ratio\":[0-9.]+,\"failed\":0,\"lookups\":9,\"hits\":[0-9]+,\"misses\":5,"
done
# The walk finds all but the five in the cache; the other three skip what a known path makes unnecessary.
shown '"resolver":"walk",.*"hits":24,"misses":5,"negative":0,"skipped":0,"pivot_hits":0,"pivots":0,'

# Standard input, NUL bytes, names with a tab; as many times as asked.
printf '/x\ty\0/x\ty\t3\0' >"$work/zero"
expect 0 "$PMFS" trace -0 - --repeat 10 <"$work/zero"
shown '^40 requests, 40 components, 1 distinct dentries$'

# In a pool of ours: what is not there fails, and is said to; nothing is made there.
pool=$work/pool
expect 0 "$PMFS" mkfs "$pool" --size 16M
mkdir -p "$work/tree/a/b"
echo x >"$work/tree/a/b/file"
expect 0 "$PMFS" import "$pool" "$work/tree" /
printf '/a/b/file\t3\n/a/missing\t2\n' >"$work/some"
before=$(md5sum <"$pool")
expect 0 "$PMFS" trace "$work/some" "$pool"
shown '^5 requests, 13 components, 4 distinct dentries$'
shown '^walk .* 2$'
shown '^fullpath .* 2$'
[ "$(md5sum <"$pool")" = "$before" ] || fail "the pool has changed"

# What does not work says so.
: >"$work/empty"
expect 1 "$PMFS" trace "$work/empty"
said 'no paths'
expect 1 "$PMFS" trace "$work/no-such-file"
said '^pmfs: .*/no-such-file: cannot open it'
expect 1 "$PMFS" trace "$work/paths" "$work/no-such-pool"
said '^pmfs: .*/no-such-pool: '
printf '/a\t1234567890123\n' >"$work/many"
expect 1 "$PMFS" trace "$work/many"
said '12 digits'
finish
