#include "harness/device/traits.h"

#include <gtest/gtest.h>

#include "harness/device/device.h"

namespace headroom {
namespace {

class DeviceTraitsOf : public ::testing::TestWithParam<const char*> {
 protected:
  Spec spec_ = Spec(GetParam(), {{"capacity", "16MiB"}});
  DeviceTraits traits_ = traits_of(spec_);
  std::unique_ptr<Device> device_ = make_device(spec_);
};

INSTANTIATE_TEST_SUITE_P(EachKind, DeviceTraitsOf, ::testing::Values("host", "meta"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(DeviceTraitsOf, say_whether_the_device_computes) {
  EXPECT_EQ(traits_.computes, device_->computes());
}

TEST_P(DeviceTraitsOf, say_whether_the_device_has_a_driver_to_ask) {
  EXPECT_EQ(traits_.has_driver, device_->usage().has_value());
}

TEST(DeviceTraits, take_a_device_of_another_build_for_hardware_that_computes) {
  const DeviceTraits traits = traits_of(Spec("abacus"));
  EXPECT_TRUE(traits.computes && traits.timed);
  EXPECT_FALSE(traits.exact || traits.simulated);
}

}  // namespace
}  // namespace headroom
