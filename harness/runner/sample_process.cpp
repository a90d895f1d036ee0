#include "harness/runner/sample_process.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/base/subprocess.h"
#include "harness/device/device.h"
#include "harness/results/run_info.h"
#include "harness/runner/run_cell.h"

namespace headroom {
namespace {

constexpr int kResultDescriptor = 3;
constexpr Bytes kEnoughToTouch = 8 * kGiB;
constexpr std::chrono::minutes kTouchTimeout{3};

Sample failed(const SampleRequest& request, SampleStatus status, std::string reason) {
  Sample sample;
  sample.cell = request.cell;
  sample.seed = request.seed;
  sample.status = status;
  sample.reason = std::move(reason);
  sample.rules = request.cell.rules;
  sample.started = timestamp_now();
  return sample;
}

// The last output of a process, on one line.
std::string last_words(const std::string& errors) {
  constexpr std::size_t kEnough = 600;
  std::string words = errors.substr(errors.size() > kEnough ? errors.size() - kEnough : 0);
  while (!words.empty() && words.back() == '\n') words.pop_back();
  for (char& c : words)
    if (c == '\n' || c == '\r') c = ' ';
  constexpr std::string_view kOwnName = "headroom: ";
  if (words.starts_with(kOwnName)) words.erase(0, kOwnName.size());
  return words.empty() ? "it said nothing" : words;
}

}  // namespace

std::optional<Sample> unsupported_sample(const Cell& cell) {
  const auto& devices = Registry<DeviceKind>::instance();
  std::string why;
  if (!devices.contains(cell.device.name())) {
    why = fmt::format("device '{}' is not in this build; headroom doctor says what it would need",
                      cell.device.name());
  } else if (const auto& unavailable = devices.find(cell.device.name()).unavailable) {
    why = unavailable();
  }
  if (why.empty()) return std::nullopt;
  return failed({.cell = cell, .seed = 0, .trace_path = ""}, SampleStatus::unsupported, why);
}

std::optional<Sample> run_in_child(const SampleRequest& request, std::chrono::seconds timeout,
                                   const std::string& program) {
  const SubprocessResult child =
      run_subprocess({.argv = {program.empty() ? this_executable().string() : program, "sample",
                               to_json(request), "--result-fd", std::to_string(kResultDescriptor)},
                      .timeout = timeout});
  switch (child.ending) {
    case Ending::interrupted:
      return std::nullopt;
    case Ending::timed_out:
      return failed(request, SampleStatus::timeout,
                    fmt::format("did not end within {} s and was killed; raise timeout_s in the "
                                "suite or claim, or make the cell smaller",
                                timeout.count()));
    case Ending::signalled:
      return failed(request, SampleStatus::crash,
                    fmt::format("ended by {}{}; {}", signal_name(child.code),
                                child.code == SIGKILL ? " (the system does this when memory runs "
                                                        "out: dmesg tells)"
                                                      : "",
                                last_words(child.errors)));
    case Ending::exited:
      break;
  }
  if (child.code == static_cast<int>(ExitCode::usage))
    throw InputError(fmt::format("{}: {}", request.cell.id(), last_words(child.errors)));
  if (child.code != 0)
    return failed(request, SampleStatus::crash,
                  fmt::format("exit status {}; {}", child.code, last_words(child.errors)));
  try {
    Sample sample = sample_from_json(child.results);
    // A build that does not know an axis omits it and has then run another cell.
    if (!program.empty() && sample.cell.id() != request.cell.id())
      return failed(
          request, SampleStatus::unsupported,
          fmt::format("{} does not know all of this cell and ran {}", program, sample.cell.id()));
    return sample;
  } catch (const InputError& error) {
    return failed(request, SampleStatus::crash,
                  fmt::format("left no readable result: {}", error.what()));
  }
}

void touch_in_child(const Spec& device) {
  run_subprocess({.argv = {this_executable().string(), "touch", device.to_string()},
                  .timeout = kTouchTimeout});
}

void touch_device_memory(const Spec& spec) {
  const auto device = Registry<DeviceKind>::instance().find(spec.name()).create(spec);
  DeviceMemory& memory = device->memory();
  memory.free(memory.allocate(std::min(memory.available(), kEnoughToTouch)));
}

void answer_sample_request(const std::string& request_json, int result_fd) {
  // The sample is killed when its runner dies.
  if (result_fd == kResultDescriptor) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const SampleRequest request = sample_request_from_json(request_json);
  const std::string line = to_json(run_cell(request.cell, request.seed, request.trace_path)) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t count = ::write(result_fd, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw InputError(
          fmt::format("descriptor {} cannot be written: {}", result_fd, std::strerror(errno)));
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace headroom
