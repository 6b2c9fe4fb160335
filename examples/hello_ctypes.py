#!/usr/bin/env python3
"""The C interface from Python's ctypes: makes a file system in a pool, puts a file into it, and finds it again.

    hello_ctypes.py LIBRARY [POOL]

LIBRARY: libpmfs.so. POOL: a file to create; without it one in /dev/shm, removed at the end.
"""

import ctypes
import os
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p


class Sized(Structure):
    """A struct that knows its size, as all of pmfs.h do, and begins with zeros."""

    def __init__(self, **fields):
        super().__init__(**fields)
        self.struct_bytes = ctypes.sizeof(self)


class Credentials(Sized):
    _fields_ = [("struct_bytes", c_uint32), ("uid", c_uint32), ("gid", c_uint32), ("umask", c_uint32),
                ("privilege", c_uint32), ("checked_elsewhere", c_uint32), ("group_count", c_uint64),
                ("groups", POINTER(c_uint32))]


class FormatOptions(Sized):
    _fields_ = [("struct_bytes", c_uint32), ("force", c_uint32), ("size_bytes", c_uint64), ("label", c_char_p),
                ("mode", c_uint32), ("root_uid", c_uint32), ("root_gid", c_uint32), ("unused", c_uint32),
                ("reserve_bytes", c_uint64)]


class Attributes(Sized):
    _fields_ = [("struct_bytes", c_uint32), ("mode", c_uint32), ("inode", c_uint64), ("generation", c_uint64),
                ("links", c_uint32), ("uid", c_uint32), ("gid", c_uint32), ("unused", c_uint32),
                ("size_bytes", c_uint64), ("blocks_512", c_uint64), ("rdev", c_uint64), ("atime_ns", c_int64),
                ("mtime_ns", c_int64), ("ctime_ns", c_int64), ("birth_ns", c_int64)]


class DirEntry(Sized):
    _fields_ = [("struct_bytes", c_uint32), ("type", c_uint32), ("inode", c_uint64), ("cookie", c_uint64),
                ("name_bytes", c_uint32), ("name", ctypes.c_char * 260)]


class Location(Structure):
    _fields_ = [("dir", c_uint64), ("generation", c_uint64), ("path", c_char_p), ("flags", c_uint32),
                ("unused", c_uint32)]


class Pmfs:
    """The few functions that this example uses. Each raises OSError with the library's own words."""

    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        self.lib.pmfs_strerror.restype = c_char_p
        self.lib.pmfs_strerror.argtypes = [c_int64]
        self.lib.pmfs_path.restype = Location
        self.lib.pmfs_path.argtypes = [c_char_p]
        who, attributes = POINTER(Credentials), POINTER(Attributes)
        for name, result, *arguments in [
                ("format", c_int, c_char_p, POINTER(FormatOptions)),
                ("open", c_int, c_char_p, c_void_p, POINTER(c_void_p)),
                ("close", c_int, c_void_p),
                ("mkdir", c_int, c_void_p, Location, c_uint32, who, attributes),
                ("stat", c_int, c_void_p, Location, who, attributes),
                ("rename", c_int, c_void_p, Location, Location, c_uint32, who),
                ("open_file", c_int, c_void_p, Location, c_int, c_uint32, who, POINTER(c_void_p)),
                ("file_write", c_int64, c_void_p, c_uint64, c_char_p, c_size_t),
                ("file_read", c_int64, c_void_p, c_uint64, c_char_p, c_size_t),
                ("file_close", c_int, c_void_p),
                ("open_dir", c_int, c_void_p, Location, who, POINTER(c_void_p)),
                ("dir_read", c_int, c_void_p, c_uint64, POINTER(DirEntry), attributes),
                ("dir_close", c_int, c_void_p)]:
            function = getattr(self.lib, "pmfs_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, self.checked(function))

    def checked(self, function):
        def call(*arguments):
            result = function(*arguments)
            if result < 0:
                words = self.lib.pmfs_strerror(result).decode(errors="replace")
                raise OSError(-result, words)
            return result
        return call

    def path(self, text):
        return self.lib.pmfs_path(text)  # ctypes keeps `text` alive as long as the location lives


def run(pmfs, pool):
    me = Credentials()  # uid 0
    pmfs.format(pool, byref(FormatOptions(size_bytes=64 << 20, label=b"hello")))
    fs, file, directory = c_void_p(), c_void_p(), c_void_p()
    pmfs.open(pool, None, byref(fs))

    draft, final, text = b"/home/greeting.new", b"/home/greeting", b"hello, persistent memory\n"
    pmfs.mkdir(fs, pmfs.path(b"/home"), 0o755, byref(me), None)
    pmfs.open_file(fs, pmfs.path(draft), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, byref(me), byref(file))
    assert pmfs.file_write(file, 0, text, len(text)) == len(text)
    pmfs.file_close(file)
    pmfs.rename(fs, pmfs.path(draft), pmfs.path(final), 0, byref(me))

    pmfs.close(fs)  # leave, and come back as another program would
    pmfs.open(pool, None, byref(fs))
    about, entry, names = Attributes(), DirEntry(), []
    pmfs.open_dir(fs, pmfs.path(b"/home"), byref(me), byref(directory))
    while pmfs.dir_read(directory, entry.cookie, byref(entry), byref(about)) == 1:
        names.append(entry.name)
        print("  %-10s mode %o, %d bytes" % (entry.name.decode(), about.mode, about.size_bytes))
    pmfs.dir_close(directory)
    assert sorted(names) == [b".", b"..", b"greeting"], names

    try:
        pmfs.stat(fs, pmfs.path(draft), byref(me), byref(about))
        raise AssertionError("the old name is still there")
    except FileNotFoundError as error:
        print("%s: %s" % (draft.decode(), error.strerror))

    back = ctypes.create_string_buffer(100)
    pmfs.open_file(fs, pmfs.path(final), os.O_RDONLY, 0, byref(me), byref(file))
    got = pmfs.file_read(file, 0, back, 100)
    pmfs.file_close(file)
    assert back.raw[:got] == text, back.raw[:got]
    print(back.raw[:got].decode(), end="")
    pmfs.close(fs)


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    pmfs = Pmfs(sys.argv[1])
    if len(sys.argv) == 3:
        run(pmfs, os.fsencode(sys.argv[2]))
        return
    pool = "/dev/shm/hello_ctypes-%d.pool" % os.getpid()
    try:
        run(pmfs, os.fsencode(pool))
    finally:
        if os.path.exists(pool):
            os.unlink(pool)


if __name__ == "__main__":
    main()
