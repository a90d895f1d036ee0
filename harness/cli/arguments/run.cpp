// headroom run, selftest and export-state: the commands that train.
#include "harness/cli/arguments/arguments.h"

#include <fmt/format.h>

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
this machine. Exit status 12 if an effect was not detected or identical
configurations differ too often.)";

constexpr const char* kExportStateNotes = R"(Examples
  headroom export-state 'resnet(depth=18,batch=8)' --out state
  headroom export-state 'bert(preset=tiny)' --out state --steps 3 --optimizer adam

scripts/peer trains the same model in PyTorch from these files.)";

// The arguments of headroom run: the variables that the library fills, and the options made of
// them.
class RunArguments {
 public:
  explicit RunArguments(CLI::App& app)
      : command_(*app.add_subcommand("run", "Run a suite, judge its claims, write a report")) {
    command_.footer(kRunExamples);
    command_.add_option("suite", run_.suite, "A suite by name or file (default: quick)");
    command_
        .add_option("-a,--axis", axes_,
                    "axis=value replaces the suite's own values on that axis; may be repeated")
        ->take_all()
        ->expected(1);
    command_
        .add_option("--filter", run_.filters,
                    "Run only configurations that match key=glob,…; keys: the axes, claim, "
                    "experiment, arm (variant)")
        ->take_all()
        ->expected(1);
    command_
        .add_option("--seed", run_.seed, "Seed of every random order (default: drawn and recorded)")
        ->check(whole_from(0));
    command_
        .add_option("--max-pairs", run_.max_pairs,
                    "Most pairs (blocks) per experiment. A number below the suite's reduces them; "
                    "above it, "
                    "an experiment takes as many as the noise of its first ten pairs requires")
        ->check(whole_from(1));
    command_
        .add_option("--shard", shard_,
                    "Run one part only: 2/4 is the second of four, for machines of one kind that "
                    "share a run; headroom merge puts the parts together")
        ->needs(command_.get_option("--seed"));
    command_.add_option(
        "--against", run_.against,
        "Another build of headroom. Each configuration runs with both builds, one after the "
        "other; exit status 10 where this build is worse (scripts/gate builds two "
        "commits)");
    command_.add_option("--out", run_.out, "Directory for run directories")->capture_default_str();
    CLI::Option* dry_run = command_.add_flag("--dry-run", run_.dry_run,
                                             "Print what would run and how long it may take");
    command_.add_flag("--json", run_.json, "Print JSON: dry_run of reports/schema.json")
        ->needs(dry_run);
    // The options added so far were fixed when the run began.
    const std::vector<CLI::Option*> settled = command_.get_options(
        [this](const CLI::Option* option) { return option != command_.get_help_ptr(); });
    CLI::Option* resume =
        command_.add_option("--resume", run_.resume, "Continue this run directory");
    for (CLI::Option* option : settled) resume->excludes(option);
    command_
        .add_option(
            "--rerun", rerun_,
            "inconclusive or failed: run fresh blocks for those experiments of the run that "
            "--resume names; earlier samples stay and count")
        ->needs(resume);
    command_.add_option("--budget", budget_, "Begin no new block after this time, such as 45m");
    command_.add_option("--progress", progress_, "auto, bar, plain or none")->capture_default_str();
    command_.add_flag("--samples-only", run_.samples_only, "Stop before verdicts and report");
    command_.add_flag("--strict", run_.strict, kStrictHelp);
  }

  CLI::App* parser() const { return &command_; }

  RunOptions options(const std::vector<std::string>& argv) const {
    RunOptions run = run_;
    run.argv = argv;
    if (run.suite.empty() && run.resume.empty()) run.suite = "quick";
    for (const std::string& text : axes_) add_override(run.axes, text);
    if (!shard_.empty()) run.shard = parse_shard(shard_);
    if (!rerun_.empty()) run.rerun = parse_added_for(rerun_);
    if (!budget_.empty()) run.budget = parse_duration(budget_, "--budget");
    run.progress = parse_progress_style(progress_);
    return run;
  }

 private:
  CLI::App& command_;
  RunOptions run_;
  std::vector<std::string> axes_;
  std::string budget_;
  std::string shard_;
  std::string rerun_;
  std::string progress_ = "auto";
};

// The arguments of headroom selftest; works like RunArguments.
class SelftestArguments {
 public:
  explicit SelftestArguments(CLI::App& app)
      : command_(
            *app.add_subcommand("selftest", "Test the instrument: does it detect known effects?")) {
    command_.footer(kSelftestNotes);
    command_.add_option("--seed", selftest_.seed, "Seed of every random order (default: drawn)")
        ->check(whole_from(0));
    command_.add_option("--out", selftest_.out, "Directory for its run")->capture_default_str();
    command_.add_option("--progress", progress_, "auto, bar, plain or none")->capture_default_str();
    command_.add_flag("--json", selftest_.json, "Print JSON: selftest of reports/schema.json");
  }

  CLI::App* parser() const { return &command_; }

  SelftestOptions options() const {
    SelftestOptions selftest = selftest_;
    selftest.progress = parse_progress_style(progress_);
    return selftest;
  }

 private:
  CLI::App& command_;
  SelftestOptions selftest_;
  std::string progress_ = "auto";
};

}  // namespace

Subcommand add_run(CLI::App& app, const std::vector<std::string>& argv) {
  auto arguments = std::make_shared<RunArguments>(app);
  return {.parser = arguments->parser(),
          .command = [arguments, argv]() -> Command { return arguments->options(argv); }};
}

Subcommand add_selftest(CLI::App& app) {
  auto arguments = std::make_shared<SelftestArguments>(app);
  return {.parser = arguments->parser(),
          .command = [arguments]() -> Command { return arguments->options(); }};
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

// A command with one required argument; the hidden ones are started by the runner.
}  // namespace headroom
