// Samples with every field filled at random, for properties that hold for any sample.
#pragma once

#include <cstdint>
#include <random>

#include "harness/results/sample.h"

namespace headroom {

class RandomSample {
 public:
  explicit RandomSample(std::uint64_t seed) : random_(seed) {}

  Sample operator()() {
    Sample sample;
    sample.experiment = "suite/a point";
    sample.arm = "bfc(growth=on)";
    sample.block = static_cast<int>(number(20));
    sample.order_index = static_cast<int>(number(3));
    sample.cell.workload = Spec::parse("resnet(batch=8,depth=18)");
    sample.cell.device = Spec::parse("host(capacity=1GiB)");
    sample.cell.rules = "onednn";
    sample.cell.allocator = Spec::parse("bfc(growth=on)");
    sample.cell.warmup_steps = 1;
    sample.cell.measured_steps = 3;
    sample.rules = "onednn(2.6.3,avx2,threads=2)";
    sample.seed = number(1ULL << 53);
    sample.started = "2024-05-06T07:08:09Z";
    for (int step = 0; step < 4; ++step) {
      sample.step_time_ns.push_back(1 + number(1'000'000'000));
      sample.stall_time_ns.push_back(number(1000));
      sample.minor_faults.push_back(number(1000));
      sample.loss.push_back(fraction());
      sample.ledger.device_allocations.push_back(number(10));
      sample.ledger.device_frees.push_back(number(10));
    }
    sample.setup_ns = number(1'000'000'000);
    sample.device_setup_ns = number(1'000'000'000);
    sample.held_out_accuracy = fraction();
    sample.zero_weight_share = fraction();
    sample.samples_per_step = 8;
    sample.flops_per_step = 1e9 * fraction();
    sample.recomputed_ops_per_step = 3;
    sample.parameter_count = 1000;
    sample.ledger_available = true;
    add_ledger(sample.ledger);
    sample.lower_bound_bytes = bytes();
    sample.process = {.resident = moments(), .baseline = bytes()};
    sample.driver = {.used = moments(), .baseline = bytes(), .process = moments()};
    sample.witness = {.available = true,
                      .heap_live_bytes = bytes(),
                      .heap_peak_bytes = bytes(),
                      .heap_allocations_per_step = number(100)};
    sample.pipeline = pipeline();
    sample.probe_before_gflops = 100 + fraction();
    sample.probe_after_gflops = 100 + fraction();
    sample.cpu_wait_ns = number(1000);
    sample.turns = {.steps = 2, .numbers = {0, 3}};
    sample.why_no_turns = "no room";
    sample.recording = {.ns_per_event = 1.5 + number(30),
                        .events = number(1000),
                        .steady_events = number(500),
                        .bytes = number(100'000)};
    sample.trace_file = "traces/a.hrtrace";
    return sample;
  }

  OutOfMemoryReport out_of_memory() {
    return {.requested_bytes = bytes(),
            .capacity_bytes = bytes(),
            .reserved_bytes = bytes(),
            .allocated_bytes = bytes(),
            .free_bytes = bytes(),
            .largest_free_bytes = bytes(),
            .allocator = "bfc"};
  }

 private:
  std::uint64_t number(std::uint64_t below) { return random_() % below; }
  double fraction() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  Bytes bytes() { return 1 + number(Bytes{1} << 40); }
  Moments moments() {
    return {.initial = bytes(),
            .after_step_1 = bytes(),
            .warmup_peak = bytes(),
            .steady_peak = bytes(),
            .overall_peak = bytes()};
  }

  void add_ledger(Ledger& ledger) {
    ledger.requested = moments();
    ledger.allocated = moments();
    ledger.reserved = moments();
    for (PhasePeaks& peaks : ledger.phase_peaks)
      peaks = {.requested = bytes(), .allocated = bytes(), .reserved = bytes()};
    for (Bytes& role : ledger.requested_at_peak) role = bytes();
    ledger.internal_fragmentation = fraction();
    ledger.external_fragmentation = fraction();
    ledger.utilisation = fraction();
  }

  PipelineRecord pipeline() {
    PipelineRecord pipeline;
    pipeline.stages = {{.name = "prefetch(2)",
                        .elements = number(100),
                        .wait_ns = number(1'000'000),
                        .host_bytes_peak = bytes(),
                        .counters = {{"depth", 2}}},
                       {.name = "direct", .elements = number(100)}};
    pipeline.host_bytes_after_step = {bytes(), bytes(), bytes(), bytes()};
    return pipeline;
  }

  std::mt19937_64 random_;
};

}  // namespace headroom
