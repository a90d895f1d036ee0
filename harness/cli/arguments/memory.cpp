// headroom plan, search, replay, export, leaks and watch: questions about memory alone.
#include "harness/cli/arguments/arguments.h"

#include <fmt/format.h>

#include <memory>

#include "harness/base/duration.h"
#include "harness/base/error.h"
#include "harness/cli/history.h"
#include "harness/cli/text/watch_units.h"

namespace headroom {
namespace {

constexpr const char* kPlanNotes = R"(Examples
  headroom plan 'resnet(depth=152,batch=256,image=224,stem=imagenet,classes=1000)' --device v100-16gb
  headroom plan 'bert(size=large,batch=32,sequence=512)' --device meta:a100-80gb \
    -a optimizer=sgd -a optimizer=adam
  headroom plan 'gpt(size=175b,batch=1)' --device 4TiB -a allocator=caching --json

Bytes are simulated, exactly, by the allocators' own code on a capacity that exists on paper; nothing
is computed and nothing is timed. Exit status 0 when the batch fits under one of the allocators at
least, 3 when it fits under none.)";

constexpr const char* kSearchNotes = R"(Examples
  headroom search 'resnet(batch=16)' --device 'host(capacity=256MiB)' -a allocator=caching
  headroom search 'bert(size=base,batch=32,sequence=512)' --device v100-16gb --points 64 --json

On a device that computes, every trial is trained, in a process of its own: about a second each for
small models, twice the points and a few for each allocator. Elsewhere bytes are simulated, as for
headroom plan.)";

constexpr const char* kLeaksNotes = R"(Examples
  headroom leaks snapshot.pickle        of PyTorch, with its recorded stacks: names the lines
  headroom leaks runs/RUN/traces/CELL.hrtrace --warmup 5 --fail-on leak

Reads what headroom replay reads. Bytes are counted, not estimated: what live blocks asked for.)";

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
    command_.add_flag("--json", plan_.json,
                      fmt::format("For programs: {} of reports/schema.json", name));
  }

  CLI::App* parser() const { return &command_; }

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

// headroom watch: what stands after -- is the command's, options and all.
class WatchArguments {
 public:
  WatchArguments(CLI::App& app, std::vector<std::string> command)
      : command_(*app.add_subcommand(
            "watch", "Memory of a command and its processes: timeline, leak verdict, budget")) {
    watch_.command = std::move(command);
    command_.footer(kWatchNotes);
    command_.add_option("--pid", watch_.pid, "Follow this process instead of starting a command")
        ->check(whole_from(1));
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
  CLI::App* parser() const { return &command_; }
  WatchOptions options() const {
    WatchOptions watch = watch_;
    if (watch.command.empty() == !watch.pid)
      throw InputError(
          "watch: name a command, as in headroom watch -- python train.py, or a process "
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

}  // namespace

Subcommand add_plan(CLI::App& app) {
  auto arguments = std::make_shared<PlanArguments>(
      app, "plan", "Will it fit, and in how large a batch? Simulated", kPlanNotes,
      "Training steps to simulate", 1);
  return {.parser = arguments->parser(),
          .command = [arguments]() -> Command { return arguments->options(); }};
}

Subcommand add_search(CLI::App& app) {
  auto arguments = std::make_shared<PlanArguments>(
      app, "search", "The largest batch and the least memory, found by training", kSearchNotes,
      "Training steps of each trial", 2);
  auto points = std::make_shared<int>(SearchOptions{}.points);
  arguments->parser()
      ->add_option("--points", *points,
                   "Batches, and capacities from the live bytes to twice those, to try evenly")
      ->capture_default_str()
      ->check(CLI::Range(2, 100'000));
  return {.parser = arguments->parser(), .command = [arguments, points]() -> Command {
            return SearchOptions{.asked = arguments->options(), .points = *points};
          }};
}

Subcommand add_replay(CLI::App& app) {
  auto replay = std::make_shared<ReplayOptions>();
  auto plan_time = std::make_shared<std::string>("2s");
  CLI::App* command = app.add_subcommand(
      "replay", "Your own allocation history under every strategy: which would have served it?");
  command->footer(R"(Examples
  headroom replay snapshot.pickle --capacity 24GiB       a PyTorch memory snapshot
  headroom replay rmm_log.csv --capacity 80GiB --allocator 'bfc(growth=on)' --allocator malloc
  headroom replay runs/RUN/traces/CELL.hrtrace --json     a Headroom trace

Reads Headroom traces, PyTorch memory snapshots (torch.cuda.memory._dump_snapshot), RMM logs,
MiniMalloc CSV and STAlloc text. Nothing is computed: bytes are simulated, exactly.)");
  command->add_option("file", replay->file, "The history")->required();
  command
      ->add_option("--allocator", replay->allocators,
                   "A strategy, or all of them (default); may be repeated")
      ->take_all()
      ->expected(1);
  command->add_option("--capacity", replay->capacity, "As in 80GiB (default: what the trace says)");
  command->add_option("--granule", replay->granule,
                      "What the device maps at once (default: what the trace says, else 2MiB, or 1 "
                      "on a capacity below)");
  command
      ->add_option(
          "--plan-time", *plan_time,
          "How long to look for a plan made with all of it known ahead; up to ten times as "
          "long while none is found that fits into the capacity: 200ms, 2s, 5m")
      ->capture_default_str();
  command->add_flag("--json", replay->json, "For programs: replay of reports/schema.json");
  return {.parser = command, .command = [replay, plan_time]() -> Command {
            replay->plan_time = parse_duration(*plan_time, "--plan-time");
            return *replay;
          }};
}

Subcommand add_export(CLI::App& app) {
  auto exported = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "An allocation history as another program reads it");
  command->footer(R"(Examples
  headroom export runs/RUN/traces/CELL.hrtrace --to pytorch -o snapshot.pickle
                                        for PyTorch's viewer, pytorch.org/memory_viz
  headroom export rmm_log.csv --to minimalloc -o buffers.csv
  headroom export snapshot.pickle --to headroom -o snapshot.hrtrace

Reads whatever headroom replay reads. harness/trace/formats/README.md says what each format
carries and what is lost.)");
  command->add_option("file", exported->file, "The history")->required();
  command->add_option("--to", exported->format, "The format")
      ->required()
      ->check(CLI::IsMember(history_formats()));
  command->add_option("-o,--output", exported->out, "The file to write")->required();
  return {.parser = command, .command = [exported]() -> Command { return *exported; }};
}

Subcommand add_leaks(CLI::App& app) {
  auto leaks = std::make_shared<LeaksOptions>();
  CLI::App* command = app.add_subcommand(
      "leaks", "An allocation history: which blocks outlive their step, and do they grow?");
  command->add_option("file", leaks->file, "As headroom replay reads it")->required();
  command->footer(kLeaksNotes);
  command
      ->add_option(
          "--warmup", leaks->warmup,
          "Steps at the beginning to leave out (default: 2, or a quarter of a history that "
          "tells no steps apart)")
      ->check(whole_from(0));
  command
      ->add_option_function<std::string>(
          "--fail-on", [leaks](const std::string&) { leaks->fail_on_leak = true; },
          "Exit status 14 when this is found")
      ->check(CLI::IsMember({"leak"}));
  command->add_flag("--json", leaks->json, "For programs: leaks of reports/schema.json");
  return {.parser = command, .command = [leaks]() -> Command { return *leaks; }};
}

Subcommand add_watch(CLI::App& app, std::vector<std::string> command) {
  auto arguments = std::make_shared<WatchArguments>(app, std::move(command));
  return {.parser = arguments->parser(),
          .command = [arguments]() -> Command { return arguments->options(); }};
}

}  // namespace headroom
