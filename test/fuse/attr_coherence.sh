#!/bin/bash
# Attributes that are cached for ever are right after every call; see attr_coherence.cc. The same with short timeouts.
. "$(dirname "$0")/lib.sh"
: "${COHERENCE:?the path of the attr_coherence program}"

make_pool 64M
mount_pool
"$COHERENCE" "$MNT" || die "with attributes cached for ever"
rm -r "$MNT/coherence"
unmount_pool
check_pool
mount_pool -o attr_timeout=0,entry_timeout=0,negative_timeout=0
"$COHERENCE" "$MNT" || die "without caches"
unmount_pool
check_pool
echo "attr_coherence: passed"
