// headroom run, selftest and export-state: the commands that train.
#include "harness/cli/arguments/arguments.h"

#include <memory>

#include "harness/base/duration.h"
#include "harness/runner/rerun.h"

namespace headroom {
namespace {

constexpr const char* kRunExamples = R"(Examples
  headroom run quick --max-pairs 4 --budget 5m
  headroom run quick --dry-run --json | jq .estimated_s
  headroom run quick -a 'device=host(capacity=2GiB)' --filter 'workload=resnet*,allocator=bfc*'
  headroom run my-suite.toml --seed 7 --out /data/runs

The last line on standard output is the path of the report.)";

constexpr const char* kSelftestNotes = R"(Examples
  headroom selftest                 is this machine quiet enough to compare times?
  headroom selftest --json

Takes about a minute. Identical configurations must not look different, and an injected slowdown, leak
and fragmentation must be detected. The results of identical configurations add to the calibration of
this machine. Exit status 12 if an effect was not detected or identical configurations differ too often.)";

constexpr const char* kExportStateNotes = R"(Examples
  headroom export-state 'resnet(depth=18,batch=8)' --out state
  headroom export-state 'bert(preset=tiny)' --out state --steps 3 --optimizer adam

scripts/peer trains the same model in PyTorch from these files.)";

// Adds --resume, which excludes every option added before: those were fixed when the run began.
void add_resume(CLI::App& command, RunOptions& run) {
  const std::vector<CLI::Option*> settled = command.get_options(
      [&](const CLI::Option* option) { return option != command.get_help_ptr(); });
  CLI::Option* resume = command.add_option("--resume", run.resume, "Continue this run directory");
  for (CLI::Option* option : settled) resume->excludes(option);
  command
      .add_option_function<std::string>(
          "--rerun", [&run](const std::string& text) { run.rerun = parse_added_for(text); },
          "inconclusive or failed: run fresh blocks for those experiments of the run that "
          "--resume names; earlier samples stay and count")
      ->needs(resume);
}

}  // namespace

Subcommand add_run(CLI::App& app, const std::vector<std::string>& argv) {
  auto run = std::make_shared<RunOptions>();
  run->argv = argv;
  CLI::App* command = app.add_subcommand("run", "Run a suite, judge its claims, write a report");
  command->footer(kRunExamples);
  command->add_option("suite", run->suite, "A suite by name or file (default: quick)");
  add_axes(*command, run->axes,
           "axis=value replaces the suite's own values on that axis; may be repeated");
  command
      ->add_option("--filter", run->filters,
                   "Run only configurations that match key=glob,…; keys: the axes, claim, "
                   "experiment, arm (variant)")
      ->take_all()
      ->expected(1);
  command
      ->add_option("--seed", run->seed, "Seed of every random order (default: drawn and recorded)")
      ->check(whole_from(0));
  command
      ->add_option("--max-pairs", run->max_pairs,
                   "Most pairs (blocks) per experiment. A number below the suite's reduces them; "
                   "above it, an experiment takes as many as the noise of its first ten pairs "
                   "requires")
      ->check(whole_from(1));
  command
      ->add_option_function<std::string>(
          "--shard", [run](const std::string& text) { run->shard = parse_shard(text); },
          "Run one part only: 2/4 is the second of four, for machines of one kind that share a "
          "run; headroom merge puts the parts together")
      ->needs(command->get_option("--seed"));
  command->add_option("--against", run->against,
                      "Another build of headroom. Each configuration runs with both builds, one "
                      "after the other; exit status 10 if this build is worse (scripts/gate "
                      "builds two commits)");
  command->add_option("--out", run->out, "Directory for run directories")->capture_default_str();
  CLI::Option* dry_run =
      command->add_flag("--dry-run", run->dry_run, "Print what would run and how long it may take");
  add_json(*command, run->json, "dry_run")->needs(dry_run);
  add_resume(*command, *run);
  command->add_option_function<std::string>(
      "--budget",
      [run](const std::string& text) { run->budget = parse_duration(text, "--budget"); },
      "Begin no new block after this time, such as 45m");
  add_progress(*command, run->progress);
  command->add_flag("--samples-only", run->samples_only, "Stop before verdicts and report");
  add_strict(*command, run->strict);
  return {.parser = command, .command = [run]() -> Command {
            if (run->suite.empty() && run->resume.empty()) run->suite = "quick";
            return *run;
          }};
}

Subcommand add_selftest(CLI::App& app) {
  auto selftest = std::make_shared<SelftestOptions>();
  CLI::App* command =
      app.add_subcommand("selftest", "Test the instrument: does it detect known effects?");
  command->footer(kSelftestNotes);
  command->add_option("--seed", selftest->seed, "Seed of every random order (default: drawn)")
      ->check(whole_from(0));
  command->add_option("--out", selftest->out, "Directory for its run")->capture_default_str();
  add_progress(*command, selftest->progress);
  add_json(*command, selftest->json, "selftest");
  return {.parser = command, .command = [selftest]() -> Command { return *selftest; }};
}

Subcommand add_export_state(CLI::App& app) {
  auto state = std::make_shared<ExportStateOptions>();
  CLI::App* command = app.add_subcommand(
      "export-state",
      "Train a few steps and write weights, batches and losses for other frameworks");
  command->footer(kExportStateNotes);
  command->add_option("workload", state->workload, "A workload, such as 'resnet(depth=18,batch=8)'")
      ->required();
  command->add_option("--out", state->out, "Directory to write")->required();
  command->add_option("--steps", state->steps, "Training steps")
      ->capture_default_str()
      ->check(whole_from(1));
  command->add_option("--seed", state->seed, "Seed of weights and batches")
      ->capture_default_str()
      ->check(whole_from(0));
  command->add_option("--device", state->device, "Device that trains")->capture_default_str();
  command
      ->add_option("--optimizer", state->optimizer,
                   "An optimizer, as headroom list optimizers names it")
      ->capture_default_str();
  return {.parser = command, .command = [state]() -> Command { return *state; }};
}

}  // namespace headroom
