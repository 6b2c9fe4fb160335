# shellcheck shell=bash
# Sourced by every mount test. Gives each a pool and a mount point of its own, and clears both away however it ends.
# Needs: PMFS and PROBE, paths of the programs. Gives: WORK, POOL, MNT and the functions below.
set -euo pipefail
export LC_ALL=C

skip() {
  echo "SKIP: $*"
  exit 77
}

die() {
  echo "FAILED (${0##*/}:${BASH_LINENO[-2]}): $*" >&2
  exit 1
}

: "${PMFS:?the path of the pmfs program}" "${PROBE:?the path of the probe program}"
[ -c /dev/fuse ] && { : <>/dev/fuse; } 2>/dev/null || skip "no /dev/fuse"
[ "$(id -u)" = 0 ] || skip "not root"

# shellcheck disable=SC2034  # for the scripts
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORK=$(mktemp -d "${PMFS_TEST_DIR:-/dev/shm}/pmfs-fuse.XXXXXX")
chmod 755 "$WORK"
POOL=$WORK/pool
MNT=$WORK/mnt
mkdir "$MNT"

# Servers are known by the directory in their command line. Jobs of the test itself end with it.
cleanup() {
  local status=$? pid
  trap - EXIT INT TERM
  set +e +o pipefail
  cd /
  touch "$WORK/stop"
  for pid in $(jobs -p); do kill "$pid" 2>/dev/null; done
  detach_all
  for _ in $(seq 50); do
    servers >/dev/null || break
    sleep 0.1
    detach_all # one may have been about to mount
  done
  for pid in $(servers); do kill -9 "$pid" 2>/dev/null; done
  detach_all
  rm -rf --one-file-system "$WORK"
  exit $status
}

# Unmounts, lazily, whatever is mounted below WORK.
detach_all() {
  local dir
  for _ in 1 2 3; do
    grep -F " $WORK/" /proc/self/mountinfo | while read -r _ _ _ _ dir _; do
      umount -l "$(printf "${dir//%/%%}")" 2>/dev/null # \040 and the like are undone by printf
    done
  done
}

trap cleanup EXIT
trap 'exit 130' INT TERM

# The living servers of this test, by process number. Fails if there is none.
servers() {
  local found=1 pid
  for pid in $(pgrep -f " mount $WORK/"); do
    if is_alive "$pid"; then
      echo "$pid"
      found=0
    fi
  done
  return $found
}

# Whether a process has not ended (a zombie has).
is_alive() {
  [ -r "/proc/$1/stat" ] && ! grep -q '^[0-9]* (.*) [ZX]' "/proc/$1/stat" 2>/dev/null
}

wait_for_end() {
  for _ in $(seq 600); do
    is_alive "$1" || return 0
    sleep 0.05
  done
  die "process $1 does not end"
}

# Waits until as many blocks are free as before, but for MOST: the kernel forgets a removed file in its own time, not
# before rm returns.
# free_again BEFORE MOST WHAT
free_again() {
  for _ in $(seq 100); do
    [ $(($1 - $(stat -f -c %f "$MNT"))) -gt "$2" ] || return 0
    sleep 0.1
  done
  die "$3: $1 blocks were free before, $(stat -f -c %f "$MNT") now"
}

make_pool() { "$PMFS" mkfs "$POOL" --size "${1:-256M}" >"$WORK/mkfs.out" || die "mkfs: $(cat "$WORK/mkfs.out")"; }

mount_pool() { "$PMFS" mount "$POOL" "$MNT" "$@" >"$WORK/mount.out" || die "mount: $(cat "$WORK/mount.out")"; }

unmount_pool() { "$PMFS" umount "$MNT" || die "umount"; }

# The pool is consistent. It must not be mounted.
check_pool() {
  "$PMFS" check "$POOL" "$@" >"$WORK/check.out" 2>&1 || {
    tail -50 "$WORK/check.out" >&2
    die "check $* says $?"
  }
}

kill_server() {
  local pid
  pid=$("$PROBE" server "$MNT")
  kill -9 "$pid"
  wait_for_end "$pid" # its pool may be locked for a moment more; commands wait for that
}

# refused MESSAGE COMMAND...: the command fails, and says so with these words (an extended regular expression).
refused() {
  local words=$1 status=0
  shift
  "$@" >"$WORK/refused.out" 2>&1 || status=$?
  [ "$status" != 0 ] || die "succeeded: $*"
  grep -qE "$words" "$WORK/refused.out" || die "'$*' does not say '$words' but: $(cat "$WORK/refused.out")"
}

# same ACTUAL EXPECTED WHAT
same() { [ "$1" = "$2" ] || die "$3: '$1' and not '$2'"; }

as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
