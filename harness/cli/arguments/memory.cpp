// headroom plan, search, replay, export, leaks and watch: questions about memory alone.
#include "harness/cli/arguments/arguments.h"

#include <fmt/format.h>

#include <memory>

#include "harness/base/duration.h"
#include "harness/base/error.h"
#include "harness/cli/history.h"
#include "harness/cli/text/watch_units.h"
#include "harness/plan/axes.h"

namespace headroom {
namespace {

constexpr const char* kPlanNotes = R"(Examples
  headroom plan 'resnet(depth=152,batch=256,image=224,stem=imagenet,classes=1000)' --device v100-16gb
  headroom plan 'bert(size=large,batch=32,sequence=512)' --device meta:a100-80gb \
    -a optimizer=sgd -a optimizer=adam
  headroom plan 'gpt(size=175b,batch=1)' --device 4TiB -a allocator=caching --json

The answer is for PyTorch's caching allocator, or for the first one that -a allocator=… names. If it is
no, changes that would make the batch fit follow. Bytes are simulated exactly: the allocators' own code
runs on a simulated capacity. Nothing is computed or timed.

Exit status: 0 if the batch fits under at least one of the allocators, 3 if it fits under none.)";

constexpr const char* kSearchNotes = R"(Examples
  headroom search 'resnet(batch=16)' --device 'host(capacity=256MiB)' -a allocator=caching
  headroom search 'bert(size=base,batch=32,sequence=512)' --device v100-16gb --points 64 --json

On a device that computes, every trial trains in a process of its own, which takes about a second for
small models. Each allocator needs twice --points trials and a few more. On other devices bytes are
simulated, as by headroom plan.)";

constexpr const char* kLeaksNotes = R"(Examples
  headroom leaks snapshot.pickle        a PyTorch snapshot with recorded stacks: names the lines
  headroom leaks runs/RUN/traces/CELL.hrtrace --warmup 5 --fail-on leak

Reads what headroom replay reads. Bytes are counted, not estimated: they are what live blocks requested.)";

constexpr const char* kWatchNotes = R"(Examples
  headroom watch -- python train.py --epochs 3
  headroom watch --budget 8GiB --stop -- torchrun train.py
  headroom watch --fail-on leak --limit-leak 10MiB/min -- ./train
  headroom watch --pid 4711 --interval 1s

Follows the command and every process that it starts, including those whose parent has died. Polling
misses peaks that are shorter than the interval; the kernel's high-water mark of each process does
not. Growth up to the limit is not a leak, nor is a warm-up, a cache that fills or a single step up.
What the watched time cannot decide is called undecided.

Exit status: that of the command (128 + the signal that ended it), 13 if the processes exceeded
--budget, 14 if the command succeeded but leaks, with --fail-on leak.)";

// Adds the command plan or search with the options that both have.
CLI::App* add_planning(CLI::App& app, PlanOptions& plan, const std::string& name,
                       const std::string& summary, const std::string& steps, int fewest_steps) {
  constexpr int kMostSteps = 1000;
  CLI::App* command = app.add_subcommand(name, summary);
  command->add_option("workload", plan.workload, "A workload, such as 'resnet(depth=50,batch=64)'")
      ->required();
  command
      ->add_option("--device", plan.device,
                   "A device, or a card or a capacity to simulate: a100-80gb, meta:a100-80gb, "
                   "24GiB, meta(card=v100-16gb)")
      ->required();
  add_axes(*command, plan.axes,
           "axis=value, such as allocator=caching or optimizer=adam, or as --optimizer adam; may "
           "be repeated, also for one axis (default: every allocator with its defaults)");
  for (const std::string& axis : axis_names())
    if (axis != "workload" && axis != "device")
      command
          ->add_option_function<std::vector<std::string>>(
              "--" + axis,
              [&plan, axis](const std::vector<std::string>& values) {
                for (const std::string& value : values)
                  add_override(plan.axes, fmt::format("{}={}", axis, value));
              })
          ->take_all()
          ->expected(1)
          ->group("");
  command->add_option("--steps", plan.steps, steps)
      ->capture_default_str()
      ->check(CLI::Range(fewest_steps, kMostSteps));
  add_json(*command, plan.json, name);
  return command;
}

}  // namespace

Subcommand add_plan(CLI::App& app) {
  auto plan = std::make_shared<PlanOptions>();
  CLI::App* command =
      add_planning(app, *plan, "plan", "Will it fit, and in how large a batch? (simulated)",
                   "Training steps to simulate", 1);
  command->footer(kPlanNotes);
  command->add_flag("--all", plan->all, "Print the figures of every allocator");
  command->add_flag("--pytorch", plan->pytorch,
                    "Also train the same network in PyTorch on the virtual GPU, and compare; for "
                    "bert, gpt and resnet, after scripts/setup --with pytorch");
  return {.parser = command, .command = [plan]() -> Command { return *plan; }};
}

Subcommand add_search(CLI::App& app) {
  auto search = std::make_shared<SearchOptions>();
  CLI::App* command = add_planning(app, search->asked, "search",
                                   "Find the largest batch and the least memory by training",
                                   "Training steps of each trial", 2);
  command->footer(kSearchNotes);
  command
      ->add_option("--points", search->points,
                   "Number of evenly spaced batches to try, and of capacities from the live bytes "
                   "to twice those")
      ->capture_default_str()
      ->check(CLI::Range(2, 100'000));
  return {.parser = command, .command = [search]() -> Command { return *search; }};
}

Subcommand add_replay(CLI::App& app) {
  auto replay = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand(
      "replay", "Which strategies would have served your own allocation history?");
  command->footer(R"(Examples
  headroom replay snapshot.pickle --capacity 24GiB       a PyTorch memory snapshot
  headroom replay rmm_log.csv --capacity 80GiB --allocator 'bfc(growth=on)' --allocator malloc
  headroom replay runs/RUN/traces/CELL.hrtrace --json     a Headroom trace

The first line is the answer for PyTorch's caching allocator; the settings that would do better follow.
Reads Headroom traces, PyTorch memory snapshots (torch.cuda.memory._dump_snapshot), RMM logs,
MiniMalloc CSV and STAlloc text. Nothing is computed; bytes are simulated exactly.)");
  command->add_option("file", replay->file, "The allocation history")->required();
  command
      ->add_option("--allocator", replay->allocators,
                   "A strategy (default: all of them); may be repeated")
      ->take_all()
      ->expected(1);
  command->add_option("--capacity", replay->capacity,
                      "Capacity of the device, such as 80GiB (default: that of the trace)");
  command->add_option(
      "--granule", replay->granule,
      "Smallest piece that the device maps (default: that of the trace, else 2MiB, or "
      "1 on a smaller capacity)");
  command
      ->add_option_function<std::string>(
          "--plan-time",
          [replay](const std::string& text) {
            replay->plan_time = parse_duration(text, "--plan-time");
          },
          "How long to search for a plan made with the whole history known (200ms, 2s, 5m); "
          "up to ten times as long while no plan fits into the capacity")
      ->default_str("2s");
  command->add_flag("--all", replay->all,
                    "Print every figure of every strategy, the smallest capacity among them");
  add_json(*command, replay->json, "replay");
  return {.parser = command, .command = [replay]() -> Command { return *replay; }};
}

Subcommand add_export(CLI::App& app) {
  auto exported = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "Convert an allocation history for another program");
  command->footer(R"(Examples
  headroom export runs/RUN/traces/CELL.hrtrace --to pytorch -o snapshot.pickle
                                        for PyTorch's viewer, pytorch.org/memory_viz
  headroom export rmm_log.csv --to minimalloc -o buffers.csv
  headroom export snapshot.pickle --to headroom -o snapshot.hrtrace

Reads whatever headroom replay reads. harness/trace/formats/README.md says what each format
carries and what is lost.)");
  command->add_option("file", exported->file, "The allocation history")->required();
  command->add_option("--to", exported->format, "The format")
      ->required()
      ->check(CLI::IsMember(history_formats()));
  command->add_option("-o,--output", exported->out, "The file to write")->required();
  return {.parser = command, .command = [exported]() -> Command { return *exported; }};
}

Subcommand add_leaks(CLI::App& app) {
  auto leaks = std::make_shared<LeaksOptions>();
  CLI::App* command = app.add_subcommand(
      "leaks", "Which blocks of an allocation history outlive their step, and do they grow?");
  command->add_option("file", leaks->file, "An allocation history, as for headroom replay")
      ->required();
  command->footer(kLeaksNotes);
  command
      ->add_option("--warmup", leaks->warmup,
                   "Steps to leave out at the beginning (default: 2, or a quarter of a history "
                   "without steps)")
      ->check(whole_from(0));
  add_fail_on(*command, "leak", leaks->fail_on_leak, "exit status 14 if there is one");
  add_json(*command, leaks->json, "leaks");
  return {.parser = command, .command = [leaks]() -> Command { return *leaks; }};
}

Subcommand add_watch(CLI::App& app, std::vector<std::string> started) {
  auto watch = std::make_shared<WatchOptions>();
  watch->command = std::move(started);
  CLI::App* command = app.add_subcommand(
      "watch", "Follow the memory of a command and its processes: timeline, leak verdict, budget");
  command->footer(kWatchNotes);
  command->add_option("--pid", watch->pid, "Follow this process instead of starting a command")
      ->check(whole_from(1));
  command
      ->add_option_function<std::string>(
          "--interval",
          [watch](const std::string& text) {
            watch->plan.interval = parse_interval(text, "--interval");
          },
          "Polling interval")
      ->default_str("100ms");
  CLI::Option* budget = command->add_option_function<std::string>(
      "--budget",
      [watch](const std::string& text) { watch->plan.budget = parse_bytes(text, "--budget"); },
      "Limit on the memory of all processes together at their peak, such as 4GiB");
  command
      ->add_flag("--stop", watch->plan.stop_over_budget,
                 "End the processes when they exceed the budget: SIGTERM, 5 s later SIGKILL")
      ->needs(budget);
  command
      ->add_option_function<std::string>(
          "--limit-leak",
          [watch](const std::string& text) {
            watch->leak.harmless_slope = parse_bytes_per_minute(text, "--limit-leak");
          },
          "Treat growth up to this as harmless")
      ->run_callback_for_default()
      ->default_val("1MiB/min");
  add_fail_on(*command, "leak", watch->fail_on_leak, "exit status 14 if there is one");
  command->add_option("--out", watch->out,
                      "A new directory for timeline and page (default: below runs)");
  command->add_flag("!--no-page", watch->page, "Write the figures without an HTML page");
  return {.parser = command, .command = [watch]() -> Command {
            if (watch->command.empty() == !watch->pid)
              throw InputError(
                  "watch: name a command, as in headroom watch -- python train.py, or a running "
                  "process, as in headroom watch --pid 4711");
            return *watch;
          }};
}

}  // namespace headroom
