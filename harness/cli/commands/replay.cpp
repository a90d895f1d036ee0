// headroom replay: replays a user's allocation history under every strategy.
#include "harness/whatif/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/base/registry.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/history.h"
#include "harness/cli/text/foresight.h"
#include "harness/cli/text/oom_text.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/cli/text/replay_answer.h"
#include "harness/memory/allocator.h"
#include "harness/results/schema_check.h"
#include "harness/whatif/viable_capacity.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The total number of requests replayed for the capacity grid, over all strategies: limits the time
// for a long history to seconds.
constexpr std::size_t kGridRequests = 40'000'000;
constexpr int kGridPoints = 101;
constexpr int kFewestGridPoints = 5;

struct Row {
  Spec spec;
  std::string refused;  // why the strategy cannot be built on this capacity; or ""
  ReplayOutcome outcome;
  std::optional<double> ns_per_operation;  // over allocations and frees; absent after a failure
  ViableCapacity viable;
};

struct Candidate {
  Spec spec;
  bool named = false;  // by the user, not by `all`
};

std::vector<Candidate> candidates(const std::vector<std::string>& wanted) {
  std::vector<Candidate> found;
  for (const std::string& text : wanted) {
    if (text != "all") {
      found.push_back({.spec = Spec::parse_composition(text), .named = true});
      continue;
    }
    for (const auto& [name, strategy] : Registry<AllocatorStrategy>::instance().all()) {
      if (strategy.settings.empty()) found.push_back({.spec = Spec(name)});
      for (const std::string& setting : strategy.settings)
        found.push_back({.spec = Spec::parse(setting)});
    }
  }
  return found;
}

Row play(const RequestList& list, const Candidate& candidate, const ReplayDevice& device,
         int points) {
  const Spec& spec = candidate.spec;
  Row row{
      .spec = spec, .refused = "", .outcome = {}, .ns_per_operation = std::nullopt, .viable = {}};
  try {
    row.outcome = replay(list, spec, device);
    if (!row.outcome.failure) row.ns_per_operation = nanoseconds_per_operation(list, spec, device);
    row.viable =
        find_viable_capacity(list.peak_live_bytes, device.granule, points, [&](Bytes capacity) {
          try {
            return serves(list, spec, {.capacity = capacity, .granule = device.granule});
          } catch (const InputError&) {
            return false;  // the parameters ask for more than this small device has
          }
        });
  } catch (const NotSupported& error) {
    row.refused = error.what();
  } catch (const InputError& error) {
    // A device this small may not suit a strategy that the user did not name: the others are tried.
    if (candidate.named) throw;
    row.refused = error.what();
  }
  return row;
}

// Strategies that cannot be built on this device are left out.
std::vector<Tried> try_all(const RequestList& list, const std::vector<Candidate>& wanted,
                           const ReplayDevice& device) {
  std::vector<Tried> tried;
  for (const Candidate& candidate : wanted) {
    try {
      tried.push_back({candidate.spec, replay(list, candidate.spec, device)});
    } catch (const InputError&) {  // as in play()
    }
  }
  return tried;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string size_or_dash(const std::optional<Bytes>& bytes) {
  return bytes ? format_bytes(*bytes) : "-";
}

void print(const Row& row, std::size_t width) {
  const ReplayOutcome& outcome = row.outcome;
  if (!row.refused.empty()) {
    out::print("{:<{}} not here: {}\n", row.spec.to_string(), width, row.refused);
    return;
  }
  const Ledger& ledger = outcome.ledger;
  out::print("{:<{}} {:<8} {:>11} {:>9} {:>9} {:>9} {:>13} {:>8} {:>7}\n", row.spec.to_string(),
             width, outcome.failure ? "failed" : "served",
             format_bytes(ledger.reserved.overall_peak), percent(ledger.utilisation),
             percent(ledger.internal_fragmentation), percent(ledger.external_fragmentation),
             size_or_dash(row.viable.smallest), outcome.device_allocations,
             row.ns_per_operation ? fmt::format("{:.0f}", *row.ns_per_operation) : "-");
}

// Strategies with the same failure share a paragraph.
void print_failures(const std::vector<Row>& rows) {
  std::vector<std::pair<std::string, std::vector<std::string>>> paragraphs;
  for (const Row& row : rows) {
    if (!row.refused.empty() || !row.outcome.failure) continue;
    const std::string text = failure_text(*row.outcome.failure);
    auto alike = std::find_if(paragraphs.begin(), paragraphs.end(),
                              [&](const auto& paragraph) { return paragraph.first == text; });
    if (alike == paragraphs.end()) alike = paragraphs.insert(paragraphs.end(), {text, {}});
    alike->second.push_back(row.spec.to_string());
  }
  for (const auto& [text, names] : paragraphs) out::print("\n{}: {}", fmt::join(names, ", "), text);
}

void print_counterfactual(const std::vector<Row>& rows) {
  std::vector<std::string> served, refused;
  for (const Row& row : rows) {
    if (!row.refused.empty()) continue;
    (row.outcome.failure ? refused : served).push_back(row.spec.to_string());
  }
  if (refused.empty()) {
    out::print("\nEvery strategy served all of it.\n");
  } else if (served.empty()) {
    out::print("\nNo strategy served all of it.\n");
  } else {
    out::print("\nServed all of it: {}.\n", fmt::join(served, ", "));
  }
}

bool keeps_streams_apart(const Spec& spec) {
  return Registry<AllocatorStrategy>::instance().find(spec.innermost().name()).keeps_streams_apart;
}

void print_streams(std::uint32_t streams, const std::vector<Row>& rows) {
  std::vector<std::string> apart;
  for (const Row& row : rows)
    if (keeps_streams_apart(row.spec)) apart.push_back(row.spec.to_string());
  out::print(
      "Blocks of {} streams. Kept apart by: {}. The others serve one stream what another freed, "
      "which somebody must wait for.\n",
      streams, apart.empty() ? "none of these" : fmt::format("{}", fmt::join(apart, ", ")));
}

Json to_json(const Row& row) {
  const ReplayOutcome& outcome = row.outcome;
  Json json = {{"allocator", row.spec.to_string()}};
  if (!row.refused.empty()) {
    json["status"] = "unsupported";
    json["reason"] = row.refused;
    return json;
  }
  json["status"] = outcome.failure ? "oom" : "ok";
  json["keeps_streams_apart"] = keeps_streams_apart(row.spec);
  json["not_engaged"] = outcome.not_engaged.empty() ? Json() : Json(outcome.not_engaged);
  json["requests_served"] = outcome.replayed;
  json["requested_bytes_peak"] = outcome.ledger.requested.overall_peak;
  json["allocated_bytes_peak"] = outcome.ledger.allocated.overall_peak;
  json["reserved_bytes_peak"] = outcome.ledger.reserved.overall_peak;
  json["utilisation"] = outcome.ledger.utilisation;
  json["internal_fragmentation"] = outcome.ledger.internal_fragmentation;
  json["external_fragmentation"] = outcome.ledger.external_fragmentation;
  add_capacity(json, row.viable);
  json["device_allocations"] = outcome.device_allocations;
  json["device_frees"] = outcome.device_frees;
  json["splits"] = outcome.splits;
  json["merges"] = outcome.merges;
  json["ns_per_operation"] = row.ns_per_operation ? Json(*row.ns_per_operation) : Json();
  json["failure"] = outcome.failure ? to_json(*outcome.failure) : Json();
  return json;
}

Json fits(Foresight::Fit fit) {
  if (fit == Foresight::Fit::unknown) return nullptr;
  return fit == Foresight::Fit::yes;
}

void print_table(const RequestList& list, const Trace& trace, const fs::path& file,
                 const ReplayDevice& device, const std::vector<Row>& rows,
                 const PlanningProblem& problem, const Foresight& foresight) {
  out::print("{}: {} allocations and frees, written by {}\n", file.string(), list.requests.size(),
             printable(trace.header.allocator));
  if (list.streams > 1) print_streams(list.streams, rows);
  out::print(
      "Live bytes at their highest: {}. Replayed (simulated) on a capacity of {} in granules of "
      "{}.\n\n",
      format_bytes(list.peak_live_bytes), format_bytes(device.capacity),
      format_bytes(device.granule));
  std::size_t width = 8;
  for (const Row& row : rows) width = std::max(width, row.spec.to_string().size());
  out::print("{:<{}} {:<8} {:>11} {:>9} {:>9} {:>9} {:>13} {:>8} {:>7}\n", "", width, "", "peak",
             "", "internal", "external", "smallest", "device", "ns per");
  out::print("{:<{}} {:<8} {:>11} {:>9} {:>9} {:>9} {:>13} {:>8} {:>7}\n", "strategy", width,
             "outcome", "reserved", "utilised", "fragm.", "fragm.", "capacity", "allocs", "op");
  for (const Row& row : rows) print(row, width);
  const Row* tried = nullptr;
  for (const Row& row : rows) {
    if (row.refused.empty() && tried == nullptr) tried = &row;
    if (!row.viable.holes.empty())
      out::print(
          "{} has holes below its smallest capacity: {} larger than one that served did "
          "not.\n",
          row.spec.to_string(), row.viable.holes.size());
  }
  if (tried != nullptr)
    out::print("\nSmallest capacity: of {} tried from {} to {}; - where none served.\n",
               tried->viable.points, format_bytes(tried->viable.first),
               format_bytes(tried->viable.last));
  out::print(
      "With all of it known ahead, a plan needs {}, {} above its lower bound (found in {:.1f} "
      "s).\n",
      format_bytes(foresight.bytes),
      percent(static_cast<double>(foresight.bytes) /
                  static_cast<double>(std::max<Bytes>(1, problem.least)) -
              1),
      foresight.seconds);
  if (foresight.fit == Foresight::Fit::no)
    out::print("No plan fits into {}: that is proven.\n", format_bytes(device.capacity));
  if (foresight.fit == Foresight::Fit::unknown)
    out::print("None was found that fits into {}; one might (--plan-time).\n",
               format_bytes(device.capacity));
  print_failures(rows);
  print_counterfactual(rows);
}

}  // namespace

ExitCode replay_command(const ReplayOptions& options) {
  const std::vector<Candidate> wanted =
      candidates(options.allocators.empty() ? std::vector<std::string>{"all"} : options.allocators);
  const History history = read_history(options.file);
  const Trace& trace = history.trace;
  RequestList list;
  try {
    list = requests_of(trace);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", options.file.string(), error.what()));
  }
  if (list.requests.empty())
    throw InputError(fmt::format("{}: asks for no memory at all", options.file.string()));
  ReplayDevice device;
  device.capacity = options.capacity.empty() ? trace.header.capacity_bytes
                                             : parse_bytes(options.capacity, "--capacity");
  if (device.capacity == 0)
    throw InputError(
        fmt::format("{}: does not say how much memory there was; name it, as in "
                    "--capacity 80GiB (peak of live bytes: {})",
                    options.file.string(), format_bytes(list.peak_live_bytes)));
  if (!options.granule.empty())
    device.granule = parse_bytes(options.granule, "--granule");
  else if (trace.header.granule_bytes > 0)
    device.granule = trace.header.granule_bytes;
  else if (device.capacity < device.granule)
    device.granule = 1;  // memory as small as a scratchpad has no pages
  const PlanningProblem problem = planning_problem(history, list, options.file);
  if (options.allocators.empty() && !options.all && !options.json) {
    print_replay_answer(try_all(list, wanted, device), device, list.peak_live_bytes);
    out::print(
        "Simulated: the {} allocations and frees of {}.\n"
        "Every strategy with its figures and the least memory that serves it: the same command "
        "with "
        "--all\n",
        list.requests.size(), options.file.string());
    return ExitCode::ok;
  }
  const auto points = static_cast<int>(std::clamp<std::size_t>(
      kGridRequests / (list.requests.size() * std::max<std::size_t>(1, wanted.size())),
      kFewestGridPoints, kGridPoints));
  std::vector<Row> rows;
  for (const Candidate& candidate : wanted) rows.push_back(play(list, candidate, device, points));
  const Foresight foresight = look_ahead(problem, device.capacity, options.plan_time);
  if (!options.json) {
    print_table(list, trace, options.file, device, rows, problem, foresight);
    return ExitCode::ok;
  }
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "replay"},
               {"file", options.file.string()},
               {"written_by", trace.header.allocator},
               {"requests", list.requests.size()},
               {"streams", list.streams},
               {"peak_live_bytes", list.peak_live_bytes},
               {"capacity_bytes", device.capacity},
               {"granule_bytes", device.granule},
               {"planned_ahead",
                {{"bytes", foresight.bytes},
                 {"fits", fits(foresight.fit)},
                 {"lower_bound_bytes", problem.least},
                 {"alignment_bytes", problem.alignment},
                 {"seconds", foresight.seconds}}},
               {"strategies", Json::array()}};
  for (const Row& row : rows) json["strategies"].push_back(to_json(row));
  print_json(json);
  return ExitCode::ok;
}

}  // namespace headroom
