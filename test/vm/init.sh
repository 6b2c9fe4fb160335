#!/bin/busybox sh
# The first process of the virtual machine that scripts/vm-test.sh boots; all that it is told stands on the kernel's
# command line, which gives it these variables:
#   medium  dax: a pool on /dev/dax0.0; ext4: a file on ext4 mounted with -o dax; set: a poolset over two device DAX
#   step    make: new namespaces and a new pool, work, and then as `go` without looking back
#           go: recover and compare with what had been acknowledged, then work until the machine is killed
#           end: recover, compare, power off
#   seed    of this boot's load; last_seed and calls (C,C,...): of the last load, and how many of its calls had returned;
#           none if the last boot ended between two loads
# It says on the console (the first serial port): "@ok WORDS" and "@failed WORDS" for what was checked, "@at WORD" for how
# far it is. The load acknowledges its calls on the second serial port.
# shellcheck shell=dash disable=SC2154
/bin/busybox --install -s /bin
export PATH=/bin

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mkdir -p /mnt /ext4

# failed WORDS: this boot ends here.
failed() {
  echo "@failed $medium: $*"
  sleep 1
  poweroff -f
}

# check WORDS COMMAND...: the command succeeds. Its output is in /tmp/out.
check() {
  local words="$1"
  shift
  if "$@" >/tmp/out 2>&1; then
    echo "@ok $medium: $words"
  else
    echo "--- $* ended with $?:"
    tail -n 30 /tmp/out
    failed "$words"
  fi
}

# check_text WORDS TEXT COMMAND...: the command succeeds and says TEXT.
check_text() {
  local words="$1" text="$2"
  shift 2
  check "$words" "$@"
  grep -qF -- "$text" /tmp/out || {
    cat /tmp/out
    failed "$words: it does not say '$text'"
  }
}

# wait_for TEST FILE: until it is there.
wait_for() {
  local tries=0
  while ! test "$1" "$2"; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || failed "no $2"
    usleep 100000
  done
}

# --- The media -------------------------------------------------------------------------------------------------------------

# namespace NUMBER MODE: of the whole NVDIMM. -M mem: what the kernel notes about pages lies in ordinary memory.
namespace() {
  check "NVDIMM $1 is $2" ndctl create-namespace -f -e "namespace$1.0" -m "$2" -M mem
}

mount_ext4() {
  check "ext4 -o dax is mounted" mount -t ext4 -o dax /dev/pmem0 /ext4
  grep -q ' /ext4 ext4 .*dax' /proc/mounts || failed "ext4 is mounted without dax"
}

make_medium() {
  wait_for -b /dev/pmem0
  wait_for -b /dev/pmem1
  case $medium in
    dax) namespace 0 devdax ;;
    ext4)
      namespace 0 fsdax
      wait_for -b /dev/pmem0
      check "mkfs.ext4" mkfs.ext4 -q -b 4096 /dev/pmem0
      ;;
    set)
      namespace 0 devdax
      namespace 1 devdax
      ;;
  esac
}

# Sets `pool`. A missing device is no reason to make a file of that name.
find_medium() {
  case $medium in
    dax)
      wait_for -c /dev/dax0.0
      pool=/dev/dax0.0
      ;;
    ext4)
      wait_for -b /dev/pmem0
      mount_ext4
      pool=/ext4/pool
      ;;
    set)
      wait_for -c /dev/dax0.0
      wait_for -c /dev/dax1.0
      pool=/etc/devices.set
      ;;
    *) failed "no such medium" ;;
  esac
}

# --- pmfs --------------------------------------------------------------------------------------------------------------------

survives="persistent memory: what a call has returned survives power loss"

make_pool() {
  local size=""
  [ "$medium" != ext4 ] || size="--size 96M"
  # shellcheck disable=SC2086
  check_text "mkfs, durable" "$survives" pmfs mkfs $pool $size --label "vm $medium"
  cat /tmp/out
  check_text "info looks into it" "\"label\":\"vm $medium\"" pmfs info --json "$pool"
  grep -qF '"medium":"persistent"' /tmp/out || failed "info does not say which medium it is"
}

mount_pool() {
  check_text "mount, durable" "$survives" pmfs mount "$pool" /mnt
}

unmount_pool() {
  check "umount" pmfs umount /mnt
}

# recover: what a crash left is undone; then the pool is clean.
recover() {
  check "check --recover" pmfs check --recover "$pool"
  tail -n 1 /tmp/out
}

# counter NAME: of the mount's server, as it stands in one line of JSON.
counter() {
  pmfs info --mount /mnt --json | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"
}

# 100 directories: two fences for each, as everywhere, and nothing by msync.
count_fences() {
  local before after
  before=$(counter fences)
  # shellcheck disable=SC2046
  (cd /mnt && mkdir $(seq 100))
  after=$(counter fences)
  [ $((after - before)) = 200 ] || failed "100 directories took $((after - before)) fences"
  [ "$(counter msyncs)" = 0 ] || failed "$(counter msyncs) calls of msync"
  # shellcheck disable=SC2046
  (cd /mnt && rmdir $(seq 100))
  echo "@ok $medium: 100 directories made with 200 fences and no msync"
}

# A tree, an archive and a database: made, found again, found again after remounting.
real_work() {
  check "cp -a" cp -a /modules /lib /etc /mnt
  tar -C / -cf /tmp/tree.tar modules lib etc
  mkdir /mnt/unpacked
  check "tar unpacks" tar -C /mnt/unpacked -xf /tmp/tree.tar
  rm /tmp/tree.tar
  for journal in delete wal; do
    check_text "sqlite, journal_mode $journal" ok sqlite3 "/mnt/$journal.db" "pragma journal_mode=$journal;
      create table t(n integer primary key, s text);
      with recursive c(n) as (select 1 union all select n + 1 from c where n < 2000) insert into t select n, hex(n) from c;
      create index i on t(s); delete from t where n % 3 = 0; vacuum; pragma integrity_check;"
  done
  compare_work
  unmount_pool
  recover
  mount_pool
  compare_work
  rm -rf /mnt/modules /mnt/lib /mnt/etc /mnt/unpacked /mnt/*.db*
  [ -z "$(ls -A /mnt)" ] || failed "left after rm -rf: $(ls -A /mnt)"
}

compare_work() {
  for part in modules lib etc; do
    check "/$part is as copied" diff -r "/$part" "/mnt/$part"
    check "/$part is as unpacked" diff -r "/$part" "/mnt/unpacked/$part"
  done
  for journal in delete wal; do
    check_text "the database is whole" 1334 sqlite3 "/mnt/$journal.db" "pragma integrity_check; select count(*) from t;"
  done
}

# A file of 130 MiB is larger than either device: it begins on the first and ends on the second. The host looks there.
write_to_both() {
  check "a file larger than a device" fallocate -l 130M /mnt/large
  echo "this lies on the first device" | dd of=/mnt/large conv=notrunc 2>/dev/null
  echo "this lies on the second device" | dd of=/mnt/large conv=notrunc bs=4096 seek=33279 2>/dev/null
}

compare_both() {
  [ "$(stat -c %s /mnt/large)" = 136314880 ] || failed "the size of what lies on both devices"
  [ "$(head -n 1 /mnt/large)" = "this lies on the first device" ] || failed "what lay on the first device"
  [ "$(tail -c 4096 /mnt/large | head -n 1)" = "this lies on the second device" ] ||
    failed "what lay on the second device"
  echo "@ok $medium: what lay on both devices is there"
}

# --- The boot ----------------------------------------------------------------------------------------------------------------

while read -r module; do
  insmod "$module" || failed "insmod $module"
done </etc/modules
stty -F /dev/ttyS1 115200 raw -echo

[ "$step" != make ] || make_medium
find_medium
case $step in
  make)
    make_pool
    mount_pool
    count_fences
    real_work
    [ "$medium" != set ] || write_to_both
    ;;
  *)
    echo "@at recovery"
    recover
    mount_pool
    if [ -n "${calls:-}" ]; then
      # shellcheck disable=SC2046
      check "all that was acknowledged is there" load trust /mnt/load "$last_seed" $(echo "$calls" | tr , ' ')
      tail -n 1 /tmp/out
    fi
    [ "$medium" != set ] || compare_both
    echo "@at verified"
    usleep 300000 # that is on its way before the load goes
    rm -rf /mnt/load
    ;;
esac
if [ "$step" = end ]; then
  unmount_pool
  recover # from nothing
  ! grep -q undone /tmp/out || failed "recovery finds something in a pool that was closed"
  [ "$medium" != ext4 ] || umount /ext4
  echo "@at end"
  sleep 1
  poweroff -f
fi

mkdir /mnt/load
echo "@at work"
load tell /mnt/load "$seed" 4 >/dev/ttyS1
failed "the load has ended by itself"
