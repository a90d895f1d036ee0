#include "harness/base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "harness/base/duration.h"
#include "harness/base/error.h"
#include "harness/base/interrupt.h"

namespace headroom {
namespace {

constexpr std::size_t kErrorTail = 16 << 10;
constexpr std::chrono::milliseconds kLookForInterrupts{250};

[[noreturn]] void refuse(const char* verb, int reason) {
  const std::string text =
      fmt::format("another program cannot {}: {}", verb, std::strerror(reason));
  if (reason == EMFILE) throw InputError(text + "; raise the limit with ulimit -n 1024");
  throw DeviceError(text);
}

}  // namespace

namespace subprocess_parts {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  int get() const { return number_; }
  void reset() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

struct Pipe {
  Descriptor read_end, write_end;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) refuse("be given a pipe", errno);
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
};

}  // namespace subprocess_parts

using subprocess_parts::Descriptor;
using subprocess_parts::Pipe;

namespace {

// Reads all data available now; closes the descriptor at end of file.
void drain(Descriptor& from, std::string& into) {
  std::array<char, 1 << 14> chunk;
  for (;;) {
    const ssize_t got = ::read(from.get(), chunk.data(), chunk.size());
    if (got > 0) {
      into.append(chunk.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return from.reset();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

// Whether the variable holds no secret, so that a program reading an untrusted file may have it.
bool is_harmless(std::string_view entry) {
  constexpr std::array<std::string_view, 6> kHarmless = {
      "PATH=", "TMPDIR=", "LD_LIBRARY_PATH=", "HOME=", "XDG_CACHE_HOME=", "MPLCONFIGDIR="};
  return std::any_of(kHarmless.begin(), kHarmless.end(),
                     [&](std::string_view name) { return entry.starts_with(name); });
}

// Uses posix_spawn rather than fork because this process may have threads.
pid_t spawn(const Subprocess& subprocess, const std::array<Pipe, 3>& pipes, int turns) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  for (int i = 0; i < 3; ++i)
    posix_spawn_file_actions_adddup2(&actions, pipes[static_cast<std::size_t>(i)].write_end.get(),
                                     i + 1);
  if (turns >= 0) posix_spawn_file_actions_adddup2(&actions, turns, kTurnDescriptor);
  if (!subprocess.directory.empty())
    posix_spawn_file_actions_addchdir_np(&actions, subprocess.directory.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> argv;
  for (const std::string& argument : subprocess.argv)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> environment;
  // getenv returns the first match, so the additions come before the inherited variables.
  for (const std::string& entry : subprocess.environment)
    environment.push_back(const_cast<char*>(entry.c_str()));
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!subprocess.untrusted_input || is_harmless(*entry)) environment.push_back(*entry);
  environment.push_back(nullptr);

  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    throw DeviceError(
        fmt::format("{} cannot be started: {}", subprocess.argv.front(), std::strerror(error)));
  return child;
}

// Returns the child's status from waitpid and kills the rest of its process group.
int end_group(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::kill(-child, SIGKILL);
  return status;
}

}  // namespace

struct RunningSubprocess::State {
  std::chrono::milliseconds timeout;
  std::array<Pipe, 3> pipes;
  Descriptor turns;  // this side of the socket; -1 = the program takes no turns
  pid_t child = 0;
  Descriptor handle;
  Clock::duration waited{};
  bool ended = false;
  SubprocessResult result;

  void collect() {
    const std::array<std::string*, 3> texts = {&result.output, &result.errors, &result.results};
    for (std::size_t i = 0; i < pipes.size(); ++i)
      if (pipes[i].read_end.get() >= 0) drain(pipes[i].read_end, *texts[i]);
    if (result.errors.size() > 2 * kErrorTail)
      result.errors.erase(0, result.errors.size() - kErrorTail);
  }

  void end(Ending ending) {
    if (ending != Ending::exited) ::kill(-child, SIGKILL);
    const int status = end_group(child);
    collect();
    ended = true;
    result.ending = ending;
    if (ending != Ending::exited) return;
    if (WIFSIGNALED(status)) result.ending = Ending::signalled;
    result.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  }
};

RunningSubprocess::RunningSubprocess(const Subprocess& subprocess)
    : state_(std::make_unique<State>()) {
  state_->timeout = subprocess.timeout;
  Descriptor theirs;
  if (subprocess.takes_turns) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
      refuse("be given a socket", errno);
    state_->turns = Descriptor(ends[0]);
    theirs = Descriptor(ends[1]);
  }
  state_->child = spawn(subprocess, state_->pipes, theirs.get());
  for (Pipe& pipe : state_->pipes) pipe.write_end.reset();
  state_->handle = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, state_->child, 0)));
  if (state_->handle.get() < 0) {
    const int reason = errno;
    state_->end(Ending::interrupted);
    refuse("be waited for", reason);
  }
}

RunningSubprocess::~RunningSubprocess() {
  if (!state_->ended) state_->end(Ending::interrupted);
}

std::optional<std::uint64_t> RunningSubprocess::wait() {
  State& state = *state_;
  auto last = Clock::now();
  while (!state.ended) {
    std::array<pollfd, 5> waiting;
    for (std::size_t i = 0; i < state.pipes.size(); ++i)
      waiting[i] = {state.pipes[i].read_end.get(), POLLIN, 0};
    waiting[3] = {state.handle.get(), POLLIN, 0};
    waiting[4] = {state.turns.get(), POLLIN, 0};
    auto patience = kLookForInterrupts;
    if (state.timeout.count() > 0) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(state.timeout - state.waited);
      patience = std::clamp(left, std::chrono::milliseconds{0}, patience);
    }
    const bool heard =
        ::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count())) > 0;
    const auto now = Clock::now();
    state.waited += now - std::exchange(last, now);
    state.collect();
    if (heard && (waiting[3].revents & POLLIN) != 0) {
      state.end(Ending::exited);
    } else if (std::uint64_t word = 0;
               heard && (waiting[4].revents & POLLIN) != 0 &&
               ::recv(state.turns.get(), &word, sizeof word, MSG_DONTWAIT) == sizeof word) {
      return word;
    } else if (state.timeout.count() > 0 && state.waited >= state.timeout) {
      state.end(Ending::timed_out);
    } else if (interrupt_requested()) {
      state.end(Ending::interrupted);
    } else if (heard && (waiting[4].revents & POLLHUP) != 0) {
      state.turns.reset();  // no more turns: wait for the program to end
    }
  }
  return std::nullopt;
}

void RunningSubprocess::give_turn(std::uint64_t steps) {
  ::send(state_->turns.get(), &steps, sizeof steps, MSG_NOSIGNAL);
}

std::chrono::nanoseconds RunningSubprocess::waited() const { return state_->waited; }

const SubprocessResult& RunningSubprocess::result() const { return state_->result; }

void TurnTaker::before_step(std::uint64_t word) {
  if (descriptor_ < 0) return;
  if (steps_left_ == 0) {
    ssize_t got = 0;
    if (::send(descriptor_, &word, sizeof word, MSG_NOSIGNAL) == sizeof word) {
      do got = ::recv(descriptor_, &steps_left_, sizeof steps_left_, 0);
      while (got < 0 && errno == EINTR);
    }
    if (got != sizeof steps_left_ || steps_left_ == 0)
      throw Error("the process that gives turns has gone");
  }
  --steps_left_;
}

SubprocessResult run_subprocess(const Subprocess& subprocess) {
  const InterruptsCaught caught;
  RunningSubprocess running(subprocess);
  while (running.wait()) {
  }
  if (running.result().ending == Ending::interrupted) caught.check();
  return running.result();
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::filesystem::path this_executable() { return std::filesystem::read_symlink("/proc/self/exe"); }

}  // namespace headroom
