// What follows the samples of a run: verdicts, then the report.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/cli/options.h"

namespace headroom {

// Measures and records what is asked for; returns where. Nothing when it was interrupted, which
// has been told.
std::optional<std::filesystem::path> record_run(const RunOptions& options);

struct Judged {
  std::string headline;
  std::map<std::string, std::vector<std::string>> claims_by_word;  // ids, by verdict
  std::string distrust;  // why nothing rests on noisy figures; "" if it may
};

// Writes verdicts.json. Throws InputError when the run directory cannot be read.
Judged write_verdicts(const std::filesystem::path& run);

// Prints the headline and which claims have which verdict, and any distrust on standard error. Not
// calibrated, where there is some.
ExitCode tell(const Judged& judged);

// Writes the report, prints what it has to say in short, and returns where it lies. Throws
// InputError that says what to install when there is no Python for it; the results stay as they
// are.
std::filesystem::path write_report(const std::filesystem::path& run);

}  // namespace headroom
