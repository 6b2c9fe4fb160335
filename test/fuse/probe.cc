// probe: what the mount tests need and no shell command does. One command per run:
//   server DIR                    the process that serves the mount
//   counts DIR                    requests answered so far, "NAME COUNT" lines
//   rename HOW FROM TO            renameat2(); HOW is 0, noreplace, exchange or a number
//   list DIR BYTES                every name, read with getdents64() into a buffer of BYTES
//   drop FILE                     forgets the file's cached pages
//   unlinked FILE                 a file without names is written, read and resized through its descriptor
//   hold FILE READY               makes FILE, writes 16 MiB, unlinks it, creates READY and waits to be killed
//   mmap FILE                     stores through a shared mapping are in the file after msync()
//   sparse FILE                   holes read as zero, also after the size was cut and grown
//   holes FILE                    SEEK_DATA and SEEK_HOLE in a file with a hole
//   copy_range FROM TO            copy_file_range() of all of a file
//   handle FILE                   its file handle, as text
//   open_handle DIR HANDLE        what a handle's file holds, from a mount at DIR
// Exit: 0, or 1 with a line on stderr; of a failed rename and open_handle, the errno's name on stdout too.
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fuse_bridge/control.h"

namespace {

using namespace pmfs;
using namespace pmfs::bridge;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "probe: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "probe: not so: %s\n", what);
  std::exit(1);
}

int open_or_die(const char* path, int flags, mode_t mode = 0644) {
  const int fd = open(path, flags | O_CLOEXEC, mode);
  if (fd < 0) die(path);
  return fd;
}

int server(const char* dir) {
  const int fd = open_or_die(dir, O_RDONLY | O_DIRECTORY);
  ServerReply reply;
  if (ioctl(fd, kServerIoctl, &reply) != 0) die(dir);
  std::printf("%u\n", reply.pid);
  return 0;
}

int counts(const char* dir) {
  const int fd = open_or_die(dir, O_RDONLY | O_DIRECTORY);
  CountsReply reply;
  if (ioctl(fd, kCountsIoctl, &reply) != 0) die(dir);
  require(reply.kinds >= kRequestKinds, "all kinds are counted");
  for (std::size_t i = 0; i < kRequestKinds; ++i)
    std::printf("%s %llu\n", kRequestNames[i], static_cast<unsigned long long>(reply.counts[i]));
  return 0;
}

int rename2(const std::string& how, const char* from, const char* to) {
  const unsigned flags = how == "noreplace"  ? static_cast<unsigned>(RENAME_NOREPLACE)
                         : how == "exchange" ? static_cast<unsigned>(RENAME_EXCHANGE)
                                             : static_cast<unsigned>(std::strtoul(how.c_str(), nullptr, 0));
  if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags) == 0) return 0;
  std::printf("%s\n", strerrorname_np(errno));
  die(how);
}

int list(const char* dir, std::size_t bytes) {
  struct Entry {  // struct linux_dirent64
    u64 ino;
    i64 off;
    u16 length;
    u8 type;
    char name[];
  };
  const int fd = open_or_die(dir, O_RDONLY | O_DIRECTORY);
  std::vector<char> buffer(bytes);
  std::set<std::string> seen;
  for (;;) {
    const long got = syscall(SYS_getdents64, fd, buffer.data(), bytes);
    if (got < 0) die(dir);
    if (got == 0) break;
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const Entry*>(buffer.data() + at);
      require(entry->ino != 0, "an entry has an inode number");
      if (!seen.insert(entry->name).second) {
        std::fprintf(stderr, "probe: listed twice: %s\n", entry->name);
        return 1;
      }
      std::printf("%s\n", entry->name);
      at += entry->length;
    }
  }
  return 0;
}

int drop(const char* file) {
  const int fd = open_or_die(file, O_RDONLY);
  if (fsync(fd) != 0) die("fsync");
  if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) die("posix_fadvise");
  return 0;
}

/// Reads the file in one go from the descriptor.
std::string contents(int fd) {
  std::string text;
  char buffer[65536];
  for (off_t off = 0;;) {
    const ssize_t got = pread(fd, buffer, sizeof buffer, off);
    if (got < 0) die("pread");
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    off += got;
  }
}

void put(int fd, const std::string& text, off_t off) {
  if (pwrite(fd, text.data(), text.size(), off) != static_cast<ssize_t>(text.size())) die("pwrite");
}

int unlinked(const char* file) {
  const int fd = open_or_die(file, O_RDWR | O_CREAT | O_EXCL);
  const int reader = open_or_die(file, O_RDONLY);
  put(fd, "before ", 0);
  if (unlink(file) != 0) die("unlink");
  put(fd, "after", 7);
  require(posix_fadvise(reader, 0, 0, POSIX_FADV_DONTNEED) == 0, "pages are forgotten");
  require(contents(reader) == "before after", "both descriptors see what was written before and after the unlink");
  struct stat st {};
  require(fstat(fd, &st) == 0 && st.st_nlink == 0 && st.st_size == 12, "fstat: no links, 12 bytes");
  require(stat(file, &st) != 0 && errno == ENOENT, "the name is gone");
  // A file of the same name is another one.
  const int other = open_or_die(file, O_RDWR | O_CREAT | O_EXCL);
  put(other, "other", 0);
  require(ftruncate(fd, 6) == 0 && contents(reader) == "before", "cut to 6 bytes");
  require(fchmod(fd, 0600) == 0 && fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0600, "fchmod");
  put(fd, std::string(1 << 20, 'x'), 0);
  require(contents(reader) == std::string(1 << 20, 'x'), "a megabyte");
  require(contents(other) == "other", "the other file is not touched");
  require(fsync(fd) == 0 && close(fd) == 0 && close(reader) == 0 && close(other) == 0, "fsync and close");
  if (unlink(file) != 0) die("unlink");

  // The same for a directory: removed while it is open, it lists nothing and takes nothing.
  const std::string dir = std::string(file) + ".dir";
  if (mkdir(dir.c_str(), 0755) != 0) die("mkdir");
  const int dir_fd = open_or_die(dir.c_str(), O_RDONLY | O_DIRECTORY);
  if (rmdir(dir.c_str()) != 0) die("rmdir");
  require(openat(dir_fd, "x", O_CREAT | O_WRONLY | O_CLOEXEC, 0644) < 0 && errno == ENOENT,
          "no create in a dead directory");
  return 0;
}

int hold(const char* file, const char* ready) {
  const int fd = open_or_die(file, O_RDWR | O_CREAT | O_EXCL);
  const std::string block(1 << 20, 'h');
  for (off_t i = 0; i < 16; ++i) put(fd, block, i << 20);
  if (unlink(file) != 0) die("unlink");
  open_or_die(ready, O_CREAT | O_WRONLY);
  for (;;) pause();
}

int mmap_file(const char* file) {
  constexpr std::size_t kBytes = 64 << 10;
  const int fd = open_or_die(file, O_RDWR | O_CREAT | O_TRUNC);
  if (ftruncate(fd, kBytes) != 0) die("ftruncate");
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) die("mmap");
  std::memset(mapped, 'm', kBytes);
  if (msync(mapped, kBytes, MS_SYNC) != 0) die("msync");
  require(munmap(mapped, kBytes) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "unmap and forget");
  require(contents(fd) == std::string(kBytes, 'm'), "what was stored through the mapping");
  return 0;
}

int sparse(const char* file) {
  const int fd = open_or_die(file, O_RDWR | O_CREAT | O_TRUNC);
  put(fd, "end", 10 << 20);
  struct stat st {};
  require(fstat(fd, &st) == 0 && st.st_size == (10 << 20) + 3, "size behind a hole");
  require(st.st_blocks < 2048, "a hole takes no space");
  char byte = 'x';
  require(pread(fd, &byte, 1, 5 << 20) == 1 && byte == 0, "a hole reads as zero");
  put(fd, std::string(100, 'y'), 0);
  require(ftruncate(fd, 50) == 0 && ftruncate(fd, 200) == 0, "cut and grown");
  require(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "pages are forgotten");
  require(contents(fd) == std::string(50, 'y') + std::string(150, '\0'), "what was cut off is zero");
  return 0;
}

// The file has a hole at its byte 8192, and data at both ends; behind its end is nothing.
int holes(const char* file) {
  const int fd = open_or_die(file, O_RDONLY);
  struct stat st {};
  if (fstat(fd, &st) != 0) die("fstat");
  require(lseek(fd, 0, SEEK_DATA) == 0, "data at the beginning");
  const off_t hole = lseek(fd, 0, SEEK_HOLE);
  require(hole > 0 && hole <= 8192, "a hole is found");
  require(lseek(fd, 8192, SEEK_HOLE) == 8192, "it is one throughout");
  const off_t data = lseek(fd, hole, SEEK_DATA);
  require(data > 8192 && data < st.st_size, "data behind it is found");
  require(lseek(fd, data, SEEK_HOLE) > data, "and where that ends");
  require(lseek(fd, st.st_size, SEEK_DATA) < 0 && errno == ENXIO, "nothing behind the end");
  return 0;
}

int copy_range(const char* from, const char* to) {
  const int in = open_or_die(from, O_RDONLY);
  const int out = open_or_die(to, O_WRONLY | O_CREAT | O_TRUNC);
  for (;;) {
    const ssize_t copied = copy_file_range(in, nullptr, out, nullptr, std::size_t{1} << 30, 0);
    if (copied < 0) die("copy_file_range");
    if (copied == 0) return 0;
  }
}

int handle(const char* file) {
  alignas(file_handle) char memory[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
  auto* const handle = reinterpret_cast<file_handle*>(memory);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (name_to_handle_at(AT_FDCWD, file, handle, &mount_id, 0) != 0) die(file);
  std::printf("%d:", handle->handle_type);
  const char* const bytes = memory + offsetof(file_handle, f_handle);  // gcc takes the member for an array of none
  for (unsigned i = 0; i < handle->handle_bytes; ++i) std::printf("%02x", static_cast<unsigned char>(bytes[i]));
  std::printf("\n");
  return 0;
}

int open_handle(const char* dir, const std::string& text) {
  alignas(file_handle) char memory[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
  auto* const handle = reinterpret_cast<file_handle*>(memory);
  const std::size_t colon = text.find(':');
  require(colon != std::string::npos, "a handle has a type");
  handle->handle_type = std::atoi(text.c_str());
  for (std::size_t at = colon + 1; at + 1 < text.size(); at += 2)
    memory[offsetof(file_handle, f_handle) + handle->handle_bytes++] =
        static_cast<char>(std::stoul(text.substr(at, 2), nullptr, 16));
  const int mount_fd = open_or_die(dir, O_RDONLY | O_DIRECTORY);
  const int fd = open_by_handle_at(mount_fd, handle, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    std::printf("%s\n", strerrorname_np(errno));
    die("open_by_handle_at");
  }
  struct stat st {};
  if (fstat(fd, &st) != 0) die("fstat");
  if (S_ISDIR(st.st_mode))
    std::printf("a directory\n");
  else
    std::fputs(contents(fd).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const int arguments = argc - 2;
  if (command == "server" && arguments == 1) return server(argv[2]);
  if (command == "counts" && arguments == 1) return counts(argv[2]);
  if (command == "rename" && arguments == 3) return rename2(argv[2], argv[3], argv[4]);
  if (command == "list" && arguments == 2) return list(argv[2], std::strtoul(argv[3], nullptr, 0));
  if (command == "drop" && arguments == 1) return drop(argv[2]);
  if (command == "unlinked" && arguments == 1) return unlinked(argv[2]);
  if (command == "hold" && arguments == 2) return hold(argv[2], argv[3]);
  if (command == "mmap" && arguments == 1) return mmap_file(argv[2]);
  if (command == "sparse" && arguments == 1) return sparse(argv[2]);
  if (command == "holes" && arguments == 1) return holes(argv[2]);
  if (command == "copy_range" && arguments == 2) return copy_range(argv[2], argv[3]);
  if (command == "handle" && arguments == 1) return handle(argv[2]);
  if (command == "open_handle" && arguments == 2) return open_handle(argv[2], argv[3]);
  std::fprintf(stderr, "probe: see the head of probe.cc\n");
  return 2;
}
