#!/bin/bash
# The server is killed at random points under load. Each time the pool checks clean as it lies and after recovery, and
# everything whose call had returned is there; see load.cc.
# PMFS_KILL_ROUNDS (5), PMFS_SEED: the same seed gives the same pauses and calls, not the same interleaving.
. "$(dirname "$0")/lib.sh"
: "${LOAD:?the path of the load program}"

rounds=${PMFS_KILL_ROUNDS:-5}
seed=${PMFS_SEED:-$(date +%s)}
echo "kill_rounds: $rounds rounds, PMFS_SEED=$seed"
RANDOM=$((seed % 32768))

# Trees come and go beside it, until the server is dead.
copies() {
  mkdir "$MNT/copies"
  while [ ! -e "$WORK/stop" ] && cp -a "$HERE" "$MNT/copies/$1" && rm -rf "${MNT:?}/copies/$1"; do :; done
}

make_pool 256M
for round in $(seq "$rounds"); do
  mount_pool
  rm -rf "$MNT/load" "$MNT/copies" # of the last round: all of it can be removed
  same "$(ls -A "$MNT")" "" "everything removed"
  mkdir "$MNT/load"
  rm -f "$WORK/stop"
  copies 1 >/dev/null 2>&1 &
  tree=$!
  "$LOAD" run "$MNT/load" "$WORK/state" $((seed + round)) 4 >"$WORK/load.out" 2>&1 &
  load=$!
  sleep "$((RANDOM % 2)).$((RANDOM % 5))$((RANDOM % 10))$((RANDOM % 10))"
  kill_server
  wait "$load" || die "under load: $(cat "$WORK/load.out")"
  touch "$WORK/stop"
  wait "$tree" || true
  check_pool
  check_pool --recover
  check_pool
  mount_pool 2>/dev/null
  "$LOAD" verify "$MNT/load" "$WORK/state" >"$WORK/verify.out" 2>&1 || die "round $round: $(cat "$WORK/verify.out")"
  unmount_pool
  check_pool
  echo "round $round: $(cat "$WORK/load.out" "$WORK/verify.out" | tr '\n' ' ')"
done
echo "kill_rounds: passed"
