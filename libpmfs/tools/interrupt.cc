#include "interrupt.h"

namespace pmfs::tools {

namespace {

volatile std::sig_atomic_t received = 0;

extern "C" void remember_signal(int number) { received = number; }

void catch_once(int number, struct sigaction& before) {
  sigaction(number, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = remember_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(number, &action, nullptr);
}

}  // namespace

Interruptible::Interruptible() {
  received = 0;
  catch_once(SIGINT, before_int_);
  catch_once(SIGTERM, before_term_);
}

Interruptible::~Interruptible() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

int Interruptible::signal() { return received; }

}  // namespace pmfs::tools
