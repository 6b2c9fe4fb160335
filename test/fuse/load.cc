// load: many threads change a mounted tree at random and know what must be there when the server is killed.
//   load run DIR STATE SEED THREADS   works until the server is gone, then writes what it knows to STATE
//   load verify DIR STATE             compares a tree with it
// Where this program dies with the server, as in a virtual machine, it leaves no STATE. Then
//   load tell DIR SEED THREADS        says a line "THREAD CALLS" for every call that returned, before it makes the next
//   load trust DIR SEED CALLS...      compares a tree with what so many calls of each thread leave; all else
//                                     follows from the seed
// Each thread has names of its own, half of them in a directory of its own and half in one that all share, and changes
// them by one system call at a time. Every call that returned must be there entirely; of the one that was under way,
// either all or nothing. Only a write may be there in part: the kernel sends it as several requests, cut where a page
// that is not in its cache is written in part, and each of them is entire; and what overwrites may be mixed. Exit: 0; 1
// with a line on stderr for what is not so.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr unsigned kNames = 16;  // per thread; the upper half lies in the shared directory
constexpr std::uint64_t kMostBytes = 200'000;

enum class Kind : int { kAbsent, kFile, kDir, kLink };

/// What a name stands for. A file's bytes follow from `version` and their offsets.
struct Node {
  Kind kind = Kind::kAbsent;
  unsigned version = 0;
  std::uint64_t size = 0;
  unsigned mode = 0;
  bool operator==(const Node&) const = default;
};

/// A call that was under way: the names it changes, before and after.
struct Change {
  unsigned count = 0;
  bool writes = false;    ///< a write: the size may lie between before and after
  bool rewrites = false;  ///< and the data may be mixed
  std::array<unsigned, 2> name{};
  std::array<Node, 2> before{};
  std::array<Node, 2> after{};
};

struct Thread {
  unsigned index = 0;
  std::array<Node, kNames> nodes{};
  Change under_way;
};

std::string path_of(const std::string& dir, unsigned thread, unsigned name) {
  const std::string own = "t" + std::to_string(thread);
  return dir + (name < kNames / 2 ? "/" + own + "/n" : "/shared/" + own + "_n") + std::to_string(name);
}

void fill(unsigned version, std::uint64_t off, std::string& bytes) {
  for (char& byte : bytes) {
    std::uint64_t word = (off / 8 + 1) * 0x9e3779b97f4a7c15ULL + version;
    word ^= word >> 29;
    byte = static_cast<char>(word >> (off % 8 * 8));
    ++off;
  }
}

bool is_gone(int error) { return error == ENOTCONN || error == ECONNABORTED || error == EIO; }

/// Says on standard output that a call has returned, and waits until that has left this machine.
void tell(unsigned thread, unsigned long calls) {
  const std::string line = std::to_string(thread) + ' ' + std::to_string(calls) + '\n';
  if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  if (tcdrain(STDOUT_FILENO) != 0 && errno != ENOTTY) std::abort();
}

/// One thread's work.
class Worker {
 public:
  Worker(const std::string& dir, Thread& thread, unsigned seed, bool tells = false)
      : dir_(dir), thread_(thread), random_(seed * 1000 + thread.index), tells_(tells) {}

  unsigned long calls() const { return calls_; }

  /// As if `calls` calls had been made and had returned, and one more was under way. Makes none.
  void imagine(unsigned long calls) {
    imagined_ = calls;
    imagines_ = true;
    while (step() == 0) {
    }
  }

  /// @return  false if a call failed for another reason than that the server is gone.
  bool run() {
    for (;;) {
      const int error = step();
      if (error == 0) continue;
      if (is_gone(error)) return true;
      std::fprintf(stderr, "load: %s: %s\n", what_.c_str(), std::strerror(error));
      return false;
    }
  }

 private:
  unsigned pick(unsigned count) { return static_cast<unsigned>(random_() % count); }
  std::string path(unsigned name) const { return path_of(dir_, thread_.index, name); }

  /// Notes what is about to change, calls, and notes that it has.
  template <class Call>
  int change(const char* what, const Change& change, Call&& call) {
    what_ = what;
    thread_.under_way = change;
    if (imagines_) {
      if (calls_ == imagined_) return ECANCELED;
    } else if (call() < 0) {
      return errno;
    }
    ++calls_;
    if (tells_) tell(thread_.index, calls_);
    for (unsigned i = 0; i < change.count; ++i) thread_.nodes[change.name[i]] = change.after[i];
    thread_.under_way = {};
    return 0;
  }

  template <class Call>
  int change_one(const char* what, unsigned name, const Node& after, Call&& call, bool writes = false,
                 bool rewrites = false) {
    return change(what, {1, writes, rewrites, {name, 0}, {thread_.nodes[name], {}}, {after, {}}}, call);
  }

  int write_at(unsigned name, const Node& after, std::uint64_t off, bool rewrites) {
    return change_one(
        "pwrite", name, after,
        [&] {
          std::string bytes(after.size - off, '\0');
          fill(after.version, off, bytes);
          const int fd = open(path(name).c_str(), O_WRONLY | O_CLOEXEC);
          if (fd < 0) return -1;
          const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(off));
          const int error = written < 0 ? errno : EIO;  // cut short: the server was killed between two requests
          close(fd);
          if (written >= 0 && static_cast<std::size_t>(written) == bytes.size()) return 0;
          errno = error;
          return -1;
        },
        true, rewrites);
  }

  int step() {
    const unsigned a = pick(kNames), b = (a + 1 + pick(kNames - 1)) % kNames;
    const Node old = thread_.nodes[a];
    const Node other = thread_.nodes[b];
    const std::string from = path(a), to = path(b);
    const unsigned version = ++version_;
    const unsigned mode = 0400 | pick(0400);
    switch (old.kind) {
      case Kind::kAbsent:
        switch (pick(4)) {
          case 0:
            return change_one("mkdir", a, {Kind::kDir, 0, 0, mode}, [&] { return mkdir(from.c_str(), mode); });
          case 1:
            return change_one("symlink", a, {Kind::kLink, version, 0, 0777},
                              [&] { return symlink(("v" + std::to_string(version)).c_str(), from.c_str()); });
          default:
            return change_one("create", a, {Kind::kFile, version, 0, mode | 0200}, [&] {
              const int fd = open(from.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode | 0200);
              return fd < 0 ? fd : close(fd);
            });
        }
      case Kind::kDir:
        if (pick(3) == 0) return change_one("rmdir", a, {}, [&] { return rmdir(from.c_str()); });
        break;
      case Kind::kLink:
        if (pick(3) == 0) return change_one("unlink", a, {}, [&] { return unlink(from.c_str()); });
        break;
      case Kind::kFile: {
        Node after = old;
        switch (pick(8)) {
          case 0:
            return change_one("unlink", a, {}, [&] { return unlink(from.c_str()); });
          case 1:
            after.size = pick(static_cast<unsigned>(old.size + 1));
            return change_one("truncate", a, after,
                              [&] { return truncate(from.c_str(), static_cast<off_t>(after.size)); });
          case 2:
            after.mode = mode | 0200;
            return change_one("chmod", a, after, [&] { return chmod(from.c_str(), after.mode); });
          case 3:
            after.version = version;
            after.size = old.size + pick(5000);
            if (after.size == 0) return 0;
            return write_at(a, after, 0, true);
          case 4:
          case 5:
            if (old.size > kMostBytes) break;
            after.size = old.size + 1 + pick(pick(2) == 0 ? 100 : 20000);
            return write_at(a, after, old.size, false);
          case 6:  // a hard link, which then becomes the only name
            if (other.kind != Kind::kAbsent) break;
            if (const int error = change_one("link", b, old, [&] { return link(from.c_str(), to.c_str()); });
                error != 0)
              return error;
            return change_one("unlink", a, {}, [&] { return unlink(from.c_str()); });
          default:
            break;
        }
        break;
      }
    }
    // Two names.
    if (other.kind != Kind::kAbsent && pick(3) == 0) {
      return change("exchange", {2, false, false, {a, b}, {old, other}, {other, old}}, [&] {
        return syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE);
      });
    }
    if (other.kind != Kind::kAbsent && (old.kind == Kind::kDir) != (other.kind == Kind::kDir)) return 0;
    return change("rename", {2, false, false, {a, b}, {old, other}, {Node{}, old}},
                  [&] { return rename(from.c_str(), to.c_str()); });
  }

  const std::string dir_;
  Thread& thread_;
  std::mt19937_64 random_;
  const bool tells_;
  bool imagines_ = false;
  unsigned long imagined_ = 0;
  unsigned long calls_ = 0;  ///< that returned
  std::string what_;
  unsigned version_ = 0;
};

// --- What is known, as text ------------------------------------------------------------------------------------------

void put(std::ostream& out, const Node& node) {
  out << ' ' << static_cast<int>(node.kind) << ' ' << node.version << ' ' << node.size << ' ' << node.mode;
}

void get(std::istream& in, Node& node) {
  int kind = 0;
  in >> kind >> node.version >> node.size >> node.mode;
  node.kind = static_cast<Kind>(kind);
}

void save(const std::string& file, const std::vector<Thread>& threads) {
  std::ofstream out(file);
  for (const Thread& thread : threads) {
    out << thread.index;
    for (const Node& node : thread.nodes) put(out, node);
    const Change& change = thread.under_way;
    out << ' ' << change.count << ' ' << change.writes << ' ' << change.rewrites;
    for (unsigned i = 0; i < 2; ++i) {
      out << ' ' << change.name[i];
      put(out, change.before[i]);
      put(out, change.after[i]);
    }
    out << '\n';
  }
}

std::vector<Thread> load(const std::string& file) {
  std::vector<Thread> threads;
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    Thread thread;
    fields >> thread.index;
    for (Node& node : thread.nodes) get(fields, node);
    Change& change = thread.under_way;
    fields >> change.count >> change.writes >> change.rewrites;
    for (unsigned i = 0; i < 2; ++i) {
      fields >> change.name[i];
      get(fields, change.before[i]);
      get(fields, change.after[i]);
    }
    threads.push_back(thread);
  }
  return threads;
}

// --- Verification ----------------------------------------------------------------------------------------------------

/// @param contents  whether a file's bytes count.
/// @return          empty, or what differs.
std::string difference(const std::string& path, const Node& node, bool contents) {
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0)
    return node.kind == Kind::kAbsent ? "" : std::string("missing: ") + std::strerror(errno);
  switch (node.kind) {
    case Kind::kAbsent:
      return "there";
    case Kind::kDir:
      if (!S_ISDIR(st.st_mode)) return "no directory";
      break;
    case Kind::kLink: {
      if (!S_ISLNK(st.st_mode)) return "no symbolic link";
      char target[64] = {};
      if (readlink(path.c_str(), target, sizeof target - 1) < 0 || target != "v" + std::to_string(node.version))
        return std::string("the target is ") + target;
      return "";
    }
    case Kind::kFile: {
      if (!S_ISREG(st.st_mode)) return "no file";
      if (static_cast<std::uint64_t>(st.st_size) != node.size) return "size " + std::to_string(st.st_size);
      if (!contents) break;
      std::ifstream in(path, std::ios::binary);
      const std::string have((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      std::string want(node.size, '\0');
      fill(node.version, 0, want);
      if (have != want) return "contents";
      break;
    }
  }
  return (st.st_mode & 07777) == node.mode ? "" : "mode " + std::to_string(st.st_mode & 07777);
}

std::string text_of(const Node& node) {
  std::ostringstream out;
  put(out, node);
  return out.str();
}

/// Whether a file is what the first requests of a write leave.
bool is_part(const std::string& path, const Change& change) {
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) return false;
  Node part = change.after[0];
  part.size = static_cast<std::uint64_t>(st.st_size);
  return part.size >= change.before[0].size && part.size <= change.after[0].size &&
         difference(path, part, !change.rewrites).empty();
}

/// What lies in the tree besides the names that threads have.
std::vector<std::string> strangers(const std::string& dir, std::size_t threads) {
  std::set<std::string> known{dir + "/shared"};
  for (unsigned thread = 0; thread < threads; ++thread) {
    known.insert(dir + "/t" + std::to_string(thread));
    for (unsigned name = 0; name < kNames; ++name) known.insert(path_of(dir, thread, name));
  }
  std::vector<std::string> found;
  const auto look = [&](const std::string& at) {
    for (const auto& entry : std::filesystem::directory_iterator(at)) {
      if (!known.contains(entry.path().string())) found.push_back(entry.path().string());
    }
  };
  look(dir);
  look(dir + "/shared");
  for (unsigned thread = 0; thread < threads; ++thread) look(dir + "/t" + std::to_string(thread));
  return found;
}

int verify(const std::string& dir, const std::vector<Thread>& threads) {
  int wrong = 0;
  const auto complain = [&](const std::string& path, const std::string& text) {
    std::fprintf(stderr, "load: %s: %s\n", path.c_str(), text.c_str());
    ++wrong;
  };
  if (threads.empty()) complain(dir, "nothing is known of it");
  for (const std::string& stranger : strangers(dir, threads.size())) complain(stranger, "nobody made this");
  unsigned before_count = 0, after_count = 0, part_count = 0;
  for (const Thread& thread : threads) {
    const Change& change = thread.under_way;
    const auto is_under_way = [&](unsigned name) {
      for (unsigned i = 0; i < change.count; ++i) {
        if (change.name[i] == name) return true;
      }
      return false;
    };
    for (unsigned name = 0; name < kNames; ++name) {
      if (is_under_way(name)) continue;
      const std::string path = path_of(dir, thread.index, name);
      if (const std::string wrong_there = difference(path, thread.nodes[name], true); !wrong_there.empty())
        complain(path, wrong_there + ", and it should be" + text_of(thread.nodes[name]));
    }
    if (change.count == 0) continue;
    const auto all = [&](const std::array<Node, 2>& nodes, std::string& why) {
      for (unsigned i = 0; i < change.count; ++i) {
        const std::string path = path_of(dir, thread.index, change.name[i]);
        const std::string wrong_there = difference(path, nodes[i], !change.rewrites);
        if (!wrong_there.empty()) {
          why += " [" + wrong_there + " instead of" + text_of(nodes[i]) + "]";
          return false;
        }
      }
      return true;
    };
    std::string why;
    if (all(change.before, why))
      ++before_count;
    else if (all(change.after, why))
      ++after_count;
    else if (change.writes && is_part(path_of(dir, thread.index, change.name[0]), change))
      ++part_count;
    else
      complain(path_of(dir, thread.index, change.name[0]), "neither before nor after the call under way:" + why);
  }
  std::printf("load: of the calls under way %u are not there, %u are, %u writes are in part\n", before_count,
              after_count, part_count);
  return wrong == 0 ? 0 : 1;
}

/// What threads know after so many calls each.
std::vector<Thread> imagine(const std::string& dir, unsigned seed, const std::vector<unsigned long>& calls) {
  std::vector<Thread> threads(calls.size());
  for (unsigned i = 0; i < threads.size(); ++i) {
    threads[i].index = i;
    Worker(dir, threads[i], seed).imagine(calls[i]);
  }
  return threads;
}

/// @param state  a file for what is known at the end; empty: tells of every call instead.
int run(const std::string& dir, const std::string& state, unsigned seed, unsigned count) {
  umask(0);
  std::vector<Thread> threads(count);
  if (mkdir((dir + "/shared").c_str(), 0755) != 0) return std::perror("load: mkdir"), 1;
  for (unsigned i = 0; i < count; ++i) {
    threads[i].index = i;
    if (mkdir((dir + "/t" + std::to_string(i)).c_str(), 0755) != 0) return std::perror("load: mkdir"), 1;
  }
  std::atomic<unsigned long> calls{0};
  std::atomic<bool> good{true};
  {
    std::vector<std::jthread> workers;
    for (Thread& thread : threads) {
      workers.emplace_back([&] {
        Worker worker(dir, thread, seed, state.empty());
        if (!worker.run()) good = false;
        calls += worker.calls();
      });
    }
  }
  if (state.empty()) return good ? 0 : 1;
  save(state, threads);
  std::printf("load: %lu calls returned\n", calls.load());
  return good ? 0 : 1;
}

unsigned number(const char* text) { return static_cast<unsigned>(std::strtoul(text, nullptr, 10)); }

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "run" && argc == 6) return run(argv[2], argv[3], number(argv[4]), number(argv[5]));
  if (command == "verify" && argc == 4) return verify(argv[2], load(argv[3]));
  if (command == "tell" && argc == 5) return run(argv[2], "", number(argv[3]), number(argv[4]));
  if (command == "trust" && argc > 4) {
    std::vector<unsigned long> calls;
    for (int i = 4; i < argc; ++i) calls.push_back(number(argv[i]));
    return verify(argv[2], imagine(argv[2], number(argv[3]), calls));
  }
  std::fprintf(stderr, "load: see the head of load.cc\n");
  return 2;
}
