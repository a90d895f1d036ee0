// The result of one new process: one configuration in one block of an experiment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/machine/measured_memory.h"
#include "harness/memory/recording_cost.h"
#include "harness/plan/cell.h"
#include "harness/trace/ledger.h"
#include "harness/workload/pipeline_report.h"

namespace headroom {

enum class SampleStatus { ok, oom, crash, timeout, unsupported, invalid };
std::string to_string(SampleStatus status);

// The input pipeline's part of a sample.
struct PipelineRecord {
  enum class Basis : std::uint8_t {
    measured,  // counted by the stages as they worked
    estimated  // nothing was loaded: bytes when full, if the spec determines them
  };
  Basis basis = Basis::measured;
  // Outermost first; empty if training ended before they were known.
  std::vector<StageReport> stages;
  // Bytes held by all stages; parallel to Ledger::allocated_after_step.
  std::vector<Bytes> host_bytes_after_step;
};

// How a configuration took turns with the others of its block.
struct Turns {
  std::uint64_t steps = 0;   // measured steps in each turn; the last turn may have fewer
  std::vector<int> numbers;  // of its turns; the turns of a block are counted from 0

  bool operator==(const Turns&) const = default;
};

struct Sample {
  // The experiment that this sample belongs to; filled in by the runner.
  std::string experiment;
  std::string arm;
  int block = 0;             // samples of the same block form pairs
  int order_index = 0;       // position within the block
  Turns turns;               // of the measured steps; empty if it took none
  std::string why_no_turns;  // of a timed sample that could have

  Cell cell;
  SampleStatus status = SampleStatus::ok;
  std::string reason;  // why status is not ok, and what to do
  std::string rules;   // full identity of the lowering rules
  std::uint64_t seed = 0;
  std::string started;  // RFC 3339, UTC

  std::vector<std::uint64_t> step_time_ns;   // every step, warm-up first
  std::vector<std::uint64_t> stall_time_ns;  // time waiting for data; same length
  std::vector<std::uint64_t> minor_faults;   // same length
  std::uint64_t setup_ns = 0;                // process start to first step
  std::uint64_t device_setup_ns = 0;         // part of it spent committing device memory
  std::vector<double> loss;                  // per step; empty on meta
  std::optional<double> held_out_accuracy;   // set if the workload evaluates
  // Share of zeros after the last step among weights of two and more dimensions; set if pruning was
  // requested.
  std::optional<double> zero_weight_share;
  std::int64_t samples_per_step = 0;         // for a step of the usual shape
  double flops_per_step = 0;                 // for a step of the usual shape
  std::int64_t recomputed_ops_per_step = 0;  // for a step of the usual shape: forward ops repeated
  std::int64_t parameter_count = 0;

  // Named figures of a scenario, or of training features such as loss scaling.
  std::map<std::string, double> figures;
  std::string note;    // a scenario's remark for readers
  std::string engine;  // the framework that ran, with its version; "" for Headroom

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
  // Time that threads were ready to run while another process had the core, summed over all threads
  // during the steps. Absent if the kernel does not count it and on devices that compute nothing.
  std::optional<std::uint64_t> cpu_wait_ns;
  RecordingCost recording;
  std::string trace_file;  // relative to the run directory; "" if none
};

// Writes one line of JSON as described by reports/schema.json, without NaN.
std::string to_json(const Sample& sample);
Sample sample_from_json(const std::string& text);  // throws InputError

}  // namespace headroom
