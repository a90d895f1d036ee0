// headroom replay: replays a user's allocation history under every strategy.
#include "harness/whatif/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>

#include "harness/base/registry.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/history.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/replay/foresight.h"
#include "harness/cli/text/replay/replay_answer.h"
#include "harness/cli/text/replay/replayed.h"
#include "harness/memory/allocator.h"
#include "harness/whatif/viable_capacity.h"

namespace headroom {
namespace {

// The total number of requests replayed for the capacity grid, over all strategies: limits the time
// for a long history to seconds.
constexpr std::size_t kGridRequests = 40'000'000;
constexpr int kGridPoints = 101;
constexpr int kFewestGridPoints = 5;

// Longer histories are replayed one after the other, because each replay records its events.
constexpr std::size_t kMostSideBySide = 1'000'000;

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

// Calls work(0) … work(count - 1), on as many threads as there are processors. If calls threw,
// rethrows what the one with the lowest number threw.
void side_by_side(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> thrown(count);
  std::atomic<std::size_t> next = 0;
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    const std::size_t threads = std::min<std::size_t>(count, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(take_turns);
    take_turns();
  }
  for (const std::exception_ptr& one : thrown)
    if (one) std::rethrow_exception(one);
}

ReplayRow play(const RequestList& list, const Candidate& candidate, const ReplayDevice& device,
               int points) {
  const Spec& spec = candidate.spec;
  ReplayRow row{
      .spec = spec, .refused = "", .outcome = {}, .ns_per_operation = std::nullopt, .viable = {}};
  try {
    row.outcome = replay(list, spec, device);
    row.viable =
        find_viable_capacity(list.peak_live_bytes, device.granule, points, [&](Bytes capacity) {
          try {
            return serves(list, spec, {.capacity = capacity, .granule = device.granule});
          } catch (const InputError&) {
            return false;  // the parameters need more than this small device has
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

// The recorded device, unless the options say otherwise.
ReplayDevice device_of(const ReplayOptions& options, const TraceHeader& recorded, Bytes peak) {
  ReplayDevice device;
  device.capacity = options.capacity.empty() ? recorded.capacity_bytes
                                             : parse_bytes(options.capacity, "--capacity");
  if (device.capacity == 0)
    throw InputError(
        fmt::format("{}: does not say how much memory there was; name it, as in "
                    "--capacity 80GiB (peak of live bytes: {})",
                    options.file.string(), format_bytes(peak)));
  if (!options.granule.empty())
    device.granule = parse_bytes(options.granule, "--granule");
  else if (recorded.granule_bytes > 0)
    device.granule = recorded.granule_bytes;
  else if (device.capacity < device.granule)
    device.granule = 1;  // memory as small as a scratchpad has no pages
  return device;
}

// The rows of all strategies; those of short histories are replayed side by side.
std::vector<ReplayRow> play_all(const RequestList& list, const std::vector<Candidate>& wanted,
                                const ReplayDevice& device) {
  const auto points = static_cast<int>(std::clamp<std::size_t>(
      kGridRequests / (list.requests.size() * std::max<std::size_t>(1, wanted.size())),
      kFewestGridPoints, kGridPoints));
  std::vector<ReplayRow> rows(wanted.size());
  const auto play_one = [&](std::size_t i) { rows[i] = play(list, wanted[i], device, points); };
  if (list.requests.size() <= kMostSideBySide) {
    side_by_side(rows.size(), play_one);
  } else {
    for (std::size_t i = 0; i < rows.size(); ++i) play_one(i);
  }
  // One after the other, because threads that run side by side slow each other down.
  for (ReplayRow& row : rows)
    if (row.refused.empty() && !row.outcome.failure)
      row.ns_per_operation = nanoseconds_per_operation(list, row.spec, device);
  return rows;
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
    throw InputError(fmt::format("{}: contains no allocations", options.file.string()));
  const ReplayDevice device = device_of(options, trace.header, list.peak_live_bytes);
  const PlanningProblem problem = planning_problem(history, list, options.file);
  if (options.allocators.empty() && !options.all && !options.json) {
    print_replay_answer(try_all(list, wanted, device), device, list.peak_live_bytes);
    out::print(
        "Simulated: the {} allocations and frees of {}.\n"
        "Every strategy with its figures and the least memory that serves it: the same command "
        "with --all\n",
        list.requests.size(), options.file.string());
    return ExitCode::ok;
  }
  const Replayed replayed{.file = options.file,
                          .trace = trace,
                          .list = list,
                          .problem = problem,
                          .device = device,
                          .rows = play_all(list, wanted, device),
                          .foresight = look_ahead(problem, device.capacity, options.plan_time)};
  if (options.json) {
    print_replay_json(replayed);
    return ExitCode::ok;
  }
  if (options.allocators.empty()) {
    std::vector<Tried> tried;
    for (const ReplayRow& row : replayed.rows)
      if (row.refused.empty()) tried.push_back({row.spec, row.outcome});
    print_replay_answer(tried, device, list.peak_live_bytes);
    out::print("\n");
  }
  print_replay_table(replayed);
  return ExitCode::ok;
}

}  // namespace headroom
