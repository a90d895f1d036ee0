// headroom compare: what became of the exact metrics between two stored runs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/cli/commands.h"
#include "harness/run/compare_runs.h"

namespace headroom {
namespace {

constexpr const char* kWhyNoTimes =
    "Times are not compared: between two runs the machine drifts, and judging identical arms so "
    "raised a false alarm in 45.9 % of simulated cases; put both into one run instead, where they "
    "alternate.";

void print_cells(const RunChanges& changes) {
  std::size_t same = 0;
  for (const CellChange& cell : changes.cells) {
    if (cell.outcome == CellOutcome::same) {
      ++same;
      continue;
    }
    fmt::print("{}: {} [{}]: {}.\n", to_string(cell.outcome), cell.experiment, cell.arm,
               cell.sentence);
  }
  for (const std::string& cell : changes.missing) fmt::print("missing: {}.\n", cell);
  for (const std::string& cell : changes.added) fmt::print("new: {}.\n", cell);
  fmt::print("{} of {} cells in both are the same to the last bit.\n", same, changes.cells.size());
}

void print_environment(const RunChanges& changes) {
  for (const auto& [what, first, second] : changes.environment)
    fmt::print("{} was '{}' and is '{}'.\n", what, first, second);
}

nlohmann::ordered_json to_json(const CellChange& cell) {
  nlohmann::ordered_json json = {{"experiment", cell.experiment},
                                 {"arm", cell.arm},
                                 {"outcome", to_string(cell.outcome)},
                                 {"sentence", cell.sentence + "."}};
  json["changes"] = nlohmann::ordered_json::array();
  for (const MetricChange& change : cell.changes)
    json["changes"].push_back({{"metric", change.metric->name},
                               {"unit", change.metric->unit},
                               {"before", change.before},
                               {"after", change.after},
                               {"outcome", to_string(change.outcome)}});
  return json;
}

nlohmann::ordered_json to_json(const RunChanges& changes) {
  nlohmann::ordered_json json;
  json["regression"] = changes.has_regression();
  json["not_compared"] = kWhyNoTimes;
  json["missing"] = changes.missing;
  json["new"] = changes.added;
  json["environment"] = nlohmann::ordered_json::array();
  for (const auto& [what, first, second] : changes.environment)
    json["environment"].push_back({{"what", what}, {"before", first}, {"after", second}});
  json["cells"] = nlohmann::ordered_json::array();
  for (const CellChange& cell : changes.cells) json["cells"].push_back(to_json(cell));
  return json;
}

}  // namespace

ExitCode compare_command(const CompareOptions& options) {
  const RunChanges changes = compare_runs(read_run(options.first), read_run(options.second));
  if (options.json) {
    fmt::print("{}\n", to_json(changes).dump(1, ' ', false,
                                             nlohmann::ordered_json::error_handler_t::replace));
  } else {
    print_cells(changes);
    print_environment(changes);
    fmt::print("{}\n", kWhyNoTimes);
  }
  return options.fail_on_worse && changes.has_regression() ? ExitCode::regression : ExitCode::ok;
}

}  // namespace headroom
