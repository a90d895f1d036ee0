// Claims judged: every comparison, every part on every device class, and the claim as a whole.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/evidence/evidence.h"

namespace headroom {

struct Evidence {
  const ClaimExperiment* source = nullptr;
  Experiment experiment;
  const Metric* metric = nullptr;
  std::string engine;      // whose behaviour it is; "" for Headroom's own
  bool own = false;        // about the claim's own subject, not an analogue
  bool simulated = false;  // bytes a model of the device gave out
  Finding finding;
  std::optional<double> p_adjusted;  // Holm, over all noisy comparisons behind claims
  ClaimVerdict verdict = ClaimVerdict::inconclusive;
  std::string why;
};

// One part on one device class.
struct PartVerdict {
  std::string device_class;
  std::string subject;
  bool own = false;
  bool simulated = false;
  ClaimVerdict verdict = ClaimVerdict::inconclusive;
  std::string why;
  std::string would_change;
  std::string holds_for;  // "" unless CONDITIONAL
  std::vector<Evidence> evidence;
};

struct PartJudgement {
  const ClaimPart* part = nullptr;
  std::vector<PartVerdict> verdicts;
};

struct DeviceVerdict {
  std::string device_class;
  bool own = false;
  ClaimVerdict verdict = ClaimVerdict::inconclusive;
  std::string why;
};

struct ClaimJudgement {
  const Claim* claim = nullptr;
  std::vector<PartJudgement> parts;
  std::vector<DeviceVerdict> by_device;
  ClaimVerdict verdict = ClaimVerdict::inconclusive;
  std::string why;
};

// Keeps pointers into `claims`.
std::vector<ClaimJudgement> judge_claims(const std::vector<Claim>& claims, const SampleTable& table,
                                         Trust trust);

// Sentences of a part verdict, from its evidence and word.
std::string part_sentence(const ClaimPart& part, const PartVerdict& verdict);
std::string would_change_sentence(const ClaimPart& part, const PartVerdict& verdict);
std::string holds_for_text(const PartVerdict& verdict);

}  // namespace headroom
