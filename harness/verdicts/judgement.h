// Judges claims: every comparison, every part on every device class, and the claim as a whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/evidence/evidence.h"

namespace headroom {

// The origin of figures.
enum class Basis {
  measured,      // a device that was there
  simulated,     // Headroom's allocators on a capacity
  virtual_card,  // a framework's own code on a card that was not there
};
std::string_view to_string(Basis basis);

struct Evidence {
  const ClaimExperiment* source = nullptr;
  Experiment experiment;
  const Metric* metric = nullptr;
  std::string engine;  // engine whose behaviour it shows; "" for Headroom
  bool own = false;    // about the claim's own subject, not an analogue
  Basis basis = Basis::measured;
  bool planned = true;  // false if a filter or the suite left it out of the run
  Finding finding;
  std::optional<double> p_adjusted;  // Holm, over all noisy comparisons of claims
  ClaimVerdict verdict = ClaimVerdict::inconclusive;
  std::string why;
};

// The verdict on one part on one device class.
struct PartVerdict {
  std::string device_class;
  std::string subject;
  bool own = false;
  Basis basis = Basis::measured;
  ClaimVerdict verdict = ClaimVerdict::inconclusive;
  std::string why;
  std::string would_change;
  std::string holds_for;  // "" unless CONDITIONAL
  std::vector<Evidence> evidence;

  bool planned() const;  // false if a filter or the suite left all of it out of the run
};

struct PartJudgement {
  const ClaimPart* part = nullptr;
  std::vector<PartVerdict> verdicts;
};

struct DeviceVerdict {
  std::string device_class;
  bool own = false;
  Basis basis = Basis::measured;
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

// Keeps pointers into `claims`. What is not among the `planned` experiments of the run decides
// nothing where something else of the same kind was planned.
std::vector<ClaimJudgement> judge_claims(const std::vector<Claim>& claims,
                                         const std::vector<Experiment>& planned,
                                         const SampleTable& table, Reliability reliability);

// Derives the verdicts of the claim, on each device class and on its own subject, from those of its
// parts.
void combine_parts_of(ClaimJudgement& judgement);

// Sentences about a part verdict, derived from its evidence and verdict.
std::string part_sentence(const ClaimPart& part, const PartVerdict& verdict);
std::string would_change_sentence(const ClaimPart& part, const PartVerdict& verdict);
std::string holds_for_text(const PartVerdict& verdict);

}  // namespace headroom
