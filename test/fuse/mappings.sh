#!/bin/bash
# One file seen in several ways at once: through mappings, buffered and direct I/O, several descriptors and processes, and
# run as a program while it is there. All of it must see one content.
. "$(dirname "$0")/lib.sh"

python=/usr/bin/python3
for program in $python fallocate; do
  command -v $program >/dev/null || skip "no $program"
done
make_pool 256M
mount_pool
cd "$MNT" || die "cd"

# wait_for FILE: until another process has made it.
wait_for() {
  for _ in $(seq 600); do
    [ ! -e "$1" ] || return 0
    sleep 0.05
  done
  die "nobody makes $1"
}

# Shared mappings, in one process: with reads, writes, cutting and growing between.
$python - <<'PY' || die "a shared mapping and its file"
import mmap, os
def same(got, expected, what):
    assert got == expected, f"{what}: {got[:40]!r} and not {expected[:40]!r}"
fd = os.open("mapped", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
size = 1 << 20
os.ftruncate(fd, size)
m = mmap.mmap(fd, size)
n = mmap.mmap(os.open("mapped", os.O_RDONLY), size, prot=mmap.PROT_READ)
p = mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE)
same(m[:size], bytes(size), "a hole reads as zero through a mapping")
m[5000:5005] = b"store"
same(os.pread(fd, 5, 5000), b"store", "a store is read, without msync")
same(n[5000:5005], b"store", "and seen in another mapping")
os.pwrite(fd, b"WRITE", 5002)
same(m[5000:5007], b"stWRITE", "a write is seen in a mapping")
p[70000:70004] = b"mine"
same(os.pread(fd, 4, 70000), bytes(4), "a private mapping's stores stay there")
same(n[70000:70004], bytes(4), "and are seen by nobody")
os.ftruncate(fd, 5003)
os.ftruncate(fd, size)
same(m[5000:5010], b"stW" + bytes(7), "what was cut off is zero in the mapping")
m[size - 4:size] = b"last"
m.flush(mmap.ALLOCATIONGRANULARITY * ((size - 4) // mmap.ALLOCATIONGRANULARITY), mmap.ALLOCATIONGRANULARITY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
same(os.pread(fd, 4, size - 4), b"last", "after msync and with no page cached")
for page in range(0, size, 4096):
    m[page:page + 8] = page.to_bytes(8, "little")
# Not flushed: closing, and the kernel's write-back, must do.
PY
expect_pages() { # WHAT
  $python - "$1" <<'PY' || die "pages stored through a mapping: $1"
import sys
data = open("mapped", "rb").read()
assert len(data) == 1 << 20, len(data)
for page in range(0, len(data), 4096):
    assert data[page:page + 8] == page.to_bytes(8, "little"), (sys.argv[1], page)
assert data[-4:] == b"last" and data[5000:5003] == b"stW"
PY
}
expect_pages "after munmap"
"$PROBE" drop mapped
expect_pages "with no page cached"

# Another process stores; this one reads and writes; then the other tells what it sees.
truncate -s 8192 shared
$python - "$WORK" <<'PY' &
import mmap, os, sys, time
m = mmap.mmap(os.open("shared", os.O_RDWR), 8192)
m[0:5] = b"hello"
open(sys.argv[1] + "/stored", "w").close()
deadline = time.monotonic() + 60
while m[4096:4101] != b"world":
    assert time.monotonic() < deadline, "the other process's write is never seen"
    time.sleep(0.01)
m[0:5] = b"seen!"
PY
other=$!
wait_for "$WORK/stored"
same "$(head -c 5 shared)" hello "stored by another process"
printf world | dd of=shared bs=1 seek=4096 conv=notrunc status=none
wait $other || die "the other process"
same "$(head -c 5 shared)" "seen!" "its answer"

# The mapping of a file without names lives on.
$python - <<'PY' || die "a mapping of an unlinked file"
import mmap, os
fd = os.open("nameless", os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 1 << 20)
m = mmap.mmap(fd, 1 << 20)
os.close(fd)
os.unlink("nameless")
for page in range(0, 1 << 20, 4096): m[page] = 7
m.flush()
assert all(m[page] == 7 for page in range(0, 1 << 20, 4096))
PY

# Programs run from here, and cannot be written meanwhile.
cp /bin/sleep program
same "$(./program 0 && echo ran)" ran "a program"
./program 600 &
running=$!
for _ in $(seq 200); do # until the shell's child is that program
  [ "$(readlink /proc/$running/exe)" != "$MNT/program" ] || break
  sleep 0.05
done
same "$(readlink /proc/$running/exe)" "$MNT/program" "what runs"
refused "Text file busy" sh -c 'echo x >>program'
refused "Text file busy" truncate -s 0 program
cmp program /bin/sleep || die "a program that was refused to a writer"
cp /bin/sleep fresh
mv fresh program || die "a running program is replaced by name"
rm program
is_alive $running || die "the program died of losing its name"
kill $running
wait $running 2>/dev/null || true
cp /bin/sleep program
exec 7>>program
refused "Text file busy" ./program 0
exec 7>&-
same "$(./program 0 && echo ran)" ran "when nobody writes to it any more"
printf '#!/bin/sh\necho script "$@"\n' >script
refused "Permission denied" ./script
chmod 755 script
same "$(./script a b)" "script a b" "a script"
cat >crossing.sh <<'END'
[ -z "$1" ] || { echo deep; exit; }
exec sh "$0" again
END
same "$(sh crossing.sh '')" deep "exec of the same file again"

# Direct beside buffered I/O: whatever one writes, the other reads, with pages cached or not, aligned or not.
$python - <<'PY' || die "direct beside buffered I/O"
import mmap, os, random
rng = random.Random(20)
size = 1 << 20
def aligned(n): return mmap.mmap(-1, n)
b = os.open("direct", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
d = os.open("direct", os.O_RDWR | os.O_DIRECT)
os.ftruncate(b, size)
m = mmap.mmap(b, size)
model = bytearray(size)
def read_direct(off, n):
    buf = aligned(n)
    got = os.preadv(d, [buf], off)
    return buf[:got]
for step in range(1200):
    pages = rng.randrange(1, 17)
    off = rng.randrange(0, size // 4096 - pages + 1) * 4096
    n = pages * 4096
    what = rng.choice("bdmrRMfp")
    data = bytes([rng.randrange(1, 256)]) * n
    if what == "b":
        cut = rng.randrange(0, 4096); os.pwrite(b, data[cut:], off + cut); model[off + cut:off + n] = data[cut:]
    elif what == "d":
        buf = aligned(n); buf[:] = data
        assert os.pwritev(d, [buf], off) == n; model[off:off + n] = data
    elif what == "m": m[off:off + n] = data; model[off:off + n] = data
    elif what == "r": assert os.pread(b, n, off) == model[off:off + n], (step, "buffered read", off, n)
    elif what == "R": assert read_direct(off, n) == model[off:off + n], (step, "direct read", off, n)
    elif what == "M": assert m[off:off + n] == model[off:off + n], (step, "mapping", off, n)
    elif what == "f": os.posix_fadvise(b, 0, 0, os.POSIX_FADV_DONTNEED)
    elif what == "p": os.fsync(d)
assert read_direct(0, size) == model and os.pread(b, size, 0) == model and m[:] == model
# A direct read over the end is short; a direct append grows.
os.ftruncate(b, 5000)
assert len(read_direct(0, 8192)) == 5000
open("expected", "wb").write(model[:5000])
PY
cmp direct expected || die "after all that"

# Holes.
$python - <<'PY' || die "SEEK_DATA and SEEK_HOLE"
import errno, os
fd = os.open("holes", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
MB = 1 << 20
for at in (1, 4, 9): os.pwrite(fd, b"d" * 8192, at * MB)
os.ftruncate(fd, 12 * MB)
def runs():
    out, at = [], 0
    while True:
        try: data = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as e:
            assert e.errno == errno.ENXIO
            return out
        at = os.lseek(fd, data, os.SEEK_HOLE)
        assert at > data
        out.append((data, at))
def holds(written):
    # Each run of data may be larger than what was written, but no byte of it may be missing.
    for first, last in written: assert any(f <= first and last <= l for f, l in runs()), (written, runs())
holds([(at * MB, at * MB + 8192) for at in (1, 4, 9)])
assert runs() == [(at * MB, at * MB + 8192) for at in (1, 4, 9)], runs()
assert os.lseek(fd, 0, os.SEEK_HOLE) == 0
assert os.lseek(fd, 10 * MB, os.SEEK_HOLE) == 10 * MB
assert os.lseek(fd, 4 * MB + 100, os.SEEK_DATA) == 4 * MB + 100
for whence in (os.SEEK_DATA, os.SEEK_HOLE):
    try: os.lseek(fd, 12 * MB, whence); assert False
    except OSError as e: assert e.errno == errno.ENXIO
os.pwrite(fd, b"x", 6 * MB)   # of data in the page cache, too
holds([(at * MB, at * MB + 8192) for at in (1, 4, 9)] + [(6 * MB, 6 * MB + 1)])
# Through a mapping: the kernel may hold it back until msync.
import mmap
m = mmap.mmap(fd, 12 * MB); m[7 * MB] = 120; m.flush()
holds([(7 * MB, 7 * MB + 1)])
PY
cp --sparse=auto holes copy_of_holes
cmp holes copy_of_holes || die "a copy of a file with holes"
[ "$(stat -c %b copy_of_holes)" -lt 200 ] || die "the copy has lost its holes: $(stat -c %b copy_of_holes) blocks"

# copy_file_range: within one file, over several, beyond the end, out of and into holes.
$python - <<'PY' || die "copy_file_range"
import errno, os
src = bytes((i * 7 + i // 4096) % 256 for i in range(300000))
open("from", "wb").write(src)
a = os.open("from", os.O_RDWR); b = os.open("to", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
def copy(i, o, n, at, to):
    done = 0
    while done < n:
        got = os.copy_file_range(i, o, n - done, at + done, to + done)
        if got == 0: break
        done += got
    return done
assert copy(a, b, 100000, 12345, 54321) == 100000
assert os.pread(b, 200000, 0) == bytes(54321) + src[12345:112345]
assert copy(a, b, 1 << 20, 290000, 0) == 10000
assert os.pread(b, 10000, 0) == src[290000:]
assert os.copy_file_range(a, b, 100, 400000, 0) == 0, "behind the end is nothing"
assert copy(a, a, 50000, 0, 200000) == 50000
assert os.pread(a, 50000, 200000) == src[:50000]
try: os.copy_file_range(a, a, 50000, 0, 10000); assert False
except OSError as e: assert e.errno == errno.EINVAL, "ranges that overlap"
try: os.copy_file_range(a, os.open("to", os.O_RDONLY), 1, 0, 0); assert False
except OSError as e: assert e.errno == errno.EBADF
os.ftruncate(b, 0)
os.pwrite(a, b"cached", 0)   # not yet written back, perhaps
assert copy(a, b, 6, 0, 0) == 6 and os.pread(b, 10, 0) == b"cached"
PY

# fallocate: every mode works, or says that it does not.
$python - <<'PY' || die "fallocate"
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
KEEP, PUNCH, COLLAPSE, ZERO, INSERT, UNSHARE = 1, 2, 8, 16, 32, 64
fd = os.open("space", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
def falloc(mode, off, n):
    return 0 if libc.fallocate(fd, mode, off, n) == 0 else ctypes.get_errno()
def size(): return os.fstat(fd).st_size
def blocks(): return os.fstat(fd).st_blocks
data = bytes(i % 251 + 1 for i in range(100000))
os.pwrite(fd, data, 0)
assert falloc(0, 50000, 100000) == 0 and size() == 150000
assert os.pread(fd, 200000, 0) == data + bytes(50000)
assert falloc(KEEP, 150000, 1 << 20) == 0 and size() == 150000
reserved = blocks()
assert reserved >= (150000 + (1 << 20)) // 512
assert falloc(ZERO | KEEP, 1000, 9000) == 0 and size() == 150000
model = bytearray(data + bytes(50000)); model[1000:10000] = bytes(9000)
assert os.pread(fd, 200000, 0) == model
assert falloc(PUNCH | KEEP, 20001, 40000) == 0 and size() == 150000
model[20001:60001] = bytes(40000)
assert os.pread(fd, 200000, 0) == model and blocks() < reserved
assert falloc(ZERO, 140000, 20000) == 0 and size() == 160000
assert os.pread(fd, 200000, 0) == model + bytes(10000)
for mode in (COLLAPSE, INSERT): assert falloc(mode, 0, 4096) == errno.EOPNOTSUPP, mode
assert falloc(PUNCH, 0, 4096) in (errno.EOPNOTSUPP, errno.EINVAL), "punching without keeping the size"
assert falloc(0, -1, 10) == errno.EINVAL and falloc(0, 0, 0) == errno.EINVAL
assert falloc(0, 0, 1 << 40) == errno.ENOSPC and size() == 160000
assert falloc(0, (1 << 63) - 4096, 8192) == errno.EFBIG
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
assert os.pread(fd, 200000, 0) == model + bytes(10000)
PY

# Several processes append to one file: no line is torn or lost, none comes twice, each one's lines are in order.
writers=6 lines=400
for w in $(seq $writers); do
  $python - "$w" $lines <<'PY' &
import os, sys
w, lines = int(sys.argv[1]), int(sys.argv[2])
fd = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
for i in range(lines):
    line = f"{w} {i} ".encode() + b"x" * ((i * 37) % 5000) + b"\n"
    assert os.write(fd, line) == len(line)
PY
  pids[w]=$!
done
for w in $(seq $writers); do wait "${pids[w]}" || die "writer $w"; done
cat >"$WORK/appended.py" <<'PY'
import sys
writers, lines = int(sys.argv[1]), int(sys.argv[2])
next_of = dict.fromkeys(range(1, writers + 1), 0)
for line in open("log", "rb").read().split(b"\n")[:-1]:
    w, i, xs = line.split(b" ")
    w, i = int(w), int(i)
    assert i == next_of[w], f"writer {w}: line {i} where {next_of[w]} should be"
    assert xs == b"x" * ((i * 37) % 5000), f"writer {w}, line {i} is torn"
    next_of[w] += 1
assert all(n == lines for n in next_of.values()), next_of
PY
$python "$WORK/appended.py" $writers $lines || die "appended lines"

find . -type f -exec cksum {} + | sort >"$WORK/sums"
cd /
unmount_pool
check_pool
mount_pool
cd "$MNT" || die "cd"
find . -type f -exec cksum {} + | sort | diff "$WORK/sums" - || die "after a remount"
expect_pages "after a remount"
$python "$WORK/appended.py" $writers $lines || die "appended lines after a remount"
# What was stored and flushed with msync is there when the server is killed.
$python - <<'PY' || die "msync"
import mmap, os
fd = os.open("synced", os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(fd, 65536)
m = mmap.mmap(fd, 65536)
m[:] = b"s" * 65536
m.flush()
PY
kill_server
cd /
check_pool
mount_pool 2>/dev/null
same "$(head -c 65536 "$MNT/synced" | tr -d s | wc -c) $(stat -c %s "$MNT/synced")" "0 65536" "msync, then the server was killed"
unmount_pool
check_pool
echo "mappings: passed"
