// Names for the figures a claim or a matrix may ask for, and how each is read from a Sample.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/results/sample.h"

namespace headroom {

struct Metric {
  enum class Class { exact, noisy };  // exact: two fresh processes must agree bit for bit
  enum class Better { less, more };
  // What the figure follows from: the device it was taken on, the rules of the allocator alone, or
  // the software of an engine, which is the same on every device.
  enum class About { device, allocator, software };

  std::string name;  // "reserved_bytes.after_step_1", "steady_step_time_ns"
  std::string unit;  // "B", "ns", "1/s", "1"
  std::string text;  // in words, for sentences
  Class on_device = Class::noisy;
  Better better = Better::less;
  // Absent where the sample did not get there or the device does not have it.
  std::function<std::optional<double>(const Sample&)> value;
  About about = About::device;
};

const std::vector<Metric>& metrics();
// Throws InputError with the nearest names.
const Metric& find_metric(std::string_view name);
// meta computes nothing: whatever it has is exact.
Metric::Class class_on(const Metric& metric, const Spec& device);

}  // namespace headroom
