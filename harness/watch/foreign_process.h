// A command run as if nobody watched: the terminal, signals and the exit status are its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct ProcessEnd {
  bool known = true;  // not of a process that somebody else started
  int exit_status = 0;
  int signal = 0;  // that ended it; 0: it exited
  // As a shell says it: the exit status, or 128 + the signal.
  int shell_status() const { return signal != 0 ? 128 + signal : exit_status; }
};

// What a started command finds around it.
struct Surroundings {
  std::vector<std::string> environment{};  // "NAME=value", in place of this process's own
  bool output_to_errors = false;           // its standard output goes where its errors go
};

// One at a time: it takes over this process's signals and adopts orphans until it is destroyed.
class ForeignProcess {
 public:
  // Starts argv[0], looked up on PATH. Throws InputError when it cannot be started.
  static ForeignProcess start(const std::vector<std::string>& argv,
                              const Surroundings& surroundings = {});
  // Follows one that runs. Throws InputError when there is none, or it is another user's.
  static ForeignProcess follow(pid_t pid);

  ForeignProcess(ForeignProcess&& other) noexcept;
  ForeignProcess(const ForeignProcess&) = delete;
  ForeignProcess& operator=(const ForeignProcess&) = delete;
  ForeignProcess& operator=(ForeignProcess&&) = delete;
  ~ForeignProcess();

  pid_t pid() const { return pid_; }

  enum class Event { time_is_up, ended, interrupted };
  // Waits, and passes signals on to a started process. `interrupted`: SIGINT or the like came
  // while a process is followed, which does not concern that process.
  Event wait_until(std::chrono::steady_clock::time_point time);
  // Takes note of the children that ended, adopted orphans included; whether others remain.
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

}  // namespace headroom
