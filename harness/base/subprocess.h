// Runs another program in its own process group and collects its output.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct Subprocess {
  std::vector<std::string> argv;           // argv[0] is looked up on PATH
  std::chrono::milliseconds timeout{0};    // then the whole group is killed; 0 = never
  std::vector<std::string> environment{};  // "NAME=value", added to this process's environment
  bool untrusted_input = false;  // gets only those variables of this process that any program needs
  std::filesystem::path directory{};  // working directory; "" = this process's own
  bool takes_turns = false;           // has a TurnTaker on descriptor kTurnDescriptor
};

inline constexpr int kTurnDescriptor = 4;

enum class Ending { exited, signalled, timed_out, interrupted };

struct SubprocessResult {
  Ending ending = Ending::exited;
  int code = 0;         // exit status, or the signal's number
  std::string output;   // descriptor 1
  std::string errors;   // descriptor 2, its last 16 KiB
  std::string results;  // descriptor 3: separate from what libraries print
};

// A program that has been started. The destructor kills its group.
class RunningSubprocess {
 public:
  // Throws DeviceError when the program cannot be started, and InputError when this process may not
  // open the files it takes. Standard input is empty.
  explicit RunningSubprocess(const Subprocess& subprocess);
  ~RunningSubprocess();
  RunningSubprocess(const RunningSubprocess&) = delete;
  RunningSubprocess& operator=(const RunningSubprocess&) = delete;

  // Waits until the program passes its turn and returns what it said, or returns nothing when it
  // has ended. The timeout counts only time spent here. An interrupt of this process kills the
  // group as a timeout does.
  std::optional<std::uint64_t> wait();
  // Gives the program its next turn. A program that has died meanwhile is noticed by wait().
  void give_turn(std::uint64_t steps);
  const SubprocessResult& result() const;   // complete when wait() has returned nothing
  std::chrono::nanoseconds waited() const;  // time spent in wait()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The program's own side of its turns: it sleeps while it is not its turn.
class TurnTaker {
 public:
  // Descriptor -1: every turn lasts until the end.
  explicit TurnTaker(int descriptor = -1) : descriptor_(descriptor) {}
  int descriptor() const { return descriptor_; }  // programs that this one starts inherit it
  // To be called before every step that belongs to a turn. When the steps of a turn are used up,
  // passes the turn on with `word` and returns when the next one begins. Throws Error when the
  // process that gives turns has gone.
  void before_step(std::uint64_t word);

 private:
  int descriptor_;
  std::uint64_t steps_left_ = 0;
};

// Starts a program and waits until it has ended. Where no outer scope records interrupts
// (interrupt.h), Interrupted is thrown after one.
SubprocessResult run_subprocess(const Subprocess& subprocess);

std::string signal_name(int signal);  // "SIGSEGV"
std::filesystem::path this_executable();

}  // namespace headroom
