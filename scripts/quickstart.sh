#!/usr/bin/env bash
# Builds pmfs and shows it at work: a file system in memory takes in a real directory tree, its daemon is killed in the
# middle of more work, and everything is found whole again. Installs what the build needs (Debian 12 or later, Ubuntu
# 24.04). Leaves a build in build/, and nothing mounted, running or lying in memory.

set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source-path=SCRIPTDIR
. scripts/lib.sh

pmfs=$PWD/build/pmfs
log=$PWD/build/quickstart.log
work='' mnt='' pool='' writer=''
began=$SECONDS

# --- Leaving nothing behind ------------------------------------------------------------------------------------------------

mounted() { [ -n "$mnt" ] && grep -qF " $mnt " /proc/self/mountinfo; }
daemons() { [ -z "$pool" ] || pids_with "$pool"; }

clean_up() {
  local pid
  trap - EXIT INT TERM HUP
  [ -z "$writer" ] || kill "$writer" 2>/dev/null
  for pid in $(daemons); do
    [ "$pid" = $$ ] || kill -9 "$pid" 2>/dev/null
  done
  [ -z "$writer" ] || wait "$writer" 2>/dev/null
  if mounted; then
    umount -l "$mnt" 2>/dev/null || fusermount3 -uz "$mnt" 2>/dev/null
  fi
  [ -z "$work" ] || rm -rf "$work"
  [ -z "$pool" ] || rm -f "$pool"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- The show --------------------------------------------------------------------------------------------------------------

number=0
step() {
  number=$((number + 1))
  printf '\n%d. %s\n' "$number" "$*"
}
# show COMMAND...: prints the command as one would type it, then runs it.
show() {
  local typed=" $*"
  typed=${typed// $pmfs/ build/pmfs}
  printf '   $%s\n' "$typed"
  local status=0
  "$@" >"$work/said" 2>&1 </dev/null || status=$?  # a file, not a pipe: a daemon may keep it open
  sed 's/^/     /' "$work/said"
  [ $status -eq 0 ] || die "that failed (exit code $status)"
}
outcome() { printf '   => %s\n' "$*"; }
count_files() { find "$1" -type f 2>/dev/null | wc -l; }

mkdir -p build
: >"$log"
say "pmfs: a file system that lives in memory and survives being killed. This takes a minute or two."

step "Install what the build needs"
install_packages "$log" "${packages_build[@]}"
outcome "$installed"

step "Build"
say "   \$ cmake -B build -G Ninja -DCMAKE_BUILD_TYPE=Release && cmake --build build --target pmfs_tool"
started=$SECONDS
run_logged "$log" cmake -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF || exit 1
run_logged "$log" cmake --build build --target pmfs_tool -j "$(nproc)" || exit 1
outcome "build/pmfs, after $((SECONDS - started)) s"

# Where the pool lies: memory that outlives a process. Containers often have very little in /dev/shm.
work=$(mktemp -d "${TMPDIR:-/tmp}/pmfs-XXXXXX") || exit 1
free_mib=$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
if [ "${free_mib:-0}" -ge 160 ]; then
  pool=/dev/shm/${work##*/}.pool
  where="in memory"
else
  pool=$work/pool
  free_mib=$(df -Pm "$work" | awk 'NR == 2 { print $4 }')
  export PMEM_IS_PMEM_FORCE=1
  where="in a file (only ${free_mib:-0} MiB of /dev/shm are free), treated as memory"
fi
pool_mib=$((free_mib * 8 / 10))
[ "$pool_mib" -le 768 ] || pool_mib=768
# The tree to take in: the system's headers, or a part of them that fits twice.
for tree in /usr/include /usr/include/linux /usr/include/asm-generic; do
  [ -d $tree ] || continue
  tree_mib=$(du -sm $tree | cut -f1)
  [ $((tree_mib * 2 + 48)) -gt "$pool_mib" ] || break
done
files=$(count_files "$tree")

step "Make a pool $where, with an empty file system in it"
show "$pmfs" mkfs "$pool" --size "${pool_mib}M" --label quickstart

no_fuse=$(fuse_missing)
if [ -z "$no_fuse" ]; then
  mnt=$work/mnt
  mkdir "$mnt"
  step "Mount it"
  show "$pmfs" mount "$pool" "$mnt"
  mounted || die "the mount is not there"

  step "Copy a real tree in, $files files, and compare"
  show cp -a "$tree" "$mnt/first"
  show diff -r --no-dereference "$tree" "$mnt/first"
  outcome "no difference"

  step "Copy more, and kill the daemon in the middle of it: no warning, no clean-up"
  daemon=$(daemons)
  [ -n "$daemon" ] || die "the daemon is not running"
  say "   \$ cp -a $tree $mnt/second &"
  (
    n=''
    while cp -a "$tree" "$mnt/second$n" 2>/dev/null; do n=$((n + 1)); done
  ) &
  writer=$!
  sleep 0.4
  # shellcheck disable=SC2086  # one pid each
  show kill -9 $daemon
  wait "$writer" 2>/dev/null
  writer=''
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ -n "$(daemons)" ] || break
    sleep 0.1
  done
  flock --timeout 10 "$pool" true  # its last thread lets go of the pool's lock a moment after it counts as dead
  if ls "$mnt" >/dev/null 2>&1; then die "the mount still answers"; fi
  outcome "the mount is dead; what reached the pool is all there is"

  step "Check the pool as the kill left it"
  show "$pmfs" check "$pool"

  step "Mount it again and compare the first tree with the original"
  show "$pmfs" mount "$pool" "$mnt"
  show diff -r --no-dereference "$tree" "$mnt/first"
  outcome "no difference; of the interrupted copy, $(count_files "$mnt/second") of $files files had arrived"

  step "Work goes on; then unmount and check"
  show rm -r "$mnt/second"
  show "$pmfs" umount "$mnt"
  show "$pmfs" check "$pool"
else
  say
  say "   FUSE cannot be used here: $no_fuse."
  say "   So the same is done without mounting, by copying in and out with the command line."

  step "Copy a real tree in, $files files, out again, and compare"
  show "$pmfs" import "$pool" "$tree" /first
  show "$pmfs" export "$pool" /first "$work/out"
  show diff -r --no-dereference "$tree" "$work/out"
  outcome "no difference"

  step "Copy more, and kill the program in the middle of it: no warning, no clean-up"
  say "   \$ build/pmfs import $pool $tree /second &"
  killed=no
  for n in '' 1 2 3 4 5 6 7 8 9; do  # a fast machine may be done before the kill comes: then again
    "$pmfs" import "$pool" "$tree" "/second$n" >>"$log" 2>&1 </dev/null &
    writer=$!
    sleep 0.05
    kill -9 "$writer" 2>/dev/null
    wait "$writer" 2>/dev/null
    if [ $? -eq 137 ]; then
      killed=yes
      break
    fi
  done
  flock --timeout 10 "$pool" true  # its last thread lets go of the pool's lock a moment after it counts as dead
  say "   \$ kill -9 $writer"
  writer=''
  [ $killed = yes ] || die "no import could be killed in time, see $log"
  outcome "what reached the pool is all there is"

  step "Check the pool as the kill left it"
  show "$pmfs" check "$pool"

  step "Copy the first tree out again and compare with the original"
  rm -rf "$work/out"
  show "$pmfs" export "$pool" /first "$work/out"
  show diff -r --no-dereference "$tree" "$work/out"
  outcome "no difference"

  step "Work goes on; then check"
  show "$pmfs" import "$pool" "$tree/linux" /third
  show "$pmfs" check "$pool"
fi

say
say "Done in $((SECONDS - began)) s. Everything is unmounted, and the pool is removed. For one of your own:"
say "   \$ build/pmfs mkfs /dev/shm/my.pool --size 1G"
say "   \$ mkdir /tmp/my && build/pmfs mount /dev/shm/my.pool /tmp/my      # and later: build/pmfs umount /tmp/my"
say "   \$ build/pmfs --help"
