#include "count_trace.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <unordered_map>

namespace pmfs::tools {

namespace {

constexpr int kNoTracing = 77;  ///< the child's exit code when it must not be traced

// --- The child's side: a breakpoint instruction marks both ends of a call, with numbers for the tracer in registers ------

constexpr u64 kEndMark = ~u64{0};

void mark(u64 row, u64 part) { asm volatile("int3" : : "D"(row), "S"(part) : "memory"); }

class MarkingMeter final : public Meter {
 public:
  void begin(std::size_t row, Part part) override { mark(row, part == Part::kBaseline ? 1 : 0); }
  void end() override { mark(kEndMark, 0); }
};

[[noreturn]] void run_child(const std::vector<CaseGroup>& groups, unsigned runs, unsigned warm_up) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kNoTracing);
  raise(SIGSTOP);
  int code = 0;
  try {
    MarkingMeter meter;
    run_cases(groups, runs, warm_up, meter);
  } catch (const std::exception& error) {
    fmt::print(stderr, "pmfs: count: in the traced process: {}\n", error.what());
    code = 1;
  }
  std::fflush(stderr);
  _exit(code);
}

// --- The tracer's side ----------------------------------------------------------------------------------------------------

enum class Instruction : u8 { kOther, kSfence, kBreakpoint };

class Stepper {
 public:
  explicit Stepper(pid_t child) : child_(child) {}

  /// Steps until the next instruction is a breakpoint. REQUIRES: the child has stopped behind one.
  i64 count_sfences() {
    i64 sfences = 0;
    for (;;) {
      const Instruction next = instruction_at(instruction_pointer());
      if (next == Instruction::kBreakpoint) return sfences;
      if (next == Instruction::kSfence) ++sfences;
      step();
    }
  }

 private:
  u64 instruction_pointer() const {
    errno = 0;
    const long at = ptrace(PTRACE_PEEKUSER, child_, offsetof(struct user, regs.rip), nullptr);
    if (errno != 0) throw std::runtime_error("its registers cannot be read");
    return static_cast<u64>(at);
  }

  /// Looked at once for each address: nothing here writes code while it runs.
  Instruction instruction_at(u64 at) {
    const auto [slot, fresh] = known_.try_emplace(at, Instruction::kOther);
    if (!fresh) return slot->second;
    errno = 0;
    const long word = ptrace(PTRACE_PEEKTEXT, child_, at, nullptr);
    if (errno != 0) throw std::runtime_error("its code cannot be read");
    const u64 bytes = static_cast<u64>(word);
    if ((bytes & 0xffu) == 0xccu) slot->second = Instruction::kBreakpoint;         // int3
    if ((bytes & 0xffffffu) == 0xf8ae0fu) slot->second = Instruction::kSfence;     // 0f ae f8
    return slot->second;
  }

  void step() const {
    int signal_number = 0;
    for (;;) {
      if (ptrace(PTRACE_SINGLESTEP, child_, nullptr, signal_number) != 0) throw std::runtime_error("it cannot be stepped");
      int status = 0;
      if (waitpid(child_, &status, 0) != child_ || !WIFSTOPPED(status)) throw std::runtime_error("it ended in a call");
      if (WSTOPSIG(status) == SIGTRAP) return;
      signal_number = WSTOPSIG(status);  // a signal of its own: pass it on
    }
  }

  const pid_t child_;
  std::unordered_map<u64, Instruction> known_;
};

/// Tracer and child take turns, so on one processor a turn costs no wake-up of another. Returns what to go back to.
cpu_set_t share_one_processor(pid_t child) {
  cpu_set_t before;
  CPU_ZERO(&before);
  if (sched_getaffinity(0, sizeof before, &before) != 0) return before;
  cpu_set_t one;
  CPU_ZERO(&one);
  const int here = sched_getcpu();
  CPU_SET(static_cast<std::size_t>(here < 0 ? 0 : here), &one);
  (void)sched_setaffinity(0, sizeof one, &one);
  (void)sched_setaffinity(child, sizeof one, &one);
  return before;
}

}  // namespace

SfenceTracer::SfenceTracer(const std::vector<CaseGroup>& groups, unsigned runs, unsigned warm_up) {
  std::fflush(nullptr);
  child_ = fork();
  if (child_ == 0) run_child(groups, runs, warm_up);
  if (child_ < 0) {
    why_ = fmt::format("no second process could be started: {}", std::strerror(errno));
    return;
  }
  int status = 0;
  if (waitpid(child_, &status, 0) == child_ && WIFSTOPPED(status)) {
    if (ptrace(PTRACE_SETOPTIONS, child_, nullptr, PTRACE_O_EXITKILL) == 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, &status, 0);
  }
  child_ = -1;
  why_ = "this system does not permit tracing a child process (ptrace)";
}

SfenceTracer::~SfenceTracer() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  int status = 0;
  while (waitpid(child_, &status, 0) == child_ && !WIFEXITED(status) && !WIFSIGNALED(status)) {
  }
}

std::vector<TracedRow> SfenceTracer::finish() {
  if (child_ <= 0) return {};
  std::vector<TracedRow> rows;
  const cpu_set_t before = share_one_processor(child_);
  try {
    Stepper stepper(child_);
    int signal_number = 0;
    for (;;) {
      if (ptrace(PTRACE_CONT, child_, nullptr, signal_number) != 0) throw std::runtime_error("it cannot be continued");
      signal_number = 0;
      int status = 0;
      if (waitpid(child_, &status, 0) != child_) throw std::runtime_error("it is lost");
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        child_ = -1;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
        throw std::runtime_error("it failed");
      }
      if (WSTOPSIG(status) != SIGTRAP) {
        signal_number = WSTOPSIG(status);
        continue;
      }
      struct user_regs_struct regs {};
      if (ptrace(PTRACE_GETREGS, child_, nullptr, &regs) != 0) throw std::runtime_error("its registers cannot be read");
      if (regs.rdi == kEndMark) continue;
      if (rows.size() <= regs.rdi) rows.resize(regs.rdi + 1);
      TracedRow& row = rows[regs.rdi];
      (regs.rsi == 1 ? row.baseline : row.run).push_back(stepper.count_sfences());
    }
  } catch (const std::runtime_error& error) {
    why_ = fmt::format("the traced process: {}", error.what());
    rows.clear();
  }
  (void)sched_setaffinity(0, sizeof before, &before);
  return rows;
}

}  // namespace pmfs::tools
