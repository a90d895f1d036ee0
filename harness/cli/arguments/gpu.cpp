// headroom gpu: runs a user's training script on a virtual GPU.
#include <fmt/format.h>

#include <memory>

#include "harness/base/error.h"
#include "harness/cli/arguments/arguments.h"
#include "harness/device/meta/cards.h"

namespace headroom {
namespace {

constexpr const char* kNotes = R"(Examples
  headroom gpu rtx4090 -- python train.py --batch 16      does it fit, and what holds the memory?
  headroom gpu --which -- python train.py                 the smallest card on which it fits
  headroom gpu t4 --largest-batch --batch -- python train.py
  headroom gpu a100-80gb --gpus 2 -- torchrun --nproc-per-node 2 train.py
  headroom gpu g5.12xlarge -- torchrun --nproc-per-node 4 train.py   a rented machine and its cards
  headroom gpu h100 --world 64 -- python train.py         rank 0 of 64
  headroom gpu h100 --until-step 3 --json -- python train.py
  headroom gpu l4 --budget 20GiB -- python train.py       for CI: exit status 13 above 20 GiB
  headroom gpu l4 --allocator 'bfc(growth=on)' -- python train.py    and with TensorFlow's allocator?
  headroom gpu h200 --check -- python train.py            on a machine with an H200: is it right?

Runs the command with libraries that stand in for CUDA's. Kernels do nothing, and device memory is
address space without pages; the framework's own code does everything else, and its own allocator
decides the bytes. There are no times, and results are zeros but for those that follow from the
program's data alone, such as masks: code that depends on others (sampling, early stopping) may
behave differently or stop. It needs PyTorch 2.6, TensorFlow 2.21 or JAX 0.10, or newer, from their
ordinary wheels. Of NVIDIA's wheels only nvidia-cudnn matters: it knows the workspaces of
convolutions.

Not counted: the CUDA context and loaded kernels (a few hundred MiB on a real card; --context leaves
room for them), buffers of NCCL, and what the list "not known" names.

Exit status: 0 if it fits, 3 if it does not, 13 if it reserved more than --budget, 10 if it needs more
memory than the run of --against; that of the command if it failed for another reason.)";

constexpr const char* kCaptureNotes = R"(Examples
  headroom capture -- python train.py                     what holds the memory of this machine's GPU?
  headroom capture -- python train_on_cpu.py              and, without a GPU, the CPU's memory (PyTorch)?
  headroom capture --out real -- python train.py
  headroom gpu h100 --against real -- python train.py     how accurate is the virtual GPU?
  headroom capture --allocator bfc --allocator caching --rounds 5 -- python train_on_cpu.py

Runs the command and records what PyTorch, TensorFlow or JAX reports about its memory. It switches on
PyTorch's history of allocations or, on a machine without a GPU, PyTorch's profiler. Both make each step
slower. Runs with --allocator use neither: they report memory and, with three or more rounds, the time
of a step.

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

// Adds the options that capture and gpu both have.
void add_recording(CLI::App& command, RecordingOptions& capture) {
  command
      .add_option_function<std::string>(
          "--until-step",
          [&capture](const std::string& text) { capture.until_step = steps_from(text); },
          "Stop after this many optimizer steps; all: run to the end")
      ->default_str(std::to_string(capture.until_step));
  command.add_option(
      "--allocator", capture.allocators,
      "Also run it with this one of Headroom's allocators in place of PyTorch's; for "
      "capture, on the CPU (repeatable)");
  command.add_option("--out", capture.out,
                     "A new directory for what is recorded (default: below runs)");
  command.add_flag("--html", capture.html, "Write a page, report.html, beside the records");
  command.add_flag("--json", capture.json,
                   "For programs; what the command prints goes to standard error");
}

template <typename Target>
void add_bytes(CLI::App& command, const std::string& name, Target& bytes, const char* help) {
  command.add_option_function<std::string>(
      name, [name, &bytes](const std::string& text) { bytes = parse_bytes(text, name); }, help);
}

void check(const GpuOptions& options) {
  if (options.command.empty())
    throw InputError(
        "gpu: name the command after --, as in headroom gpu rtx4090 -- python train.py");
  if (options.card.empty() == !options.which)
    throw InputError("gpu: name one card, as in headroom gpu rtx4090 -- …, or --which");
  if (!(options.mask_share >= 0 && options.mask_share <= 1))
    throw InputError(fmt::format("--mask-share {}: name a share from 0 to 1", options.mask_share));
  if (options.which + !options.batch.empty() + options.settings + !options.allocators.empty() +
          options.check >
      1)
    throw InputError(
        "gpu: --which, --largest-batch, --settings, --allocator and --check each run the command "
        "many times; choose one");
}

void count_cards(GpuOptions& options) {
  const Machine* machine = machine_called(options.card);
  const int cards = machine != nullptr ? machine->cards : 1;
  if (machine != nullptr && options.devices > cards)
    throw InputError(fmt::format("--gpus {}: {} has {}", options.devices, machine->name, cards));
  if (options.devices == 0) options.devices = cards;
  const Card* card = card_called(options.card);
  if (card != nullptr && card->is_instance && options.devices > 1)
    throw InputError(fmt::format("--gpus {}: a process sees only one GPU instance, such as {}",
                                 options.devices, card->id));
}

}  // namespace

Subcommand add_capture(CLI::App& app, std::vector<std::string> started) {
  auto capture = std::make_shared<CaptureOptions>();
  capture->command = std::move(started);
  CLI::App* command = app.add_subcommand(
      "capture", "Run your own script on this machine's GPU or CPU: what holds memory?");
  command->footer(kCaptureNotes);
  add_recording(*command, *capture);
  add_bytes(*command, "--capacity", capture->capacity,
            "Memory that --allocator may take, such as 8GiB (default: half of what is available)");
  command
      ->add_option("--rounds", capture->rounds,
                   "How often to run each --allocator and PyTorch's own, in turns")
      ->check(whole_from(1))
      ->capture_default_str();
  return {.parser = command, .command = [capture]() -> Command {
            if (capture->command.empty())
              throw InputError(
                  "capture: name the command after --, as in headroom capture -- python train.py");
            return *capture;
          }};
}

Subcommand add_gpu(CLI::App& app, std::vector<std::string> started) {
  auto gpu = std::make_shared<GpuOptions>();
  gpu->command = std::move(started);
  CLI::App* command = app.add_subcommand(
      "gpu", "Run your own training script on a GPU that is not there: does it fit?");
  command->footer(kNotes);
  command->add_option("card", gpu->card,
                      "The card, as in rtx4090 or a100-80gb; a cloud's machine, as in g5.12xlarge; "
                      "or a file that describes a card, as in mine.toml");
  command->add_flag("--which", gpu->which, "Find the smallest card on which it fits");
  command->add_option("--largest-batch", gpu->batch,
                      "Find the largest batch by running the command again; names the option that "
                      "sets it, as in --batch, an argument NAME=…, or an environment variable");
  command->add_flag("--settings", gpu->settings,
                    "Also run it with other settings of PyTorch's allocator");
  command
      ->add_option("--gpus", gpu->devices, "Number of cards (default: 1, or those of the machine)")
      ->check(whole_from(1));
  command
      ->add_option("--world", gpu->world,
                   "Let one process act as rank 0 of this many, without torchrun")
      ->check(whole_from(1));
  command
      ->add_option(
          "--mask-share", gpu->mask_share,
          "Share of the elements to select, such as 0.5, where a mask depends on values that "
          "are not computed (PyTorch)")
      ->capture_default_str();
  add_bytes(*command, "--memory", gpu->memory,
            "Memory of the card, such as 20GiB, in place of its own");
  add_bytes(*command, "--context", gpu->context,
            "Memory that the CUDA context takes, such as 500MiB (default: none)");
  add_bytes(*command, "--budget", gpu->budget,
            "Limit on the reserved memory at the peak, such as 20GiB");
  command->add_option("--against", gpu->against,
                      "gpu.json of an earlier run, or its directory: show what grew since");
  command->add_option("--cudnn", gpu->cudnn,
                      "libcudnn.so.9, 9.8 or newer, which chooses workspaces; none: they count as "
                      "0 bytes (default: the one of the program's Python)");
  command->add_flag("--beside-real-gpu", gpu->beside_real_gpu,
                    "Run although this machine has a real GPU");
  command->add_flag("--check", gpu->check,
                    "Run it on this machine's GPU as well, and show both peaks");
  add_recording(*command, *gpu);
  return {.parser = command, .command = [gpu]() -> Command {
            check(*gpu);
            count_cards(*gpu);
            return *gpu;
          }};
}

}  // namespace headroom
