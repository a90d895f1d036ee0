#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/base/text.h"
#include "harness/cli/text/gpu/frameworks_text.h"
#include "harness/cli/text/gpu/gpu_answer.h"

namespace headroom {

using virtual_gpu::Framework;
using virtual_gpu::FrameworkUse;

std::string to_words(const CaptureAnswer& answer) {
  const virtual_gpu::Outcome& outcome = answer.outcome;
  if (outcome.frameworks.empty())
    return "NOTHING CAPTURED: no framework reported memory on a CUDA device, and PyTorch reported "
           "none on the CPU\n";
  std::string text =
      outcome.out_of_memory()
          ? fmt::format("OUT OF MEMORY {}\n  {}\n", when_it_ended(outcome),
                        why_out_of_memory(outcome))
          : fmt::format("PEAK: {} ({})\n", format_bytes(peak_of(answer)), steps_of(outcome));
  text += after_stop_text(outcome, answer.exit_status);
  for (const Framework& framework : outcome.frameworks) {
    for (const FrameworkUse& use : framework.devices) {
      text += device_text(use);
      if (use.kind == "cpu")
        text +=
            "  as PyTorch's profiler reports it: tensors only, without what the C library keeps "
            "beside them\n";
      if (use.card_memory > 0)
        text += fmt::format(
            "  {} of {}; {} beside the allocator at the end: context, kernels, libraries, and "
            "other "
            "programs\n",
            printable(use.card), format_bytes(use.card_memory), format_bytes(use.beside_allocator));
    }
    if (!framework.snapshot.empty())
      text += fmt::format("  how other allocators would serve it: headroom replay {}/{}\n",
                          answer.directory, printable(framework.snapshot));
  }
  if (!answer.served.empty()) text += to_words(answer.served) + "\n";
  return text + fmt::format("  the virtual GPU beside it: headroom gpu CARD --against {} -- …\n",
                            answer.directory);
}

}  // namespace headroom
