#include "harness/runner/sample_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/interrupt.h"
#include "harness/base/registry.h"
#include "harness/base/subprocess.h"
#include "harness/device/device.h"
#include "harness/plan/scenario.h"
#include "harness/results/run_info.h"
#include "harness/runner/run_cell.h"
#include "harness/runner/turns.h"

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
  return words.empty() ? "it printed nothing" : words;
}

// The sample that a process left when it ended.
Sample sample_of(const SampleRequest& request, const std::string& program,
                 const SubprocessResult& child, std::chrono::seconds timeout) {
  switch (child.ending) {
    case Ending::timed_out:
      return failed(request, SampleStatus::timeout,
                    fmt::format("did not end within {} s and was killed; increase timeout_s in the "
                                "suite or claim, or make the configuration smaller",
                                timeout.count()));
    case Ending::signalled:
      return failed(request, SampleStatus::crash,
                    fmt::format("ended by {}{}; {}", signal_name(child.code),
                                child.code == SIGKILL ? " (the kernel does this when memory runs "
                                                        "out; dmesg shows it)"
                                                      : "",
                                last_words(child.errors)));
    case Ending::interrupted:
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
      return failed(request, SampleStatus::unsupported,
                    fmt::format("{} does not know all of this configuration and ran {}", program,
                                sample.cell.id()));
    return sample;
  } catch (const InputError& error) {
    return failed(request, SampleStatus::crash,
                  fmt::format("left no readable result: {}", error.what()));
  }
}

bool has_no_reader(int pipe) {
  pollfd end{.fd = pipe, .events = 0, .revents = 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0;
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
  if (why.empty()) why = unavailable_scenario(cell.scenario).value_or("");
  if (why.empty()) return std::nullopt;
  return failed({.cell = cell, .seed = 0, .trace_path = ""}, SampleStatus::unsupported, why);
}

std::optional<std::vector<TakenSample>> run_in_children(const std::vector<SampleTask>& tasks,
                                                        std::chrono::seconds timeout) {
  const InterruptsCaught caught;
  const auto interrupted = [&](const RunningSubprocess& child) {
    if (child.result().ending != Ending::interrupted) return false;
    caught.check();
    return true;
  };
  std::vector<std::unique_ptr<RunningSubprocess>> children;
  std::vector<Turns> turns(tasks.size());
  std::set<std::size_t> living;
  auto fastest = std::chrono::nanoseconds::max();
  // Processes that take turns set up and warm up one after the other, each in its first turn.
  for (const auto& [request, program] : tasks) {
    children.push_back(std::make_unique<RunningSubprocess>(
        Subprocess{.argv = {program.empty() ? this_executable().string() : program, "sample",
                            to_json(request), "--result-fd", std::to_string(kResultDescriptor)},
                   .timeout = timeout,
                   .takes_turns = request.takes_turns}));
    if (!request.takes_turns) continue;
    if (const auto step_ns = children.back()->wait()) {
      living.insert(children.size() - 1);
      fastest = std::min(fastest, std::chrono::nanoseconds{*step_ns});
    }
    if (interrupted(*children.back())) return std::nullopt;
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].request.takes_turns) continue;
    children[i]->wait();
    if (interrupted(*children[i])) return std::nullopt;
  }
  int turn = 0;
  for (std::size_t round = 0; !living.empty(); ++round) {
    for (const std::size_t i : turn_order(tasks.front().request.seed, tasks.size(), round)) {
      if (!living.contains(i)) continue;
      turns[i].steps = steps_per_turn(fastest, tasks[i].request.cell.measured_steps);
      turns[i].numbers.push_back(turn++);
      children[i]->give_turn(turns[i].steps);
      if (!children[i]->wait()) living.erase(i);
      if (interrupted(*children[i])) return std::nullopt;
    }
  }
  std::vector<TakenSample> taken;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto& [request, program] = tasks[i];
    taken.push_back({.sample = sample_of(request, program, children[i]->result(), timeout),
                     .worked = children[i]->waited()});
    taken.back().sample.turns = std::move(turns[i]);
  }
  return taken;
}

std::optional<Sample> run_in_child(const SampleRequest& request, std::chrono::seconds timeout) {
  auto taken = run_in_children({{.request = request}}, timeout);
  if (!taken) return std::nullopt;
  return std::move(taken->front().sample);
}

void touch_in_child(const Spec& device) {
  run_subprocess({.argv = {this_executable().string(), "touch", device.to_string()},
                  .timeout = kTouchTimeout});
}

void touch_device_memory(const Spec& spec) {
  const auto device = make_device(spec);
  DeviceMemory& memory = device->memory();
  memory.free(memory.allocate(std::min(memory.available(), kEnoughToTouch)));
}

void answer_sample_request(const std::string& request_json, int result_fd) {
  if (result_fd == kResultDescriptor) {
    // The sample is killed when its runner dies. A runner that died while this process was starting
    // sends no signal.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (has_no_reader(result_fd)) throw InputError("the run that asked for this sample has ended");
  }
  const SampleRequest request = sample_request_from_json(request_json);
  const std::string line =
      to_json(run_cell(request.cell, request.seed, request.trace_path,
                       TurnTaker(request.takes_turns ? kTurnDescriptor : -1))) +
      "\n";
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
