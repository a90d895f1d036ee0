// Tests when the samples of one configuration agree on an exact figure.
#include "harness/evidence/arm_state.h"

#include <gtest/gtest.h>

#include "tests/unit/support/synthetic_samples.h"

namespace headroom::arm_state_test {
namespace {

// Returns the value that two samples agree on if they reserved these bytes before the first step.
std::optional<double> agreed(const std::string& device, Bytes first, Bytes second) {
  const Experiment experiment = synthetic::experiment(device);
  std::vector<Sample> samples;
  for (const Bytes bytes : {first, second}) {
    samples.push_back(synthetic::sample(experiment, "base", static_cast<int>(samples.size())));
    samples.back().ledger.reserved.initial = bytes;
  }
  const SampleTable table(samples);
  return agreed_value(table.of(experiment.id, "base"), find_metric("reserved_bytes.initial"));
}

TEST(SamplesOfOneConfiguration, agree_on_a_simulated_device_to_the_byte) {
  EXPECT_EQ(agreed("meta", 100'000, 100'000), 100'000);
  EXPECT_EQ(agreed("meta", 100'000, 100'001), std::nullopt);
}

TEST(SamplesOfOneConfiguration, agree_on_a_virtual_card_within_what_its_processes_may_differ_by) {
  EXPECT_EQ(agreed("virtual(card=t4)", 100'000, 100'050), 100'000);
  EXPECT_EQ(agreed("virtual(card=t4)", 100'000, 100'200), std::nullopt);
}

}  // namespace
}  // namespace headroom::arm_state_test
