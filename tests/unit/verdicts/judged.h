// Judges one claim by made-up samples.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/verdicts/judgement.h"
#include "tests/unit/support/synthetic_samples.h"

namespace headroom::testing {

inline constexpr const char* kTime = "steady_step_time_ns";
inline constexpr const char* kReserved = "reserved_bytes.initial";

inline ClaimJudgement judge_as_planned(const Claim& claim, const std::vector<Experiment>& planned,
                                       const std::vector<Sample>& samples,
                                       Reliability reliability = Reliability::full) {
  static std::vector<Claim> claims;  // judgements point into it
  claims = {claim};
  return judge_claims(claims, planned, SampleTable(samples), reliability).front();
}

inline ClaimJudgement judge(const Claim& claim, const std::vector<Sample>& samples,
                            Reliability reliability = Reliability::full) {
  return judge_as_planned(claim, experiments_of(claim), samples, reliability);
}

inline const PartVerdict& only_part(const ClaimJudgement& judgement) {
  return judgement.parts.at(0).verdicts.at(0);
}

inline Claim claim_on(const std::string& device, ClaimPart part) {
  Claim claim = synthetic::claim(device);
  claim.parts = {std::move(part)};
  return claim;
}

inline std::vector<Sample> timed(const std::string& device, double effect, double spread,
                                 int blocks = 12) {
  return synthetic::timed_blocks(synthetic::experiment(device), blocks, effect, spread);
}

}  // namespace headroom::testing
