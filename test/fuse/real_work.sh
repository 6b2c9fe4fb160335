#!/bin/bash
# Real trees and real programs: copied, compared, cloned, and all of it again after a remount.
. "$(dirname "$0")/lib.sh"

make_pool 2G
mount_pool
for tree in /usr/include /usr/share/doc; do
  [ -d $tree ] || { echo "no $tree here"; continue; }
  cp -a $tree "$MNT/" || die "cp -a $tree"
  diff -r --no-dereference $tree "$MNT/${tree##*/}" || die "$tree differs"
done
same_attributes() {
  local tree
  for tree in /usr/include /usr/share/doc; do
    [ -d $tree ] || continue
    diff <(cd $tree && find . -printf '%P %y %m %U %G %T@ %l\n' | sort) \
      <(cd "$MNT/${tree##*/}" && find . -printf '%P %y %m %U %G %T@ %l\n' | sort) || die "attributes of $tree differ"
  done
}
same_attributes

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
tar -C "$MNT" -cf "$WORK/tree.tar" include && mkdir "$MNT/untarred" && tar -C "$MNT/untarred" -xf "$WORK/tree.tar" || die "tar"
diff -r --no-dereference "$MNT/include" "$MNT/untarred/include" || die "tar differs"
rm "$WORK/tree.tar"
rm -rf "$MNT/untarred"

unmount_pool
check_pool
mount_pool
for tree in /usr/include /usr/share/doc; do
  [ ! -d $tree ] || diff -r --no-dereference $tree "$MNT/${tree##*/}" || die "$tree differs after a remount"
done
same_attributes
[ -z "$repository" ] || git -C "$MNT/clone" fsck --strict --no-progress || die "git fsck after a remount"
find "$MNT" -mindepth 1 -delete
same "$(ls -A "$MNT")" "" "everything removed"
unmount_pool
check_pool
echo "real_work: passed"
