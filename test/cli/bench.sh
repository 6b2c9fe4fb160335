#!/usr/bin/env bash
# pmfs bench: it finds its program, takes its words, and prints rows. No time is looked at.
. "$(dirname "$0")/lib.sh"
: "${work:?}"

expect 0 "$PMFS" bench --help
shown dirscale
expect 2 "$PMFS" bench
expect 2 "$PMFS" bench no-such-bench
expect 2 "$PMFS" bench dirscale --sizes 5x

expect 0 "$PMFS" bench dirscale --quick --sizes 300,2k
shown '^dirscale/index/2k/create_ns '

expect 0 "$PMFS" bench dirscale --sizes 2k dirindex --quick --json --loads webproxy --files 500 --loops 50
shown '^{"schema":1,"rows":\['
for metric in create_ns lookup_ns miss_ns unlink_ns list_ns lines_per_create; do
  shown "\"id\":\"dirscale/index/2k/$metric\",\"figure\":\"dirscale\",\"case\":\"index/2k\",\"metric\":\"$metric\""
  shown "\"id\":\"dirscale/scan/2k/$metric\""
done
# Counts are what they are on any machine: two fences, also where leaves split; no index where none is used.
shown '"metric":"fences_per_create","value":2.0,'
shown '"case":"index/2k","metric":"index_levels","value":1.0,'
shown '"case":"scan/2k","metric":"index_levels","value":0.0,'
shown '"id":"dirindex/webproxy/index/bandwidth",.*"base_id":"dirindex/webproxy/scan/bandwidth","ratio":[0-9.]*,"published":1.253'
expect 1 "$PMFS" bench dirscale --quick --sizes 100 --target "$work/no-such-folder"
said 'no-such-folder'

# A trace of the published shape, whoever replays it: 89 components in 13 requests, 235 dentries.
expect 0 "$PMFS" bench fig8 --quick --requests 6500 --json
shown '"id":"fig8/trace/requests",.*"value":6500.0,'
shown '"id":"fig8/trace/components",.*"metric":"components","value":44500.0,'
shown '"case":"trace","metric":"dentries","value":235.0,.*"published":235.0'
for mix in '' mix0.1/ mix1/ mix10/; do
  for resolver in stage/list stage/hashed fullpath; do
    shown "\"id\":\"fig8/$mix$resolver/total_ms\",.*\"base_id\":\"fig8/${mix}walk/total_ms\",\"ratio\":[0-9.]+"
  done
done
shown '"case":"walk","metric":"skipped_per_request","value":0.0,'
expect 2 "$PMFS" bench fig8 --requests 100

expect 0 "$PMFS" bench fig9 --quick --nodes 1k --json
for level in level1 level2 level3 level4 level5 wide; do
  for resolver in stage/list stage/hashed fullpath; do
    for metric in rename_ns chmod_ns; do
      shown "\"id\":\"fig9/$level/$resolver/$metric\",.*\"base_id\":\"fig9/$level/walk/$metric\",\"ratio\":[0-9.]+"
    done
  done
done
shown '"id":"fig9/level1/fullpath/rename_ns",.*"published":48.8'
# 1001 directories and files below /wide, all of them in the cache: nothing is measured above an empty one.
grep -oE '"case":"wide/[a-z/]*","metric":"cached","value":[0-9.]*' "$work/out" | while IFS= read -r row; do
  [ "$(cut -d: -f4 <<<"$row" | cut -d. -f1)" -ge 1002 ] || fail "not everything is in the cache: $row"
done

expect 0 "$PMFS" bench batch --quick --names 10k --json
for size in 1 16 64 256 1000 4096; do
  for resolver in walk stage/list stage/hashed fullpath; do
    for kind in warm names; do
      at=batch/$kind/$size/$resolver
      shown "\"id\":\"$at/batch/path_ns\",.*\"base_id\":\"$at/single/path_ns\",\"ratio\":[0-9.]+"
    done
  done
done
shown '"id":"batch/nopivot/stage/hashed/path_ns",.*"base_id":"batch/nopivot/walk/path_ns"'
shown '"id":"batch/threads/2/paths_per_us",.*"base_id":"batch/threads/1/paths_per_us"'
finish
