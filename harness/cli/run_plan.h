// Derives the plan of a run from the command line: suite, claims and filters.
#pragma once

#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/claims/claim.h"
#include "harness/cli/options.h"
#include "harness/plan/experiment.h"
#include "harness/plan/shard.h"
#include "harness/results/run_info.h"

namespace headroom {

struct RunPlan {
  std::string suite;
  std::vector<std::string> claims;      // ids
  std::vector<Experiment> experiments;  // the suite's own, then the claims'
  std::vector<DataFile> files;          // the files it was read from
};

// Throws InputError for unknown names and broken files, NothingSelected when no cell is left.
RunPlan make_run_plan(const RunOptions& options);

class NothingSelected : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const override { return ExitCode::nothing_selected; }
};

int sample_count(const std::vector<Experiment>& experiments);
int sample_count(const std::vector<Experiment>& experiments, std::uint64_t seed,
                 const Shard& shard);

// Claims of bench/claims, by id; all of them for an empty list or {"*"}. Throws InputError with the
// nearest id for an unknown one.
std::vector<Claim> find_claims(const std::vector<std::string>& ids);

}  // namespace headroom
