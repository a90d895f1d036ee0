// Presents a verdicts.json to people (verdict, reason, data, what would change it) and to programs.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace headroom {

// Explains the claims with these ids, or all. Throws InputError that suggests the nearest id for
// one that `verdicts_json` does not hold.
std::string explain(const std::string& verdicts_json, const std::vector<std::string>& ids);

// Returns `verdicts_json` reduced to these claims, for programs.
std::string verdicts_of(const std::string& verdicts_json, const std::vector<std::string>& ids);

// Returns the headline sentence of a verdicts.json.
std::string headline_of(const std::string& verdicts_json);
// Returns the ids of claims by verdict.
std::map<std::string, std::vector<std::string>> claims_by_word(const std::string& verdicts_json);

// Says why no verdict in it rests on noisy figures (out of calibration, insensitive); "" if some
// may.
std::string distrust_of(const std::string& verdicts_json);

}  // namespace headroom
