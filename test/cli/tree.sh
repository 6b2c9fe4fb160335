# A tree of everything that import and export keep, and how two trees are compared. Sourced.
# shellcheck shell=bash

# make_odd_tree DIR: some of each kind, with links across directories, times, and as far as possible attributes and ACLs.
make_odd_tree() {
  local top=$1 i
  mkdir -p "$top/a/deep/er" "$top/b" "$top/closed" "$top/sticky" "$top/team"
  for i in $(seq 12); do printf 'file %s\n' "$i" >"$top/a/file-$i"; done
  head -c 3000001 /dev/urandom >"$top/b/large"
  : >"$top/b/empty"
  printf middle | dd of="$top/b/holes" bs=1 seek=1000000 conv=notrunc status=none
  truncate -s 7654321 "$top/b/holes"
  printf x >"$top/b/"$'not UTF-8 \xff\nand a line'
  for i in 1 2 3; do ln "$top/a/file-$i" "$top/b/hard-$i" && ln "$top/a/file-$i" "$top/a/deep/er/hard-$i"; done
  ln -s ../a/file-1 "$top/b/link"
  ln -s /nowhere "$top/dangling"
  ln "$top/dangling" "$top/a/dangling-too"
  mkfifo -m 620 "$top/b/fifo"
  chmod 4755 "$top/a/file-4"
  chmod 2755 "$top/a/file-5"
  chmod 0 "$top/a/file-6"
  chmod 1777 "$top/sticky"
  chmod 2775 "$top/team"
  if [ "$(id -u)" = 0 ]; then
    chown 1234:2345 "$top/a/file-7" "$top/a/deep"
    chown -h 5:6 "$top/b/link"
    chown 1234 "$top/a/file-4" && chmod 4755 "$top/a/file-4"
    mknod "$top/b/null" c 1 3 2>/dev/null
    setcap cap_net_raw+ep "$top/a/file-8" 2>/dev/null
  fi
  setfattr -n user.comment -v 'a comment' "$top/a/file-9" 2>/dev/null
  setfattr -n user.dir -v d "$top/closed" 2>/dev/null
  setfacl -m u:1234:rw,g:2345:r "$top/a/file-10" 2>/dev/null
  setfacl -m u:1234:rwx,d:u:77:rx "$top/team" 2>/dev/null
  touch -h -d '1999-12-31 23:59:59.123456789' "$top/b/link"
  find "$top" -type f -exec touch -d '2011-11-11 11:11:11.987654321' {} +
  chmod 500 "$top/closed"
  find "$top" -depth -type d -exec touch -d '2012-12-12 12:12:12.000000007' {} +
}

# describe_tree DIR: all of it as text. Not told: change times, inode numbers, sizes of directories.
describe_tree() {
  (cd "$1" && find . \( -type d -printf '%p|%y|%m|%U|%G|%T@\n' \) -o -printf '%p|%y|%m|%U|%G|%T@|%n|%s|%l\n' | sort
   find . -type f -exec cksum {} + | sort
   find . -links +1 ! -type d -printf '%p|%i\n' | sort | awk -F'|' '{ if (!($2 in n)) n[$2] = ++k; print $1, n[$2] }'
   find . -type c -exec stat -c '%n %t:%T' {} +
   find . -type f -size +1M -printf '%p %b blocks\n' | awk '$(NF-1) > 4000 { print $1, "large" }' | sort
   ! command -v getfattr >/dev/null || find . -print0 | sort -z | xargs -0 getfattr -hd -e hex -m - -- 2>/dev/null
   ! command -v getfacl >/dev/null || find . ! -type l -print0 | sort -z | xargs -0 getfacl -np -- 2>/dev/null)
}
