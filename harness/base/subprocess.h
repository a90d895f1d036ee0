// Runs another program in its own process group and collects its output.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace headroom {

struct Subprocess {
  std::vector<std::string> argv;           // argv[0] is looked up on PATH
  std::chrono::milliseconds timeout{0};    // then the whole group is killed; 0 = never
  std::vector<std::string> environment{};  // "NAME=value", added to this process's environment
  std::filesystem::path directory{};       // working directory; "" = this process's own
};

enum class Ending { exited, signalled, timed_out, interrupted };

struct SubprocessResult {
  Ending ending = Ending::exited;
  int code = 0;         // exit status, or the signal's number
  std::string output;   // descriptor 1
  std::string errors;   // descriptor 2, its last 16 KiB
  std::string results;  // descriptor 3: separate from what libraries print
};

// Throws DeviceError when the program cannot be started, and InputError when this process may not
// open the files it takes. Standard input is empty. An interrupt of this process kills the group as
// a timeout does; where no outer scope records interrupts (interrupt.h), Interrupted is thrown
// then.
SubprocessResult run_subprocess(const Subprocess& subprocess);

std::string signal_name(int signal);  // "SIGSEGV"
std::filesystem::path this_executable();

}  // namespace headroom
