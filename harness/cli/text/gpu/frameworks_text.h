// The memory that the frameworks of a program report, in words.
#pragma once

#include <string>
#include <vector>

#include "harness/virtual_gpu/outcome.h"

namespace headroom {

// For example "5 optimizer steps of PyTorch 2.15.0".
std::string steps_of(const virtual_gpu::Outcome& outcome);
// For example "after 5 optimizer steps of PyTorch 2.15.0".
std::string when_it_ended(const virtual_gpu::Outcome& outcome);
// Tells how a command ended that --until-step had stopped, if its exit status is not 0; else "".
std::string after_stop_text(const virtual_gpu::Outcome& outcome, int exit_status);
// A line with the error that ended the program, if a framework noted it, and one that says what
// would mend it, if that is known; else "".
std::string why_it_failed(const virtual_gpu::Outcome& outcome);
// The message of the framework that ran out of memory, and the line of the program; "" if none did.
std::string why_out_of_memory(const virtual_gpu::Outcome& outcome);
// Several lines about one GPU or the CPU: the peak, and what held it.
std::string device_text(const virtual_gpu::FrameworkUse& use);
// The same about all GPUs of all processes; those that are alike are told once.
std::string devices_text(const std::vector<virtual_gpu::Framework>& frameworks);

}  // namespace headroom
