#!/usr/bin/env bash
# A real tree into a pool and out again: nothing is lost but what the file system does not have.
. "$(dirname "$0")/lib.sh"
: "${work:?}"
pool=$work/pool
tree=$work/tree
expect 0 "$PMFS" mkfs "$pool" --size 256M

# Something real, and everything odd.
mkdir -p "$tree/real"
for folder in /usr/include/linux /usr/include/asm-generic /usr/share/perl5 /usr/share/zoneinfo; do
  [ -d "$folder" ] && cp -a "$folder" "$tree/real/"
done
mkdir "$tree/odd" "$tree/odd/empty" "$tree/odd/sticky" "$tree/odd/closed"
chmod 1777 "$tree/odd/sticky"
chmod 2750 "$tree/odd/empty"
cd "$tree/odd" || exit 1
echo one >plain
ln plain hard-1
ln plain empty/hard-2
ln -s plain soft
ln -s /nowhere/at/all dangling
ln -s "$(printf '%0200d' 7)" long-target
ln soft soft-hard
: >empty-file
echo x >' leading and trailing '
echo x >$'new\nline'
echo x >$'tab\tand\x1bescape'
echo x >$'\xff\xfe not UTF-8 \x80'
echo x >'-dash'
echo x >'*?[]"quote'"'"'$`\'
echo x >$'\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80'
echo x >"$(printf 'n%.0s' $(seq 255))"
mkfifo fifo
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")' 2>/dev/null
truncate -s 5M all-hole
printf 'begin' >holes
printf 'middle' | dd of=holes bs=1 seek=1000000 conv=notrunc status=none
printf 'end' | dd of=holes bs=1 seek=9999997 conv=notrunc status=none
truncate -s 12345678 holes
head -c 5000001 /dev/urandom >large
chmod 4755 plain
chmod 000 empty-file
if [ "$(id -u)" = 0 ]; then
  chown 1234:5678 large
  chown -h 1:2 dangling
  chown 3:4 fifo
  mknod null c 1 3 2>/dev/null && mknod block b 7 200 && chown 5:6 null && chmod 640 block
fi
deep=$tree/deep
for i in $(seq 60); do deep=$deep/level-$i; done
mkdir -p "$deep"
echo bottom >"$deep/file"
mkdir "$tree/many"
(cd "$tree/many" && for i in $(seq 3000); do echo "$i" >"name-$i"; done)
touch -h -d '1999-12-31 23:59:59.123456789' soft
touch -d '1969-07-20 20:17:40.5' large
touch -d '2199-01-01' all-hole
touch -a -d '2005-05-05' plain
chmod 500 closed
cd / || exit 1
touch -d '2011-11-11 11:11:11.111111111' "$tree/odd/empty" "$tree/many" "$tree"

# Everything that find can tell, without what nobody can set: change times, inode numbers, sizes of directories.
describe() {
  (cd "$1" && find . \( -type d -printf '%y %m %U %G %T@ %n %p\0' \) -o -printf '%y %m %U %G %T@ %n %s %l %p\0' | sort -z)
}
links() { (cd "$1" && find . -links +1 ! -type d -printf '%i %p\0' | sort -z -k2 | tr '\0\n' '\n?' |
  awk '{ if (!($1 in seen)) seen[$1] = ++n; $1 = seen[$1]; print }'); }

expect 0 "$PMFS" import "$pool" "$tree" /a/b/tree
shown '^imported [0-9]+ files'
expect 0 "$PMFS" check "$pool"
shown 'clean'
expect 0 "$PMFS" export "$pool" /a/b/tree "$work/back"
shown '^exported [0-9]+ files'
[ ! -s "$work/err" ] || fail "export says: $(head -3 "$work/err")"

diff -r --no-dereference "$tree/real" "$work/back/real" >&2 || fail "contents of real files differ"
(cd "$tree/odd" && find . -type f -print0) | while IFS= read -r -d '' name; do
  cmp -s "$tree/odd/$name" "$work/back/odd/$name" || echo "$name"
done >"$work/differ"
[ ! -s "$work/differ" ] || fail "contents differ: $(cat "$work/differ")"
describe "$tree" >"$work/want"
describe "$work/back" >"$work/got"
if ! cmp -s "$work/want" "$work/got"; then
  fail "attributes differ"
  diff <(tr '\0\n' '\n?' <"$work/want") <(tr '\0\n' '\n?' <"$work/got") | head -20 >&2
fi
cmp -s <(links "$tree") <(links "$work/back") || fail "hard links differ"
for name in all-hole holes; do
  [ "$(stat -c %b "$work/back/odd/$name")" -lt 2000 ] || fail "the holes of $name are filled on the way out"
  blocks=$("$PMFS" stat "$pool" "/a/b/tree/odd/$name" | sed -n 's/.*Blocks: \([0-9]*\).*/\1/p')
  [ "$blocks" -lt 2000 ] || fail "the holes of $name are filled in the pool: $blocks"
done
if command -v rsync >/dev/null; then
  rsync -naHAXi --checksum --delete "$tree/" "$work/back/" >"$work/rsync" 2>&1 || fail "rsync: $(head -3 "$work/rsync")"
  rsync -naHAXi --checksum --delete "$work/back/" "$tree/" >>"$work/rsync" 2>&1 || fail "rsync back: $(head -3 "$work/rsync")"
  [ ! -s "$work/rsync" ] || fail "rsync would still change: $(head -5 "$work/rsync")"
fi

# Much of /usr, with its set-id programs, and what it may lack: capabilities, an ACL, an attribute.
if [ -n "${PMFS_LONG:-}" ] && command -v rsync >/dev/null; then
  expect 0 "$PMFS" mkfs "$work/usr" --size 3G
  mkdir "$work/more"
  cp /usr/bin/env "$work/more/capable"
  setcap cap_net_raw+ep "$work/more/capable" 2>/dev/null
  setfacl -m u:1234:rx,d:u:1234:rx "$work/more" 2>/dev/null
  setfattr -n user.comment -v here "$work/more/capable" 2>/dev/null
  room=1800 # MiB
  for folder in "$work/more" /usr/bin /usr/sbin /usr/libexec /usr/include /usr/share /usr/lib; do
    size=$(du -sm "$folder" 2>/dev/null | cut -f1)
    [ "${size:-9999}" -lt "$room" ] || continue
    room=$((room - size))
    expect 0 "$PMFS" import "$work/usr" "$folder" "/$folder"
    echo "$folder: $(cat "$work/out")"
    expect 0 "$PMFS" export "$work/usr" "/$folder" "$work/usr-back"
    for pair in "$folder/ $work/usr-back/" "$work/usr-back/ $folder/"; do
      # shellcheck disable=SC2086 # two words
      rsync -naHAXi --checksum --delete $pair >"$work/rsync" 2>&1 || fail "rsync $pair: $(head -3 "$work/rsync")"
      [ ! -s "$work/rsync" ] || fail "rsync $pair would change: $(head -5 "$work/rsync")"
    done
    rm -rf "$work/usr-back"
  done
  [ "$room" -lt 1500 ] || fail "too little of /usr was copied: $room MiB are left"
  expect 0 "$PMFS" check "$work/usr"
  rm -rf "${work:?}/usr" "$work/more"
fi

# Again over what is there: the same. With one file changed on the host: that one.
echo changed >>"$tree/odd/plain"
expect 0 "$PMFS" import "$pool" "$tree" /a/b/tree
expect 0 "$PMFS" check "$pool"
expect 0 "$PMFS" export "$pool" /a/b/tree "$work/back"
cmp -s "$tree/odd/plain" "$work/back/odd/plain" || fail "a second import and export does not replace"
[ "$(stat -c %h "$work/back/odd/plain")" = 3 ] || fail "a second export loses hard links"

# The whole pool, from its root.
expect 0 "$PMFS" export "$pool" / "$work/all"
diff -r --no-dereference "$tree/real" "$work/all/a/b/tree/real" >/dev/null || fail "export of / differs"

# A tree with the pool in it: the pool is left out, and that is said.
mkdir "$work/self"
cp "$work/keep" "$work/self/" 2>/dev/null || echo keep >"$work/self/keep"
expect 0 "$PMFS" mkfs "$work/self/pool" --size 16M
expect 1 "$PMFS" import "$work/self/pool" "$work/self" /self
said 'pool itself'
expect 0 "$PMFS" ls "$work/self/pool" /self
[ "$(cat "$work/out")" = keep ] || fail "import of a tree with the pool in it: $(tr '\n' ' ' <"$work/out")"

# A pool that fills ends the import with a word, and stays in order.
expect 0 "$PMFS" mkfs "$work/small" --size 12M
expect 1 "$PMFS" import "$work/small" "$tree" /tree
said "^pmfs: $work/small: importing "
shown 'FAILED'
expect 0 "$PMFS" check "$work/small"
finish
