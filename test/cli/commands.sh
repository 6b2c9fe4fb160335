#!/usr/bin/env bash
# mkdir, rmdir, mv, cp, rm, ln, tree, find, du, chmod, chown, truncate, touch: the same command is given to the pool and,
# by the tool of the same name, to a folder of the host. Both must then hold the same tree.
. "$(dirname "$0")/lib.sh"
: "${work:?}"
umask 022
pool=$work/pool
tree=$work/tree
mkdir "$tree"
expect 0 "$PMFS" mkfs "$pool" --size 64M
expect 0 "$PMFS" chmod "$pool" 755 /
chmod 755 "$tree"
root=
[ "$(id -u)" != 0 ] || root=yes

# One line for each object: name, type, mode, owner, links, size and sum of what is no directory, target.
describe() {
  (cd "$1" && find . -printf '%P|%y|%m|%U|%G|%l|' \( -type d -printf 'd\n' -o -printf '%n|%s\n' \) | sort
   find . -type f -print0 | sort -z | xargs -0r cksum)
}
# same WHAT: the pool and the folder hold the same.
same() {
  rm -rf "$work/back"
  "$PMFS" export "$pool" / "$work/back" >"$work/out" 2>"$work/err" || fail "$1: export: $(cat "$work/err")"
  describe "$tree" >"$work/want"
  describe "$work/back" >"$work/got"
  [ -s "$work/want" ] || fail "$1: nothing to compare"
  cmp -s "$work/want" "$work/got" || {
    fail "after $1 the trees differ (< coreutils, > pmfs)"
    diff "$work/want" "$work/got" | head -20 >&2
  }
}
# times PATH: in both trees, in nanoseconds.
times() {
  want=$(stat -c '%.9X %.9Y' "$tree$1")
  got=$("$PMFS" stat "$pool" "$1" --json | sed -E 's/.*"atime_ns":(-?[0-9]+)([0-9]{9}),"mtime_ns":(-?[0-9]+)([0-9]{9}),.*/\1.\2 \3.\4/')
  [ "$want" = "$got" ] || fail "times of $1 are $got instead of $want"
}
# both COMMAND WORD...: to each; a word that begins with @ is a path. Both fail or neither; the trees stay the same.
compared=0
both() {
  local command=$1 word there=("$1") here=("$1" "$pool") host=0 ours=0
  shift
  for word in "$@"; do
    case $word in
      @*) there+=("$tree${word#@}") here+=("${word#@}") ;;
      *) there+=("$word") here+=("$word") ;;
    esac
  done
  "${there[@]}" >"$work/host.out" 2>"$work/host.err" || host=1
  "$PMFS" "${here[@]}" >"$work/out" 2>"$work/err" || ours=$?
  [ "$ours" -eq "$host" ] || fail "$command $*: exit code $ours, $command(1): $host; $(cat "$work/err" "$work/host.err")"
  [ "$host" -eq 0 ] || grep -q "^pmfs: $pool: " "$work/err" || fail "$command $*: no message that names the pool"
  cp "$work/out" "$work/ours.out"
  compared=$((compared + 1))
  [ -z "${timed:-}" ] || times "$timed"
  same "$command $*"
}
# file PATH TEXT: in both.
file() {
  printf '%s' "$2" >"$tree$1"
  chmod 644 "$tree$1"
  printf '%s' "$2" | expect 0 "$PMFS" put "$pool" "$1"
}

# --- mkdir, rmdir ---------------------------------------------------------------------------------------------------------
both mkdir @/a @/b
both mkdir @/a
both mkdir @/no/parent
both mkdir -p @/a/one/two/three @/a @/a/
both mkdir -m 700 @/private
both mkdir -m u=rwx,g=rx,o= @/symbolic
both mkdir -m 3775 @/team
both mkdir -p -m 711 @/p/q/r
umask 277
both mkdir -p @/closed/under/umask
umask 027
both mkdir -m a-w @/read
umask 022
for mode in +t +w o-r g+w,o-x go-w u+s -x =rx +t,g-w; do both mkdir "--mode=$mode" "@/mode$mode"; done
umask 077
for mode in +t g+w o+r +rx +t,g-w +t,g+w u+s,+t +t,o-r u+s g+s,+t =t; do both mkdir "--mode=$mode" "@/closed$mode"; done
umask 022
file /plain text
both mkdir -p @/plain/x
both rmdir @/closed/under/umask @/b
both rmdir @/a
both rmdir @/plain
both rmdir @/missing
expect 2 "$PMFS" mkdir -m 99 "$pool" /x
expect 2 "$PMFS" mkdir -m u=q "$pool" /x
expect 2 "$PMFS" mkdir "$pool"

# --- ln, mv ---------------------------------------------------------------------------------------------------------------
file /a/file contents
both ln @/a/file @/a/hard
both ln -s a/file @/link
both ln -s nowhere @/dangling
both ln -s a @/to-a
both ln @/link @/hard-link-of-link
both ln @/plain @/to-a
both ln @/a @/b
both ln @/missing @/b
both ln -s x @/plain
both ln @/plain @/link @/p/q
both mv @/plain @/renamed
both mv @/renamed @/p
both mv @/p/renamed @/p/q/plain
both mv -T @/p/q/plain @/a/file
both mv @/a/one @/p/q @/team
both mv @/team @/team/one
both mv @/missing @/b
both mv @/a/file @/team
both mv -T @/team/file @/team/one
both mv @/team/one @/team/file
both mv @/team/file @/team/file
both mv @/a/hard @/link @/no-directory
both ln @/team/file @/team/same
both mv @/team/file @/team/same
file /keep kept
file /other other
expect 1 "$PMFS" mv -n "$pool" /other /keep
said '/other: not moved'
expect 0 "$PMFS" cat "$pool" /keep
[ "$(cat "$work/out")" = kept ] || fail "mv -n replaced something"
both mv -n @/other @/fresh
both mv @/link @/link2
both mv @/symbolic/ @/directory/
both mv @/fresh/ @/nothing
both mv @/fresh @/nothing/

# --- truncate, touch --------------------------------------------------------------------------------------------------------
both truncate -s 10000 @/new @/keep
for size in +1000 -5000 -999999 5000 '<100' '>7000' '<999K' '>1' /4096 %3000 1M -1 0; do both truncate -s "$size" @/new; done
both truncate -c -s 5 @/not-there
both truncate -s 5 @/a
both truncate -s 3 @/link2
for size in x 5x '' /0 %0 --5; do expect 2 "$PMFS" truncate -s "$size" "$pool" /new; done
expect 2 "$PMFS" truncate "$pool" /new
both touch @/touched @/keep @/a
both touch -c @/not-there
both touch @/dangling
both touch @/no/parent
timed=/touched both touch -d '2001-02-03' @/touched
timed=/touched both touch -d '2004-02-29 12:34:56.789 +0230' @/touched
timed=/touched both touch -a -d '2001-09-09 01:46:40.5Z' @/touched
both touch -m -d '2030-01-02T03:04Z' @/touched
expect 0 "$PMFS" stat "$pool" /touched --json
shown '"atime_ns":1000000000500000000,"mtime_ns":1893553440000000000,'
timed=/link2 both touch -h -d '2011-11-11 11:11' @/link2
touch -d '2003-03-03 03:03:03.25' "$tree/keep"
expect 0 "$PMFS" touch -d "@$(date -d '2003-03-03 03:03:03' +%s).25" "$pool" /touched
expect 0 "$PMFS" touch -r /touched "$pool" /keep
times /keep
expect 0 "$PMFS" touch "$pool" /keep
expect 0 "$PMFS" stat "$pool" /keep
shown "^Modify: $(date +%Y)"
for date in yesterday-ish 2001-13-01 @ 2001-02-03x; do expect 2 "$PMFS" touch -d "$date" "$pool" /keep; done

# --- chmod, chown -----------------------------------------------------------------------------------------------------------
for mode in 640 0 7777 u+x,g=u,o-rwx a=r u=rwX +t u+s,g+s g-s o=g ug=rw,o= =rw -- +X u=g+w a+X,a-x 00600; do
  [ "$mode" != -- ] || continue
  both chmod "$mode" @/keep
  both chmod "$mode" @/team
done
both chmod -- -x @/keep
both chmod 2755 @/team
both chmod 755 @/team
both chmod g=rx @/team
both chmod 00755 @/team
both chmod 600 @/link2
both chmod 600 @/dangling-not-there
both chmod -R go-rwx,u+rwX @/a @/team
both chmod -R 755 @/to-a
for mode in 8 77777 u u+q ",u+x" "u+x," ''; do expect 2 "$PMFS" chmod "$pool" "$mode" /keep; done
if [ -n "$root" ]; then
  both chmod 6755 @/keep
  both chown 1234 @/keep
  both chown 0:77 @/keep
  both chown :daemon @/keep
  both chown daemon: @/keep
  both chown +5:+6 @/keep
  both chown 55 @/link2
  both chown -h 66 @/link2
  both chown -R 1000:1001 @/a @/team
  both chown -R 7 @/to-a
  both chown 5 @/missing
  expect 2 "$PMFS" chown "$pool" no-such-user-here /keep
  expect 2 "$PMFS" chown "$pool" 0:no-such-group-here /keep
fi

# --- cp ---------------------------------------------------------------------------------------------------------------------
both cp @/keep @/copy
both cp @/copy @/a
both cp @/copy @/keep @/team
both cp @/link2 @/copy-of-target
both cp @/a @/copy
both cp @/missing @/copy
both cp @/keep @/keep
both cp -r @/link2 @/copy-of-link
both cp -r @/a @/a-again
both cp -r @/a @/a-again
both cp -rT @/a @/a-again
both cp -r @/a @/keep
both cp @/keep @/copy @/not-a-directory
expect 1 "$PMFS" cp -r "$pool" /a /a/inside # cp(1) also refuses, but leaves a part
said 'into itself'
expect 1 "$PMFS" cp -r "$pool" /a /to-a
said 'into itself'
both cp -r @/a/. @/merged
both cp -T @/keep @/a
both cp @/copy @/dangling-not-there
both cp -r @/team @/team-copy
mkdir "$work/special"
mkfifo -m 640 "$work/special/fifo"
head -c 100000 /dev/urandom >"$work/special/data"
truncate -s 3M "$work/special/sparse"
printf x | dd of="$work/special/sparse" bs=1 seek=1500000 conv=notrunc status=none
ln "$work/special/data" "$work/special/hard"
mkdir "$work/special/dir"
ln "$work/special/data" "$work/special/dir/hard"
printf x >"$work/special/new
line"
printf x >"$work/special/$(printf 'bad\377name')"
chmod 4750 "$work/special/sparse"
chmod 555 "$work/special/dir"
touch -d 2001-01-01 "$work/special/dir" "$work/special/data"
cp -a "$work/special" "$tree/special"
expect 0 "$PMFS" import "$pool" "$work/special" /special
same import
both cp -r @/special @/special-r
both cp -a @/special @/special-a
for name in dir data fifo sparse; do
  expect 0 "$PMFS" stat "$pool" "/special-a/$name"
  grep -qF "Modify: $(stat -c %y "$work/special/$name")" "$work/out" || fail "cp -a: time of $name: $(cat "$work/out")"
done
both cp -a @/special @/special-a
both cp -aT @/special @/special-a
expect 0 "$PMFS" du -s "$pool" /special/sparse
used=$(cut -f1 "$work/out")
for copy in special-r special-a; do
  expect 0 "$PMFS" du -s "$pool" "/$copy/sparse"
  [ "$used" -le 8 ] && [ "$(cut -f1 "$work/out")" = "$used" ] || fail "holes of $copy: $used KiB, $(cat "$work/out")"
done
expect 0 "$PMFS" setfattr "$pool" /special/data -n user.a -v kept
expect 0 "$PMFS" cp -a "$pool" /special/data /copied
cp -a "$tree/special/data" "$tree/copied"
expect 0 "$PMFS" getfattr "$pool" /copied
shown '^user.a="kept"$'
expect 0 "$PMFS" cp "$pool" /special/data /special/fresh
cp "$tree/special/data" "$tree/special/fresh"
expect 0 "$PMFS" getfattr "$pool" /special/fresh
! grep -q user "$work/out" || fail "cp without -a copies attributes"

# --- find, tree, du ---------------------------------------------------------------------------------------------------------
# lists WORD...: the paths that both find, in any order.
lists() {
  both find "$@" -print0
  sed -z "s|^$tree||; s|^\$|/|" "$work/host.out" | sort -z >"$work/want"
  sort -z "$work/ours.out" >"$work/got"
  [ -s "$work/want" ] || fail "find $*: nothing to compare"
  cmp -s "$work/want" "$work/got" || fail "find $* differs: $(diff <(tr '\0' '\n' <"$work/want") <(tr '\0' '\n' <"$work/got") | head)"
}
lists @/
lists @/a
lists @/to-a
lists @/a @/team -name '*e'
lists @/ -name '[sb]*'
for type in f d l p f,l; do lists @/ -type "$type"; done
lists @/ -type f -name 'h?rd'
expect 0 "$PMFS" find "$pool" /special -name special
[ "$(cat "$work/out")" = /special ] || fail "find does not meet where it begins: $(cat "$work/out")"
expect 0 "$PMFS" find "$pool" / -maxdepth 0
[ "$(cat "$work/out")" = / ] || fail "find -maxdepth 0: $(cat "$work/out")"
expect 2 "$PMFS" find "$pool" / -type z
expect 1 "$PMFS" find "$pool" /missing --json
[ ! -s "$work/out" ] || fail "find --json prints something about nothing"

expect 0 "$PMFS" mkdir -p "$pool" /t/sub/deep /t/last /t/.hidden
expect 0 "$PMFS" ln -s "$pool" sub /t/sub/link
expect 0 "$PMFS" touch "$pool" /t/sub/deep/file
LC_ALL=C expect 0 "$PMFS" tree "$pool" /t
cat >"$work/want" <<'END'
/t
|-- last
`-- sub
    |-- deep
    |   `-- file
    `-- link -> sub

3 directories, 2 files
END
cmp -s "$work/want" "$work/out" || fail "tree: $(cat "$work/out")"
expect 0 "$PMFS" tree -a -L 1 "$pool" /t
shown '3 directories, 0 files'
LC_ALL=C.UTF-8 expect 0 "$PMFS" tree "$pool" /t
shown '^└── sub$'
expect 1 "$PMFS" tree "$pool" /keep
said 'directory'

expect 0 "$PMFS" du "$pool" /special-a
total=$(tail -1 "$work/out" | cut -f1)
[ "$(tail -1 "$work/out" | cut -f2)" = /special-a ] || fail "du: the last line is $(tail -1 "$work/out")"
expect 0 "$PMFS" du -s "$pool" /special-a
[ "$(cat "$work/out")" = "$(printf '%s\t/special-a' "$total")" ] || fail "du -s: $(cat "$work/out")"
expect 0 "$PMFS" du -s "$pool" /special-a/data
[ "$(cut -f1 "$work/out")" = "$(du -s "$tree/special-a/data" | cut -f1)" ] || fail "du of a file: $(cat "$work/out")"
expect 0 "$PMFS" du -s "$pool" /special-a/data /special-a/hard
[ "$(wc -l <"$work/out")" = 1 ] || fail "du counts a file of two names twice: $(cat "$work/out")"
expect 0 "$PMFS" du -sh "$pool" /special-a
shown 'KiB'
expect 0 "$PMFS" rm -r "$pool" /t

# --- rm ---------------------------------------------------------------------------------------------------------------------
both rm @/copy @/copied
both rm @/missing
both rm -f @/missing @/also/missing
both rm @/a
both rm @/to-a
both rm -r @/special-a @/a-again
both ln -s special @/again
expect 1 "$PMFS" rm -r "$pool" /again/
expect 0 "$PMFS" stat "$pool" /special/data
both rm -r @/again
both rm -r @/special/. # no directory goes by that name
both rm -rf @/special/..
both rm -rf @/keep/x
expect 1 "$PMFS" rm -r "$pool" /
said 'root'
both rm -r @/special-r/dir @/missing @/special-r/data

# A directory a thousand levels deep goes, and is walked.
deep=/deep
for _ in $(seq 1000); do deep+=/d; done
expect 0 "$PMFS" mkdir -p "$pool" "$deep"
expect 0 "$PMFS" cp -r "$pool" /deep /deeper
expect 0 "$PMFS" find "$pool" /deeper -type d
[ "$(wc -l <"$work/out")" = 1001 ] || fail "find counts $(wc -l <"$work/out") levels"
expect 0 "$PMFS" rm -r "$pool" /deep /deeper
same 'rm -r of a deep tree'

# A full pool says so, and stays in order.
expect 0 "$PMFS" mkfs "$work/small" --size 16M
head -c 6000000 /dev/urandom | expect 0 "$PMFS" put "$work/small" /large
expect 1 "$PMFS" cp "$work/small" /large /large2 /large # two sources, no directory
expect 0 "$PMFS" mkdir "$work/small" /d
for name in 1 2 3; do "$PMFS" cp "$work/small" /large "/d/$name" 2>"$work/err" || break; done
said "^pmfs: $work/small: /large: .*(full|space|room)"
expect 0 "$PMFS" check "$work/small"
expect 0 "$PMFS" rm -r "$work/small" /d /large
expect 0 "$PMFS" check "$work/small"
shown 'clean'

expect 0 "$PMFS" check "$pool"
shown 'clean'
[ "$compared" -gt 150 ] || fail "only $compared commands were compared"
echo "$compared commands compared"
finish
