// headroom run: plan, measure, judge, report.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>

#include "harness/base/file.h"
#include "harness/base/interrupt.h"
#include "harness/cli/against.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/resume.h"
#include "harness/cli/run_plan.h"
#include "harness/cli/text/dry_run.h"
#include "harness/cli/text/print.h"
#include "harness/device/cuda/load_module.h"
#include "harness/device/traits.h"
#include "harness/evidence/block_table.h"
#include "harness/runner/provenance.h"
#include "harness/runner/rerun.h"
#include "harness/runner/run_time.h"
#include "harness/runner/runner.h"

namespace headroom {
namespace {

using Seconds = std::chrono::seconds;

RunInfo new_run(const RunOptions& options, const RunPlan& plan, const RunDirectory& directory) {
  RunInfo info;
  info.run_id = directory.path().filename().string();
  info.suite = plan.suite;
  info.claims = plan.claims;
  info.argv = options.argv;
  info.directory = std::filesystem::relative(".", directory.path()).string();
  info.seed = options.seed.value_or(std::random_device{}());
  info.started = timestamp_now();
  info.data = plan.files;
  info.planned_samples = sample_count(plan.experiments);
  info.experiments = plan.experiments;
  info.shard = options.shard;
  if (info.shard) info.planned_samples = sample_count(info.experiments, info.seed, *info.shard);
  add_provenance(info);
  return info;
}

std::string resume_command(const RunDirectory& directory) {
  return fmt::format("headroom run --resume {}", directory.path().string());
}

// Takes the samples, then writes the final run.json.
RunOutcome measure(RunInfo& info, const std::vector<Sample>& recorded, RunDirectory& directory,
                   const RunOptions& options) {
  catch_interrupts();
  info.status = RunStatus::running;
  info.finished.reset();
  directory.write(info);
  Progress progress(options.progress);
  progress.note(fmt::format(
      "Suite {}: {} samples{}, about {}{}. Results go to {}; Ctrl-C ends the run with a report of "
      "the samples taken so far.",
      info.suite, info.planned_samples,
      recorded.empty() ? "" : fmt::format(", of which {} exist already", recorded.size()),
      to_string(estimate(info.experiments)),
      options.budget ? " (the budget may end it sooner)" : "", directory.path().string()));
  RunOutcome outcome;
  try {
    outcome =
        run_experiments(info, recorded, directory, progress,
                        {.budget = options.budget,
                         .max_pairs = options.max_pairs,
                         .comparisons = planned_comparisons(
                             info.experiments, info.claims.empty() ? std::vector<Claim>{}
                                                                   : find_claims(info.claims))});
  } catch (const InputError& error) {
    info.status = RunStatus::interrupted;
    try {
      directory.write(info);
    } catch (const InputError&) {  // a full disk: the first error is reported
    }
    if (!std::filesystem::exists(directory.path())) throw;  // no sample was kept
    throw InputError(fmt::format("{}. Every sample before this is kept; then continue with: {}",
                                 error.what(), resume_command(directory)));
  }
  info.cost.recording = summarize_recording(read_run(directory.path()).samples);
  info.status = outcome.interrupted ? RunStatus::interrupted : RunStatus::finished;
  if (!outcome.interrupted) info.finished = timestamp_now();
  // Only now is the data certain to exist, because the first sample may generate it.
  std::erase_if(info.data, [](const DataFile& file) { return file.origin == kTrainingData; });
  if (!outcome.interrupted)
    for (DataFile& file : training_data(info.experiments)) info.data.push_back(std::move(file));
  directory.write(info);
  return outcome;
}

void tell(const RunOutcome& outcome, const RunDirectory& directory) {
  if (outcome.slow_blocks > 0)
    out::print(
        "Blocks that are not compared, because the machine fell below {:.0f} % of its best speed "
        "or "
        "other programs had its cores: {}; blocks that replace them: {}.\n",
        100 * kSlowMachine, outcome.slow_blocks, outcome.repeat_blocks);
  if (outcome.stage_blocks > 0)
    out::print("Blocks added because the noise of the pilots asked for more pairs: {}.\n",
               outcome.stage_blocks);
  if (outcome.out_of_memory > 0)
    out::print(
        "Ran out of memory, which is a result: {} configuration{}. The report explains each.\n",
        outcome.out_of_memory, outcome.out_of_memory == 1 ? "" : "s");
  if (outcome.out_of_budget)
    out::print("The budget is spent. For the rest: {}\n", resume_command(directory));
}

void tell_interrupted(std::size_t samples, const RunDirectory& directory) {
  out::print(stderr, "Interrupted; {} samples are kept. Continue with: {}\n", samples,
             resume_command(directory));
}

// True in tests: the samples are real, but the GPU is simulated.
bool is_on_simulated_gpu(const RunInfo& info) {
  const auto is_on_gpu = [](const Arm& arm) { return traits_of(arm.cell.device).has_driver; };
  const bool wants_gpu =
      std::any_of(info.experiments.begin(), info.experiments.end(), [&](const Experiment& one) {
        return std::any_of(one.arms.begin(), one.arms.end(), is_on_gpu);
      });
  return wants_gpu && cuda_module().module != nullptr && cuda_module().module->simulated;
}

ExitCode finish(RunInfo& info, const std::vector<Sample>& recorded, RunDirectory& directory,
                const RunOptions& options) {
  const RunOutcome outcome = measure(info, recorded, directory, options);
  const std::size_t samples = recorded.size() + static_cast<std::size_t>(outcome.recorded);
  ExitCode code = ExitCode::ok;
  if (outcome.interrupted) {
    tell_interrupted(samples, directory);
    code = ExitCode::interrupted;
    if (samples == 0) return code;
    stop_catching_interrupts();  // the report is short work; a second signal ends it
  }
  tell(outcome, directory);
  out::print("Results: {}\n", directory.path().string());
  if (options.samples_only) return code;
  if (is_on_simulated_gpu(info)) {
    out::print("The GPU is simulated: there are samples, but no verdicts and no report.\n");
    return code;
  }
  const Judged judged = write_verdicts(directory.path());
  if (!outcome.interrupted) code = code_of(judged, options.strict);
  if (!options.against.empty() && tell_what_is_worse(directory.path()) && !outcome.interrupted)
    code = ExitCode::regression;
  const std::filesystem::path report = write_report(directory.path());
  out::print("Report:\n{}\n", report.string());
  return code;
}

// Adds the blocks that --rerun asks for to the plan of a finished run. Verdicts determine which
// experiments get them, so they are written first.
void add_blocks(RecordedRun& run, AddedFor reason, const std::filesystem::path& directory) {
  if (run.info.shard)
    throw InputError(
        fmt::format("run {} is a shard: merge it with the others, then add to the "
                    "merged run",
                    run.info.run_id));
  if (run.info.status != RunStatus::finished)
    throw InputError(
        fmt::format("run {} is not finished; first continue it with: headroom run --resume {}",
                    run.info.run_id, directory.string()));
  write_verdicts(directory);
  const auto additions =
      additions_for(reason, run.info, run.samples, read_file(directory / "verdicts.json"));
  for (const Addition& addition : additions) {
    const auto& arms = std::find_if(run.info.experiments.begin(), run.info.experiments.end(),
                                    [&](const Experiment& experiment) {
                                      return experiment.id == addition.experiment;
                                    })
                           ->arms;
    run.info.planned_samples += addition.blocks * static_cast<int>(arms.size());
    run.info.additions.push_back(addition);
    out::print("{} is {}: {} blocks more\n", addition.experiment, to_string(reason),
               addition.blocks);
  }
  if (additions.empty()) out::print("Nothing of this run is {}.\n", to_string(reason));
}

ExitCode resume(const RunOptions& options) {
  RunDirectory directory = RunDirectory::reopen(options.resume);
  RecordedRun run = read_run(options.resume);
  RunOptions original = original_options(run.info, options.resume);
  require_same_run(run.info, make_run_plan(original));
  if (options.rerun) add_blocks(run, *options.rerun, directory.path());
  original.budget = options.budget;
  original.progress = options.progress;
  original.samples_only = options.samples_only;
  original.strict = options.strict;
  return finish(run.info, run.samples, directory, original);
}

}  // namespace

std::optional<std::filesystem::path> record_run(const RunOptions& options) {
  const RunPlan plan = make_run_plan(options);
  RunDirectory directory = RunDirectory::create(options.out, plan.suite);
  RunInfo info = new_run(options, plan, directory);
  const RunOutcome outcome = measure(info, {}, directory, options);
  if (!outcome.interrupted) return directory.path();
  tell_interrupted(static_cast<std::size_t>(outcome.recorded), directory);
  return std::nullopt;
}

ExitCode run_command(const RunOptions& options) {
  if (!options.resume.empty()) return resume(options);
  const RunPlan plan = make_run_plan(options);
  if (options.dry_run) {
    if (options.json)
      print_dry_run_json(plan);
    else
      print_dry_run(plan);
    return ExitCode::ok;
  }
  // The shard number keeps names distinct if machines start their shards in the same second.
  const std::string part =
      options.shard ? fmt::format("-{}of{}", options.shard->number, options.shard->count) : "";
  RunDirectory directory = RunDirectory::create(options.out, plan.suite + part);
  RunInfo info = new_run(options, plan, directory);
  return finish(info, {}, directory, options);
}

}  // namespace headroom
