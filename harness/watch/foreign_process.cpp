#include "harness/watch/foreign_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "harness/base/error.h"

namespace headroom {
namespace {

constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kPassedOn) {
    // Signals that are ignored (nohup, a shell's background jobs) stay ignored, here and in the
    // command.
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  sigaddset(&set, SIGCHLD);
  return set;
}

// This process's environment, with the given variables in place of those of the same name.
std::vector<std::string> environment_with(const std::vector<std::string>& given) {
  std::vector<std::string> result = given;
  const auto is_given = [&](const std::string& entry) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    return std::any_of(given.begin(), given.end(),
                       [&](const std::string& other) { return other.starts_with(name); });
  };
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_given(*entry)) result.emplace_back(*entry);
  return result;
}

// Pointers for C functions, ending with null; valid as long as `texts`.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Says why a file cannot be started (`error` as in errno), and what to do.
std::string reason_and_mend(const std::string& file, int error) {
  const bool is_there = std::filesystem::exists(file);
  if (is_there && file.ends_with(".py"))
    return fmt::format("{}; write python3 {}", std::strerror(error), file);
  if (is_there && error == ENOENT && file.find('/') != std::string::npos)
    return "the interpreter that its first line names is not there; write another one before the "
           "file";
  return fmt::format("{}; check the command after --", std::strerror(error));
}

// Starts the command in this process's group, so that keys of the terminal reach it as usual.
pid_t spawn(const std::vector<std::string>& argv, const Surroundings& surroundings) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGXFSZ);  // main ignores it in this process
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (surroundings.output_to_errors)
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  if (!surroundings.output_file.empty()) {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, surroundings.output_file.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0666);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  }
  const std::vector<std::string> environment = environment_with(surroundings.environment);
  const std::vector<char*> arguments = pointers(argv), variables = pointers(environment);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &files, &attributes, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    throw InputError(fmt::format("{} cannot be started: {}", argv.front(),
                                 reason_and_mend(argv.front(), error)));
  return child;
}

}  // namespace

ForeignProcess::ForeignProcess(pid_t pid, bool is_child) : pid_(pid), is_child_(is_child) {
  const sigset_t set = watched_signals();
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  process_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  end_.known = is_child;
}

ForeignProcess::ForeignProcess(ForeignProcess&& other) noexcept
    : pid_(other.pid_),
      is_child_(other.is_child_),
      signals_(std::exchange(other.signals_, -1)),
      process_(std::exchange(other.process_, -1)),
      end_(other.end_) {}

ForeignProcess::~ForeignProcess() {
  if (process_ >= 0) ::close(process_);
  if (signals_ < 0) return;
  ::close(signals_);
  const sigset_t set = watched_signals();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

ForeignProcess ForeignProcess::start(const std::vector<std::string>& argv,
                                     const Surroundings& surroundings) {
  const sigset_t set = watched_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  // Workers whose parent died are adopted by this process, so that they remain visible.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  try {
    return {spawn(argv, surroundings), true};
  } catch (...) {
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    throw;
  }
}

ForeignProcess ForeignProcess::follow(pid_t pid) {
  if (::kill(pid, 0) != 0)
    throw InputError(errno == EPERM
                         ? fmt::format("--pid {}: belongs to another user; watch as that user", pid)
                         : fmt::format("--pid {}: there is no such process", pid));
  const sigset_t set = watched_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return {pid, false};
}

ForeignProcess::Event ForeignProcess::wait_until(std::chrono::steady_clock::time_point time) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(time - std::chrono::steady_clock::now());
    std::array<pollfd, 2> waiting = {pollfd{process_, POLLIN, 0}, pollfd{signals_, POLLIN, 0}};
    const int ready = ::poll(waiting.data(), waiting.size(),
                             static_cast<int>(std::clamp<long long>(left.count(), 0, 60'000)));
    if (ready < 0 && errno == EINTR) continue;
    if ((waiting[1].revents & POLLIN) != 0 && handle_signals() == Event::interrupted)
      return Event::interrupted;
    if ((waiting[0].revents & POLLIN) != 0) {
      reap();
      return Event::ended;
    }
    if (ready == 0 && left.count() <= 60'000) return Event::time_is_up;
  }
}

ForeignProcess::Event ForeignProcess::handle_signals() {
  signalfd_siginfo info{};
  Event event = Event::time_is_up;
  while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      reap();
    } else if (!is_child_) {
      event = Event::interrupted;
    } else if (info.ssi_code != SI_KERNEL) {
      // A signal from the terminal (the kernel) has already reached the command, which is in this
      // group.
      ::kill(pid_, signal);
    }
  }
  return event;
}

bool ForeignProcess::reap() {
  if (!is_child_) return false;
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (ended != pid_) continue;
    end_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end_.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  }
  return ended == 0;
}

int run_to_its_end(const std::vector<std::string>& argv, const Surroundings& surroundings) {
  ForeignProcess process = ForeignProcess::start(argv, surroundings);
  while (process.wait_until(std::chrono::steady_clock::now() + std::chrono::hours{1}) !=
         ForeignProcess::Event::ended) {
  }
  return process.end().shell_status();
}

}  // namespace headroom
