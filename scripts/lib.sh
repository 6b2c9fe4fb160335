# What quickstart.sh and test.sh share. Source it; it defines functions only.
# shellcheck shell=bash disable=SC2034

# What the build needs, as Debian 12 (and later) and Ubuntu 24.04 call it; then what the tests need on top, and --all.
packages_build=(cmake ninja-build g++ pkg-config libpmem-dev libpmemobj-dev libfuse3-dev fuse3 liburcu-dev libxxhash-dev
  libcli11-dev libfmt-dev nlohmann-json3-dev)
packages_test=(catch2 git acl attr rsync libcap2-bin python3 sqlite3 fio stress-ng)
packages_all=(clang clang-tidy shellcheck dbench fsmark postmark bonnie++)

say() { printf '%s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# run_logged LOG COMMAND...: runs it with its output in LOG; when it fails, shows the end of it.
run_logged() {
  local log=$1
  shift
  if ! "$@" >>"$log" 2>&1 </dev/null; then
    printf '\nfailed: %s\n--- the end of %s:\n' "$*" "$log" >&2
    tail -n 40 "$log" >&2
    return 1
  fi
}

# missing_packages NAME...: those that dpkg does not know as installed.
missing_packages() {
  local p
  for p in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || printf '%s\n' "$p"
  done
}

# install_packages LOG NAME...: installs those that are missing, with apt, as root or through sudo; once, asking nothing.
# Sets `installed` to what it did, in words.
install_packages() {
  local log=$1 missing as_root=()
  shift
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    if [ "${PMFS_SKIP_INSTALL:-}" = 1 ]; then
      installed="skipped, as PMFS_SKIP_INSTALL=1 asks"
      return
    fi
    die "this system has no apt. Install by its own means what these Debian packages hold, then run again with
PMFS_SKIP_INSTALL=1:
  $*"
  fi
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} -eq 0 ]; then
    installed="nothing was missing"
    return
  fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "needs root to install packages, and there is no sudo. As root:
  apt-get update && apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  if ! { run_logged "$log" "${as_root[@]}" apt-get update -q &&
    run_logged "$log" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}"; }; then
    die "the packages could not be installed (Debian 12 or later, or Ubuntu 24.04 have them all): ${missing[*]}"
  fi
  installed="installed ${#missing[@]} packages: ${missing[*]}"
}

# Why FUSE cannot be used here; prints nothing when it can.
fuse_missing() {
  if [ ! -e /dev/fuse ] && [ "$(id -u)" -eq 0 ]; then
    modprobe fuse 2>/dev/null
  fi
  if [ ! -e /dev/fuse ]; then
    say "there is no /dev/fuse"
  elif ! { : <>/dev/fuse; } 2>/dev/null; then
    say "/dev/fuse cannot be opened"
  elif [ "$(id -u)" -eq 0 ] && ! capable 21; then
    say "root may not mount here (a container without CAP_SYS_ADMIN)"
  elif [ "$(id -u)" -ne 0 ] && ! command -v fusermount3 >/dev/null; then
    say "there is no fusermount3"
  fi
}

# capable N: whether this process has capability number N.
capable() {
  local mask
  mask=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
  ((0x$mask >> $1 & 1))
}

# pids_with WORD: the processes that have WORD, exactly, among their arguments. Starts none itself, so it is quick.
pids_with() {
  local p arguments argument
  for p in /proc/[0-9]*; do
    mapfile -d '' -t arguments 2>/dev/null <"$p/cmdline" || continue
    for argument in "${arguments[@]}"; do
      if [ "$argument" = "$1" ]; then
        printf '%s\n' "${p#/proc/}"
        break
      fi
    done
  done
} 2>/dev/null
