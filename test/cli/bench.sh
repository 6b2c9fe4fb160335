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

expect 0 "$PMFS" bench dirscale dirindex --sizes 2k --quick --json --loads webproxy --files 500 --loops 50
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
finish
