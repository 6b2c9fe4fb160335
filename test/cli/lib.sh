# What the command line tests share. Sourced; needs PMFS, the program under test.
# shellcheck shell=bash
set -u
: "${PMFS:?set PMFS to the pmfs program}"

# A folder in memory if there is one: pools are allocated in full.
base=/dev/shm
[ -w "$base" ] || base=${TMPDIR:-/tmp}
work=$(mktemp -d "$base/pmfs-cli-XXXXXX") || exit 1
trap 'cleanup' EXIT
cleanup() {
  [ -z "${holder:-}" ] || kill "$holder" 2>/dev/null
  chmod -R u+rwX "$work" 2>/dev/null
  rm -rf "$work"
}

# Counted in a file, because a test may fail in a subshell.
fail() {
  echo "FAIL: $*" >&2
  echo "$*" >>"$work/failures"
}

# expect CODE COMMAND...: runs it; what it wrote is in $work/out and $work/err.
expect() {
  local wanted=$1 got=0
  shift
  "$@" >"$work/out" 2>"$work/err" || got=$?
  if [ "$got" -ne "$wanted" ]; then
    fail "exit code $got instead of $wanted: $*"
    sed 's/^/  out: /' "$work/out" | head -20 >&2
    sed 's/^/  err: /' "$work/err" | head -20 >&2
  fi
}

# said PATTERN: the last command's standard error matches.
said() {
  grep -Eq -- "$1" "$work/err" || fail "standard error does not say '$1': $(head -c 500 "$work/err")"
}

# shown PATTERN: the last command's standard output matches.
shown() {
  grep -Eq -- "$1" "$work/out" || fail "standard output does not show '$1': $(head -c 500 "$work/out")"
}

skip() {
  echo "SKIP: $*"
  exit 77
}

finish() {
  [ ! -e "$work/failures" ] || { echo "$(wc -l <"$work/failures") failure(s)" >&2; exit 1; }
  echo "ok"
  exit 0
}
