// headroom selftest: the instrument measures known effects and reports what it found.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/base/file.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/results/schema_check.h"
#include "harness/stats/simulation.h"
#include "harness/stats/verdict.h"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRounds = 2000;
// A quiet machine needs one minute. A busy machine has failed by this time, and the rest is not
// tested.
constexpr std::chrono::minutes kEnough{3};

// The error rates of the design, simulated now with the same code that measures.
Json simulate_design() {
  const double delta = std::log1p(kNoisyMargin);
  const auto alarms = [&](Design design) {
    return simulate({.design = design, .delta = delta, .rounds = kRounds}).alarms;
  };
  Json design = {{"simulated", true},
                 {"rounds", kRounds},
                 {"pairs", 10},
                 {"margin", kNoisyMargin},
                 {"false_alarms_of_pairs", alarms(Design::paired)},
                 {"false_alarms_of_one_after_the_other", alarms(Design::one_after_the_other)},
                 {"power_at_twice_the_margin", Json::array()}};
  for (const double noise : {0.02, 0.05, 0.12}) {
    const DesignRates rates = simulate({.noise = independent_noise(noise),
                                        .effect = 2 * delta,
                                        .delta = delta,
                                        .rounds = kRounds});
    design["power_at_twice_the_margin"].push_back(
        {{"sd_of_pairs", noise}, {"seen", rates.alarms}, {"called_worse", rates.worse}});
  }
  return design;
}

struct Item {
  std::string outcome;  // "pass", "FAIL", "note"
  std::string name;
  std::string sentence;
};

std::vector<Item> items_of(const Json& verdicts) {
  std::vector<Item> items;
  for (const Json& control : verdicts.at("controls"))
    items.push_back({.outcome = control.at("outcome") == "seen" ? "pass" : "FAIL",
                     .name = control.at("arm"),
                     .sentence = control.at("why")});
  // One alarm in twenty is expected: only their number over many runs can fail.
  for (const Json& comparison : verdicts.at("calibration").at("comparisons"))
    items.push_back({.outcome = comparison.at("alarm").get<bool>() ? "note" : "pass",
                     .name = "identical configurations",
                     .sentence = comparison.at("why")});
  const Json& calibration = verdicts.at("calibration");
  const bool alarming = calibration.at("status") == "out of calibration";
  items.push_back({.outcome = alarming ? "FAIL" : "pass",
                   .name = "calibration",
                   .sentence = calibration.at("why")});
  return items;
}

std::string design_sentence(const Json& design) {
  std::string power;
  for (const Json& row : design.at("power_at_twice_the_margin"))
    power += fmt::format("{}{:.0f} % where pairs vary by {:.0f} %", power.empty() ? "" : ", ",
                         100 * row.at("called_worse").get<double>(),
                         100 * row.at("sd_of_pairs").get<double>());
  return fmt::format(
      "Simulated over {} rounds of 10 pairs: identical configurations look different in {:.1f} % "
      "of "
      "comparisons on a drifting machine ({:.0f} % if one ran after the other); a slowdown of "
      "twice the margin of {:.0f} % is called WORSE in {}.",
      design.at("rounds").get<int>(), 100 * design.at("false_alarms_of_pairs").get<double>(),
      100 * design.at("false_alarms_of_one_after_the_other").get<double>(),
      100 * design.at("margin").get<double>(), power);
}

void print(const std::vector<Item>& items, const Json& design, const std::string& conclusion) {
  for (const Item& item : items)
    out::print("{:4}  {}\n      {}\n", item.outcome, item.name, item.sentence);
  out::print("      design\n      {}\n{}\n", design_sentence(design), conclusion);
}

std::string conclusion_of(const std::vector<Item>& items) {
  std::vector<std::string> failed;
  for (const Item& item : items)
    if (item.outcome == "FAIL") failed.push_back(item.name);
  if (failed.empty()) return "Passed: comparisons of times on this machine may be trusted.";
  return fmt::format(
      "Failed: {}. Until that passes, trust no comparison of times on this machine; bytes are "
      "exact. Close other programs and try again.",
      fmt::join(failed, ", "));
}

}  // namespace

ExitCode selftest_command(const SelftestOptions& options) {
  RunOptions run;
  run.suite = "selftest";
  run.seed = options.seed;
  run.out = options.out;
  run.progress = options.progress;
  run.budget = kEnough;
  run.argv = {"run", "selftest"};
  const auto directory = record_run(run);
  if (!directory) return ExitCode::interrupted;
  write_verdicts(*directory);
  const Json verdicts = Json::parse(read_file(*directory / "verdicts.json"));
  const Json design = simulate_design();
  const std::vector<Item> items = items_of(verdicts);
  bool passed = true;
  for (const Item& item : items) passed = passed && item.outcome != "FAIL";
  if (options.json) {
    const Json json = {{"schema_version", kSchemaVersion},
                       {"kind", "selftest"},
                       {"passed", passed},
                       {"run", directory->string()},
                       {"controls", verdicts.at("controls")},
                       {"sensitivity", verdicts.at("sensitivity")},
                       {"calibration", verdicts.at("calibration")},
                       {"design", design}};
    print_json(json);
  } else {
    print(items, design, conclusion_of(items));
  }
  return passed ? ExitCode::ok : ExitCode::not_calibrated;
}

}  // namespace headroom
