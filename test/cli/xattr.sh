#!/usr/bin/env bash
# Extended attributes and ACLs from the command line: shown, set, removed; kept by import and export.
. "$(dirname "$0")/lib.sh"
: "${work:?}"
command -v setfattr >/dev/null || skip "no setfattr (package attr)"
command -v setfacl >/dev/null || skip "no setfacl (package acl)"
pool=$work/pool
tree=$work/tree
expect 0 "$PMFS" mkfs "$pool" --size 64M
echo contents >"$work/file"
expect 0 "$PMFS" put "$pool" /file "$work/file"

expect 0 "$PMFS" setfattr "$pool" /file -n user.comment -v 'a "quoted" one'
expect 0 "$PMFS" setfattr "$pool" /file -n user.bytes -v 0x00ff10
expect 0 "$PMFS" getfattr "$pool" /file
shown '^# file: /file$'
shown '^user.comment="a \\"quoted\\" one"$'
shown '^user.bytes=0x00ff10$'
expect 0 "$PMFS" getfattr "$pool" /file -n user.comment --only-values
[ "$(cat "$work/out")" = 'a "quoted" one' ] || fail "--only-values: $(cat "$work/out")"
expect 0 "$PMFS" getfattr "$pool" /file --json
shown '"name": *"user.comment"'
expect 0 "$PMFS" setfattr "$pool" /file -x user.bytes
expect 1 "$PMFS" getfattr "$pool" /file -n user.bytes
said 'no attribute of that name'
expect 1 "$PMFS" setfattr "$pool" /file -x user.bytes
expect 1 "$PMFS" setfattr "$pool" /file -n nothing.a -v x
expect 2 "$PMFS" setfattr "$pool" /file -n user.a -v 0x123
expect 2 "$PMFS" setfattr "$pool" /file
expect 0 "$PMFS" getfacl "$pool" /file
shown '^user::rw-$'
shown '^other::'
expect 0 "$PMFS" dump "$pool"
shown 'attribute "user.comment", 14 bytes'
expect 0 "$PMFS" check "$pool"

# A tree of the host with everything, there and back.
mkdir -p "$tree/dir/deep"
echo one >"$tree/file"; echo two >"$tree/dir/deep/file"; ln -s file "$tree/link"; mkfifo "$tree/fifo"
setfattr -n user.a -v small "$tree/file" 2>/dev/null || skip "no user attributes in $work"
setfattr -n user.large -v "$(head -c 3000 /dev/zero | tr '\0' x)" "$tree/dir/deep/file"
setfattr -n user.dir -v d "$tree/dir"
setfattr -n trusted.t -v root "$tree/file" 2>/dev/null
setfacl -m u:1234:rw,g:2345:r "$tree/file" 2>/dev/null || skip "no ACLs in $work"
setfacl -m u:1234:rwx "$tree/dir"
setfacl -d -m u:1234:rx,g:77:- "$tree/dir/deep"
setfacl -m u:1234:rw "$tree/fifo"
chmod 750 "$tree/dir" # the mask
describe() {
  (cd "$1" && find . | sort | while IFS= read -r name; do
    stat -c '%n %a %u' "$name"
    getfattr -hd -m - "$name" 2>/dev/null
    [ -L "$name" ] || getfacl -np "$name"
  done)
}
expect 0 "$PMFS" import "$pool" "$tree" /tree
shown '^imported '
! grep -q 'could not all be kept' "$work/out" || fail "import: $(cat "$work/out")"
expect 0 "$PMFS" check "$pool"
expect 0 "$PMFS" getfacl "$pool" /tree/file -n
shown '^user:1234:rw-$'
shown '^group:2345:r--$'
expect 0 "$PMFS" getfacl "$pool" /tree/dir -n
shown '^user:1234:rwx[[:space:]]+#effective:r-x$'
expect 0 "$PMFS" getfacl "$pool" /tree/dir/deep -n
shown '^default:group:77:---$'
expect 0 "$PMFS" export "$pool" /tree "$work/back"
describe "$tree" >"$work/want"
describe "$work/back" >"$work/got"
[ "$(wc -l <"$work/want")" -gt 40 ] || fail "nothing to compare: $(cat "$work/want")"
cmp -s "$work/want" "$work/got" || {
  fail "attributes or ACLs differ"
  diff "$work/want" "$work/got" | head -20 >&2
}
# Into a directory with a default list nothing is inherited that the host did not have.
mkdir "$work/plain"; echo p >"$work/plain/file"; chmod 640 "$work/plain/file"
expect 0 "$PMFS" import "$pool" "$work/plain" /tree/dir/deep/plain
expect 0 "$PMFS" getfacl "$pool" /tree/dir/deep/plain/file -n
shown '^group::r--$'
! grep -q 1234 "$work/out" || fail "a list was inherited: $(cat "$work/out")"
expect 0 "$PMFS" check "$pool"
finish
