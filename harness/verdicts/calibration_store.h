// A/A comparisons of every run on this machine, so that the instrument's false alarms add up:
// $XDG_STATE_HOME/headroom/calibration.jsonl, one line a run.
#pragma once

#include <filesystem>
#include <string>

#include "harness/verdicts/verify.h"

namespace headroom {

class CalibrationStore {
 public:
  // `machine` keeps apart what machines with a common home directory write.
  CalibrationStore(std::filesystem::path file, std::string machine);

  // All runs of this machine but `run_id`, which may be verified more than once. A file that
  // cannot be read counts as empty; lines that say nothing are skipped.
  Calibration earlier_than(const std::string& run_id) const;
  // Throws InputError when the file cannot be written.
  void add(const std::string& run_id, const Calibration& counted) const;

 private:
  std::filesystem::path file_;
  std::string machine_;
};

std::filesystem::path calibration_file();

}  // namespace headroom
