// What follows the samples of a run: verdicts, then the report.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// Writes verdicts.json and returns its headline. Throws InputError when the run directory cannot be
// read.
std::string write_verdicts(const std::filesystem::path& run);

// Writes the report and returns where it lies. Throws InputError that says what to install when
// there is no Python for it; the results stay as they are.
std::filesystem::path write_report(const std::filesystem::path& run);

}  // namespace headroom
