// Stores the A/A comparisons of every run on this machine, so that false alarms accumulate:
// $XDG_STATE_HOME/headroom/calibration.jsonl, one line per run.
#pragma once

#include <filesystem>
#include <string>

#include "harness/verdicts/verify.h"

namespace headroom {

class CalibrationStore {
 public:
  // `machine` separates the records of machines that share a home directory.
  CalibrationStore(std::filesystem::path file, std::string machine);

  // Sums all runs of this machine except `run_id`, which may be verified more than once. A file
  // that cannot be read counts as empty, and malformed lines are skipped.
  Calibration earlier_than(const std::string& run_id) const;
  // Throws InputError when the file cannot be written.
  void add(const std::string& run_id, const Calibration& counted) const;

 private:
  std::filesystem::path file_;
  std::string machine_;
};

std::filesystem::path calibration_file();

}  // namespace headroom
