// headroom gpu: starts a program on a virtual GPU and says whether it fits.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/record_directory.h"
#include "harness/cli/served_allocators.h"
#include "harness/cli/text/gpu/gpu_answer.h"
#include "harness/cli/text/peak_change_text.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/plan/toml_keys.h"
#include "harness/virtual_gpu/batch_setting.h"
#include "harness/virtual_gpu/launch.h"
#include "harness/watch/foreign_process.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBatchBound = 65'537;  // a search tries only smaller batches
constexpr const char* kAllocatorVariable = "PYTORCH_CUDA_ALLOC_CONF";
// garbage_collection_threshold is missing because it has no effect unless the program itself limits
// its memory with set_per_process_memory_fraction().
constexpr std::array kAllocatorSettings = {"expandable_segments:True", "max_split_size_mb:512"};

fs::path cudnn_of(const GpuOptions& options) {
  if (options.cudnn == "none") return {};
  if (options.cudnn.empty()) return virtual_gpu::find_cudnn(options.command.front());
  if (!fs::exists(options.cudnn))
    throw InputError(fmt::format("--cudnn {}: there is no such file; name libcudnn.so.9, or none",
                                 options.cudnn));
  return fs::absolute(options.cudnn);
}

// One execution of the program.
struct Trial {
  const Card* card;
  fs::path directory;
  std::vector<std::string> command;
  std::vector<std::string> environment{};  // "NAME=value", beside the virtual GPU's own
  bool quiet = false;                      // what the program prints goes to a file
};

int run(const GpuOptions& options, const Trial& trial, const virtual_gpu::Launch& launch) {
  std::vector<std::string> environment = virtual_gpu::environment_for(launch);
  environment.insert(environment.end(), trial.environment.begin(), trial.environment.end());
  const int status = run_to_its_end(
      trial.command, {.environment = std::move(environment),
                      .output_to_errors = options.json,
                      .output_file = trial.quiet ? trial.directory / "output.txt" : fs::path()});
  if (trial.quiet && status == 128 + SIGINT) throw Interrupted("interrupted");
  return status;
}

GpuAnswer run_trial(const GpuOptions& options, const Trial& trial) {
  const Card& card = *trial.card;
  const Bytes whole = options.memory.value_or(card.capacity);
  // The smallest card should serve the program on a real one, too.
  const bool is_estimated = options.which && options.context == 0;
  const Bytes context = is_estimated ? estimated_context(card) : options.context;
  if (context >= whole)
    throw InputError(fmt::format("--context {}: leaves nothing of the card's {}",
                                 format_bytes(context), format_bytes(whole)));
  const Bytes memory = whole - context;
  const RecordDirectory records(trial.directory, "");
  const virtual_gpu::Launch launch{.card = virtual_gpu::description_of(card, memory, context),
                                   .devices = options.devices,
                                   .world = options.world,
                                   .until_step = options.until_step,
                                   .mask_share = options.mask_share,
                                   .records = fs::absolute(trial.directory),
                                   .cudnn = cudnn_of(options),
                                   .nvrtc = virtual_gpu::find_nvrtc(options.command.front())};
  const int status = run(options, trial, launch);
  return {.card = &card,
          .memory = memory,
          .context = context,
          .context_is_estimated = is_estimated,
          .budget = options.budget,
          .has_cudnn = !launch.cudnn.empty(),
          .exit_status = status,
          .outcome = virtual_gpu::read_outcome(trial.directory),
          .directory = trial.directory.string()};
}

ExitCode exit_code_of(const GpuAnswer& answer) {
  switch (verdict_of(answer)) {
    case GpuVerdict::fits:
      return ExitCode::ok;
    case GpuVerdict::does_not_fit:
      return ExitCode::does_not_fit;
    case GpuVerdict::over_budget:
      return ExitCode::over_budget;
    case GpuVerdict::failed:
      return static_cast<ExitCode>(answer.exit_status);
    case GpuVerdict::not_supported:
    case GpuVerdict::no_gpu_used:
      return ExitCode::usage;
  }
  return ExitCode::internal;
}

// Tries the card with the most memory first: the memory needed there excludes cards that are too
// small.
GpuAnswer find_smallest(const GpuOptions& options, const fs::path& directory) {
  std::vector<const Card*> by_size;
  for (const Card& card : cards())
    if (!card.is_instance || options.devices == 1) by_size.push_back(&card);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Card* a, const Card* b) { return a->capacity < b->capacity; });
  // The first run shows what the program prints; the others would only repeat it.
  const auto try_in = [&](const Card& card, bool quiet) {
    GpuAnswer answer = run_trial(options, {.card = &card,
                                           .directory = directory / card.id,
                                           .command = options.command,
                                           .quiet = quiet});
    if (!options.json) out::print("{}\n", trial_line(card.id, answer, true));
    return answer;
  };
  GpuAnswer best = try_in(*by_size.back(), false);
  if (verdict_of(best) != GpuVerdict::fits) return best;
  Bytes needed = 0;
  for (const virtual_gpu::Framework& framework : best.outcome.frameworks)
    for (const virtual_gpu::FrameworkUse& use : framework.devices)
      needed = std::max(needed, use.peak_allocated);
  for (const Card* card : by_size) {
    if (card == by_size.back()) break;
    if (card->capacity < needed + options.context) continue;  // smaller than the live tensors
    GpuAnswer answer = try_in(*card, true);
    if (verdict_of(answer) == GpuVerdict::fits) return answer;
  }
  return best;
}

// Whether the batch fits. A run without any step shows nothing if the program otherwise takes
// steps: its data set is smaller than the batch.
bool serves(const GpuAnswer& answer, bool takes_steps) {
  return verdict_of(answer) == GpuVerdict::fits && (steps_taken(answer) > 0 || !takes_steps);
}

// Runs the program with different batches: starts with the command's own (or 1), multiplies by 4
// until one does not fit, then bisects to within 1/64. Assumes that no batch fits that is larger
// than one that does not fit. Returns the answer for the largest batch that fits, or for the
// smallest one tried if none does.
GpuAnswer find_largest_batch_of(const GpuOptions& options, const Card& card,
                                const fs::path& directory) {
  std::map<std::int64_t, GpuAnswer> tried;
  bool takes_steps = false;
  const auto fits = [&](std::int64_t batch) {
    const auto [command, environment] =
        virtual_gpu::with_batch(options.command, options.batch, batch);
    GpuAnswer answer = run_trial(options, {.card = &card,
                                           .directory = directory / fmt::format("batch-{}", batch),
                                           .command = command,
                                           .environment = environment,
                                           .quiet = true});
    takes_steps = takes_steps || steps_taken(answer) > 0;
    const bool served = serves(answer, takes_steps);
    if (!options.json)
      out::print("{}\n", trial_line(fmt::format("batch {}", batch), answer, served));
    tried.emplace(batch, std::move(answer));
    return served;
  };
  std::int64_t good = 0, bad = kBatchBound;
  std::int64_t batch =
      std::min(virtual_gpu::batch_of(options.command, options.batch).value_or(1), kBatchBound - 1);
  while (bad - good > 1 + good / 64) {
    (fits(batch) ? good : bad) = batch;
    batch = bad == kBatchBound ? std::min(4 * good, kBatchBound - 1) : good + (bad - good) / 2;
  }
  GpuAnswer answer = good > 0 ? tried.at(good) : tried.begin()->second;
  answer.batch = {.name = options.batch, .largest = good, .too_large = {}, .tried = {}};
  for (const auto& [size, trial] : tried)
    answer.batch->tried.push_back(
        {.what = std::to_string(size), .verdict = verdict_of(trial), .peak = trial.outcome.peak()});
  if (bad < kBatchBound) answer.batch->too_large = bad;
  return answer;
}

// Runs the program again with each setting of PyTorch's allocator that may make it fit.
void try_settings(const GpuOptions& options, const fs::path& directory, GpuAnswer& answer) {
  const char* own = std::getenv(kAllocatorVariable);
  const std::string before = own == nullptr || *own == '\0' ? "" : std::string(own) + ",";
  for (const char* setting : kAllocatorSettings) {
    const GpuAnswer other = run_trial(
        options, {.card = answer.card,
                  .directory = directory / fmt::format("settings-{}", answer.settings.size() + 1),
                  .command = options.command,
                  .environment = {fmt::format("{}={}{}", kAllocatorVariable, before, setting)},
                  .quiet = true});
    answer.settings.push_back({.what = fmt::format("{}={}", kAllocatorVariable, setting),
                               .verdict = verdict_of(other),
                               .peak = other.outcome.peak()});
  }
}

// Runs the program again with each of Headroom's allocators.
void try_allocators(const GpuOptions& options, const fs::path& directory, GpuAnswer& answer) {
  answer.served = {served_run("", verdict_of(answer), answer.outcome)};
  for (const std::string& allocator : options.allocators) {
    const fs::path records = directory / fmt::format("allocator-{}", answer.served.size());
    const GpuAnswer other =
        run_trial(options, {.card = answer.card,
                            .directory = records,
                            .command = options.command,
                            .environment = virtual_gpu::environment_for_serving(
                                {.allocator = allocator, .host_capacity = std::nullopt}),
                            .quiet = true});
    answer.served.push_back(served_run(allocator, verdict_of(other), other.outcome));
    answer.served.back().output = records / "output.txt";
  }
}

// Runs the program on the machine's own GPU.
MeasuredRun measure(const GpuOptions& options, const fs::path& directory) {
  fs::create_directories(directory);
  const int status =
      run_to_its_end(options.command, {.environment = virtual_gpu::environment_for_capture(
                                           fs::absolute(directory), options.until_step),
                                       .output_to_errors = options.json,
                                       .output_file = {}});
  MeasuredRun run{.exit_status = status, .outcome = virtual_gpu::read_outcome(directory)};
  for (const virtual_gpu::Framework& framework : run.outcome.frameworks)
    for (const virtual_gpu::FrameworkUse& use : framework.devices)
      if (use.kind == "cuda") return run;
  throw InputError(
      "gpu --check: no framework reported memory on this machine's GPU; if it has none, leave "
      "--check out");
}

GpuAnswer answer_of(const GpuOptions& options, const Card* card, const fs::path& directory) {
  if (card == nullptr) return find_smallest(options, directory);
  if (!options.batch.empty()) return find_largest_batch_of(options, *card, directory);
  GpuAnswer answer =
      run_trial(options, {.card = card, .directory = directory, .command = options.command});
  if (options.check) answer.measured = measure(options, directory / "measured");
  if (options.settings) try_settings(options, directory, answer);
  if (!options.allocators.empty()) try_allocators(options, directory, answer);
  return answer;
}

// A card of the table, or one that a file describes.
Card card_of(const std::string& name) {
  if (!name.ends_with(".toml")) return find_card(name);
  const std::string text = read_file(name);
  check_dotted_keys(text, name);
  return read_card(text, name);
}

}  // namespace

ExitCode gpu_command(const GpuOptions& options) {
  if (virtual_gpu::has_real_gpu() && !options.beside_real_gpu && !options.check)
    throw InputError(
        "gpu: this machine has a real GPU; --beside-real-gpu runs the program on a virtual one "
        "nevertheless, and --check on both");
  const Card named = options.which ? Card() : card_of(options.card);
  const Card* card = options.which ? nullptr : &named;
  if (card != nullptr)
    check_served_allocators(options.allocators, options.memory.value_or(card->capacity));
  std::optional<PeakMemory> earlier;
  if (!options.against.empty())
    earlier = read_gpu_peak(options.against, "--against " + options.against.string());
  const RecordDirectory records(options.out, "gpu");
  const fs::path& directory = records.path();
  GpuAnswer answer = answer_of(options, card, directory);
  if (options.which) answer.machines = machines_with(*answer.card, options.devices);
  nlohmann::ordered_json figures = to_json(answer);
  std::optional<PeakChange> change;
  if (earlier) {
    change = compare_peaks(*earlier, peak_of_gpu_json(figures));
    figures["against"] = to_json(*change);
  }
  std::ofstream(directory / "gpu.json") << figures.dump(1) << "\n";
  if (options.json)
    print_json(figures);
  else
    out::print(
        "\n{}{}", to_words(answer),
        change ? fmt::format("\nSince {}: {}", options.against.string(), to_words(*change, false))
               : "");
  if (options.html) write_memory_page(directory);
  const ExitCode code = exit_code_of(answer);
  return code == ExitCode::ok && change && change->grew() ? ExitCode::regression : code;
}

}  // namespace headroom
