#!/bin/bash
# Real trees and real programs: copied, compared, cloned, and all of it again after a remount.
# Of each tree a few thousand names are taken; PMFS_LONG=1 takes all of them.
. "$(dirname "$0")/lib.sh"

most=1000
[ -z "${PMFS_LONG:-}" ] || most=1000000

# Copies a tree's top entries, one by one, until there are enough.
sample() {
  local tree=$1 to=$2 count=0 entry
  mkdir -p "$to"
  for entry in "$tree"/*; do
    count=$((count + $(find "$entry" | wc -l)))
    [ $count -le $most ] || continue
    cp -a "$entry" "$to/"
  done
}

# The times of two trees, and all else that find shows.
list() {
  (cd "$1" && find . ! -type d -printf '%P %y %m %U %G %s %T@ %l\n' && find . -type d -printf '%P %m %U %G %T@\n') | sort
}
compare() {
  diff -r --no-dereference "$1" "$2" || die "$2 differs from $1"
  diff <(list "$1") <(list "$2") || die "attributes in $2 differ from those in $1"
}

make_pool 2G
mount_pool
source=$WORK/source
for tree in /usr/include /usr/share/doc; do
  [ -d $tree ] && sample $tree "$source/${tree##*/}"
done
echo "real_work: $(find "$source" | wc -l) names, $(du -sm "$source" | cut -f1) MiB"
cp -a "$source" "$MNT/copy" || die "cp -a"
compare "$source" "$MNT/copy"

# The sources of this project, if they are in a repository.
repository=$(git -c safe.directory='*' -C "$HERE" rev-parse --show-toplevel 2>/dev/null || true)
if [ -n "$repository" ]; then
  git -c safe.directory='*' clone -q "file://$repository" "$MNT/clone" || die "git clone"
  git -C "$MNT/clone" fsck --strict --no-progress || die "git fsck"
  (cd "$MNT/clone" && git -c user.name=t -c user.email=t@localhost commit -q --allow-empty -m x && git gc -q) || die "git"
  same "$(git -C "$MNT/clone" status --porcelain)" "" "git status"
else
  echo "no git repository here: the clone was left out"
fi
tar -C "$MNT/copy" --format=posix -cf "$WORK/tree.tar" include && mkdir "$MNT/untarred" &&
  tar -C "$MNT/untarred" -xpf "$WORK/tree.tar" || die "tar"
compare "$source/include" "$MNT/untarred/include"
rm -rf "$MNT/untarred"

unmount_pool
check_pool
mount_pool
compare "$source" "$MNT/copy"
[ -z "$repository" ] || git -C "$MNT/clone" fsck --strict --no-progress || die "git fsck after a remount"
find "$MNT" -mindepth 1 -delete
same "$(ls -A "$MNT")" "" "everything removed"
unmount_pool
check_pool
echo "real_work: passed"
