#include "harness/verdicts/calibration_store.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/scratch_directory.h"

namespace headroom {
namespace {

// The figure by which step times were compared. Comparisons by another figure say nothing about it.
constexpr const char* kFigure = "median of steps in turns";

}  // namespace

CalibrationStore::CalibrationStore(std::filesystem::path file, std::string machine)
    : file_(std::move(file)), machine_(std::move(machine)) {}

Calibration CalibrationStore::earlier_than(const std::string& run_id) const {
  std::map<std::string, Calibration> runs;  // the last of several lines of a run counts
  std::ifstream stream(file_);
  for (std::string line; std::getline(stream, line);) {
    try {
      const auto json = nlohmann::json::parse(line);
      if (json.at("machine") != machine_ || json.value("figure", "") != kFigure) continue;
      runs[json.at("run_id").get<std::string>()] = {
          .aa_comparisons = json.at("aa_comparisons").get<int>(),
          .false_alarms = json.at("false_alarms").get<int>()};
    } catch (const nlohmann::json::exception&) {
      continue;  // torn by a full disk or a killed process
    }
  }
  runs.erase(run_id);
  Calibration sum;
  for (const auto& [id, counted] : runs) {
    sum.aa_comparisons += counted.aa_comparisons;
    sum.false_alarms += counted.false_alarms;
  }
  return sum;
}

void CalibrationStore::add(const std::string& run_id, const Calibration& counted) const {
  if (counted.aa_comparisons == 0) return;
  const nlohmann::json line = {{"run_id", run_id},
                               {"machine", machine_},
                               {"figure", kFigure},
                               {"aa_comparisons", counted.aa_comparisons},
                               {"false_alarms", counted.false_alarms}};
  std::error_code error;
  std::filesystem::create_directories(file_.parent_path(), error);
  std::ofstream stream(file_, std::ios::app);
  stream << line.dump() + "\n" << std::flush;
  if (!stream)
    throw InputError(
        fmt::format("{}: cannot be written, so this run's A/A comparisons do not count "
                    "towards the machine's calibration; set XDG_STATE_HOME to a "
                    "directory that can",
                    file_.string()));
}

std::filesystem::path calibration_file() {
  const std::filesystem::path file = std::filesystem::path("headroom") / "calibration.jsonl";
  if (const char* named = std::getenv("XDG_STATE_HOME"); named != nullptr && *named != '\0')
    return named / file;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".local" / "state" / file;
  return temporary_directory() / file;
}

}  // namespace headroom
