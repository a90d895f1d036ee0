// One sample in a process of its own, whatever becomes of that process.
#pragma once

#include <chrono>
#include <optional>

#include "harness/results/sample.h"
#include "harness/results/sample_request.h"

namespace headroom {

// Starts `program` ("": this one again) as `headroom sample`. A crash or a timeout comes back as a
// sample of that status with the reason; nothing when an interrupt ended it. Throws InputError when
// the process found the request itself wrong.
std::optional<Sample> run_in_child(const SampleRequest& request, std::chrono::seconds timeout,
                                   const std::string& program);

// The sample of a cell whose device this machine cannot run; nothing when it can.
std::optional<Sample> unsupported_sample(const Cell& cell);

// Commits a device's memory once, in a process of its own, and gives it back. What fails in there
// fails again, and is told, where it matters.
void touch_in_child(const Spec& device);
// What that process does.
void touch_device_memory(const Spec& device);

// What the started process does: the sample's JSON line goes to descriptor `result_fd`.
void answer_sample_request(const std::string& request_json, int result_fd);

}  // namespace headroom
