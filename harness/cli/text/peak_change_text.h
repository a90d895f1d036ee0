// Describes how peak memory changed between two runs of a program, in words and as JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/evidence/compare_peaks.h"
#include "harness/trace/trace.h"

namespace headroom {

// Reads the gpu.json of a run of headroom gpu, or that of its directory. Throws InputError naming
// `where`.
PeakMemory read_gpu_peak(const std::filesystem::path& place, const std::string& where);

PeakMemory peak_of_gpu_json(const nlohmann::json& gpu_json);
PeakMemory peak_of_history(const Trace& trace);

// The first line is the answer; then the places that changed most, or with `all` every one.
std::string to_words(const PeakChange& change, bool all);
nlohmann::ordered_json to_json(const PeakChange& change);

}  // namespace headroom
