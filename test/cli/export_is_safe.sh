#!/usr/bin/env bash
# What stands in the destination of an export cannot lead it elsewhere; and what it finds in its way.
. "$(dirname "$0")/lib.sh"
: "${work:?}"
pool=$work/pool
expect 0 "$PMFS" mkfs "$pool" --size 16M
mkdir -p "$work/tree/dir" "$work/outside"
echo new >"$work/tree/file"
echo new >"$work/tree/dir/inner"
echo new >"$work/tree/kind"
ln -s /tmp "$work/tree/was-directory"
ln "$work/tree/dir/inner" "$work/tree/second-name"
expect 0 "$PMFS" import "$pool" "$work/tree" /

# Symbolic links in the destination, to a file and to a directory outside.
mkdir -m 755 "$work/dest"
echo secret >"$work/outside/victim"
ln -s ../outside/victim "$work/dest/file"
ln -s ../outside "$work/dest/dir"
expect 1 "$PMFS" export "$pool" / "$work/dest"
said "dest/dir: cannot use it as a directory"
[ "$(cat "$work/outside/victim")" = secret ] || fail "export wrote through a symbolic link"
[ ! -e "$work/outside/inner" ] || fail "export followed a symbolic link to a directory"
[ ! -L "$work/dest/file" ] || fail "export did not replace a symbolic link"
[ "$(cat "$work/dest/file")" = new ] || fail "export did not write the file"

# Without that link everything arrives; a directory in the way of a file is an error and stays.
rm -rf "$work/dest"
mkdir -p "$work/dest/kind/content" "$work/dest/dir"
echo stays >"$work/dest/other"
chmod 755 "$work/dest"
expect 1 "$PMFS" export "$pool" / "$work/dest"
said "dest/kind: cannot replace it"
[ -d "$work/dest/kind/content" ] || fail "export removed a directory"
[ "$(cat "$work/dest/dir/inner")" = new ] || fail "export into an existing directory"
[ "$work/dest/second-name" -ef "$work/dest/dir/inner" ] || fail "hard link"
[ "$(cat "$work/dest/other")" = stays ] || fail "export removed what is not in the pool"
[ "$(stat -c %a "$work/dest")" = 755 ] || fail "a destination that held something got another mode"

expect 1 "$PMFS" export "$pool" /file "$work/dest2"
said 'not a directory'
expect 1 "$PMFS" export "$pool" /no-such "$work/dest2"
[ ! -e "$work/dest2" ] || fail "an export of nothing made a directory"
expect 1 "$PMFS" import "$pool" "$work/no-such" /x
said "^pmfs: $work/no-such: "
expect 1 "$PMFS" import "$pool" "$work/tree" /file/below
expect 1 "$PMFS" import "$pool" "$work/tree/file" /x

# A name in the pool that is a directory, where the host has a file, and the other way round.
mkdir -p "$work/clash"
echo x >"$work/clash/dir"
mkdir "$work/clash/file"
expect 1 "$PMFS" import "$pool" "$work/clash" /
expect 0 "$PMFS" cat "$pool" /dir/inner
expect 0 "$PMFS" cat "$pool" /file
expect 0 "$PMFS" check "$pool"
finish
