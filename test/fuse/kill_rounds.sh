#!/bin/bash
# The server is killed at random points under load. Each time the pool checks clean as it lies, after recovery and
# after more work, and everything whose call had returned is there.
# PMFS_KILL_ROUNDS (5), PMFS_SEED: the same seed gives the same pauses, not the same interleaving.
. "$(dirname "$0")/lib.sh"

rounds=${PMFS_KILL_ROUNDS:-5}
seed=${PMFS_SEED:-$(date +%s)}
echo "kill_rounds: $rounds rounds, PMFS_SEED=$seed"
RANDOM=$((seed % 32768))
tree=$HERE # a small tree to copy

# Load; each loop ends when the server is dead or the test is over.
copies() { while [ ! -e "$WORK/stop" ] && [ -d "$MNT/copies" ]; do cp -a "$tree" "$MNT/copies/$1" && rm -rf "${MNT:?}/copies/$1"; done; }
renames() {
  local i=0
  while [ ! -e "$WORK/stop" ]; do
    i=$((i + 1))
    echo $i >"$MNT/renames/new.$1" && mv "$MNT/renames/new.$1" "$MNT/renames/$1" && mv "$MNT/renames/$1" "$MNT/copies/r$1" &&
      ln "$MNT/copies/r$1" "$MNT/renames/$1" && rm "$MNT/copies/r$1" || return 0
  done
}
rewrites() {
  local i=0
  while [ ! -e "$WORK/stop" ]; do
    i=$((i + 1))
    head -c $((i * 7919 % 200000)) /dev/zero >"$MNT/renames/data.$1" && truncate -s $((i * 104729 % 300000)) "$MNT/renames/data.$1" || return 0
  done
}
# What must survive: noted outside of the mount when the call has returned.
promises() {
  local i=0
  while [ ! -e "$WORK/stop" ]; do
    i=$((i + 1))
    mkdir "$MNT/kept/$1.$i" 2>/dev/null || return 0
    echo "d $1.$i" >>"$WORK/promised"
    { echo "contents of $1.$i" >"$MNT/kept/$1.$i/new"; } 2>/dev/null || return 0
    mv "$MNT/kept/$1.$i/new" "$MNT/kept/$1.$i/file" 2>/dev/null || return 0
    echo "f $1.$i" >>"$WORK/promised"
    if [ $((i % 3)) = 0 ]; then
      echo "g $1.$((i - 1))" >>"$WORK/promised.start"
      rm -r "$MNT/kept/$1.$((i - 1))" 2>/dev/null || return 0
      echo "g $1.$((i - 1))" >>"$WORK/promised"
    fi
  done
}
verify() {
  awk '{state[$2] = $1} END {for (name in state) print state[name], name}' "$WORK/promised" >"$WORK/states"
  touch "$WORK/promised.start"
  local state name
  while read -r state name; do
    if [ "$state" != g ] && grep -qx "g $name" "$WORK/promised.start"; then continue; fi # its removal was under way
    case $state in
      d) [ -d "$MNT/kept/$name" ] || die "directory $name is lost" ;;
      f) same "$(cat "$MNT/kept/$name/file")" "contents of $name" "file $name" ;;
      g) [ ! -e "$MNT/kept/$name" ] || die "$name has come back" ;;
    esac
  done <"$WORK/states"
}

make_pool 256M
: >"$WORK/promised"
for round in $(seq "$rounds"); do
  mount_pool
  rm -rf "$MNT/copies" "$MNT/renames" # left by the last round: it must be removable
  mkdir -p "$MNT/copies" "$MNT/renames" "$MNT/kept"
  rm -f "$WORK/stop"
  jobs=()
  for load in "copies 1" "copies 2" "renames 1" "renames 2" "rewrites 1" "promises $round"; do
    $load >/dev/null 2>&1 &
    jobs+=($!)
  done
  sleep "0.$((RANDOM % 9))$((RANDOM % 10))$((RANDOM % 10))"
  sleep "0.0$((RANDOM % 10))"
  kill_server
  touch "$WORK/stop"
  wait "${jobs[@]}" || true
  check_pool
  check_pool --recover
  check_pool
  mount_pool
  verify
  unmount_pool
  check_pool
  echo "round $round: $(wc -l <"$WORK/promised") promises kept"
done
echo "kill_rounds: passed"
