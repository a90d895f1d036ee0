#include "harness/runner/block_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "harness/base/duration.h"
#include "harness/base/sha256.h"
#include "harness/machine/probe.h"
#include "harness/plan/scenario.h"
#include "harness/trace/trace_io.h"

namespace headroom {
namespace {

std::string trace_name(const Experiment& experiment, const Arm& arm) {
  const std::string name = experiment.id + "--" + arm.name;
  std::string slug = name.substr(0, 100);
  for (char& c : slug)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '=' && c != '.') c = '-';
  return fmt::format("traces/{}-{}{}", slug, sha256(name).substr(0, 8), kTraceExtension);
}

}  // namespace

BlockSampler::BlockSampler(RunCost& cost, std::filesystem::path run_directory)
    : cost_(cost), directory_(std::move(run_directory)), cores_(usable_cores()) {}

std::optional<std::vector<TakenSample>> BlockSampler::take(const std::vector<SamplePlace>& places) {
  std::vector<SampleTask> tasks;
  bool noisy = false;
  int timeout_s = 0;
  for (const SamplePlace& one : places) {
    const Arm& arm = one.arm();
    if (std::optional<Sample> sample = unsupported_sample(arm.cell))
      return std::vector<TakenSample>{{.sample = std::move(*sample)}};
    noisy = noisy || !is_exact_cell(arm.cell);
    timeout_s = std::max(timeout_s, one.experiment->timeout_s);
    // One trace per configuration is enough: where bytes are exact, the others have the same.
    const std::string trace =
        one.block->number == 0 ? (directory_ / trace_name(*one.experiment, arm)).string() : "";
    tasks.push_back({.request = {.cell = arm.cell,
                                 .seed = one.block->seed,
                                 .trace_path = trace,
                                 .takes_turns = places.size() > 1 && !is_exact_cell(arm.cell)},
                     .program = arm.program});
  }
  const double before = noisy ? probe() : 0;
  auto taken = run_in_children(tasks, std::chrono::seconds{timeout_s});
  if (!taken) return std::nullopt;
  const double after = noisy ? probe() : 0;
  for (std::size_t n = 0; n < taken->size(); ++n) {
    auto& [sample, worked] = (*taken)[n];
    add_sample(cost_, sample, std::chrono::duration<double>(worked).count());
    sample.probe_before_gflops = before;
    sample.probe_after_gflops = after;
    if (const std::filesystem::path trace = tasks[n].request.trace_path; !trace.empty())
      sample.trace_file =
          std::filesystem::exists(trace) ? trace.lexically_relative(directory_).string() : "";
  }
  return taken;
}

void BlockSampler::touch(const Spec& device) {
  const auto begin = Clock::now();
  touch_in_child(device);
  cost_.first_touch_s += seconds_since(begin);
}

double BlockSampler::probe() {
  const auto begin = Clock::now();
  const double gflops = probe_gflops(cores_);
  cost_.probe_s += seconds_since(begin);
  return gflops;
}

}  // namespace headroom
