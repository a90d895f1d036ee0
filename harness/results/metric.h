// The metrics that a claim or a matrix can name, and how each is read from a Sample.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/depends_on.h"
#include "harness/results/sample.h"

namespace headroom {

struct Metric {
  // exact: fresh processes must agree bit for bit, or within DeviceTraits::exact_within.
  enum class Class { exact, noisy };
  enum class Better { less, more };

  std::string name;  // "reserved_bytes.after_step_1", "steady_step_time_ns"
  std::string unit;  // "B", "ns", "1/s", "1"
  std::string text;  // description for use in sentences
  Class on_device = Class::noisy;
  Better better = Better::less;
  // Absent if the sample did not get that far or the device does not have the figure.
  std::function<std::optional<double>(const Sample&)> value;
  DependsOn depends_on = DependsOn::device;
  // Name of the metric that counts rare slow steps in full, if this one leaves them out; else "".
  std::string mean = {};
  // The logarithm of treatment / baseline for two samples that took turns: the median over their
  // steps of the same number. Those ran within moments of each other, so what slows the machine for
  // a while slows both. Absent if the samples took no turns; empty if the metric has only `value`.
  std::function<std::optional<double>(const Sample& baseline, const Sample& treatment)> in_turns =
      {};
};

const std::vector<Metric>& metrics();
// Throws InputError that suggests the nearest names.
const Metric& find_metric(std::string_view name);
// Returns the class of a metric on a device. On exact devices every metric is exact.
Metric::Class class_on(const Metric& metric, const Spec& device);

}  // namespace headroom
