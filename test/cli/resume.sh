#!/usr/bin/env bash
# import and export, ended at many places by SIGKILL, SIGINT and SIGTERM, and taken up again: the pool is clean each time,
# and in the end nothing differs from a copy that nobody has interrupted.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tree.sh"
: "${work:?}" "${INTERRUPT_AT:?set INTERRUPT_AT to the helper}"
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # it traces by itself, and cannot under a tracer
tree=$work/tree
pool=$work/pool
make_odd_tree "$tree"
describe_tree "$tree" >"$work/want"
[ "$(wc -l <"$work/want")" -gt 80 ] || fail "nothing to compare"

# compare WHAT DIR: the directory holds what the tree does.
compare() {
  describe_tree "$2" >"$work/got"
  cmp -s "$work/want" "$work/got" || {
    fail "$1: the copy differs"
    diff "$work/want" "$work/got" | head -10 >&2
  }
}
clean() {
  "$PMFS" check "$pool" >"$work/out" 2>"$work/err" || fail "$1: the pool is not clean: $(head -3 "$work/out" "$work/err")"
}
fresh() {
  rm -rf "$pool" "$work/back"
  expect 0 "$PMFS" mkfs "$pool" --size 32M
}
# interrupted WHAT SIGNAL CODE: what a command must say that was interrupted in its walk.
interrupted=0 killed=0 skipped=0
judge() {
  local what=$1 signal=$2 code=$3
  case $signal:$code in
    9:137) killed=$((killed + 1)) ;;
    2:130 | 15:143)
      # Before it began nothing is said: the signal has its ordinary effect.
      if [ -s "$work/err" ]; then
        said "^pmfs: $pool: interrupted; (im|ex)ported .* so far.*--resume"
        interrupted=$((interrupted + 1))
      fi
      ;;
    *:0) ;; # it had done its work
    *) fail "$what: exit code $code: $(head -3 "$work/err")" ;;
  esac
}

# --- import ---------------------------------------------------------------------------------------------------------------
fresh
calls=$("$INTERRUPT_AT" count "$PMFS" import "$pool" "$tree" /t 3>&1 >"$work/out" 2>"$work/err")
code=$?
[ "$code" != 77 ] || skip "no process may be traced here"
[ "$code" = 0 ] || fail "import: $code"
"$PMFS" export "$pool" /t "$work/back" >/dev/null || fail export
compare 'without interruption' "$work/back"
points=8
[ -z "${PMFS_LONG:-}" ] || points=120
for signal in 9 2 15; do
  for i in $(seq "$points"); do
    fresh
    what="import, signal $signal at call $((calls * i / points)) of $calls"
    code=0
    "$INTERRUPT_AT" "$signal" $((calls * i / points)) "$PMFS" import "$pool" "$tree" /t >"$work/out" 2>"$work/err" || code=$?
    judge "$what" "$signal" "$code"
    clean "$what"
    # Again, and interrupted again a little further; then to the end.
    code=0
    "$INTERRUPT_AT" "$signal" $((calls * (i + 2) / points)) "$PMFS" import --resume "$pool" "$tree" /t \
      >"$work/out" 2>"$work/err" || code=$?
    judge "$what, again" "$signal" "$code"
    clean "$what, again"
    expect 0 "$PMFS" import --resume "$pool" "$tree" /t
    ! grep -q 'already there' "$work/out" || skipped=$((skipped + 1))
    clean "$what, resumed"
    expect 0 "$PMFS" export "$pool" /t "$work/back"
    compare "$what" "$work/back"
  done
done
# Complete: nothing is copied, and what has changed on the host is.
expect 0 "$PMFS" import --resume "$pool" "$tree" /t
shown '^imported [0-9]+ directories, 0 B; [0-9]+ already there$'
cp -a "$tree" "$work/changed"
printf 'line 2\n' >"$work/changed/b/empty"
rm "$work/changed/b/hard-1" && echo another >"$work/changed/b/hard-1"
chmod 600 "$work/changed/a/file-11"
ln -sfn elsewhere "$work/changed/dangling"
expect 0 "$PMFS" import --resume "$pool" "$work/changed" /t
rm -rf "$work/back"
expect 0 "$PMFS" export "$pool" /t "$work/back"
describe_tree "$work/changed" >"$work/changes"
cmp -s "$work/changes" <(describe_tree "$work/back") || {
  fail "resumed over a tree that has changed"
  diff "$work/changes" <(describe_tree "$work/back") | head -10 >&2
}

# --- export ---------------------------------------------------------------------------------------------------------------
fresh
expect 0 "$PMFS" import "$pool" "$tree" /t
calls=$("$INTERRUPT_AT" count "$PMFS" export "$pool" /t "$work/back" 3>&1 >"$work/out" 2>"$work/err")
for signal in 9 2 15; do
  for i in $(seq "$points"); do
    rm -rf "$work/back"
    what="export, signal $signal at call $((calls * i / points)) of $calls"
    code=0
    "$INTERRUPT_AT" "$signal" $((calls * i / points)) "$PMFS" export "$pool" /t "$work/back" >"$work/out" 2>"$work/err" || code=$?
    judge "$what" "$signal" "$code"
    clean "$what"
    code=0
    "$INTERRUPT_AT" "$signal" $((calls * (i + 2) / points)) "$PMFS" export --resume "$pool" /t "$work/back" \
      >"$work/out" 2>"$work/err" || code=$?
    judge "$what, again" "$signal" "$code"
    expect 0 "$PMFS" export --resume "$pool" /t "$work/back"
    ! grep -q 'already there' "$work/out" || skipped=$((skipped + 1))
    compare "$what" "$work/back"
  done
done
clean export
expect 0 "$PMFS" export --resume "$pool" /t "$work/back"
shown '^exported [0-9]+ directories, 0 B; [0-9]+ already there$'

[ "$killed" -gt "$points" ] || fail "only $killed times killed"
[ "$interrupted" -gt "$points" ] || fail "only $interrupted times interrupted in the walk"
[ "$skipped" -gt "$points" ] || fail "only $skipped times something was there already"
echo "$killed kills, $interrupted interruptions, $skipped times taken up"
finish
