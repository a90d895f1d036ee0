// Cells that train for a few steps within moments.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "harness/plan/axes.h"
#include "harness/runner/run_cell.h"

namespace headroom::testing {

inline constexpr const char* kSmallHost = "host(capacity=1GiB)";

// The first of `steps` is warm-up. `axes` maps axes to values; others keep their defaults.
inline Cell small_cell(const std::string& workload,
                       const std::map<std::string, std::string>& axes = {}, int steps = 4,
                       const std::string& device = kSmallHost) {
  Cell cell{.workload = Spec::parse(workload),
            .device = Spec::parse(device),
            .rules = device.starts_with("host") ? "onednn" : "dense",
            .allocator = Spec::parse("bfc(growth=on)"),
            .warmup_steps = 1,
            .measured_steps = steps - 1};
  for (const auto& [axis, value] : axes) set_axis(cell, axis, value);
  return cell;
}

// Fails the test where the cell does not train.
inline std::vector<double> losses_of(const Cell& cell) {
  const Sample sample = run_cell(cell, 5, "");
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  return sample.loss;
}

}  // namespace headroom::testing
