// The part of a run that the history keeps: one value per cell and metric, and the verdicts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/results/run_directory.h"

namespace headroom {

inline constexpr const char* kResult = "ok";  // status of a cell that has results

struct NightCell {
  std::string experiment;
  std::string arm;
  std::string cell_id;
  std::string device_class;
  std::string rules;   // of the lowering; "" without a result
  std::string status;  // kResult, out_of_memory, unavailable, not_run, failed, not_engaged
  std::string why;     // "" with a result
  std::map<std::string, double> exact;  // by metric; those equal in all samples
  std::map<std::string, double> noisy;  // medians over undisturbed samples

  std::string name() const { return experiment + " [" + arm + "]"; }
};

struct NightVerdict {
  std::string claim;
  std::string device_class;
  std::string verdict;

  std::string name() const { return claim + " on " + device_class; }
};

struct Night {
  std::string night_id;  // sorts by start; its middle names suite and machine
  std::string run_id;
  std::string suite;
  std::string started;  // RFC 3339, UTC
  std::string version;
  std::optional<std::string> commit;
  std::optional<bool> dirty;
  std::string machine;         // the nights of one machine form a series
  std::string environment_id;  // hash of machine and environment
  std::vector<std::pair<std::string, std::string>> environment;
  std::string distrust;  // why noisy figures are not trusted; "" if they are
  std::vector<NightCell> cells;
  std::vector<NightVerdict> verdicts;
};

// An empty `machine` stands for the run's own. Throws InputError for an unfinished run or a shard.
Night night_of(const RecordedRun& run, const std::string& verdicts_json,
               const std::string& machine);

// The environment_id within which figures of the device class are comparable: "" (all) for exact
// devices, else the night's own.
std::string scope_of(const Night& night, const std::string& device_class);

// Noisy metrics whose levels the history watches.
const std::vector<std::string>& watched_metrics();

// JSON that follows reports/schema.json.
std::string to_json(const Night& night);
Night night_from_json(const std::string& text, const std::string& where);  // throws InputError

}  // namespace headroom
