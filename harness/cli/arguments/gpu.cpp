// headroom gpu: runs a user's training script on a virtual GPU.
#include <memory>

#include "harness/base/error.h"
#include "harness/cli/arguments/arguments.h"

namespace headroom {
namespace {

constexpr const char* kNotes = R"(Examples
  headroom gpu rtx4090 -- python train.py --batch 16      does it fit, and who holds the memory?
  headroom gpu --which -- python train.py                 the smallest card on which it fits
  headroom gpu t4 --largest-batch --batch -- python train.py
  headroom gpu a100-80gb --gpus 2 -- torchrun --nproc-per-node 2 train.py
  headroom gpu h100 --world 64 -- python train.py         rank 0 of 64
  headroom gpu h100 --until-step 3 --json -- python train.py
  headroom gpu l4 --budget 20GiB -- python train.py       for CI: exit status 13 above 20 GiB
  headroom gpu l4 --allocator 'bfc(growth=on)' -- python train.py    and with TensorFlow's allocator?

Runs the command with libraries that stand in for CUDA's. Kernels do nothing, and device memory is
address space without pages; the framework's own code does everything else, and its own allocator
decides the bytes. There are no times, and results are zeros: code that depends on them (sampling,
early stopping, routing) may behave differently or stop. It needs PyTorch 2.6 or newer, from its
ordinary wheels. Of NVIDIA's wheels only nvidia-cudnn matters: it knows the workspaces of
convolutions.

Not counted: the CUDA context and loaded kernels (a few hundred MiB on a real card; --context leaves
room for them), buffers of NCCL, and what the list "not known" names.

Exit status: 0 if it fits, 3 if it does not, 13 if it reserved more than --budget, 10 if it needs more
memory than the run of --against; that of the command if it failed for another reason.)";

constexpr const char* kCaptureNotes = R"(Examples
  headroom capture -- python train.py                     what holds the memory of this machine's GPU?
  headroom capture -- python train_on_cpu.py              and without a GPU, of its CPU's memory (PyTorch)?
  headroom capture --out real -- python train.py
  headroom gpu h100 --against real -- python train.py     how accurate is the virtual GPU?
  headroom capture --allocator bfc --allocator caching --rounds 5 -- python train_on_cpu.py

Runs the command and records what PyTorch, TensorFlow or JAX reports about its memory. It switches on
PyTorch's history of allocations or, on a machine without a GPU, PyTorch's profiler. Both make each step
slower. Runs of --allocator do without: they tell the memory and, from three rounds on, the time of a step.

Exit status: that of the command; 2 if nothing was captured.)";

// The value of --until-step; 0 = to the end.
int steps_from(const std::string& text) {
  if (text == "all") return 0;
  std::size_t end = 0;
  int steps = 0;
  try {
    steps = std::stoi(text, &end);
  } catch (const std::exception&) {
  }
  if (end != text.size() || steps < 1)
    throw InputError("--until-step " + text + ": name a number of steps from 1 on, or all");
  return steps;
}

}  // namespace

Subcommand add_capture(CLI::App& app, std::vector<std::string> command) {
  struct Arguments {
    CaptureOptions options;
    std::string until_step = "5", capacity;
  };
  auto given = std::make_shared<Arguments>();
  given->options.command = std::move(command);
  CLI::App* parser = app.add_subcommand(
      "capture", "Run your own script on this machine's GPU or CPU: what holds memory?");
  parser->footer(kCaptureNotes);
  parser
      ->add_option("--until-step", given->until_step,
                   "Stop after this many optimizer steps; all: run to the end")
      ->capture_default_str();
  parser->add_option("--allocator", given->options.allocators,
                     "Also run it with this one of Headroom's allocators in place of PyTorch's, on "
                     "the CPU (repeatable)");
  parser->add_option("--capacity", given->capacity,
                     "Memory that --allocator may take, such as 8GiB (default: half of what is "
                     "available)");
  parser
      ->add_option("--rounds", given->options.rounds,
                   "How often to run each --allocator and PyTorch's own, in turns")
      ->check(whole_from(1))
      ->capture_default_str();
  parser->add_option("--out", given->options.out,
                     "A new directory for what is recorded (default: below runs)");
  parser->add_flag("--html", given->options.html, "Write a page, report.html, beside the records");
  parser->add_flag("--json", given->options.json,
                   "For programs; what the command prints goes to standard error");
  return {.parser = parser, .command = [given]() -> Command {
            CaptureOptions options = given->options;
            if (options.command.empty())
              throw InputError(
                  "capture: name the command after --, as in headroom capture -- python train.py");
            options.until_step = steps_from(given->until_step);
            if (!given->capacity.empty())
              options.capacity = parse_bytes(given->capacity, "--capacity");
            return options;
          }};
}

namespace {

struct GpuArguments {
  GpuOptions options;
  std::string memory, context, budget, until_step = "5";
};

Command gpu_command(const GpuArguments& given) {
  GpuOptions options = given.options;
  if (options.command.empty())
    throw InputError(
        "gpu: name the command after --, as in headroom gpu rtx4090 -- python train.py");
  if (options.card.empty() == !options.which)
    throw InputError("gpu: name one card, as in headroom gpu rtx4090 -- …, or --which");
  if (options.which + !options.batch.empty() + options.settings + !options.allocators.empty() > 1)
    throw InputError(
        "gpu: --which, --largest-batch, --settings and --allocator each run the command many "
        "times; "
        "choose one");
  if (!given.memory.empty()) options.memory = parse_bytes(given.memory, "--memory");
  if (!given.context.empty()) options.context = parse_bytes(given.context, "--context");
  if (!given.budget.empty()) options.budget = parse_bytes(given.budget, "--budget");
  options.until_step = steps_from(given.until_step);
  return options;
}

}  // namespace

Subcommand add_gpu(CLI::App& app, std::vector<std::string> command) {
  auto given = std::make_shared<GpuArguments>();
  given->options.command = std::move(command);
  CLI::App* parser = app.add_subcommand(
      "gpu", "Run your own training script on a GPU that is not there: does it fit?");
  parser->footer(kNotes);
  parser->add_option("card", given->options.card, "The card, as in rtx4090 or a100-80gb");
  parser->add_flag("--which", given->options.which, "Find the smallest card on which it fits");
  parser->add_option("--largest-batch", given->options.batch,
                     "Find the largest batch by running the command again; names the option that "
                     "sets it, as in --batch, an argument NAME=…, or an environment variable");
  parser->add_flag("--settings", given->options.settings,
                   "Also run it with other settings of PyTorch's allocator");
  parser->add_option("--allocator", given->options.allocators,
                     "Also run it with this one of Headroom's allocators in place of PyTorch's "
                     "(repeatable)");
  parser->add_option("--gpus", given->options.devices, "Number of cards")
      ->check(whole_from(1))
      ->capture_default_str();
  parser
      ->add_option("--world", given->options.world,
                   "Let one process act as rank 0 of this many, without torchrun")
      ->check(whole_from(1));
  parser->add_option("--memory", given->memory,
                     "Memory of the card, such as 20GiB, in place of its own");
  parser->add_option("--context", given->context,
                     "Memory that the CUDA context takes, such as 500MiB (default: none)");
  parser
      ->add_option("--until-step", given->until_step,
                   "Stop after this many optimizer steps; all: run to the end")
      ->capture_default_str();
  parser->add_option("--budget", given->budget,
                     "Limit on the reserved memory at the peak, such as 20GiB");
  parser->add_option("--against", given->options.against,
                     "gpu.json of an earlier run, or its directory: show what grew since");
  parser->add_option("--cudnn", given->options.cudnn,
                     "libcudnn.so.9, 9.8 or newer, which chooses workspaces; none: they count as "
                     "0 bytes (default: the one of the program's Python)");
  parser->add_flag("--beside-real-gpu", given->options.beside_real_gpu,
                   "Run although this machine has a real GPU");
  parser->add_option("--out", given->options.out,
                     "A new directory for what is recorded (default: below runs)");
  parser->add_flag("--html", given->options.html, "Write a page, report.html, beside the records");
  parser->add_flag("--json", given->options.json,
                   "For programs; what the command prints goes to standard error");
  return {.parser = parser, .command = [given] { return gpu_command(*given); }};
}

}  // namespace headroom
