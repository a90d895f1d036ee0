// Synthetic samples: an experiment with two configurations and figures that each test chooses.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/results/sample.h"

namespace headroom::synthetic {

inline Experiment experiment(const std::string& device = "host", const std::string& id = "C1/x") {
  Experiment result;
  result.id = id;
  result.origin = "C1";
  for (const char* name : {"base", "new"}) {
    Cell cell;
    cell.workload = Spec::parse("resnet(batch=4)");
    cell.device = Spec::parse(device);
    cell.rules = "dense";
    cell.allocator = Spec::parse(name == std::string("base") ? "bfc" : "bfc(growth=on)");
    cell.warmup_steps = 2;
    cell.measured_steps = 4;
    result.arms.push_back({name, cell});
  }
  return result;
}

// A valid sample: 1 ms per step, 100 bytes at every level of memory, a machine at full speed.
inline Sample sample(const Experiment& experiment, const std::string& arm, int block) {
  Sample result;
  result.experiment = experiment.id;
  result.arm = arm;
  result.block = block;
  for (const Arm& candidate : experiment.arms)
    if (candidate.name == arm) result.cell = candidate.cell;
  result.step_time_ns.assign(6, 1'000'000);
  result.stall_time_ns.assign(6, 0);
  result.minor_faults.assign(6, 0);
  result.samples_per_step = 4;
  result.ledger_available = true;
  const Moments moments{100, 100, 100, 100, 100};
  result.ledger.requested = result.ledger.allocated = result.ledger.reserved = moments;
  result.ledger.device_allocations.assign(6, 0);
  result.ledger.device_frees.assign(6, 0);
  result.probe_before_gflops = result.probe_after_gflops = 500;
  return result;
}

inline void set_step_time(Sample& sample, double ns) {
  sample.step_time_ns.assign(sample.step_time_ns.size(), static_cast<std::uint64_t>(ns));
}

// Blocks in which `new` takes exp(effect ± spread) times the time of `base`; the machine drifts.
inline std::vector<Sample> timed_blocks(const Experiment& experiment, int blocks, double effect,
                                        double spread) {
  std::vector<Sample> samples;
  for (int block = 0; block < blocks; ++block) {
    const double drift = 1e8 * (1 + 0.1 * block);
    const double wobble = spread * (block % 2 == 0 ? 1 : -1) * (1 + 0.01 * block);
    samples.push_back(sample(experiment, "base", block));
    set_step_time(samples.back(), drift);
    samples.push_back(sample(experiment, "new", block));
    set_step_time(samples.back(), drift * std::exp(effect + wobble));
  }
  return samples;
}

// Two blocks in which `new` reserves `treatment` bytes at every moment and `base` `baseline`.
inline std::vector<Sample> reserved_blocks(const Experiment& experiment, Bytes baseline,
                                           Bytes treatment) {
  std::vector<Sample> samples;
  for (int block = 0; block < 2; ++block) {
    for (const auto& [arm, bytes] : {std::pair("base", baseline), std::pair("new", treatment)}) {
      samples.push_back(sample(experiment, arm, block));
      samples.back().ledger.reserved = {bytes, bytes, bytes, bytes, bytes};
    }
  }
  return samples;
}

// A claim on cuda with one experiment `x` that has the configurations above.
inline Claim claim(const std::string& device = "host") {
  Claim result;
  result.id = "C1";
  result.title = "A claim made for tests";
  result.statement = "New takes less than base.";
  result.source = {.title = "A test", .section = "1", .date = "", .url = ""};
  result.subject = {"Engine", "cuda", "an engine on a GPU", {"bfc"}};
  result.instead = "Nothing.";
  ClaimExperiment x;
  x.name = "x";
  x.device = Spec::parse(device);
  x.arms = experiment(device).arms;
  result.experiments = {x};
  return result;
}

inline ClaimPart part(PartKind kind, Judge judge, const std::string& metric) {
  ClaimPart result;
  result.name = to_string(kind);
  result.text = "A part made for tests";
  result.kind = kind;
  result.judge = judge;
  result.metrics = {metric};
  result.experiments = {"x"};
  result.baseline = needs_no_baseline(judge) ? "" : "base";
  result.treatment = "new";
  return result;
}

// `value` is an effect: ratio − 1.
inline ClaimPart number(const std::string& metric, double value, double tolerance) {
  ClaimPart result = part(PartKind::number, Judge::ratio, metric);
  result.claimed.value = value;
  result.claimed.direction = value < 0 ? -1 : 1;
  result.claimed.tolerance = tolerance;
  return result;
}

inline ClaimPart direction(const std::string& metric, int sign) {
  ClaimPart result = part(PartKind::direction, Judge::ratio, metric);
  result.claimed.direction = sign;
  return result;
}

inline void append(std::vector<Sample>& samples, std::vector<Sample> more) {
  for (Sample& sample : more) samples.push_back(std::move(sample));
}

}  // namespace headroom::synthetic
