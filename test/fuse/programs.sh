#!/bin/bash
# Programs that are hard on file systems, doing their ordinary work on a mount: SQLite, tar, rsync, cp, find, rm; fio, which
# verifies what it wrote; stress-ng's file stressors. PMFS_LONG=1: larger, and also dbench, fs_mark, postmark, bonnie++ and
# the building of this project inside the mount.
# After each part the pool is unmounted, checked, mounted again, and holds what it held. A part whose program is not here
# is left out and says so; PMFS_PARTS="sqlite fio_verify" runs these alone.
. "$(dirname "$0")/lib.sh"

long=${PMFS_LONG:-}
missing=0
have() {
  local program
  for program in "$@"; do
    type -P "$program" >/dev/null && continue
    echo "left out: no $program here"
    missing=$((missing + 1))
    return 1
  done
}
run() { # LOG COMMAND...
  local log=$WORK/$1.log status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  [ $status = 0 ] || {
    tail -40 "$log" >&2
    die "'$*' ends with $status"
  }
}

describe() {
  (cd "$MNT" && find . ! -type d -printf '%P %y %m %n %U %G %s %T@ %l\n' | sort && find . -type d -printf '%P %m %U %G %T@\n' | sort &&
    find . -type f -exec sha256sum {} + | sort && getfattr -Rhdm - . 2>/dev/null)
}
# What the part has left is the same after a remount, on a pool that checks clean; then it is removed.
kept() { # PART
  describe >"$WORK/described"
  [ -s "$WORK/described" ] || die "$1 has left nothing to compare"
  unmount_pool
  check_pool
  mount_pool
  describe | diff "$WORK/described" - >"$WORK/differences" || die "$1: after a remount: $(head -20 "$WORK/differences")"
  find "$MNT" -mindepth 1 -delete
  same "$(ls -A "$MNT")" "" "$1: everything removed"
}

# --- SQLite: both journals, by the stock program ------------------------------------------------------------------------

sqlite() {
  have sqlite3 || return 0
  local rows=${long:+100000} mode base
  rows=${rows:-4000}
  for mode in delete wal; do
    base=$MNT/$mode.db
    run sqlite sqlite3 "$base" "PRAGMA journal_mode=$mode; PRAGMA synchronous=full;
      CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE, body BLOB); CREATE INDEX by_body ON t(body);"
    # Many rows in a few transactions, then many transactions of a row each; rolled back ones between.
    run sqlite sqlite3 "$base" "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $rows)
      INSERT INTO t SELECT i, 'name ' || i, zeroblob(i % 300) FROM n;
      BEGIN; DELETE FROM t WHERE id % 2 = 0; UPDATE t SET name = 'lost ' || id; ROLLBACK;
      UPDATE t SET body = CAST(name AS BLOB) WHERE id % 3 = 0;"
    { for i in $(seq $((rows / 20))); do echo "INSERT INTO t VALUES($((rows + i)), 'single $i', 'b'); DELETE FROM t WHERE id = $((i * 7 % rows + 1));"; done; } |
      sqlite3 "$base" || die "single transactions, $mode"
    same "$(sqlite3 "$base" "PRAGMA integrity_check;")" ok "integrity_check, $mode"
    # Several connections at once.
    local pids=() w
    for w in 1 2 3; do
      { echo ".timeout 60000"; for i in $(seq 30); do echo "INSERT INTO t(name, body) VALUES('writer $w $i', randomblob(200));"; done; } |
        sqlite3 "$base" >"$WORK/writer$w" 2>&1 &
      pids+=($!)
    done
    for w in "${pids[@]}"; do wait "$w" || die "a writer among several, $mode: $(cat "$WORK"/writer?)"; done
    same "$(sqlite3 "$base" "SELECT count(*) FROM t WHERE name LIKE 'writer %';")" 90 "rows of several writers, $mode"
    sqlite3 "$base" .sha3sum >"$WORK/$mode.sum" 2>/dev/null || sqlite3 "$base" .dump | sha256sum >"$WORK/$mode.sum"
    sqlite3 "$base" "SELECT count(*), sum(id), sum(length(body)) FROM t;" >>"$WORK/$mode.sum"
  done
  unmount_pool
  check_pool
  mount_pool
  for mode in delete wal; do
    base=$MNT/$mode.db
    same "$(sqlite3 "$base" "PRAGMA integrity_check;")" ok "integrity_check after a remount, $mode"
    { sqlite3 "$base" .sha3sum 2>/dev/null || sqlite3 "$base" .dump | sha256sum
      sqlite3 "$base" "SELECT count(*), sum(id), sum(length(body)) FROM t;"; } | cmp - "$WORK/$mode.sum" || die "$mode.db after a remount"
    run sqlite sqlite3 "$base" "DELETE FROM t WHERE id % 2 = 0; VACUUM; PRAGMA integrity_check;"
    same "$(tail -1 "$WORK/sqlite.log")" ok "integrity_check after VACUUM, $mode"
  done
  # The server is killed within a transaction, with much of it written: the journal takes it back.
  mkfifo "$WORK/statements"
  sqlite3 "$MNT/delete.db" <"$WORK/statements" >/dev/null 2>&1 &
  local writer=$!
  exec 8>"$WORK/statements"
  echo "PRAGMA cache_size = 10; BEGIN; UPDATE t SET name = 'never ' || id;
    INSERT INTO t SELECT id + 10000000, 'never more ' || id, randomblob(2000) FROM t LIMIT 2000;" >&8
  echo ".shell touch $WORK/in_transaction" >&8
  for _ in $(seq 1200); do [ ! -e "$WORK/in_transaction" ] || break; sleep 0.1; done
  [ -e "$WORK/in_transaction" ] || die "a transaction does not come to its end"
  [ -s "$MNT/delete.db-journal" ] || die "no journal is in use"
  kill_server
  exec 8>&-
  wait $writer || true
  check_pool
  mount_pool 2>/dev/null
  [ -s "$MNT/delete.db-journal" ] || die "the journal was lost with the server"
  same "$(sqlite3 "$MNT/delete.db" "PRAGMA integrity_check;")" ok "integrity_check after the server was killed in a transaction"
  same "$(sqlite3 "$MNT/delete.db" "SELECT count(*) FROM t WHERE name LIKE 'never%';")" 0 "rows of a transaction that never was"
  kept sqlite
}

# --- Archives and copies ------------------------------------------------------------------------------------------------

# A tree with everything in it that such programs keep, of COUNT files.
make_tree() { # DIR COUNT
  local dir=$1 i
  mkdir -p "$dir"
  for i in $(seq 0 $(($2 - 1))); do
    [ $((i % 20)) != 0 ] || mkdir -p "$dir/d$((i / 20))/sub"
    head -c $((i * i * 31 % 20000)) /dev/urandom >"$dir/d$((i / 20))/f$i"
  done
  (
    cd "$dir" || exit 1
    ln d0/f1 d0/sub/hard; ln -s f1 d0/link; ln -s /nowhere d0/dangling; mkfifo d0/fifo; mknod d0/device c 1 3
    truncate -s 5M d0/holes; printf data | dd of=d0/holes bs=1 seek=3000000 conv=notrunc status=none; : >d0/empty
    touch $'d0/name with \n, \\ and ü'
    chown 1234:4321 d0/f2; chmod 4751 d0/f3; chmod 2775 d0/sub; chmod 1777 d0; chmod 000 d0/f4
    touch -d '1999-12-31 23:59:59.123456789 UTC' d0/f5; touch -h -d '2005-05-05 UTC' d0/link
    setfattr -n user.kind -v value d0/f6; setfattr -n trusted.t -v $'bytes \001\002' d0/f6; setfattr -n user.dir -v d d0/sub
    setfacl -m u:2001:rw,g:3000:r,m::rw d0/f7; setfacl -d -m u:2001:rwx d0/sub; setfacl -m u:2002:rx d0/sub
    setcap cap_net_raw+ep d0/f8 2>/dev/null || true
    # Not of now: rsync takes times within the same second for the same, and leaves them as they became.
    find . -depth ! -name f5 ! -name link -exec touch -h -d '2003-03-03 03:03:03.303030303 UTC' {} +
  ) || die "a tree"
}
compare() { # FROM TO: all that find, ACLs and attributes show; hard links by the numbers of names
  diff <(cd "$1" && find . ! -type d -printf '%P %y %m %n %U %G %s %T@ %l\n' | sort) \
    <(cd "$2" && find . ! -type d -printf '%P %y %m %n %U %G %s %T@ %l\n' | sort) || die "$2: files"
  diff <(cd "$1" && find . -type d -printf '%P %m %U %G %T@\n' | sort) <(cd "$2" && find . -type d -printf '%P %m %U %G %T@\n' | sort) || die "$2: directories"
  diff <(cd "$1" && find . -type f -exec sha256sum {} + | sort) <(cd "$2" && find . -type f -exec sha256sum {} + | sort) || die "$2: contents"
  diff <(cd "$1" && getfacl -PRn . 2>/dev/null) <(cd "$2" && getfacl -PRn . 2>/dev/null) || die "$2: ACLs"
  diff <(cd "$1" && getfattr -PRhdm - . 2>/dev/null) <(cd "$2" && getfattr -PRhdm - . 2>/dev/null) || die "$2: attributes"
}

copies() {
  have setfacl setfattr rsync || return 0
  local count=${long:+4000}
  count=${count:-120}
  make_tree "$MNT/tree" "$count"
  same "$(stat -c %a "$MNT/tree/d0")" 1777 "the tree was made"

  run tar tar --acls --xattrs --xattrs-include='*' -C "$MNT" -cpf "$WORK/tree.tar" tree
  mkdir "$MNT/untarred"
  run tar tar --acls --xattrs --xattrs-include='*' -C "$MNT/untarred" -xpf "$WORK/tree.tar"
  compare "$MNT/tree" "$MNT/untarred/tree"
  run tar tar --acls --xattrs --xattrs-include='*' -C "$MNT/untarred" -df "$WORK/tree.tar"
  rm "$WORK/tree.tar"

  run rsync rsync -aHAX "$MNT/tree/" "$MNT/synced/"
  compare "$MNT/tree" "$MNT/synced"
  same "$(rsync -aHAXi --stats "$MNT/tree/" "$MNT/synced/" | sed -n 's/^Number of regular files transferred: //p')" 0 "files in a second rsync"
  same "$(rsync -aHAXi "$MNT/tree/" "$MNT/synced/")" "" "what a second rsync does"
  echo changed >>"$MNT/tree/d0/f9"; rm "$MNT/tree/d0/f10"; setfattr -n user.kind -v other "$MNT/tree/d0/f6"; chmod 640 "$MNT/tree/d0/f11"
  touch -d '2004-04-04 04:04:04.404040404 UTC' "$MNT/tree/d0"
  same "$(rsync -aHAX --delete --stats "$MNT/tree/" "$MNT/synced/" | sed -n 's/^Number of regular files transferred: //p')" 1 "files in a third"
  compare "$MNT/tree" "$MNT/synced"
  run rsync rsync -aHAX --checksum --inplace --sparse --delete "$WORK/" "$MNT/outside/" --exclude=/pool --exclude=/mnt # from another file system

  run cp cp -a --sparse=always "$MNT/tree" "$MNT/copied"
  compare "$MNT/tree" "$MNT/copied"
  local holes
  holes=$(stat -c %b "$MNT/copied/d0/holes")
  [ "$holes" -gt 0 ] && [ "$holes" -le 64 ] || die "cp --sparse=always of 4 bytes in 5 MiB takes $holes blocks"

  same "$(find "$MNT/tree" -name 'f*' -type f -size +0 | wc -l)" "$(cd "$MNT/copied" && find . -type f -name 'f*' ! -empty | wc -l)" "find"
  same "$(find "$MNT/tree" -newer "$MNT/tree/d0/f5" -type f -name 'f?' | wc -l)" 9 "find -newer"
  same "$(find "$MNT/tree" -samefile "$MNT/tree/d0/f1" | wc -l)" 2 "find -samefile"
  same "$(find "$MNT/tree" -perm -4000 | wc -l)" 1 "find -perm"
  run rm rm -rf "$MNT/untarred" "$MNT/outside"
  [ ! -e "$MNT/untarred" ] || die "rm -rf"
  kept copies
}

# --- fio, verifying ------------------------------------------------------------------------------------------------------

fio_verify() {
  have fio || return 0
  local size=${long:+64m} engine direct pattern bs jobs=0
  size=${size:-2m}
  for engine in sync psync libaio mmap; do
    fio --enghelp 2>/dev/null | grep -qw $engine || { echo "left out: no engine $engine in this fio"; missing=$((missing + 1)); continue; }
    for direct in 0 1; do
      [ "$engine$direct" != mmap1 ] || continue # a mapping is never direct
      for pattern in write randwrite; do
        for bs in 4k 1m; do
          run fio fio --name="$engine-$direct-$pattern-$bs" --directory="$MNT" --ioengine=$engine --direct=$direct --rw=$pattern \
            --bs=$bs --size="$size" --iodepth=8 --verify=crc32c --do_verify=1 --verify_fatal=1 --fallocate=none --group_reporting
          grep -q "err= 0" "$WORK/fio.log" || die "fio: $(tail -20 "$WORK/fio.log")"
          jobs=$((jobs + 1))
        done
      done
    done
  done
  # Reads and writes mixed, by several processes in files of their own, with fsync between.
  run fio fio --name=mixed --directory="$MNT" --ioengine=psync --rw=randrw --bsrange=512-128k --size="$size" --numjobs=3 --fsync=16 \
    --verify=crc32c --do_verify=1 --verify_fatal=1 --group_reporting
  # What was written is verified again by reading alone, after a remount.
  unmount_pool
  check_pool
  mount_pool
  for bs in 4k 1m; do
    run fio fio --name="psync-0-randwrite-$bs" --directory="$MNT" --ioengine=psync --rw=randwrite --bs=$bs --size="$size" \
      --verify=crc32c --verify_only --verify_fatal=1 --fallocate=none
  done
  echo "programs: $((jobs + 1)) fio jobs"
  kept fio
}

# --- stress-ng: by name what concerns a mounted file system -----------------------------------------------------------

stress() {
  have stress-ng || return 0
  # Left out: what is about no file (eventfd, pipes), other file systems (procfs, binderfs, bind-mount, file-ioctl's and
  # chattr's ioctls that FUSE has not), or the disk below a file system (verity, fiemap).
  local names="access chdir chmod chown dentry dir dirdeep dirmany dup fallocate fcntl filename flock fpunch fsize
    fstat getdent hdd io iomix link locka lockf lockofd mknod open rename symlink sync-file touch utime xattr"
  [ -z "$long" ] || names+=" copy-file handle inode-flags inotify lease dnotify mmap mmapfork mmapaddr sendfile splice seek readahead revio
    aio aiol unlink metamix"
  local known name ops=${long:+2000} passed=0 skipped=0
  ops=${ops:-20}
  known=" $(stress-ng --stressors 2>/dev/null | tr '\n' ' ') "
  mkdir "$MNT/stress"
  for name in $names; do
    if [[ $known != *" $name "* ]]; then
      echo "skipped: this stress-ng has no $name"
      skipped=$((skipped + 1))
      continue
    fi
    local status=0 extra=()
    case $name in # small pools
      hdd) extra=(--hdd-bytes 16m) ;;
      iomix) extra=(--iomix-bytes 16m) ;;
      copy-file) extra=(--copy-file-bytes 128m) ;;
      fallocate) extra=(--fallocate-bytes 16m) ;;
      sync-file) extra=(--sync-file-bytes 4m) ;;
      readahead) extra=(--readahead-bytes 16m) ;;
      revio) extra=(--revio-bytes 16m) ;;
      seek) extra=(--seek-size 16m) ;;
    esac
    # The time is only an end for what has more operations than it can do; nothing depends on how many were done.
    stress-ng --temp-path "$MNT/stress" --"$name" 2 --"$name"-ops "$ops" "${extra[@]}" --verify --timeout "$([ -n "$long" ] && echo 20 || echo 2)" \
      --metrics-brief >"$WORK/stress.log" 2>&1 || status=$?
    case $status in
      0) grep -q "skipped\|not implemented" "$WORK/stress.log" && { skipped=$((skipped + 1)); echo "skipped: stress-ng $name: $(grep -m1 "skip" "$WORK/stress.log")"; } || passed=$((passed + 1)) ;;
      3 | 4) # no resources, or not implemented here
        echo "skipped: stress-ng $name: $(grep -m1 -i "skip\|not impl\|no resource" "$WORK/stress.log" || tail -1 "$WORK/stress.log")"
        skipped=$((skipped + 1)) ;;
      *) cat "$WORK/stress.log" >&2; die "stress-ng $name ends with $status" ;;
    esac
    servers >/dev/null || die "the server has died of stress-ng $name"
  done
  echo "programs: $passed stressors passed, $skipped skipped"
  [ "$passed" -gt 10 ] || die "hardly a stressor ran"
  rm -rf "$MNT/stress"
  echo left >"$MNT/left"
  kept stress-ng
}

# --- Benchmarks, for the work they do; their figures are not looked at ---------------------------------------------------

dbench() {
  have dbench || return 0
  mkdir "$MNT/dbench"
  run dbench command dbench -D "$MNT/dbench" -c "$(dbench_load)" -t 20 4
  grep -q "^Throughput" "$WORK/dbench.log" || die "dbench: $(tail "$WORK/dbench.log")"
  # Its barrier is a System V semaphore, which a kernel may be without; that is not about files.
  ! grep -v "barrier semaphore" "$WORK/dbench.log" | grep -i "failed\|error" || die "dbench"
  echo left >"$MNT/left"
  kept dbench
}
fs_mark() {
  have fs_mark || return 0
  mkdir "$MNT/f" # a short name: fs_mark has not room for long paths
  (cd "$WORK" && run fs_mark command fs_mark -d "$MNT/f" -n 2000 -s 5000 -t 4 -D 10 -L 3 -S 1 -k)
  same "$(find "$MNT/f" -type f -size 5000c | wc -l)" 24000 "files of fs_mark"
  kept fs_mark
}
postmark() {
  have postmark || return 0
  mkdir "$MNT/postmark"
  printf 'set location %s\nset number 3000\nset transactions 10000\nset subdirectories 20\nset size 500 20000\nrun\nquit\n' "$MNT/postmark" >"$WORK/postmark.in"
  run postmark command postmark "$WORK/postmark.in"
  grep -q "seconds of transactions" "$WORK/postmark.log" || die "postmark: $(tail "$WORK/postmark.log")"
  ! grep -qi "error" "$WORK/postmark.log" || die "postmark: $(grep -i error "$WORK/postmark.log" | head)"
  echo left >"$MNT/left"
  kept postmark
}
bonnie() {
  have bonnie++ || return 0
  mkdir -m 777 "$MNT/bonnie"
  run bonnie bonnie++ -d "$MNT/bonnie" -f -s 128 -r 64 -n 2:10000:100:4 -u nobody -q # -f: not byte by byte
  ! grep -qi "error\|can't\|drastic" "$WORK/bonnie.log" || die "bonnie++: $(grep -i "error\|can't\|drastic" "$WORK/bonnie.log")"
  echo left >"$MNT/left"
  kept bonnie++
}
dbench_load() { dpkg -L dbench 2>/dev/null | grep 'client.txt$' || echo /usr/share/dbench/client.txt; }

# This project, built inside, and its unit tests run there.
build() {
  have cmake ninja git || return 0
  local top
  top=$(git -c safe.directory='*' -C "$HERE" rev-parse --show-toplevel 2>/dev/null) || { echo "left out: no git repository"; missing=$((missing + 1)); return 0; }
  git -c safe.directory='*' clone -q "file://$top" "$MNT/clone" || die "git clone"
  # Without a compiler cache: the objects are to be written here.
  local tests=(leaf_search_test acl_test) name
  run configure env CCACHE_DISABLE=1 cmake -S "$MNT/clone" -B "$MNT/clone/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DBUILD_TESTING=ON
  run build env CCACHE_DISABLE=1 ninja -C "$MNT/clone/build" "${tests[@]}"
  for name in "${tests[@]}"; do
    (cd "$MNT/clone/build/test" && run inside "./$name")
    tail -2 "$WORK/inside.log"
  done
  run nothing env CCACHE_DISABLE=1 ninja -C "$MNT/clone/build" "${tests[@]}"
  grep -q "no work to do" "$WORK/nothing.log" || die "the times of what was built: $(head -5 "$WORK/nothing.log")"
  kept build
}

make_pool "$([ -n "$long" ] && echo 2G || echo 512M)"
mount_pool
cd "$WORK" || die "cd" # where fio leaves its notes
for part in ${PMFS_PARTS:-sqlite copies fio_verify stress ${long:+dbench fs_mark postmark bonnie build}}; do
  echo "programs: $part"
  $part
done
unmount_pool
check_pool
[ "$missing" = 0 ] || echo "programs: $missing programs were not here, see above"
echo "programs: passed"
