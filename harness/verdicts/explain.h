// What a verdicts.json says, for people (the word, why, on which data, what would change it) and
// for programs.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace headroom {

// Of the claims with these ids, or of all. Throws InputError with the nearest id for one that
// `verdicts_json` does not hold.
std::string explain(const std::string& verdicts_json, const std::vector<std::string>& ids);

// The same for programs: `verdicts_json` with no other claims in it.
std::string verdicts_of(const std::string& verdicts_json, const std::vector<std::string>& ids);

// The one sentence of a verdicts.json.
std::string headline_of(const std::string& verdicts_json);
// Ids of claims, by verdict.
std::map<std::string, std::vector<std::string>> claims_by_word(const std::string& verdicts_json);

// Why no verdict of it rests on noisy figures: out of calibration, insensitive. "" if they may.
std::string distrust_of(const std::string& verdicts_json);

}  // namespace headroom
