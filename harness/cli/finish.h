// The steps that follow the samples of a run: verdicts, then the report.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/cli/options.h"

namespace headroom {

// Measures and records the requested run and returns its directory. Returns nothing after an
// interrupt, which it has reported.
std::optional<std::filesystem::path> record_run(const RunOptions& options);

struct Judged {
  std::string headline;
  std::map<std::string, std::vector<std::string>> claims_by_word;  // ids, by verdict
  std::string distrust;  // why noisy figures are not trusted; "" if they are
};

// Writes verdicts.json. Throws InputError when the run directory cannot be read.
Judged write_verdicts(const std::filesystem::path& run);

// Returns ok, or "not calibrated" if times cannot be trusted and `strict` is set.
ExitCode code_of(const Judged& judged, bool strict);

// Writes the report, prints what was found and how sure it is, and returns the path of the report.
// Throws InputError that says what to install when no Python can make it; the results are
// unaffected.
std::filesystem::path write_report(const std::filesystem::path& run);

// Writes the page of `headroom gpu`, `capture` or `watch` and says where, or why there is none. A
// page that cannot be made is no error.
void write_memory_page(const std::filesystem::path& directory);

}  // namespace headroom
