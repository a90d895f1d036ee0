// Takes one sample in a separate process, which may crash or hang.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "harness/results/sample.h"
#include "harness/results/sample_request.h"

namespace headroom {

struct SampleTask {
  SampleRequest request;
  std::string program = {};  // "" = this program
};

struct TakenSample {
  Sample sample;
  std::chrono::nanoseconds worked{};  // while it was this process's turn
};

// Starts every task's program as `headroom sample`. The processes live at the same time; of those
// that take turns (turns.h), one works while the others sleep. A crash or a timeout is returned as
// a sample with that status and the reason, and the other processes go on; an interrupt returns
// nothing. Throws InputError when a process rejects the request.
std::optional<std::vector<TakenSample>> run_in_children(const std::vector<SampleTask>& tasks,
                                                        std::chrono::seconds timeout);
std::optional<Sample> run_in_child(const SampleRequest& request, std::chrono::seconds timeout);

// The sample that records that this machine cannot run the cell's device; nothing when it can.
std::optional<Sample> unsupported_sample(const Cell& cell);

// Commits a device's memory once in a separate process and frees it. Errors are ignored here,
// because the sample fails in the same way and reports them.
void touch_in_child(const Spec& device);
// The work of that process.
void touch_device_memory(const Spec& device);

// The work of the sample's process: writes the sample as a JSON line to descriptor `result_fd`.
void answer_sample_request(const std::string& request_json, int result_fd);

}  // namespace headroom
