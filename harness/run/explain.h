// Verdicts for a reader at a terminal: the word, why, on which data, what would change it.
#pragma once

#include <string>
#include <vector>

namespace headroom {

// Of the claims with these ids, or of all. Throws InputError with the nearest id for one that
// `verdicts_json` does not hold.
std::string explain(const std::string& verdicts_json, const std::vector<std::string>& ids);

// The same for programs: `verdicts_json` with no other claims in it.
std::string verdicts_of(const std::string& verdicts_json, const std::vector<std::string>& ids);

}  // namespace headroom
