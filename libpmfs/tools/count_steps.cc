#include "count_steps.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "host_fd.h"

namespace pmfs::tools {

namespace {

/// One measured call, as the child sends it to its parent.
struct StepCount {
  u64 row = 0;
  u64 part = 0;
  i64 sfences = 0;  ///< kDiscard: the one sent before does not count
};
constexpr i64 kDiscard = -1;

// --- The child's side
// -----------------------------------------------------------------------------------------------------

constexpr u8 kSfence[] = {0x0f, 0xae, 0xf8};
constexpr greg_t kTrapFlag = 0x100;

volatile sig_atomic_t stepping = 0;  ///< the trap flag is set
volatile sig_atomic_t wanted = 0;    ///< it is to be
volatile i64 sfences_seen = 0;

/// The first signal of a call is raised by begin() and sets the trap flag; from then on this is called in front of
/// every instruction, until the one behind end()'s store to `wanted`.
void on_trap(int, siginfo_t*, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (stepping == 0 || wanted == 0) {
    stepping = wanted;
    registers[REG_EFL] = wanted != 0 ? registers[REG_EFL] | kTrapFlag : registers[REG_EFL] & ~kTrapFlag;
    return;
  }
  const auto* const next = reinterpret_cast<const u8*>(registers[REG_RIP]);
  if (next[0] == kSfence[0] && next[1] == kSfence[1] && next[2] == kSfence[2]) sfences_seen = sfences_seen + 1;
}

class SteppingMeter final : public Meter {
 public:
  explicit SteppingMeter(int result_fd) : result_fd_(result_fd) {
    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTRAP, &action, nullptr);
  }

  void begin(std::size_t row, Part part) override {
    count_.row = row;
    count_.part = part == Part::kRun ? 0 : 1;
    sfences_seen = 0;
    wanted = 1;
    raise(SIGTRAP);
  }

  void end() override {
    wanted = 0;
    send(sfences_seen);
  }

  void discard() override { send(kDiscard); }

 private:
  void send(i64 sfences) {
    count_.sfences = sfences;
    if (write_all(result_fd_, std::as_bytes(std::span(&count_, 1))) != 0) _exit(1);
  }

  const int result_fd_;
  StepCount count_;
};

[[noreturn]] void run_child(const std::vector<CaseGroup>& groups, unsigned runs, unsigned warm_up, int result_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 0;
  try {
    SteppingMeter meter(result_fd);
    run_cases(groups, runs, warm_up, meter);
  } catch (const std::exception& error) {
    fmt::print(stderr, "pmfs: count: in the stepped process: {}\n", error.what());
    code = 1;
  }
  std::fflush(stderr);
  _exit(code);
}

}  // namespace

std::vector<SteppedRow> count_sfences(const std::vector<CaseGroup>& groups, unsigned runs, unsigned warm_up,
                                      std::string& why) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    why = fmt::format("no pipe could be made: {}", std::strerror(errno));
    return {};
  }
  HostFd results(ends[0]);
  HostFd child_end(ends[1]);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) run_child(groups, runs, warm_up, child_end.get());
  if (child < 0) {
    why = fmt::format("no second process could be started: {}", std::strerror(errno));
    return {};
  }
  child_end = HostFd();

  std::vector<SteppedRow> rows;
  StepCount count;
  std::size_t got = 0;
  while (read_full(results.get(), std::as_writable_bytes(std::span(&count, 1)), got) == 0 && got == sizeof count) {
    if (rows.size() <= count.row) rows.resize(count.row + 1);
    std::vector<i64>& counts = count.part == 0 ? rows[count.row].run : rows[count.row].baseline;
    if (count.sfences != kDiscard) {
      counts.push_back(count.sfences);
    } else if (!counts.empty()) {
      counts.pop_back();
    }
  }

  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return rows;
  why = WIFSIGNALED(status) ? fmt::format("the stepped process was ended by signal {}", WTERMSIG(status))
                            : "the stepped process failed";
  return {};
}

}  // namespace pmfs::tools
