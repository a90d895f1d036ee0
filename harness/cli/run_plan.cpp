#include "harness/cli/run_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/base/home.h"
#include "harness/base/registry.h"
#include "harness/cli/against.h"
#include "harness/evidence/sample_size.h"
#include "harness/plan/axes.h"
#include "harness/plan/filter.h"
#include "harness/plan/schedule.h"
#include "harness/runner/provenance.h"
#include "harness/runner/sample_process.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// Stands for all claims in a suite's list, so that a new claim is included without being listed.
constexpr const char* kEveryClaim = "*";

fs::path suite_file(const std::string& name) {
  if (fs::is_regular_file(name)) return name;
  const fs::path directory = headroom_home() / "bench" / "suites";
  const fs::path file = directory / (name + ".toml");
  if (fs::is_regular_file(file)) return file;
  if (name.ends_with(".toml") || name.find('/') != std::string::npos)
    throw InputError(
        fmt::format("{}: there is no such suite file; headroom list suites names those "
                    "that come with headroom",
                    name));
  throw_unknown_name("suite", name, suite_names(directory));
}

}  // namespace

std::vector<Claim> find_claims(const std::vector<std::string>& ids) {
  const fs::path directory = headroom_home() / "bench" / "claims";
  std::vector<Claim> all = read_claims(directory.string());
  if (ids.empty() || ids == std::vector<std::string>{kEveryClaim}) return all;
  std::vector<std::string> known;
  for (const Claim& claim : all) known.push_back(claim.id);
  std::vector<Claim> chosen;
  for (const std::string& id : ids) {
    const auto found = std::find(known.begin(), known.end(), id);
    if (found == known.end()) throw_unknown_name("claim", id, known);
    chosen.push_back(all[static_cast<std::size_t>(found - known.begin())]);
  }
  return chosen;
}

bool leaves_out(const Suite& suite, const ClaimExperiment& source) {
  const auto named = [&](const std::string& name) {
    return std::find(suite.leave_out.begin(), suite.leave_out.end(), name) != suite.leave_out.end();
  };
  return named(source.device.name()) ||
         std::all_of(source.arms.begin(), source.arms.end(),
                     [&](const Arm& arm) { return named(arm.cell.scenario.name()); });
}

RunPlan make_run_plan(const RunOptions& options) {
  const fs::path file = suite_file(options.suite);
  const Suite suite = read_suite(file, options.axes);
  RunPlan plan{.suite = suite.name,
               .claims = {},
               .experiments = suite.experiments,
               .files = {describe_data_file(file, "suite")}};
  if (!suite.claims.empty())
    for (const Claim& claim : find_claims(suite.claims)) {
      plan.claims.push_back(claim.id);
      for (const ClaimExperiment& source : claim.experiments) {
        if (leaves_out(suite, source)) continue;
        for (Experiment& experiment : experiments_of(claim, source))
          plan.experiments.push_back(std::move(experiment));
      }
    }
  for (Experiment& experiment : plan.experiments) {
    if (options.max_pairs) experiment.blocks = std::min(experiment.blocks, *options.max_pairs);
    for (Arm& arm : experiment.arms) resolve_rules(arm.cell);
    // One sample is enough to record why this machine cannot run the experiment.
    if (std::all_of(experiment.arms.begin(), experiment.arms.end(),
                    [](const Arm& arm) { return unsupported_sample(arm.cell).has_value(); }))
      experiment.blocks = 1;
  }
  if (!options.against.empty()) pair_with(plan, options.against);
  Filter filter;
  for (const std::string& text : options.filters) filter.add(Filter::parse(text));
  plan.experiments = filter.select(plan.experiments);
  // A claim that the filters exclude gets no verdict.
  if (!options.filters.empty())
    std::erase_if(plan.claims, [&](const std::string& id) {
      return std::none_of(plan.experiments.begin(), plan.experiments.end(),
                          [&](const Experiment& experiment) { return experiment.origin == id; });
    });
  const auto claims = plan.claims.empty() ? std::vector<Claim>{} : find_claims(plan.claims);
  const int cap = options.max_pairs.value_or(suite.max_pairs);
  plan_stages(plan.experiments, count_verdicts(plan.experiments, claims),
              cap > 0 ? std::optional(cap) : std::nullopt);
  if (plan.experiments.empty())
    throw NothingSelected(
        fmt::format("--filter '{}' leaves nothing of suite {}; see what there is "
                    "with: headroom run {} --dry-run",
                    fmt::join(options.filters, "' --filter '"), suite.name, options.suite));
  return plan;
}

int sample_count(const std::vector<Experiment>& experiments) {
  int count = 0;
  for (const Experiment& experiment : experiments)
    count += experiment.blocks * static_cast<int>(experiment.arms.size());
  return count;
}

int sample_count(const std::vector<Experiment>& experiments, std::uint64_t seed,
                 const Shard& shard) {
  int count = 0;
  for (const SampleBlock& block : schedule(experiments, seed, shard))
    count += static_cast<int>(block.arms.size());
  return count;
}

}  // namespace headroom
