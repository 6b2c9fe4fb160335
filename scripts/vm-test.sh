#!/usr/bin/env bash
# Tests pmfs on persistent memory as the kernel shows it: a virtual machine with two emulated NVDIMMs, which is killed at
# random points while it works, and booted again.
#
#   scripts/vm-test.sh               24 kills, 8 on each medium
#   scripts/vm-test.sh --short       one kill on each medium: a few minutes, most of them for the build
#   scripts/vm-test.sh --kills N     N kills on each medium
#   scripts/vm-test.sh --medium dax  this one alone: dax, ext4 or set
#   scripts/vm-test.sh --seed N      as a run before that printed this seed: the same calls, the same points
#
# The media: /dev/dax0.0; a file on ext4 mounted with -o dax; a poolset over two device DAX. On each: mkfs, mount, real
# work (trees, archives, databases), budget of fences; then a load whose every call is acknowledged on a serial port before
# the next is made. QEMU is killed with SIGKILL after a random number of calls, or while it recovers from the kill before.
# The next boot runs check --recover, mounts, and compares: all that was acknowledged must be there, the one call under
# way of each thread entirely or not at all, and nothing else. A kill loses no store that the CPU has made: what a power
# cut may leave in caches is for the crash tests.
#
# Installs the Debian packages it needs; the guest's kernel is only unpacked, below the build folder. Needs no KVM: QEMU
# emulates. PMFS_BUILD_DIR: the build folder, `build` by default. PMFS_VM_DIR: where the NVDIMMs' files lie (256 MiB).
# Exit code 0: nothing failed; else 1. The last line is "N checks passed, N failed".

set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source-path=SCRIPTDIR
. scripts/lib.sh
exec </dev/null
export LC_ALL=C.UTF-8

kills=8 media=(dax ext4 set) seed=$(((RANDOM << 15 | RANDOM) % 1000000))
while [ $# -gt 0 ]; do
  case $1 in
    --short) kills=1 ;;
    --kills) kills=${2:?a number} && shift ;;
    --seed) seed=${2:?a number} && shift ;;
    --medium) media=("${2:?dax, ext4 or set}") && shift ;;
    --help | -h) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit 0 ;;
    *) die "unknown argument: $1 (see --help)" ;;
  esac
  shift
done
[[ $kills =~ ^[0-9]+$ && $seed =~ ^[0-9]+$ && ${media[0]} =~ ^(dax|ext4|set)$ ]] || die "not so: see --help"

build=${PMFS_BUILD_DIR:-build}
mkdir -p "$build" && build=$(cd "$build" && pwd) || exit 1
logs=$build/vm
mkdir -p "$logs"
passed=0 failed=0 killed=0
began=$SECONDS

# finish: the last lines, and the exit code.
finish() {
  say "$killed kills of the virtual machine, $((SECONDS - began)) s in all; logs in $logs"
  say "$passed checks passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}

# skip WHY: nothing here can be tested.
skip() {
  say "skipped: $*"
  say "0 checks passed, 0 failed; all of it skipped"
  exit 0
}

# --- What it needs -----------------------------------------------------------------------------------------------------------

packages_vm=(qemu-system-x86 busybox-static ndctl daxctl e2fsprogs cpio kmod sqlite3 xz-utils)

# Unpacks Debian's kernel for virtual machines; installing it would make it the one that this machine boots next.
# Sets `kernel`, `version` and `kernel_root`.
fetch_kernel() {
  local name
  kernel_root=$logs/kernel
  name=$(apt-cache depends linux-image-cloud-amd64 | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
  if [ -z "$name" ]; then
    say "there is no package linux-image-cloud-amd64"
    return 1
  fi
  version=${name#linux-image-}
  version=${version%-unsigned}
  kernel=$kernel_root/boot/vmlinuz-$version
  if [ ! -s "$kernel" ]; then
    rm -rf "$kernel_root" && mkdir -p "$kernel_root"
    (cd "$kernel_root" && run_logged "$logs/install.log" apt-get download -q "$name" &&
      run_logged "$logs/install.log" dpkg-deb -x "$name"_*.deb . && rm -f "$name"_*.deb) || return 1
  fi
  modules_root=$kernel_root
  [ ! -d "$kernel_root/usr/lib/modules" ] || modules_root=$kernel_root/usr
  run_logged "$logs/install.log" depmod -b "$modules_root" "$version"
}

build_pmfs() {
  local log=$logs/build.log new=() started=$SECONDS
  : >"$log"
  say "building in $build"
  [ -f "$build/CMakeCache.txt" ] || new=(-G Ninja -DCMAKE_BUILD_TYPE=Release)
  if ! { run_logged "$log" cmake -B "$build" "${new[@]}" -DBUILD_TESTING=ON &&
    run_logged "$log" cmake --build "$build" -j "${PMFS_JOBS:-$(nproc)}" --target pmfs_tool fuse_load; }; then
    die "it does not build: see $log"
  fi
  say "built in $((SECONDS - started)) s"
}

# add_program PROGRAM NAME: into the guest, with its shared libraries.
add_program() {
  local library
  cp -L "$1" "$root/bin/$2" || die "no $2"
  ldd "$1" | grep -oE '/[^ :()]+\.so[^ :()]*' | while read -r library; do
    mkdir -p "$root${library%/*}" && cp -L "$library" "$root$library"
  done
}

# The guest's file system, the same for every boot. Programs lie in /bin, its kernel's modules in /modules.
make_initramfs() {
  local root=$work/root name module path
  mkdir -p "$root"/{bin,lib,proc,sys,dev,mnt,ext4,tmp,etc,run,modules}
  cp "$(type -P busybox)" "$root/bin/busybox"
  cp test/vm/init.sh "$root/init"
  for name in ndctl daxctl mkfs.ext4 sqlite3; do
    path=$(PATH=$PATH:/usr/sbin:/sbin type -P $name) || die "no $name"
    add_program "$path" $name
  done
  add_program "$build/pmfs" pmfs
  add_program "$build/test/fuse/fuse_load" load
  printf 'PMEMPOOLSET\nOPTION SINGLEHDR\nAUTO /dev/dax0.0\nAUTO /dev/dax1.0\n' >"$root/etc/devices.set"
  # ndctl's package replaces the loading of libnvdimm by a command of its own, which hides that module: hence no settings.
  for name in nfit nd_pmem dax_pmem device_dax fuse; do
    modprobe -C /dev/null -d "$modules_root" -S "$version" -n --show-depends $name || die "no module $name"
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r path; do
    module=/modules/${path##*/}
    case $path in
      *.xz) module=${module%.xz} && xz -dc "$path" >"$root$module" ;;
      *) cp "$path" "$root$module" ;;
    esac
    say "$module"
  done >"$root/etc/modules"
  [ -s "$root/etc/modules" ] || die "no modules"
  (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initramfs" || die "cannot make the initramfs"
  rm -rf "$root"
}

# --- The machine -------------------------------------------------------------------------------------------------------------

# boot NAME VARIABLE=VALUE...: starts it in the background. Sets `machine`, `console` and `acks`.
boot() {
  console=$logs/$1.console acks=$logs/$1.acks
  shift
  rm -f "$console" "$acks"
  local at i nvdimms=()
  for i in 0 1; do  # a region is the file without its label; the kernel wants a multiple of 16 MiB
    at=$work/nvdimm$i
    nvdimms+=(-object "memory-backend-file,id=memory$i,share=on,mem-path=$at,size=130M,align=2M"
      -device "nvdimm,id=nvdimm$i,memdev=memory$i,label-size=2M")
  done
  qemu-system-x86_64 -machine q35,nvdimm=on,nvdimm-persistence=mem-ctrl -accel tcg,thread=multi -cpu max -smp 2 \
    -m 1G,slots=2,maxmem=4G "${nvdimms[@]}" -kernel "$kernel" -initrd "$work/initramfs" \
    -append "console=ttyS0 quiet panic=-1 rdinit=/init $*" \
    -display none -monitor none -no-reboot -nodefaults -serial "file:$console" -serial "file:$acks" \
    >"$logs/qemu.log" 2>&1 &
  machine=$!
}

# kill_machine: at once, whatever it does.
kill_machine() {
  [ -n "$machine" ] || return 0
  kill -9 "$machine" 2>/dev/null
  wait "$machine" 2>/dev/null
  machine=''
}

# await SECONDS COMMAND...: until it succeeds. Fails if the machine ends first, or the time.
await() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    if ! kill -0 "$machine" 2>/dev/null; then
      "$@"
      return
    fi
    [ $SECONDS -lt $until ] || return 1
    sleep 0.02
  done
}

# shellcheck disable=SC2317  # called by await
is_at() { grep -q "^@at $1" "$console" 2>/dev/null; }
# shellcheck disable=SC2317
has_acknowledged() { [ -s "$acks" ] && [ "$(wc -l <"$acks")" -ge "$1" ]; }

# give_up WHY: shows the end of the console; the medium is done.
give_up() {
  kill_machine
  passed=$((passed + $(grep -c '^@ok ' "$console"))) failed=$((failed + 1))
  say "failed: $(grep '^@failed' "$console" || say "$*")" "--- the end of $console:"
  tail -n 40 "$console" "$logs/qemu.log"
  return 1
}

# calls_of FILE: "C,C,C,C", how many calls of each thread are acknowledged in it. A line that was cut off says nothing.
calls_of() {
  head -n "$(wc -l <"$1")" "$1" |
    awk '{ last[$1] = $2 } END { printf "%d,%d,%d,%d", last[0], last[1], last[2], last[3] }'
}

# test_medium MEDIUM: the first boot makes it; each boot but the last works and is killed.
test_medium() {
  local medium=$1 step=make round last=() point pause calls load_seed where
  # So that one medium alone can be replayed: what happens to it does not depend on those before.
  case $medium in
    dax) load_seed=$((seed * 1000 + 100)) ;;
    ext4) load_seed=$((seed * 1000 + 200)) ;;
    set) load_seed=$((seed * 1000 + 300)) ;;
  esac
  RANDOM=$((load_seed % 32768))
  rm -f "$work"/nvdimm?
  truncate -s 130M "$work/nvdimm0" "$work/nvdimm1"
  for round in $(seq 1 "$kills") end; do
    load_seed=$((load_seed + 1))
    point=$((1 + RANDOM % 600)) pause=0.0$((RANDOM % 5))$((RANDOM % 10))
    [ "$round" != end ] || step=end
    boot "$medium-$round" "medium=$medium" "step=$step" "seed=$load_seed" "${last[@]}"
    if [ $step = end ]; then
      await 600 is_at end || { give_up "$medium: the last boot does not end"; return; }
    elif [ $((round % 4)) -eq 3 ]; then  # a crash on top of a crash; what was acknowledged before still holds
      await 600 is_at recovery || { give_up "$medium, kill $round: it does not come to recovery"; return; }
      sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
    else
      await 600 has_acknowledged $point || { give_up "$medium, kill $round: it does not come to $point calls"; return; }
      sleep "$pause"
    fi
    [ $step = end ] || killed=$((killed + 1))
    kill_machine
    where="while it recovers"
    if is_at verified; then # the last load is removed from here on
      last=()
    fi
    if [ -s "$acks" ]; then
      calls=$(calls_of "$acks")
      last=("last_seed=$load_seed" "calls=$calls")
      where="after calls $calls of its threads"
    fi
    if grep -q '^@failed' "$console"; then
      give_up "$medium, round $round"
      return
    fi
    [ $step = end ] || say "kill $killed (seed $seed): $medium, $where"
    passed=$((passed + $(grep -c '^@ok ' "$console")))
    step=go
  done
  if [ "$medium" = set ]; then # whichever of the two the kernel calls the first
    local first second
    first=$(LC_ALL=C grep -laF "this lies on the first device" "$work"/nvdimm?)
    second=$(LC_ALL=C grep -laF "this lies on the second device" "$work"/nvdimm?)
    if [ -f "$first" ] && [ -f "$second" ] && [ "$first" != "$second" ]; then
      passed=$((passed + 1))
    else
      say "failed: one device is not used: what was written is in '$first' and '$second'"
      failed=$((failed + 1))
    fi
  fi
}

# --- The run -----------------------------------------------------------------------------------------------------------------

[ "$(uname -m)" = x86_64 ] || skip "pmfs is for x86-64, and this is $(uname -m)"
install_packages "$logs/install.log" "${packages_build[@]}" catch2
say "packages to build: $installed"
(install_packages "$logs/install.log" "${packages_vm[@]}" && say "packages for the virtual machine: $installed") ||
  skip "no virtual machine without its packages"
fetch_kernel || skip "no virtual machine without Debian's kernel for it"
build_pmfs

# Sparse files, in memory if it has room for them.
space=${PMFS_VM_DIR:-/dev/shm}
[ -n "${PMFS_VM_DIR:-}" ] || [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 600000 ] || space=${TMPDIR:-/tmp}
work=$(mktemp -d "$space/pmfs-vm.XXXXXX") || exit 1
machine=''
trap 'kill_machine; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
make_initramfs

say "media: ${media[*]}; kills on each: $kills; seed $seed"
for medium in "${media[@]}"; do
  test_medium "$medium"
done
say
finish
