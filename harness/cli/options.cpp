#include "harness/cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>

#include "harness/base/build_info.h"
#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/cli/history.h"
#include "harness/cli/watch_units.h"
#include "harness/run/axes.h"
#include "harness/run/rerun.h"

namespace headroom {
namespace {

constexpr const char* kExamples = R"(Examples
  headroom selftest                     is this machine quiet enough to compare times on?
  headroom doctor                       what this machine can run, and what the rest would need
  headroom list                         workloads, allocators, devices, suites and claims by name
  headroom run quick                    a few minutes: measure, judge the claims, write the report
  headroom run quick --dry-run          what that would run, and for about how long
  headroom run quick -a 'allocator=malloc' -a 'allocator=bfc(growth=on)'
  headroom run quick --filter 'claim=S02'
  headroom run --resume runs/RUN        go on after Ctrl-C, a crash or a full disk
  headroom run --resume runs/RUN --rerun inconclusive     more blocks where the noise won
  headroom verify S02 runs/RUN          the verdict on a claim: why, on which data, what would change it
  headroom compare runs/A runs/B --fail-on worse          bytes and counts, cell by cell
  headroom history check                is last night worse than what was accepted?
  headroom report runs/RUN              write the report again; --md, --junit … for other programs
  headroom run quick --seed 7 --shard 1/2        half of it here, --shard 2/2 on a machine like it
  headroom merge runs/FIRST runs/SECOND          one run of both
  headroom replay snapshot.pickle --capacity 24GiB
                                        your own out-of-memory under every strategy
  headroom export runs/RUN/traces/CELL.hrtrace --to pytorch -o snapshot.pickle
                                        a run in PyTorch's viewer
  headroom plan 'bert(size=large,sequence=512)' --device a100-80gb
                                        will it fit, and in how large a batch?
  headroom search 'resnet(batch=16)' --device 'host(capacity=96MiB)' -a allocator=caching
                                        the largest batch that really trains here, and the least memory
  headroom leaks snapshot.pickle        which lines hold memory that grows
  headroom watch -- python train.py     does it leak? Memory of the command and all its workers

Exit status
  0 fine (a refuted claim is a result), 2 something to mend in what was asked, 3 the training run
  that plan was asked about fits under no allocator, 4 nothing selected,
  10 worse than before (compare --fail-on, history check), 11 a verdict differs from the accepted
  one (history check), 12 the instrument is not to be trusted with times: identical arms differ too
  often, or an effect put in on purpose was not seen, 13 watch: over --budget, 14 watch, leaks: a leak, with
  --fail-on leak (watch otherwise ends with the status of the command it watched), 70 a fault of this
  program, 130 interrupted (the run can be resumed))";

constexpr const char* kRunExamples = R"(Examples
  headroom run quick --max-pairs 4 --budget 5m
  headroom run quick -a 'device=host(capacity=2GiB)' --filter 'workload=resnet*,allocator=bfc*'
  headroom run my-suite.toml --seed 7 --out /data/runs

The last line on standard output is the path of the report.)";

constexpr const char* kPlanNotes = R"(Examples
  headroom plan 'resnet(depth=152,batch=256,image=224,stem=imagenet,classes=1000)' --device v100-16gb
  headroom plan 'bert(size=large,batch=32,sequence=512)' --device meta:a100-80gb \
    -a optimizer=sgd -a optimizer=adam
  headroom plan 'gpt(size=175b,batch=1)' --device 4TiB -a allocator=caching --json

Bytes are simulated, exactly, by the allocators' own code on a capacity that exists on paper; nothing
is computed and nothing is timed. Exit status 0 when the batch fits under one of the allocators at
least, 3 when it fits under none.)";

constexpr const char* kLeaksNotes = R"(Examples
  headroom leaks snapshot.pickle        of PyTorch, with its recorded stacks: names the lines
  headroom leaks runs/RUN/traces/CELL.hrtrace --warmup 5 --fail-on leak

Reads what headroom replay reads. Bytes are counted, not estimated: what live blocks asked for.)";

constexpr const char* kSearchNotes = R"(Examples
  headroom search 'resnet(batch=16)' --device 'host(capacity=96MiB)' -a allocator=caching
  headroom search 'bert(size=base,batch=32,sequence=512)' --device v100-16gb --points 64 --json

On a device that computes, every trial is trained, in a process of its own: about a second each for
small models, twice the points and a few for each allocator. Elsewhere bytes are simulated, as for
headroom plan.)";

constexpr const char* kWatchNotes = R"(Examples
  headroom watch -- python train.py --epochs 3
  headroom watch --budget 8GiB --stop -- torchrun train.py
  headroom watch --fail-on leak --limit-leak 10MiB/min -- ./train
  headroom watch --pid 4711 --interval 1s

Follows the command and every process it starts, those included whose parent died. What is polled
misses shorter peaks; the kernel's high-water mark of each process does not. Growth up to the limit
counts as no leak; a warm-up, a cache that fills and one step up are told apart from a leak, and what
the time watched cannot decide is said to be undecided.

Exit status: that of the command (128 + the signal that ended it), 13 when the tree passed --budget,
14 when the command ended well but leaks and --fail-on leak was given.)";

constexpr const char* kSelftestNotes = R"(
About a minute. Identical arms must not look different, and a slowdown, a leak and a fragmentation
put in on purpose must be seen; what identical arms say counts towards this machine's calibration.
Exit status 12 when something that is there was not seen, or identical arms differ too often.)";

// "axis=value" as -a takes it; the value may hold '=' itself.
void add_override(AxisOverrides& axes, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw InputError(
        fmt::format("-a '{}' is not of the form axis=value, as in allocator=malloc", text));
  const std::string axis = text.substr(0, equals);
  Cell cell;
  set_axis(cell, axis, text.substr(equals + 1));
  axes[axis].push_back(axis_value(cell, axis));
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// What was left over after parsing, explained by the nearest thing that exists.
[[noreturn]] void throw_unexpected(const CLI::App& root) {
  const auto chosen = root.get_subcommands();
  if (chosen.empty()) {
    std::vector<std::string> commands;
    for (const CLI::App* command : root.get_subcommands(
             [](const CLI::App* candidate) { return !candidate->get_group().empty(); }))
      commands.push_back(command->get_name());
    const std::vector<std::string> left = root.remaining();
    if (left.empty()) throw InputError("no command is given; see headroom --help");
    throw_unknown_name(left.front().starts_with("-") ? "option" : "command", left.front(),
                       left.front().starts_with("-") ? flags_of(root) : commands);
  }
  const std::vector<std::string> left = root.remaining(true);
  const std::string first = left.empty() ? "" : left.front();
  if (first.starts_with("-"))
    throw_unknown_name(fmt::format("option of headroom {}", chosen.front()->get_name()),
                       first.substr(0, first.find('=')), flags_of(*chosen.front()));
  throw InputError(fmt::format("headroom {}: '{}' is one argument too many; see headroom {} --help",
                               chosen.front()->get_name(), first, chosen.front()->get_name()));
}

// headroom run: what the library fills in, and what becomes of it.
class RunArguments {
 public:
  explicit RunArguments(CLI::App& app)
      : command_(*app.add_subcommand("run", "Run a suite, judge its claims, write a report")) {
    command_.footer(kRunExamples);
    command_.add_option("suite", run_.suite, "A suite by name or file (default: quick)");
    command_
        .add_option("-a,--axis", axes_,
                    "axis=value instead of the suite's own values on that axis; may be repeated")
        ->take_all()
        ->expected(1);
    command_
        .add_option("--filter", run_.filters,
                    "Only cells that match key=glob,…; keys: the axes, claim, experiment, arm")
        ->take_all()
        ->expected(1);
    command_.add_option("--seed", run_.seed, "Of every random order (default: drawn and logged)");
    command_
        .add_option("--max-pairs", run_.max_pairs,
                    "At most so many pairs (blocks) per experiment: fewer than the suite asks for, "
                    "or as many as the noise of a pilot of ten makes it want")
        ->check(CLI::PositiveNumber);
    command_
        .add_option("--shard", shard_,
                    "2/4: the second of four parts of the run, for machines of one kind that share "
                    "it; headroom merge puts them together")
        ->needs(command_.get_option("--seed"));
    command_.add_option("--against", run_.against,
                        "Another build of headroom: each cell runs by both, back to back; exit "
                        "status 10 where this one is worse (scripts/gate builds two commits)");
    command_.add_option("--out", run_.out, "Where run directories go")->capture_default_str();
    command_.add_flag("--dry-run", run_.dry_run, "Print what would run and how long it may take");
    // Everything so far was settled when a run began.
    const std::vector<CLI::Option*> settled = command_.get_options(
        [this](const CLI::Option* option) { return option != command_.get_help_ptr(); });
    CLI::Option* resume =
        command_.add_option("--resume", run_.resume, "Go on with this run directory");
    for (CLI::Option* option : settled) resume->excludes(option);
    command_
        .add_option("--rerun", rerun_,
                    "inconclusive or failed: fresh blocks for those experiments of the run that "
                    "--resume names; earlier samples stay and count")
        ->needs(resume);
    command_.add_option("--budget", budget_, "Begin no new block after this time, as in 45m");
    command_.add_option("--progress", progress_, "auto, bar, plain or none")->capture_default_str();
    command_.add_flag("--samples-only", run_.samples_only, "Stop before verdicts and report");
  }

  bool parsed() const { return command_.parsed(); }

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

CLI::App& add_list(CLI::App& app, ListOptions& list) {
  CLI::App* command = app.add_subcommand("list", "What there is, by name");
  command->add_option("what", list.what,
                      "workloads, allocators, adaptors, executions, accumulations, checkpointings, "
                      "precisions, prunings, optimizers, injections, scenarios, devices, rules, "
                      "suites or claims");
  command->add_flag("--json", list.json, "For programs");
  return *command;
}

CLI::App& add_compare(CLI::App& app, CompareOptions& compare) {
  CLI::App* command = app.add_subcommand(
      "compare", "What became of bytes and counts between two stored runs, cell by cell");
  command->add_option("run_a", compare.first, "The earlier run directory")->required();
  command->add_option("run_b", compare.second, "The later one")->required();
  command
      ->add_option_function<std::string>(
          "--fail-on", [&compare](const std::string&) { compare.fail_on_worse = true; },
          "worse: exit status 10 when a cell is worse by over 1 %")
      ->check(CLI::IsMember({"worse"}));
  command->add_flag("--json", compare.json, "For programs");
  return *command;
}

CLI::App& add_report(CLI::App& app, ReportOptions& report) {
  CLI::App* command =
      app.add_subcommand("report", "Write the report of a recorded run, or of what changed in two");
  command->footer(R"(Examples
  headroom report runs/RUN                       runs/RUN/report.html
  headroom report runs/RUN --md summary.md --junit results.xml      for a CI job
  headroom report runs/RUN --perfetto trace.json                    for ui.perfetto.dev
  headroom report runs/A runs/B --html changes.html                 bytes and counts of both

Without a file, the page is written beside the results. In JUnit, a verdict that changed and a cell
that got worse since run A are failures, crashes are errors, and what is inconclusive or cannot be
tested here is skipped. For a single trace in PyTorch's viewer there is headroom export.)");
  command->add_option("run", report.run, "A run directory; with a second one, the earlier")
      ->required();
  command->add_option("run_b", report.second, "The later run directory");
  for (const auto& [format, what] : report_formats())
    command->add_option("--" + format, report.files[format], what);
  return *command;
}

// headroom verify CLAIM… RUN: the library knows no list before a last argument.
class VerifyArguments {
 public:
  explicit VerifyArguments(CLI::App& app)
      : command_(*app.add_subcommand("verify", "Judge the claims of a recorded run, and say why")) {
    command_.add_option("arguments", arguments_, "Claims to tell of (default: all), then the run")
        ->required();
  }
  bool parsed() const { return command_.parsed(); }
  VerifyOptions options() const {
    return {.claims = {arguments_.begin(), arguments_.end() - 1}, .run = arguments_.back()};
  }

 private:
  CLI::App& command_;
  std::vector<std::string> arguments_;
};

// headroom watch: what stands after -- is the command's, options and all.
class WatchArguments {
 public:
  WatchArguments(CLI::App& app, std::vector<std::string> command)
      : command_(*app.add_subcommand(
            "watch", "Memory of a command and its processes: timeline, leak verdict, budget")) {
    watch_.command = std::move(command);
    command_.footer(kWatchNotes);
    command_.add_option("--pid", watch_.pid, "Follow this process instead of starting a command")
        ->check(CLI::PositiveNumber);
    command_.add_option("--interval", interval_, "How often to look")->capture_default_str();
    CLI::Option* budget = command_.add_option(
        "--budget", budget_, "What all processes together may hold at their peak, as in 4GiB");
    command_
        .add_flag("--stop", watch_.plan.stop_over_budget,
                  "End them when they pass the budget: SIGTERM, 5 s later SIGKILL")
        ->needs(budget);
    command_.add_option("--limit-leak", limit_, "Growth up to this is harmless")
        ->capture_default_str();
    command_
        .add_option_function<std::string>(
            "--fail-on", [this](const std::string&) { watch_.fail_on_leak = true; },
            "leak: exit status 14 when there is one")
        ->check(CLI::IsMember({"leak"}));
    command_.add_option("--out", watch_.out,
                        "A new directory for timeline and page (default: below runs)");
    command_.add_flag("!--no-page", watch_.page, "Write the figures, make no HTML of them");
  }
  bool parsed() const { return command_.parsed(); }
  WatchOptions options() const {
    WatchOptions watch = watch_;
    if (watch.command.empty() == !watch.pid)
      throw InputError(
          "headroom watch: name a command, as in headroom watch -- python train.py, or a process "
          "that runs, as in headroom watch --pid 4711");
    watch.plan.interval = parse_interval(interval_, "--interval");
    if (!budget_.empty()) watch.plan.budget = parse_bytes(budget_, "--budget");
    watch.leak.harmless_slope = parse_bytes_per_minute(limit_, "--limit-leak");
    return watch;
  }

 private:
  CLI::App& command_;
  WatchOptions watch_;
  std::string interval_ = "100ms";
  std::string budget_;
  std::string limit_ = "1MiB/min";
};

// headroom selftest: as RunArguments.
class SelftestArguments {
 public:
  explicit SelftestArguments(CLI::App& app)
      : command_(*app.add_subcommand("selftest", "Does the instrument see what is known?")) {
    command_.footer(kSelftestNotes);
    command_.add_option("--seed", selftest_.seed, "Of every random order (default: drawn)");
    command_.add_option("--out", selftest_.out, "Where its run goes")->capture_default_str();
    command_.add_option("--progress", progress_, "auto, bar, plain or none")->capture_default_str();
    command_.add_flag("--json", selftest_.json, "For programs");
  }

  bool parsed() const { return command_.parsed(); }

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

CLI::App& add_merge(CLI::App& app, MergeOptions& merge) {
  CLI::App* command = app.add_subcommand("merge", "Make one run of the shards of a run");
  command->add_option("shards", merge.shards, "Run directories that --shard made")->required();
  command->add_option("--out", merge.out, "Where run directories go")->capture_default_str();
  command->add_flag("--samples-only", merge.samples_only, "Stop before verdicts and report");
  return *command;
}

constexpr const char* kHistoryNotes = R"(Examples
  headroom history add runs/RUN                    keep tonight's figures
  headroom history check --issue issue.md          is it worse than what was accepted?
  headroom history accept S02 --reason 'the new growth rule'
  headroom history accept 'nightly/bert*' --reason 'weights are tied now'
  headroom history merge /mnt/other/history        what another machine has kept

Exact figures are held to equality, times to the levels of the last 50 nights of the same machine
and environment. The first value seen is accepted, and so is every better one. Exit status of
check: 10 worse than accepted, 11 a verdict differs from the accepted one, 12 times are not to be
trusted tonight.)";

// headroom history ACTION: as RunArguments.
class HistoryArguments {
 public:
  explicit HistoryArguments(CLI::App& app)
      : command_(*app.add_subcommand("history",
                                     "Night after night: what became worse, and since when")) {
    command_.footer(kHistoryNotes);
    command_.require_subcommand(1);
    CLI::App& add =
        action(HistoryAction::add, "add", "Keep the figures and verdicts of a run", "run");
    add.add_option("--machine", history_.machine,
                   "What the history calls this machine, where host names change from night to "
                   "night (default: a hash of the host name)");
    CLI::App& check =
        action(HistoryAction::check, "check", "Hold a night to what was accepted", "run");
    check.get_option("run")->required(false)->description(
        "The run of the night (default: the last)");
    check.add_option("--issue", history_.issue, "Write the body of an issue, in Markdown");
    check.add_flag("--json", history_.json, "For programs");
    action(HistoryAction::accept, "accept", "What the last night shows is intended", "name")
        .add_option("--reason", history_.reason, "Why")
        ->required();
    action(HistoryAction::merge, "merge", "Take over what another store has", "other");
  }

  bool parsed() const { return command_.parsed(); }

  HistoryOptions options() const {
    HistoryOptions history = history_;
    for (const auto& [action, command] : actions_)
      if (command->parsed()) history.action = action;
    return history;
  }

 private:
  CLI::App& action(HistoryAction action, const char* name, const char* summary, const char* what) {
    CLI::App& command = *command_.add_subcommand(name, summary);
    command.add_option(what, history_.operand)->required();
    command.add_option("--store", history_.store, "Where the history is")->capture_default_str();
    actions_[action] = &command;
    return command;
  }

  CLI::App& command_;
  HistoryOptions history_;
  std::map<HistoryAction, CLI::App*> actions_;
};

CLI::App& add_replay(CLI::App& app, ReplayOptions& replay, std::string& plan_time) {
  CLI::App* command = app.add_subcommand(
      "replay", "Your own allocation history under every strategy: which would have served it?");
  command->footer(R"(Examples
  headroom replay snapshot.pickle --capacity 24GiB       a PyTorch memory snapshot
  headroom replay rmm_log.csv --capacity 80GiB --allocator 'bfc(growth=on)' --allocator malloc
  headroom replay runs/RUN/traces/CELL.hrtrace --json     a Headroom trace

Reads Headroom traces, PyTorch memory snapshots (torch.cuda.memory._dump_snapshot), RMM logs,
MiniMalloc CSV and STAlloc text. Nothing is computed: bytes are simulated, exactly.)");
  command->add_option("file", replay.file, "The history")->required();
  command
      ->add_option("--allocator", replay.allocators,
                   "A strategy, or all of them (default); may be repeated")
      ->take_all()
      ->expected(1);
  command->add_option("--capacity", replay.capacity, "As in 80GiB (default: what the trace says)");
  command->add_option("--granule", replay.granule,
                      "What the device maps at once (default: what the trace says, else 2MiB)");
  command
      ->add_option("--plan-time", plan_time,
                   "How long to look for a plan made with all of it known ahead")
      ->capture_default_str();
  command->add_flag("--json", replay.json, "For programs");
  return *command;
}

CLI::App& add_export(CLI::App& app, ExportOptions& exported) {
  CLI::App* command =
      app.add_subcommand("export", "An allocation history as another program reads it");
  command->footer(R"(Examples
  headroom export runs/RUN/traces/CELL.hrtrace --to pytorch -o snapshot.pickle
                                        for PyTorch's viewer, pytorch.org/memory_viz
  headroom export rmm_log.csv --to minimalloc -o buffers.csv
  headroom export snapshot.pickle --to headroom -o snapshot.hrtrace

Reads whatever headroom replay reads. harness/memory/foreign/README.md says what each format
carries and what is lost.)");
  command->add_option("file", exported.file, "The history")->required();
  command->add_option("--to", exported.format, "The format")
      ->required()
      ->check(CLI::IsMember(history_formats()));
  command->add_option("-o,--output", exported.out, "The file to write")->required();
  return *command;
}

// headroom plan and search: as RunArguments.
class PlanArguments {
 public:
  PlanArguments(CLI::App& app, const std::string& name, const std::string& summary,
                const char* notes, const std::string& steps, int fewest_steps)
      : command_(*app.add_subcommand(name, summary)) {
    command_.footer(notes);
    command_.add_option("workload", plan_.workload, "As in 'resnet(depth=50,batch=64)'")
        ->required();
    command_
        .add_option("--device", plan_.device,
                    "A device, or a card or a capacity to simulate: a100-80gb, meta:a100-80gb, "
                    "24GiB, meta(card=v100-16gb)")
        ->required();
    command_
        .add_option("-a,--axis", axes_,
                    "axis=value, as in allocator=caching or optimizer=adam; may be repeated, also "
                    "for one axis (default: every allocator as it comes)")
        ->take_all()
        ->expected(1);
    command_.add_option("--steps", plan_.steps, steps)
        ->capture_default_str()
        ->check(CLI::Range(fewest_steps, kMostSteps));
    command_.add_flag("--json", plan_.json, "For programs");
  }

  bool parsed() const { return command_.parsed(); }
  CLI::App& command() { return command_; }

  PlanOptions options() const {
    PlanOptions plan = plan_;
    for (const std::string& text : axes_) add_override(plan.axes, text);
    return plan;
  }

 private:
  static constexpr int kMostSteps = 1000;

  CLI::App& command_;
  PlanOptions plan_;
  std::vector<std::string> axes_;
};

CLI::App& add_leaks(CLI::App& app, LeaksOptions& leaks) {
  CLI::App& command = *app.add_subcommand(
      "leaks", "An allocation history: which blocks outlive their step, and do they grow?");
  command.add_option("file", leaks.file, "As headroom replay reads it")->required();
  command.footer(kLeaksNotes);
  command
      .add_option("--warmup", leaks.warmup,
                  "Steps at the beginning to leave out (default: 2, or a quarter of a history that "
                  "tells no steps apart)")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option_function<std::string>(
          "--fail-on", [&leaks](const std::string&) { leaks.fail_on_leak = true; },
          "Exit status 14 when this is found")
      ->check(CLI::IsMember({"leak"}));
  command.add_flag("--json", leaks.json, "For programs");
  return command;
}

void add_points(CLI::App& search, int& points) {
  search
      .add_option("--points", points,
                  "Batches, and capacities from the live bytes to twice those, to try evenly")
      ->capture_default_str()
      ->check(CLI::Range(2, 100'000));
}

CLI::App& add_export_state(CLI::App& app, ExportStateOptions& state) {
  CLI::App* command = app.add_subcommand(
      "export-state", "Train a few steps; write weights, batches and losses for other frameworks");
  command->add_option("workload", state.workload, "As in 'resnet(depth=18,batch=8)'")->required();
  command->add_option("--out", state.out, "Directory to write")->required();
  command->add_option("--steps", state.steps)->capture_default_str()->check(CLI::PositiveNumber);
  command->add_option("--seed", state.seed)->capture_default_str();
  command->add_option("--device", state.device)->capture_default_str();
  command->add_option("--optimizer", state.optimizer)->capture_default_str();
  return *command;
}

// A command with one required argument; hidden ones are what the runner starts.
template <typename Argument>
CLI::App& add_command(CLI::App& app, const char* name, const char* summary, const char* what,
                      Argument& argument) {
  CLI::App* command = app.add_subcommand(name, summary);
  command->add_option(what, argument)->required();
  return *command;
}

}  // namespace

const std::map<std::string, std::string>& report_formats() {
  static const std::map<std::string, std::string> formats = {
      {"html", "The page (default, beside the results)"},
      {"md", "A job summary in Markdown"},
      {"junit", "JUnit XML"},
      {"gbench", "Google Benchmark's JSON, for its compare.py"},
      {"csv", "Every sample as a row"},
      {"perfetto", "Recorded traces for ui.perfetto.dev or chrome://tracing"}};
  return formats;
}

std::chrono::seconds parse_duration(const std::string& text, const std::string& where) {
  static const std::map<std::string, int> units = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const auto unit = units.find(end);
  if (error != std::errc() || count <= 0 || count > 1'000'000 || unit == units.end())
    throw InputError(fmt::format("{}: '{}' is no duration; write 90s, 45m or 2h", where, text));
  return std::chrono::seconds{count * unit->second};
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* const last = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), last, shard.number);
  const bool divided = error == std::errc() && slash != last && *slash == '/';
  const auto [end, problem] = std::from_chars(divided ? slash + 1 : last, last, shard.count);
  const bool sound = divided && problem == std::errc() && end == last && shard.number >= 1 &&
                     shard.number <= shard.count;
  if (!sound)
    throw InputError(
        fmt::format("--shard: '{}' is no part; write 2/4 for the second of four", text));
  return shard;
}

Command parse_command_line(const std::vector<std::string>& argv) {
  CLI::App app(
      "Headroom measures which memory strategy to train with, and whether what is "
      "published about it holds.",
      "headroom");
  app.footer(kExamples);
  app.set_version_flag("--version", fmt::format("headroom {}", kVersion));
  app.require_subcommand(0, 1);

  const RunArguments run(app);
  const SelftestArguments selftest(app);
  ListOptions list;
  ReplayOptions replay;
  ExportOptions exported;
  std::string plan_time = "2s";
  ReportOptions report;
  CompareOptions compare;
  MergeOptions merge;
  ExportStateOptions state;
  SampleOptions sample;
  TouchOptions touch;
  const CLI::App& list_command = add_list(app, list);
  const VerifyArguments verify(app);
  const CLI::App& replay_command = add_replay(app, replay, plan_time);
  const CLI::App& export_command = add_export(app, exported);
  const PlanArguments plan(app, "plan", "Will it fit, and in how large a batch? Simulated",
                           kPlanNotes, "Training steps to simulate", 1);
  PlanArguments search(app, "search", "The largest batch and the least memory, found by training",
                       kSearchNotes, "Training steps of each trial", 2);
  LeaksOptions leaks;
  const CLI::App& leaks_command = add_leaks(app, leaks);
  int points = SearchOptions{}.points;
  add_points(search.command(), points);
  std::vector<std::string> own = argv;
  std::vector<std::string> watched;
  if (const auto dashes = std::find(own.begin(), own.end(), "--");
      !own.empty() && own.front() == "watch" && dashes != own.end()) {
    watched.assign(dashes + 1, own.end());
    own.erase(dashes, own.end());
  }
  const WatchArguments watch(app, std::move(watched));
  const CLI::App& report_command = add_report(app, report);
  const CLI::App* doctor_command =
      app.add_subcommand("doctor", "What this machine can run, and what the rest would need");
  const CLI::App& compare_command = add_compare(app, compare);
  const CLI::App& merge_command = add_merge(app, merge);
  const HistoryArguments history(app);
  const CLI::App& state_command = add_export_state(app, state);
  CLI::App& sample_command =
      add_command(app, "sample", "Run one cell in this process", "request", sample.request);
  sample_command.add_option("--result-fd", sample.result_fd);
  CLI::App& touch_command =
      add_command(app, "touch", "Commit a device's memory once", "device", touch.device);
  for (CLI::App* hidden : {&sample_command, &touch_command}) hidden->group("");

  std::vector<std::string> backwards(own.rbegin(), own.rend());
  try {
    app.parse(std::move(backwards));
  } catch (const CLI::CallForHelp&) {
    return PrintText{app.help()};
  } catch (const CLI::CallForVersion& version) {
    return PrintText{std::string(version.what()) + "\n"};
  } catch (const CLI::ExtrasError&) {
    throw_unexpected(app);
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "" : chosen.front()->get_name() + " ";
    throw InputError(fmt::format("{}; see headroom {}--help", error.what(), command));
  }

  if (run.parsed()) return run.options(argv);
  if (selftest.parsed()) return selftest.options();
  if (list_command.parsed()) return list;
  if (verify.parsed()) return verify.options();
  if (replay_command.parsed()) {
    replay.plan_time = parse_duration(plan_time, "--plan-time");
    return replay;
  }
  if (export_command.parsed()) return exported;
  if (plan.parsed()) return plan.options();
  if (leaks_command.parsed()) return leaks;
  if (search.parsed()) return SearchOptions{.asked = search.options(), .points = points};
  if (watch.parsed()) return watch.options();
  if (report_command.parsed()) return report;
  if (doctor_command->parsed()) return DoctorOptions{};
  if (compare_command.parsed()) return compare;
  if (merge_command.parsed()) return merge;
  if (history.parsed()) return history.options();
  if (state_command.parsed()) return state;
  if (sample_command.parsed()) return sample;
  if (touch_command.parsed()) return touch;
  return PrintText{app.help()};
}

}  // namespace headroom
