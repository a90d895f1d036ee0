// Verdicts as a reader of verdicts.json gets them.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "harness/results/schema_check.h"
#include "harness/verdicts/verify.h"

namespace headroom::testing {

// Returns the verdicts after validating them against the schema.
inline nlohmann::json verdicts_of(const VerifyInput& input) {
  const std::string text = verdicts_json(input);
  EXPECT_NO_THROW(check_record(text, RecordKind::verdicts, "verdicts.json")) << text;
  return nlohmann::json::parse(text);
}

}  // namespace headroom::testing
