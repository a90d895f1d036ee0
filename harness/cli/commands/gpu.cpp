// headroom gpu: starts a program on a virtual GPU and says whether it fits.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>

#include "harness/base/error.h"
#include "harness/base/home.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/text/gpu_text.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/virtual_gpu/launch.h"
#include "harness/watch/foreign_process.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

fs::path make_record_directory(fs::path path) {
  if (path.empty())
    path = fs::path("runs") /
           fmt::format("{:%Y%m%dT%H%M%SZ}-gpu-{}", fmt::gmtime(std::time(nullptr)), ::getpid());
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw InputError(fmt::format("{}: cannot be made: {}; choose another place with --out DIR",
                                 path.string(), error.message()));
  if (!fs::is_empty(path))
    throw InputError(
        fmt::format("{}: is not empty; choose another place with --out DIR", path.string()));
  return path;
}

virtual_gpu::CardDescription describe(const Card& card, Bytes memory) {
  return {.name = card.name,
          .memory = memory,
          .compute_major = card.compute_major,
          .compute_minor = card.compute_minor,
          .multiprocessors = card.multiprocessors,
          .shared_per_multiprocessor = card.shared_per_multiprocessor,
          .shared_per_block_optin = card.shared_per_block_optin,
          .threads_per_multiprocessor = card.threads_per_multiprocessor,
          .blocks_per_multiprocessor = card.blocks_per_multiprocessor,
          .l2_cache = card.l2_cache,
          .clock_khz = card.clock_khz,
          .memory_clock_khz = card.memory_clock_khz,
          .memory_bus_bits = card.memory_bus_bits};
}

fs::path cudnn_of(const GpuOptions& options) {
  if (options.cudnn == "none") return {};
  if (options.cudnn.empty()) return virtual_gpu::find_cudnn(options.command.front());
  if (!fs::exists(options.cudnn))
    throw InputError(fmt::format("--cudnn {}: there is no such file; name libcudnn.so.9, or none",
                                 options.cudnn));
  return fs::absolute(options.cudnn);
}

int run_to_its_end(const GpuOptions& options, const virtual_gpu::Launch& launch) {
  ForeignProcess process = ForeignProcess::start(
      options.command,
      {.environment = virtual_gpu::environment_for(launch), .output_to_errors = options.json});
  while (process.wait_until(std::chrono::steady_clock::now() + std::chrono::hours{1}) !=
         ForeignProcess::Event::ended) {
  }
  return process.end().shell_status();
}

GpuAnswer try_card(const GpuOptions& options, const Card& card, const fs::path& directory) {
  const Bytes whole = options.memory.value_or(card.capacity);
  if (options.context >= whole)
    throw InputError(fmt::format("--context {}: leaves nothing of the card's {}",
                                 format_bytes(options.context), format_bytes(whole)));
  const Bytes memory = whole - options.context;
  const fs::path home = headroom_home() / "harness" / "virtual_gpu";
  const virtual_gpu::Launch launch{.card = describe(card, memory),
                                   .devices = options.devices,
                                   .until_step = options.until_step,
                                   .records = fs::absolute(directory),
                                   .hook = home / "hook",
                                   .toolkit = home / "toolkit",
                                   .cudnn = cudnn_of(options)};
  const int status = run_to_its_end(options, launch);
  return {.card = &card,
          .memory = memory,
          .context = options.context,
          .budget = options.budget,
          .has_cudnn = !launch.cudnn.empty(),
          .exit_status = status,
          .outcome = virtual_gpu::read_outcome(directory),
          .directory = directory.string()};
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
  for (const Card& card : cards()) by_size.push_back(&card);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Card* a, const Card* b) { return a->capacity < b->capacity; });
  const auto try_in = [&](const Card& card) {
    const fs::path place = directory / card.id;
    fs::create_directories(place);
    return try_card(options, card, place);
  };
  GpuAnswer best = try_in(*by_size.back());
  if (verdict_of(best) != GpuVerdict::fits) return best;
  Bytes needed = 0;
  for (const virtual_gpu::Framework& framework : best.outcome.frameworks)
    for (const virtual_gpu::FrameworkUse& use : framework.devices)
      needed = std::max(needed, use.peak_allocated);
  for (const Card* card : by_size) {
    if (card == by_size.back()) break;
    if (card->capacity < needed + options.context) continue;  // smaller than the live tensors
    GpuAnswer answer = try_in(*card);
    if (verdict_of(answer) == GpuVerdict::fits) return answer;
  }
  return best;
}

}  // namespace

ExitCode gpu_command(const GpuOptions& options) {
  if (virtual_gpu::has_real_gpu() && !options.beside_real_gpu)
    throw InputError(
        "gpu: this machine has a GPU of its own; --beside-real-gpu starts the program on a virtual "
        "one all the same");
  const Card* card = options.which ? nullptr : &find_card(options.card);
  const fs::path directory = make_record_directory(options.out);
  const GpuAnswer answer =
      card == nullptr ? find_smallest(options, directory) : try_card(options, *card, directory);
  std::ofstream(directory / "gpu.json") << to_json(answer).dump(1) << "\n";
  if (options.json)
    print_json(to_json(answer));
  else
    out::print("\n{}", to_words(answer));
  return exit_code_of(answer);
}

}  // namespace headroom
