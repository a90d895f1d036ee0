// Shows the peaks of the same program on the machine's own GPU and on the virtual one.
#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "harness/base/text.h"
#include "harness/cli/text/gpu/gpu_answer.h"

namespace headroom {
namespace {

struct Peaks {
  Bytes measured = 0, on_virtual = 0;
};

struct BothPeaks {
  std::string card, framework;
  Peaks allocated, reserved;
};

BothPeaks both_peaks(const GpuAnswer& answer) {
  const virtual_gpu::Outcome& real = answer.measured->outcome;
  const ServedRun measured = served_run("", GpuVerdict::fits, real);
  const ServedRun on_virtual = served_run("", GpuVerdict::fits, answer.outcome);
  const virtual_gpu::Framework& framework = real.frameworks.front();
  return {.card = framework.devices.empty() ? "" : framework.devices.front().card,
          .framework = framework.name,
          .allocated = {measured.peak_allocated, on_virtual.peak_allocated},
          .reserved = {measured.peak_reserved, on_virtual.peak_reserved}};
}

std::string line_of(const char* counter, const Peaks& peaks) {
  if (peaks.measured == 0) return "";  // TensorFlow has no such counter
  const std::string difference =
      peaks.measured == peaks.on_virtual
          ? "none"
          : fmt::format("{:+.2f} %", 100 * (static_cast<double>(peaks.on_virtual) /
                                                static_cast<double>(peaks.measured) -
                                            1));
  return fmt::format("    {:<10} {:>11}  {:>11}  {:>10}\n", counter, format_bytes(peaks.measured),
                     format_bytes(peaks.on_virtual), difference);
}

}  // namespace

std::string comparison_with_measured(const GpuAnswer& answer) {
  const BothPeaks found = both_peaks(answer);
  const int status = answer.measured->exit_status;
  return fmt::format(
             "\nAt the peak, as {} counts on this machine's GPU{} and on the virtual one\n"
             "    {:<10} {:>11}  {:>11}  {:>10}\n",
             printable(found.framework),
             found.card.empty() ? "" : fmt::format(" ({})", printable(found.card)), "", "measured",
             "virtual", "difference") +
         line_of("allocated", found.allocated) + line_of("reserved", found.reserved) +
         (status == 0
              ? ""
              : fmt::format("  on this machine's GPU the program ended with exit status {}; "
                            "measured is its peak until then\n",
                            status)) +
         fmt::format(
             "  as a row (card, framework, allocated, reserved; measured, then virtual):\n"
             "    {},{},{},{},{},{}\n",
             answer.card->id, printable(found.framework), found.allocated.measured,
             found.allocated.on_virtual, found.reserved.measured, found.reserved.on_virtual);
}

nlohmann::ordered_json measured_to_json(const GpuAnswer& answer) {
  const BothPeaks found = both_peaks(answer);
  return {{"card", found.card},
          {"framework", found.framework},
          {"exit_status", answer.measured->exit_status},
          {"peak_allocated_bytes", found.allocated.measured},
          {"peak_reserved_bytes", found.reserved.measured},
          {"virtual_peak_allocated_bytes", found.allocated.on_virtual},
          {"virtual_peak_reserved_bytes", found.reserved.on_virtual}};
}

}  // namespace headroom
