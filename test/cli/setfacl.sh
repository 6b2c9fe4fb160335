#!/usr/bin/env bash
# setfacl and getfacl: the same command is given to the pool and, by the tool of the same name, to a folder of the host.
# What getfacl shows of each is then the same, and so is whether it failed.
. "$(dirname "$0")/lib.sh"
: "${work:?}"
command -v setfacl >/dev/null || skip "no setfacl (package acl)"
pool=$work/pool
tree=$work/tree
mkdir -p "$tree/d/sub/deep" "$tree/e"
echo f >"$tree/f"; echo g >"$tree/d/g"; echo x >"$tree/d/sub/x"; echo s >"$tree/d/sub/deep/s"
ln -s ../f "$tree/d/link"
ln -s d "$tree/to-d"
chmod 640 "$tree/f"; chmod 755 "$tree/d/sub/x"; chmod 2750 "$tree/d"; chmod 1777 "$tree/e"
setfacl -m u:1234:r "$tree/f" 2>/dev/null || skip "no ACLs in $work"
setfacl -b "$tree/f"
expect 0 "$PMFS" mkfs "$pool" --size 32M
expect 0 "$PMFS" import "$pool" "$tree" /

objects=(f d d/g d/sub d/sub/x d/sub/deep d/sub/deep/s e)
compared=0
# same WHAT: both hold the same lists.
same() {
  (cd "$tree" && getfacl -p "${objects[@]}" 2>/dev/null) | sed 's|^# file: |&/|' >"$work/want"
  "$PMFS" getfacl "$pool" "${objects[@]/#//}" >"$work/got" 2>&1
  cmp -s "$work/want" "$work/got" || {
    fail "after $1 the lists differ (< setfacl, > pmfs)"
    diff "$work/want" "$work/got" | head -10 >&2
  }
}
# both WORD...: a word that begins with @ is a path.
both() {
  local word here=() there=() host=0 ours=0
  for word in "$@"; do
    case $word in
      @*) there+=("$tree${word#@}") here+=("${word#@}") ;;
      *) there+=("$word") here+=("$word") ;;
    esac
  done
  setfacl "${there[@]}" >"$work/host.out" 2>"$work/host.err" || host=$?
  "$PMFS" setfacl "$pool" "${here[@]}" >"$work/out" 2>"$work/err" || ours=$?
  [ "$ours" -eq "$host" ] || fail "setfacl $*: exit code $ours, of setfacl(1) $host; $(cat "$work/err" "$work/host.err")"
  [ "$ours" -eq 0 ] || said '^pmfs: '
  compared=$((compared + 1))
  same "setfacl $*"
}

same import
both -m u:1234:rw @/f
both -m g:2345:r,u:77:x @/f
both -m u:daemon:rwx @/f
both -m user:1234:- @/f
both -m m::r @/f
both -m u:5:rwx @/f
both -m u:5:r,m::rwx @/f
both -m u::rwx,g::5,o::- @/f
both -m o:r @/f
both -m mask:rx @/f
both -m 4321:r @/f
both -m u:9:rwX @/f
both -x u:9 @/f
both -x user:daemon,g:2345 @/f
both -x u:987 @/f
both -n -m u:8:rwx @/f
both -x m @/f
both -m u:1:r -x u:1 @/f
both -x u:1234 -m u:1234:w @/f
both -x u:1234,u:77,u:5,u:4321,u:8 @/f
both -x m @/f
chmod 640 "$tree/f"; expect 0 "$PMFS" chmod "$pool" 640 /f
both -n -m g:8:rwx @/f
both -b @/f
both -m u:5:rwx,m::- @/f
both -b @/f
both -m u:5:X @/f
both -m u:5:X @/d/sub/x
both -m d:u:5:r @/f
both -d -m u:5:r @/f
both -m d:u:1:rwx @/d
both -d -m g:2:rx @/d
both -m u:3:rx,d:u:3:rx,d:o::x @/d
both -d -x u:1 @/d
both -x d:g:2,u:3 @/d
both -d -x o @/d
both -m d:m::r @/d
both -k @/d
both -k @/f
both -d -m u::r @/d
both -b @/d
both -m d:m:rx @/d
both -R -m u:1234:rwX @/d
both -R -m u:1234:rwX,d:u:1234:rwX @/d
both -R -d -m g:55:r @/d @/e
both -R -x u:1234 @/d
both -R -b -m g:6:rx @/d
both -R -k @/d
both -R -b @/to-d
both -m u:7:rw @/to-d @/f
expect 1 "$PMFS" setfacl "$pool" -m u:8:rw /missing # setfacl(1) forgets it if another path follows
for words in 'u:5:' 'u:5' 'u:5:rr' 'u:5:8' 'u:no-such-user:r' 'z:5:r' 'u:5:rq' 'm:u:r' 'o::rw:'; do both -m "$words" @/f; done
for words in 'u:5:r' 'g:no-such-group' 'q'; do both -x "$words" @/f; done
expect 2 "$PMFS" setfacl "$pool" /f
expect 2 "$PMFS" setfacl "$pool" -m u:5:r

# What getfacl prints can be given back.
both -m u:1234:rwx,g:2345:r,m::rx,d:u:77:rw,d:g::- @/d
both -b @/e
getfacl -p "$tree/d" >"$work/list"
setfacl -M "$work/list" "$tree/e"
expect 0 "$PMFS" getfacl "$pool" /d
cp "$work/out" "$work/list"
expect 0 "$PMFS" setfacl "$pool" -M "$work/list" /e
same 'setfacl -M'
"$PMFS" getfacl "$pool" /d -n | expect 0 "$PMFS" setfacl "$pool" -b -M - /e
same 'setfacl -M -'
expect 1 "$PMFS" setfacl "$pool" -M "$work/no-such-file" /e
said 'cannot read'
expect 0 "$PMFS" check "$pool"
shown clean
[ "$compared" -gt 60 ] || fail "only $compared commands were compared"
echo "$compared commands compared"
finish
