#include "test/support/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace pmfs::test {
namespace {

constexpr unsigned kNobody = 65534;
constexpr int kHung = 200;

int wait_for(int pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int killer = WTERMSIG(status);
  return killer == SIGALRM ? kHung : 128 + killer;
}

/// A child dies quietly: without Catch's report for fatal signals.
void begin_child(unsigned seconds) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGTERM, SIGALRM}) ::signal(signal, SIG_DFL);
  ::alarm(seconds);
}

}  // namespace

Scratch::Scratch(Place place) : owner_(::getpid()) {
  std::string base = "/dev/shm";
  if (place == Place::kDisk || ::access(base.c_str(), W_OK) != 0) {
    const char* const named = std::getenv("TMPDIR");
    base = named != nullptr && *named != '\0' ? named : "/tmp";
  }
  std::string name = base + "/pmfs-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory under " + base);
  ::chmod(name.c_str(), 0777);
  dir_ = name;
}

Scratch::~Scratch() {
  if (::getpid() != owner_) return;
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

void write_file(const std::string& path, std::string_view contents) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void patch_file(const std::string& path, u64 off, std::string_view bytes) {
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(off));
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot patch " + path);
}

u64 hash_file(const std::string& path) {
  u64 hash = 14695981039346656037u;  // FNV-1a
  for (const char c : read_file(path)) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

int in_child(const std::function<int()>& body, unsigned seconds) {
  std::fflush(nullptr);
  const int pid = ::fork();
  if (pid == 0) {
    begin_child(seconds);
    ::_exit(body());
  }
  return wait_for(pid);
}

LivingChild::LivingChild(const std::function<int()>& body, bool exits_normally) {
  int down[2], up[2];
  if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    begin_child(60);
    ::close(down[1]);
    ::close(up[0]);
    const auto result = static_cast<unsigned char>(body());
    char byte;
    if (::write(up[1], &result, 1) != 1) ::_exit(99);
    (void)!::read(down[0], &byte, 1);  // until end()
    if (exits_normally) std::exit(0);
    ::_exit(0);
  }
  ::close(down[0]);
  ::close(up[1]);
  to_child_ = down[1];
  unsigned char result = 255;
  if (::read(up[0], &result, 1) == 1) body_result_ = result;
  ::close(up[0]);
}

int LivingChild::end() {
  if (pid_ < 0) return -1;
  (void)!::write(to_child_, "", 1);  // not only close: children made later hold copies of this end
  ::close(to_child_);
  const int status = wait_for(pid_);
  pid_ = -1;
  return status;
}

LivingChild::~LivingChild() { end(); }

Unprivileged::Unprivileged() {
  if (::geteuid() == 0) changed_ = ::seteuid(kNobody) == 0;
}

Unprivileged::~Unprivileged() {
  if (changed_ && ::seteuid(0) != 0) std::abort();
}

}  // namespace pmfs::test
