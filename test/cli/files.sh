#!/usr/bin/env bash
# put, get, cat, ls and stat.
. "$(dirname "$0")/lib.sh"
: "${work:?}"
pool=$work/pool
expect 0 "$PMFS" mkfs "$pool" --size 32M

head -c 3000000 /dev/urandom >"$work/data"
chmod 640 "$work/data"
expect 0 "$PMFS" put "$pool" /data "$work/data"
expect 0 "$PMFS" cat "$pool" /data
cmp -s "$work/data" "$work/out" || fail "cat differs from what was put"
expect 0 "$PMFS" get "$pool" data "$work/back"
cmp -s "$work/data" "$work/back" || fail "get differs from what was put"
expect 0 "$PMFS" get "$pool" /data
cmp -s "$work/data" "$work/out" || fail "get to standard output differs"

# Standard input, with and without "-"; a shorter file replaces a longer one.
printf 'hello\n' | expect 0 "$PMFS" put "$pool" /data
expect 0 "$PMFS" cat "$pool" /data
[ "$(cat "$work/out")" = hello ] || fail "put from standard input"
printf 'again\n' | expect 0 "$PMFS" put "$pool" /data -
expect 0 "$PMFS" get "$pool" /data -
[ "$(cat "$work/out")" = again ] || fail "put from -"
: | expect 0 "$PMFS" put "$pool" /empty
expect 0 "$PMFS" cat "$pool" /empty
[ ! -s "$work/out" ] || fail "an empty file is not empty"

# stat as coreutils has it.
expect 0 "$PMFS" stat "$pool" /data
shown '^  File: /data$'
shown '^  Size: 6[[:space:]]+Blocks: 8 +IO Block: 4096 +regular file$'
shown '^Access: \(0640/-rw-r-----\)  Uid: \( *[0-9]+/ *[^ ]+\)   Gid: \( *[0-9]+/ *[^ ]+\)$'
for time in Access Modify Change ' Birth'; do shown "^$time: 20[0-9-]+ [0-9:]+\.[0-9]{9} [+-][0-9]{4}$"; done
expect 0 "$PMFS" stat "$pool" /empty
shown 'regular empty file'

# ls.
mkdir "$work/tree"
echo x >"$work/tree/b"
echo x >"$work/tree/.hidden"
ln -s b "$work/tree/link"
mkdir "$work/tree/a"
printf x >"$work/tree/new
line"
chmod 4711 "$work/tree/b"
touch -d '2001-02-03 04:05' "$work/tree/b"
expect 0 "$PMFS" import "$pool" "$work/tree" /tree
expect 0 "$PMFS" ls "$pool" /tree
[ "$(sort "$work/out")" = "$(printf 'a\nb\nline\nlink\nnew')" ] || fail "ls lists $(tr '\n' ' ' <"$work/out")"
expect 0 "$PMFS" ls -a "$pool" /tree
shown '^\.hidden$'
shown '^\.\.$'
expect 0 "$PMFS" ls -l "$pool" /tree
shown '^total [0-9]+$'
shown '^-rws--x--x 1 [^ ]+ +[^ ]+ +2 Feb  3  2001 b$'
shown '^drwx.* a$'
shown '^lrwxrwxrwx 1 .* link -> b$'
expect 0 "$PMFS" ls -l "$pool" /tree/link
shown '^l.* /tree/link -> b$'
expect 0 "$PMFS" ls "$pool"
shown '^tree$'
expect 0 "$PMFS" stat "$pool" /tree/link
shown 'File: /tree/link -> b$'
shown 'symbolic link$'
expect 0 "$PMFS" stat -L "$pool" /tree/link
shown 'regular file$'

# What does not work says so, and breaks nothing.
for command in cat get stat ls; do
  expect 1 "$PMFS" "$command" "$pool" /no/such/name
  said "^pmfs: $pool: /no/such/name: "
done
expect 1 "$PMFS" cat "$pool" /tree
said 'directory'
expect 1 "$PMFS" put "$pool" /tree "$work/data"
expect 1 "$PMFS" put "$pool" /missing/folder/file "$work/data"
expect 1 "$PMFS" put "$pool" /x "$work/not-there"
said "^pmfs: $work/not-there: "
expect 1 "$PMFS" put "$pool" /x "$work/tree"
echo keep >"$work/keep"
expect 1 "$PMFS" get "$pool" /no/such/name "$work/keep"
[ "$(cat "$work/keep")" = keep ] || fail "get of a missing file emptied the host's file"
expect 1 "$PMFS" get "$pool" /data "$work/no/folder/file"
said "^pmfs: $work/no/folder/file: "
if [ -e /dev/full ]; then
  "$PMFS" cat "$pool" /data >/dev/full 2>"$work/err" && fail "a full standard output goes unnoticed"
  "$PMFS" info "$pool" >/dev/full 2>"$work/err" && fail "a full standard output goes unnoticed by info"
fi

# A full pool: the error is ENOSPC's, and everything stays in order.
head -c 40000000 /dev/zero | expect 1 "$PMFS" put "$pool" /too-large
said "^pmfs: $pool: /too-large: "
expect 0 "$PMFS" check "$pool"
shown 'clean'
finish
