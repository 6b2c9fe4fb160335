// For resume.sh: ends a command at a place that a count decides, not a clock.
//   interrupt_at count COMMAND...        runs it, and writes to descriptor 3 how many system calls it has made
//   interrupt_at SIGNAL N COMMAND...     sends it the signal (a number) at the beginning of its N-th system call
// @return the command's exit code, or 128 and the number of the signal that ended it.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  const bool counting = argc > 2 && std::strcmp(argv[1], "count") == 0;
  if (!counting && argc < 4) return 2;
  const int number = counting ? 0 : std::atoi(argv[1]);
  const long at = counting ? 0 : std::atol(argv[2]);
  char** const command = argv + (counting ? 2 : 3);

  const pid_t child = fork();
  if (child == 0) {
    signal(SIGINT, SIG_DFL);  // a script in the background ignores it
    signal(SIGTERM, SIG_DFL);
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
    raise(SIGSTOP);
    execv(command[0], command);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);  // the SIGSTOP
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  long calls = 0;
  bool entering = true;
  int pass_on = 0;
  for (;;) {
    ptrace(PTRACE_SYSCALL, child, nullptr, pass_on);
    pass_on = 0;
    if (waitpid(child, &status, 0) < 0) return 1;
    if (WIFEXITED(status) || WIFSIGNALED(status)) break;
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      if (entering && ++calls == at) kill(child, number);
      entering = !entering;
    } else if (WSTOPSIG(status) != SIGTRAP) {
      pass_on = WSTOPSIG(status);
    }
  }
  if (counting) dprintf(3, "%ld\n", calls);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
