// The content of run.json: the identity of the run, its machine, and its planned experiments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/units.h"
#include "harness/plan/experiment.h"
#include "harness/plan/shard.h"
#include "harness/results/run_cost.h"

namespace headroom {

enum class RunStatus { running, finished, interrupted };

struct MachineInfo {
  std::string hostname_hash;  // distinguishes machines without naming them
  std::string cpu;
  int cores = 0;  // usable by this process
  std::optional<std::string> governor;
  Bytes ram_bytes = 0;
  std::string kernel;
  std::string os;
  std::optional<std::string> transparent_hugepages;
  std::optional<double> load_average_1m;
  std::optional<std::string> gpu;
  std::optional<std::string> gpu_driver;
};

struct BuildInfo {
  std::string version;
  std::optional<std::string> commit;
  std::optional<bool> dirty;
  std::string compiler;
  std::string build_type;
  std::string flags;
  std::string cuda;
  std::string executable_sha256;
};

inline constexpr const char* kTrainingData = "training data";

struct DataFile {
  std::string path;
  std::string sha256;
  Bytes bytes = 0;
  std::string origin;  // "suite" or kTrainingData
};

// A shard that was merged into a run. Its complete run.json is kept as shards/<run_id>.json.
struct MergedShard {
  std::string run_id;
  Shard shard;
  RunStatus status = RunStatus::running;
  std::string started;
  std::optional<std::string> finished;
  std::string hostname_hash;
  std::string environment_id;
  std::optional<double> best_probe_gflops;
  int samples = 0;
};

// Why blocks were added to an experiment: after its results were looked at (inconclusive, failed),
// or as a planned second stage whose size depends only on the dispersion of the first.
enum class AddedFor { inconclusive, failed, dispersion };
std::string to_string(AddedFor reason);

struct Addition {
  std::string experiment;
  AddedFor reason = AddedFor::inconclusive;
  std::string added;  // RFC 3339, UTC
  int first_block = 0;
  int blocks = 0;
};

struct RunInfo {
  std::string run_id;
  std::string suite;
  std::vector<std::string> claims;
  std::vector<std::string> argv;
  std::string directory;  // base of relative paths in argv, relative to the run directory
  std::uint64_t seed = 0;
  std::string started;  // RFC 3339, UTC
  std::optional<std::string> finished;
  RunStatus status = RunStatus::running;
  BuildInfo headroom;
  std::map<std::string, std::string> libraries;
  MachineInfo machine;
  std::map<std::string, std::string> environment;  // allow-listed variables only
  std::string environment_id;                      // hash of everything that results depend on
  std::vector<DataFile> data;
  std::optional<double> best_probe_gflops;
  int planned_samples = 0;
  std::vector<Experiment> experiments;
  std::optional<Shard> shard;       // the part of the experiments that this run does
  std::vector<MergedShard> shards;  // the shards this run was merged from
  std::vector<Addition> additions;
  RunCost cost;
};

// Writes indented JSON as described by reports/schema.json.
std::string to_json(const RunInfo& info);
RunInfo run_info_from_json(const std::string& text);  // throws InputError

// The current time as RFC 3339 with seconds, in UTC.
std::string timestamp_now();

}  // namespace headroom
