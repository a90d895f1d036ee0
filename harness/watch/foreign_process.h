// Runs a command as if it were not watched: it keeps the terminal, signals and exit status.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct ProcessEnd {
  bool known = true;  // false for a process that was not started here
  int exit_status = 0;
  int signal = 0;  // the signal that ended it; 0: it exited
  // The status that a shell reports: the exit status, or 128 + the signal.
  int shell_status() const { return signal != 0 ? 128 + signal : exit_status; }
};

// The environment and output of a started command.
struct Surroundings {
  std::vector<std::string> environment{};  // "NAME=value", in place of this process's own
  bool output_to_errors = false;           // standard output is redirected to standard error
  std::string output_file{};               // receives standard output and error; "" = none
};

// At most one may exist at a time: it takes over this process's signals and adopts orphans until it
// is destroyed.
class ForeignProcess {
 public:
  // Starts argv[0], looked up on PATH. Throws InputError when it cannot be started.
  static ForeignProcess start(const std::vector<std::string>& argv,
                              const Surroundings& surroundings = {});
  // Follows a running process. Throws InputError when there is none, or when it is another user's.
  static ForeignProcess follow(pid_t pid);

  ForeignProcess(ForeignProcess&& other) noexcept;
  ForeignProcess(const ForeignProcess&) = delete;
  ForeignProcess& operator=(const ForeignProcess&) = delete;
  ForeignProcess& operator=(ForeignProcess&&) = delete;
  ~ForeignProcess();

  pid_t pid() const { return pid_; }

  enum class Event { time_is_up, ended, interrupted };
  // Waits, and passes signals on to a started process. Returns `interrupted` when SIGINT or a
  // similar signal arrived while a process is only followed; that process does not receive it.
  Event wait_until(std::chrono::steady_clock::time_point time);
  // Reaps the children that ended, adopted orphans included. Returns whether others remain.
  bool reap();
  const ProcessEnd& end() const { return end_; }

 private:
  ForeignProcess(pid_t pid, bool is_child);
  Event handle_signals();

  pid_t pid_;
  bool is_child_;
  int signals_ = -1;  // signalfd
  int process_ = -1;  // pidfd
  ProcessEnd end_;
};

// Starts argv[0] like ForeignProcess::start() and waits for its end. Returns the status that a
// shell reports.
int run_to_its_end(const std::vector<std::string>& argv, const Surroundings& surroundings);

}  // namespace headroom
