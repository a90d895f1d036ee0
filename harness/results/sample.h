// The result of one fresh process: one arm of one block of an experiment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/plan/cell.h"
#include "harness/trace/ledger.h"
#include "harness/workload/pipeline_report.h"

namespace headroom {

enum class SampleStatus { ok, oom, crash, timeout, unsupported, invalid };
std::string to_string(SampleStatus status);

// What the operating system charges the process.
struct ProcessMemory {
  Moments resident;    // sampled at step boundaries, peaks by VmHWM where the kernel has it
  Bytes baseline = 0;  // before the device memory was made
};

// What the driver says is gone from the GPU, context and libraries included. Polled at step
// boundaries, where the peaks of a strategy that gives memory back within a step are missed. All 0
// on devices without a driver.
struct DriverMemory {
  Moments used;        // by whomever
  Bytes baseline = 0;  // used before this process had a context; 0: there was no NVML to ask
  Moments process;     // by this process, as NVML names it; 0 where it does not, as in containers
};

// What libraries allocated beside the strategy allocator, from the malloc witness.
struct Witness {
  bool available = false;     // false under sanitizers, which bring their own malloc
  Bytes heap_live_bytes = 0;  // at the start of the first steady step
  Bytes heap_peak_bytes = 0;  // highest during steady steps
  std::uint64_t heap_allocations_per_step = 0;
};

// What it takes to record every allocation, as measured in the sample's own process.
struct RecordingCost {
  double ns_per_event = 0;          // 0: not measured
  std::uint64_t events = 0;         // in all
  std::uint64_t steady_events = 0;  // in the steps after warm-up
  Bytes bytes = 0;                  // the recorder's own, taken before the first step
};

// The input pipeline's part of a run.
struct PipelineRecord {
  enum class Basis : std::uint8_t {
    measured,  // counted by the stages as they worked
    estimated  // nothing was loaded: bytes when full, where the spec tells them
  };
  Basis basis = Basis::measured;
  std::vector<StageReport> stages;  // outermost first; empty: the run ended before it was known
  std::vector<Bytes> host_bytes_after_step;  // of all stages; beside Ledger::allocated_after_step
};

struct Sample {
  // Which experiment this answers; filled by the runner.
  std::string experiment;
  std::string arm;
  int block = 0;        // arms of one block form pairs
  int order_index = 0;  // position within the block

  Cell cell;
  SampleStatus status = SampleStatus::ok;
  std::string reason;  // why it is not ok; what to do next
  std::string rules;   // full identity of the lowering rules
  std::uint64_t seed = 0;
  std::string started;  // RFC 3339, UTC

  std::vector<std::uint64_t> step_time_ns;   // every step, warm-up first
  std::vector<std::uint64_t> stall_time_ns;  // waiting for data, same length
  std::vector<std::uint64_t> minor_faults;   // same length
  std::uint64_t setup_ns = 0;                // process start to first step
  std::uint64_t device_setup_ns = 0;         // of that, committing device memory
  std::vector<double> loss;                  // per step; empty on meta
  std::optional<double> held_out_accuracy;   // where the workload evaluates
  // Of weights of two and more dimensions after the last step; where pruning was asked for.
  std::optional<double> zero_weight_share;
  std::int64_t samples_per_step = 0;  // where steps differ in shape, in one of the usual shape
  double flops_per_step = 0;          // likewise
  std::int64_t recomputed_ops_per_step = 0;  // likewise; forward ops repeated for the backward pass
  std::int64_t parameter_count = 0;

  std::map<std::string, double> figures;  // of a scenario by its names, or of loss scaling
  std::string note;                       // what a scenario adds in words, for readers

  bool ledger_available = false;
  Ledger ledger;
  Bytes lower_bound_bytes = 0;  // peak live bytes of the lowered Program
  ProcessMemory process;
  DriverMemory driver;
  Witness witness;
  PipelineRecord pipeline;
  std::optional<OutOfMemoryReport> oom;
  double probe_before_gflops = 0;  // machine probe around the sample; 0 on meta
  double probe_after_gflops = 0;
  // Of all threads during the steps: ready to run while another process had the core. Absent where
  // the kernel does not count it and on devices that compute nothing.
  std::optional<std::uint64_t> cpu_wait_ns;
  RecordingCost recording;
  std::string trace_file;  // relative to the run directory; "" if none
};

// Runs the cell in this process. Never throws OutOfMemory: that becomes status oom.
// `trace_path` empty: no trace is written.
Sample run_cell(const Cell& cell, std::uint64_t seed, const std::string& trace_path);

// JSON as reports/schema.json describes it; one line, no NaN.
std::string to_json(const Sample& sample);
Sample sample_from_json(const std::string& text);  // throws InputError

}  // namespace headroom
